// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/ptrace"
	"github.com/iotape/iotape/trace"
)

// Run records a command, or processes that run already; see capture.Backend and the package's page.
func (Backend) Run(ctx context.Context, o *capture.Options, sw *trace.StreamWriter) (*capture.Result, error) {
	switch {
	case o.All || o.Cgroup != "":
		return nil, &capture.UnsupportedError{Backend: name, Feature: "a command or processes (--pid)"}
	case o.Survive && !o.Running():
		return nil, &capture.UnsupportedError{
			Backend: name, Feature: "programs that may end with a killed recorder (--survive asks for others)",
		}
	}
	if err := probe(); err != nil {
		return nil, err
	}
	c, err := inproc()
	if err != nil {
		return nil, err
	}
	rec, err := ptrace.NewRecorder(o, sw)
	if err != nil {
		return nil, err
	}
	s := &session{
		o: o, rec: rec, base: rec.Handler(), code: c, tables: newTables(o, rec.Exempt()),
		threads: map[*ptracer.Tracee]*thread{}, images: map[imageKey]*image{}, slow: map[string]*slowSite{},
		refused: map[string]int{}, timer: newTimer(), rings: map[*thread]*ringState{},
	}
	rec.Place, rec.RecordedUntil = s.programAt, s.recordedUntil
	cmd := ptrace.CommandOf(o)
	cmd.Leaving = func() { rec.Do(s.quit) }
	if o.Running() {
		cmd = rec.Attach(s.enterAll)
		cmd.Leaving = s.leaving
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.run(stop)
	}()
	rec.Finish = func() {
		close(stop)
		<-ended
	}
	res, err := rec.Run(ctx, cmd, s.handler())
	s.report()
	if res != nil {
		res.Stops, res.Unpatched = s.stops, s.met
	}
	return res, err
}

// report says what stayed slow.
func (s *session) report() {
	if s.o.Note == nil {
		return
	}
	for _, why := range slices.Sorted(maps.Keys(s.refused)) {
		s.o.Note(fmt.Sprintf("%d programs were recorded by stopping at each call, which is slow: %s",
			s.refused[why], why))
	}
	if len(s.slow) == 0 {
		return
	}
	list := slices.SortedFunc(maps.Values(s.slow), func(a, b *slowSite) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.where, b.where))
	})
	total := uint64(0)
	for _, x := range list {
		total += x.calls
	}
	const worth = 1000 // calls: less is not worth a line
	if total >= worth {
		s.o.Note(fmt.Sprintf("%d places cannot be patched: %d calls there stopped; most at %s (%d)", len(list),
			total, list[0].where, list[0].calls))
	}
}
