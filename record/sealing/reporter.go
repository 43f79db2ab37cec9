// SPDX-License-Identifier: Apache-2.0

package sealing

import "fmt"

// Reporter takes what a person should know while a recording is made or sealed. Its
// methods may be called from several goroutines.
type Reporter interface {
	// Note takes a line of text.
	Note(line string)
	// Problem takes an error that does not end the work. Package hint has what can be done.
	Problem(err error)
	// Progress begins a display of progress whose amounts are written by unit.
	Progress(unit func(amount uint64) string) Progress
}

// Progress shows how far some work is.
type Progress interface {
	// Update says what is being done and how much of it; total is 0 if it is not known.
	Update(what string, done, total int64)
	// Done ends the display. It may be called twice.
	Done()
}

// Silent is a Reporter that shows nothing.
type Silent struct{}

// Note implements Reporter.
func (Silent) Note(string) {}

// Problem implements Reporter.
func (Silent) Problem(error) {}

// Progress implements Reporter.
func (Silent) Progress(func(uint64) string) Progress { return noProgress{} }

type noProgress struct{}

func (noProgress) Update(string, int64, int64) {}
func (noProgress) Done()                       {}

// Quiet returns a Reporter that shows no progress, and passes on the rest.
func Quiet(r Reporter) Reporter { return quiet{r} }

type quiet struct{ Reporter }

func (quiet) Progress(func(uint64) string) Progress { return noProgress{} }

// OrSilent returns r, or Silent if it is nil.
func OrSilent(r Reporter) Reporter {
	if r == nil {
		return Silent{}
	}
	return r
}

func note(r Reporter, format string, args ...any) { r.Note(fmt.Sprintf(format, args...)) }
