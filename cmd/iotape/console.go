// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/format/open"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/pipe/checksum"
	"github.com/iotape/iotape/pipe/encrypt"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// console is where a command reads, prints results and says everything else.
type console struct{ in, out, err *os.File }

// say writes a line for people.
func (c *console) say(format string, args ...any) {
	fmt.Fprintf(c.err, "iotape: %s\n", report.OneLine(fmt.Sprintf(format, args...)))
}

func (c *console) hint(format string, args ...any) {
	fmt.Fprintf(c.err, "hint: %s\n", report.OneLine(fmt.Sprintf(format, args...)))
}

// progress returns a progress whose amounts are written by unit.
func (c *console) progress(unit func(uint64) string) *term.Progress {
	return term.NewProgress(c.err, "iotape: ", func(n int64) string { return unit(uint64(max(n, 0))) })
}

// print calls f with a buffered standard output.
func (c *console) print(f func(w *bufio.Writer) error) error {
	w := bufio.NewWriterSize(c.out, 64<<10)
	err := f(w)
	if flushErr := w.Flush(); flushErr != nil && (err == nil || errors.Is(err, flushErr)) {
		return fmt.Errorf("write standard output: %w", flushErr)
	}
	return err
}

// result prints a result. The exit status says whether all is as it should be.
func (c *console) result(write func(w io.Writer) error, good bool) error {
	return ended(c.print(func(w *bufio.Writer) error { return write(w) }), good)
}

// ended returns how a command ended: by an error, or, unless all is as it should be, with
// the status that says so.
func ended(err error, good bool) error {
	if err == nil && !good {
		return &statusError{Status: exitFound}
	}
	return err
}

// The exit statuses; docs/exit-codes.md.
const (
	exitOK     = 0
	exitFound  = 1   // done, and something is not as it should be
	exitFailed = 2   // could not be done
	exitRecord = 125 // record: iotape itself failed
	exitNoExec = 126 // record: the command cannot be executed
	exitNoFile = 127 // record: the command was not found
)

// usageError is a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// statusError asks for an exit status. Without Err nothing is said.
type statusError struct {
	Status int
	Err    error
}

func (e *statusError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *statusError) Unwrap() error { return e.Err }

// found gives an error of some kind the status of what was done and found something.
func found(err, kind error) error {
	if errors.Is(err, kind) {
		return &statusError{exitFound, err}
	}
	return err
}

// finish says what went wrong and returns the exit status.
func (c *console) finish(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	status := exitFailed
	if cmd.Name() == "record" || cmd.Name() == "run" {
		status = exitRecord
	}
	var s *statusError
	if errors.As(err, &s) {
		if status = s.Status; s.Err == nil {
			return status
		}
		err = s.Err
	}
	if errors.Is(err, syscall.EPIPE) {
		return status // the reader of our output has gone
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	c.say("%v", err)
	c.showPlace(err)
	if h := hintFor(cmd, err); h != "" {
		c.hint("%s", h)
	}
	return status
}

// hintFor returns what can be done about an error, "" if there is nothing to say.
func hintFor(cmd *cobra.Command, err error) string {
	var usage usageError
	var filter *predicate.Error
	var unsupported *capture.UnsupportedError
	var recipient *encrypt.RecipientError
	var key *checksum.KeyError
	switch {
	case hint.Of(err) != "":
		return hint.Of(err)
	case errors.As(err, &filter) && filter.What == "alarm":
		return "docs/top.md describes the rules of alarms"
	case errors.As(err, &filter):
		return "iotape explain-filter --fields lists the fields of filters"
	case errors.As(err, &usage):
		return cmd.CommandPath() + " --help"
	case errors.Is(err, trace.ErrNotSealed), errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &recipient):
		return "use --identity FILE with the secret key"
	case errors.As(err, &key):
		return "use --key FILE with the key of the checksums"
	case errors.Is(err, trace.ErrNewer):
		return "use a newer iotape"
	case errors.Is(err, replay.ErrNotEmpty):
		return "name a new directory, or use --force for one that is not empty"
	case errors.As(err, &unsupported) && cmd.Name() == "top":
		return "docs/privileges.md lists the rights that counting needs; iotape top --tape counts the events of a tape"
	case errors.As(err, &unsupported) && unsupported.Backend == "ebpf":
		return "record with --backend ptrace"
	case errors.Is(err, trace.ErrCorrupt), errors.Is(err, trace.ErrTruncated):
		if cmd.Name() != "check" {
			return "iotape check says what is damaged"
		}
	case errors.Is(err, syscall.ENOSPC):
		return "free some space"
	}
	return ""
}

// openTape opens the tape that an argument names, or a temporary one of what it names.
func openTape(ctx context.Context, path string) (*trace.Tape, error) {
	if !open.Sealed(path) {
		// With a reader that goes away, head(1) say, writing is to fail instead of
		// killing: the temporary tape has to be removed.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	return open.Recorded(ctx, path, program())
}

// openTapes opens several tapes. closeAll closes those that it returns, after an error too.
func openTapes(ctx context.Context, names []string) (tapes []*trace.Tape, closeAll func(), err error) {
	closeAll = func() {
		for _, t := range tapes {
			t.Close()
		}
	}
	for _, name := range names {
		t, err := openTape(ctx, name)
		if err != nil {
			return tapes, closeAll, err
		}
		tapes = append(tapes, t)
	}
	return tapes, closeAll, nil
}

// withTape returns what a command does that works on the tape of its first argument.
func withTape(do func(cmd *cobra.Command, t *trace.Tape) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t, err := openTape(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer t.Close()
		return do(cmd, t)
	}
}

// usageIf makes a usage error of an error of type T.
func usageIf[T error](err error) error {
	var wrong T
	if errors.As(err, &wrong) {
		return usageError{err}
	}
	return err
}

// either returns a or b.
func either[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
