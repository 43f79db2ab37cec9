// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// TestErrorsOfTurns: a row's error is the median of its turns' errors. The machine of this
// test becomes half as fast between turns; the error of medians would be 50 %.
func TestErrorsOfTurns(t *testing.T) {
	r := &Row{Error: map[string]float64{}, Least: map[string]float64{}, Most: map[string]float64{}}
	for _, turn := range []Turn{
		{AppNS: 100, ReplayNS: map[string]int64{"causal": 101, "afap": 50}},
		{AppNS: 200, ReplayNS: map[string]int64{"causal": 200}},
		{AppNS: 100, ReplayNS: map[string]int64{"causal": 110, "afap": 60}},
	} {
		r.add(turn)
	}
	want := &Row{AppNS: 100, Error: map[string]float64{"causal": .01, "afap": -.45},
		Least: map[string]float64{"causal": 0, "afap": -.5}, Most: map[string]float64{"causal": .1, "afap": -.4}}
	if r.AppNS != want.AppNS || !maps.Equal(r.Error, want.Error) || !maps.Equal(r.Least, want.Least) ||
		!maps.Equal(r.Most, want.Most) {
		t.Errorf("%+v", r)
	}
}

// TestErrorAgain: what counts is the mean of an application's runs, and the second one's
// error is against the first.
func TestErrorAgain(t *testing.T) {
	r := &Row{Error: map[string]float64{}, Least: map[string]float64{}, Most: map[string]float64{}}
	turn := Turn{ReplayNS: map[string]int64{"causal": 220}}
	turn.ran(180)
	turn.ran(220)
	r.add(turn)
	if want := map[string]float64{"causal": .1, again: .2}; r.AppNS != 200 || !maps.Equal(r.Error, want) {
		t.Errorf("%d ns, %v", r.AppNS, r.Error)
	}
}

// TestDoes: other work is told by the medians of the turns' shares.
func TestDoes(t *testing.T) {
	turn := func(recorded, there Work) Turn { return Turn{Recorded: &recorded, There: &there} }
	for _, c := range []struct {
		name  string
		turns []Turn
		want  Does
		same  bool
	}{
		{"the same", []Turn{turn(Work{Data: 100, Flushes: 100}, Work{Data: 103, Flushes: 97})}, Does{1.03, .97, 1}, true},
		{"group commit", []Turn{turn(Work{Data: 100, Flushes: 100}, Work{Data: 100, Flushes: 85})}, Does{1, .85, 1}, false},
		{"compaction", []Turn{turn(Work{Data: 100, Bytes: 1000}, Work{Data: 103, Bytes: 1100})}, Does{1.03, 1, 1.1}, false},
		{"now and then", []Turn{turn(Work{Data: 100}, Work{Data: 90}), turn(Work{Data: 100}, Work{Data: 100}), turn(Work{Data: 100}, Work{Data: 100})}, Does{1, 1, 1}, true},
		{"none", []Turn{turn(Work{}, Work{})}, Does{1, 1, 1}, true},
		{"none was recorded", []Turn{turn(Work{}, Work{Flushes: 3})}, Does{1, 4, 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := does(c.turns)
			if got == nil || *got != c.want || got.Same() != c.same {
				t.Errorf("%+v", got)
			}
		})
	}
	if d := does([]Turn{{AppNS: 1}}); d != nil || d.Same() {
		t.Errorf("%+v of a turn that was not counted", d)
	}
}

// TestWork: what counts as work, and over which time it goes.
func TestWork(t *testing.T) {
	file := func(path string, flags, mode uint32) []event.File {
		return []event.File{{Arg: 0, FD: 3, Open: 1, Known: true, Mode: mode, Flags: flags, Path: path}}
	}
	const regular, pipe = 0o100644, 0o10600
	w := &worker{under: "/db"}
	for _, e := range []*event.Event{
		{Op: event.OpPwrite64, Ret: 10, Exit: 1000, Enter: 500, Files: file("/db/a", 1, regular)},
		{Op: event.OpPwrite64, Ret: 10, Exit: 2000, Enter: 1500, Files: file("/db/wal", 1|oDsync, regular)},
		{Op: event.OpRead, Ret: 5, Exit: 3000, Enter: 2500, Files: file("/db/a", 0, regular)},
		{Op: event.OpFsync, Exit: 4000, Enter: 3500, Files: file("/db/a", 1, regular)},
		{Op: event.OpFdatasync, Exit: 100_500, Enter: 4500, Files: file("/db/a", 1, regular)},
		{Op: event.OpFdatasync, Exit: 900_500, Enter: 4500, Files: file("/dbx/a", 1, regular)}, // elsewhere
		{Op: event.OpRead, Ret: 5, Exit: 900_000, Files: file("/usr/lib/x", 0, regular)},
		{Op: event.OpRead, Ret: 5, Exit: 900_000, Files: file("pipe:[1]", 0, pipe)},
		{Op: event.OpRead, Ret: -1, Errno: 5, Exit: 900_000, Files: file("/db/a", 0, regular)},
		{Op: event.OpClose, Exit: 900_000, Files: file("/db/a", 0, regular)},
	} {
		w.event(e)
	}
	if w.work != (Work{Data: 3, Flushes: 3, Bytes: 25}) {
		t.Errorf("%+v", w.work)
	}
	r := w.rate()
	if r.BinNS != 100_000/240 || r.Bytes[1] != 10 || r.Bytes[3] != 10 || r.Bytes[6] != 5 {
		t.Errorf("%+v", r)
	}
}

// TestSweep: what a command has left behind is ended, also if it has a session of its own
// and does not listen, and what is to be kept is not.
func TestSweep(t *testing.T) {
	testenv.Short(t, "it replays many times")
	adopt()
	keep := exec.Command("sleep", "1000")
	if err := keep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keep.Process.Kill(); _ = keep.Wait() }()
	out, err := (&mounted{}).command(t.Context(), "sh", "-c",
		"setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' >/dev/null 2>&1 & setsid sleep 1000 >/dev/null 2>&1 & "+
			"echo $!")
	if err != nil {
		t.Fatal(err)
	}
	s := &study{stores: map[string]*mounted{"x": {server: keep}}}
	s.sweep()
	if left := descendants(os.Getpid(), []int{keep.Process.Pid}); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(out))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("sleep is still there: %v", err)
	}
	if !slices.Contains(descendants(os.Getpid(), nil), keep.Process.Pid) {
		t.Error("what was to be kept is gone")
	}
}

// TestCancelled: a command ends with its context, and with all that it has started.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	s := &study{stores: map[string]*mounted{}}
	if _, err := s.command(ctx, &mounted{}, "sh", "-c", "sleep 1000 & sleep 1000"); err == nil {
		t.Error("no error")
	}
	if left := descendants(os.Getpid(), nil); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestBadOptions: what cannot be done is said before anything is.
func TestBadOptions(t *testing.T) {
	for want, o := range map[string]Options{
		`there is no application "quak"; there are`:               {Apps: []string{"quak"}},
		`there is no application "quake/futex"; there are`:        {Apps: []string{"quake/futex"}, Syncs: []string{"pipe"}},
		`there is no storage system "tape"; there are arm`:        {Stores: []string{"tape"}},
		`there is no storage system "x"; there are arm, channels`: {Traced: "x"},
		`there is no way to replay "throttle 1"; there are`:       {Modes: []string{"throttle 1"}},
		`there is no way to wait "poll"; there are futex`:         {Syncs: []string{"poll"}},
		`a period is 1 or more, not 0`:                            {Periods: []int{0}},
		`ranks, turns, nodes and the scale are above 0`:           {Scale: -1},
	} {
		if _, err := Run(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
