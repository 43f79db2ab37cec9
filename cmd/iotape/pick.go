package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// recordFilter compiles the filter of a recording that is to be made.
func recordFilter(c *console, x *predicate.Expr) (*predicate.Graph, error) {
	return compileFilter(c, x, hostOptions())
}

// hostOptions says what filters can know of a recording that begins here and now.
func hostOptions() *predicate.Options {
	host, _ := os.Hostname()
	arch, _ := event.ParseArch(runtime.GOARCH)
	clock, wall := capture.Clocks()
	return &predicate.Options{Hosts: []predicate.Host{{Name: host, Arch: arch, WallNS: wall - clock}}, StartNS: wall}
}

// screenRecording leaves out of a recording what its filter never picks. What programs do
// with files through mappings of them is left out as a whole, or not at all.
func screenRecording(p *recordPlan, g *predicate.Graph, mmapGiven bool) {
	s := screenOf(g)
	never := func(op event.Op) bool { return s.Entries[op] == predicate.ScreenRefuse }
	p.capture.Screen = s
	switch {
	case mmapGiven || p.capture.Running() || !never(event.OpMmapPread):
	case never(event.OpMmapPwrite):
		p.capture.Mmap = capture.MmapOff
	case p.capture.Mmap == capture.MmapData:
		p.capture.Mmap = capture.MmapWritten
	}
}

// screenOf is what of a filter can be decided where calls are recorded.
func screenOf(g *predicate.Graph) *predicate.Screen {
	return g.Screen(func(op event.Op) bool {
		return op == event.OpMmapPread || op == event.OpMmapPwrite || slice.MayLeaveOut(op)
	})
}

// pickedName is the tape of what the filter of a recording picks, while it is made.
const pickedName = "picked"

// pick makes of the sealed tape the one of what the recording's filter picks: what
// iotape slice would make of the recording without one. It returns where that is.
func (u *unfinished) pick(ctx context.Context, c *console, filter string) (dir string, res *slice.Result, err error) {
	t, err := trace.OpenTape(u.dir)
	if err != nil {
		return "", nil, err
	}
	defer t.Close()
	x, err := predicate.Parse(filter)
	if err != nil {
		return "", nil, fmt.Errorf("the recording's filter: %w", err)
	}
	g, err := predicate.Compile(x, tapeOptions(t))
	if err != nil {
		return "", nil, fmt.Errorf("the recording's filter: %w", err)
	}
	dir = filepath.Join(u.work, pickedName)
	if err := os.RemoveAll(dir); err != nil {
		return "", nil, err
	}
	tw, err := trace.CreateTape(dir)
	if err != nil {
		return "", nil, err
	}
	defer tw.Abort()
	res, err = slice.Tape(ctx, tw, t, &slice.Options{Filter: g, Program: program()})
	if err != nil {
		os.RemoveAll(dir)
		if errors.Is(err, slice.ErrEmpty) {
			return "", nil, errNothingFits
		}
		return "", nil, stopped(err)
	}
	for i := range res.Manifest.Hosts {
		res.Manifest.Hosts[i].Window.Reason = "recorded with the filter " + filter
	}
	for _, name := range res.LeftOut {
		c.say("left out: %s, which is not that of what the filter picks", name)
	}
	u.assemble(res.Manifest)
	return dir, res, tw.Close(res.Manifest)
}

// pickedStream makes, for the moment, the tape of what the filter of a recording picks that
// was opened as a stream. It closes that.
func pickedStream(ctx context.Context, t *trace.Tape) (*trace.Tape, error) {
	defer t.Close()
	x, err := predicate.Parse(t.Host(0).Filter)
	if err != nil {
		return nil, fmt.Errorf("the recording's filter: %w", err)
	}
	g, err := predicate.Compile(x, tapeOptions(t))
	if err != nil {
		return nil, fmt.Errorf("the recording's filter: %w", err)
	}
	return slicedTape(ctx, t, g, "")
}

// errNothingFits is returned if a recording's filter picks nothing: there is no tape.
var errNothingFits = errors.New("nothing that was recorded fits the filter: there is no tape")
