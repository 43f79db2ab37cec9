// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/trace"
)

// Config says what is compared. It is not changed.
type Config struct {
	Tape   *trace.Tape
	Arch   event.Arch // of the recording
	Checks options.Checks
	Root   bool // owners can be as recorded
	// Privileged says that set-id bits and capabilities are made; else they are not compared.
	Privileged bool
	Renamed    bool // names are others than recorded
	// Target is the root directory, if its mode and owner are not to be compared.
	Target effect.Inode
	// LeftOut are the kinds of calls that the trace may have left out: see initialtree.Tree.
	LeftOut []string
	// Others are names, sorted, of files that others changed while the recording went on.
	Others []string
	// Overlays are directories into which overlays of the recording stored: see initialtree.Tree.
	Overlays []string
	// Log gets the differences. It may be nil.
	Log *result.Log
	// Difference is called after each difference. It may be nil.
	Difference func()
}

// Checker compares results with the recording. It is used by all workers at once.
type Checker struct {
	Config
	mu     sync.Mutex
	report *result.Report
	causes causes
}

// NewChecker returns a checker that adds what it finds to a report. The report must not be
// read before all calls of the checker's methods have returned.
func NewChecker(c *Config, report *result.Report) *Checker {
	return &Checker{Config: *c, report: report, causes: newCauses()}
}

// Unexplained counts a result that no order of the recorded calls explains: it comes from a
// race that the kernel decided within a call.
func (c *Checker) Unexplained() {
	c.mu.Lock()
	c.report.Unexplained++
	c.mu.Unlock()
}

// Different returns how many results differ so far.
func (c *Checker) Different() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report.Different
}

// Uncompared counts a read that could not be compared, or not all of it.
func (c *Checker) Uncompared() {
	c.mu.Lock()
	c.report.Uncompared++
	c.mu.Unlock()
}

// Problem notes once that the machine lacks something, and what is done about it.
func (c *Checker) Problem(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.report.Problems, text) {
		c.report.Problems = append(c.report.Problems, text)
	}
}

// Mismatch notes a difference in a field of a task's result.
func (c *Checker) Mismatch(t *plan.Task, field, want, got string) {
	if c.dependent(t.Op, field, want, got) {
		return
	}
	m := result.Mismatch{
		Seq: t.Event.Seq, TID: t.TID, Op: t.Op.String(), Path: t.Event.Name(), Field: field, Expected: want, Got: got,
	}
	var names []string
	for i := range t.Event.Paths {
		names = append(names, t.Event.Paths[i].Abs)
	}
	var handles []*plan.Handle
	for _, h := range append(slices.Concat(t.Files.FDs[:], t.Files.Through[:]), t.Files.Result) {
		if h != nil {
			handles, names = append(handles, h), append(names, h.Path)
		}
	}
	if c.outside(names) {
		return
	}
	c.addAndNotify(&m, alters(&t.Event, field), names, handles)
}

// StepMismatch is Mismatch for a plain step.
func (c *Checker) StepMismatch(s *plan.Step, field, want, got string) {
	if c.dependent(s.Op, field, want, got) {
		return
	}
	m := result.Mismatch{
		Seq: s.Seq, TID: s.TID, Op: s.Op.String(), Field: field, Expected: want, Got: got, Path: s.Handle.Path,
	}
	if c.outside([]string{s.Handle.Path}) {
		return
	}
	alters := s.Kind == plan.StepWrite || !s.HasOffset && field != "content"
	c.addAndNotify(&m, alters, []string{s.Handle.Path}, []*plan.Handle{s.Handle})
}

// outside counts a difference of a file that others changed while the recording went on, or the kernel for an overlay:
// it is none. It reports false if the names are of others.
func (c *Checker) outside(names []string) bool {
	for _, name := range names {
		if _, found := slices.BinarySearch(c.Others, name); found {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.report.AddOutside(1, name)
			return true
		}
		if dir := effect.Below(c.Overlays, name); dir != "" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.report.AddOverlay(1, dir)
			return true
		}
	}
	return false
}

// dependent counts a difference that calls would explain which the trace may have left out: it
// is none, because the trace does not say what they did. It reports false of others.
func (c *Checker) dependent(op event.Op, field, want, got string) bool {
	causes := effect.DependsOn(c.LeftOut, op, field, want, got)
	if len(causes) == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.AddDependent(1, causes)
	return true
}

// addAndNotify adds a difference, or puts it down to an earlier one. alters says that others may
// follow from it.
func (c *Checker) addAndNotify(m *result.Mismatch, alters bool, names []string, handles []*plan.Handle) {
	c.add(m, alters, names, handles)
	if c.Difference != nil {
		c.Difference()
	}
}

func (c *Checker) add(m *result.Mismatch, alters bool, names []string, handles []*plan.Handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rep := c.report
	rep.Different++
	if rep.First == nil || m.Seq < rep.First.Seq {
		first := *m
		rep.First = &first
	}
	if cause := c.causes.find(names, handles); cause != 0 {
		m.Because = &cause
		cause--
		rep.Following++
		if i := slices.IndexFunc(rep.Mismatches, func(k result.Mismatch) bool { return k.Seq == cause }); i >= 0 {
			rep.Mismatches[i].Followers++
		}
		if alters {
			c.causes.remember(cause+1, nil, handles)
		}
	} else {
		if alters {
			c.causes.remember(m.Seq+1, names, handles)
		}
		rep.Add(m)
	}
	c.Log.Mismatch(m)
}
