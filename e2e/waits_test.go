// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// TestWaits records a program that waits in all the ways that the kernel has, and looks
// for each of them in the annotations: which call waited, and for which call.
func TestWaits(t *testing.T) {
	t.Parallel()
	tape := recordWaits(t, "waits")
	notes, _, err := causal.Annotate(tape.Events())
	if err != nil {
		t.Fatal(err)
	}

	var events []event.Event
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, *ev.Clone())
	}
	parent := events[0].PID
	type pair struct{ waits, signals string }
	name := func(e *event.Event) string {
		if e.Kind == event.Exited {
			return "exit"
		}
		return e.Spec().Name
	}
	var got []pair
	c := notes.Cursor()
	for i := range events {
		e := &events[i]
		if e.PID != parent || e.Kind != event.Call {
			continue
		}
		an := c.At(e.Seq)
		for _, w := range an.Waits {
			// Where the other call had not returned, the wait is for what is before it.
			for by := w.Event; by < uint64(len(events)); by++ {
				if o := &events[by]; o.TID == events[w.Event].TID && (by > w.Event || w.Lag == 0) &&
					(o.Kind == event.Call || o.Kind == event.Exited) {
					got = append(got, pair{name(e), name(o)})
					break
				}
			}
		}
		if len(an.Waits) > 0 && an.Sleep > 0 {
			t.Errorf("event %d, %s, waits and sleeps", e.Seq, name(e))
		}
	}
	want := []pair{{"read", "write"}, {"poll", "connect"}, {"poll", "write"}, {"epoll_wait", "write"},
		{"epoll_wait", "write"}, {"rt_sigtimedwait", "kill"},
		{"semtimedop", "semtimedop"}, {"futex", "futex"}, {"flock", "flock"}, {"wait4", "exit"}}
	for _, p := range got {
		if len(want) > 0 && p == want[0] {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		t.Errorf("found %v, and then not %v", got, want)
	}
}

// TestBarriers records threads that pass a barrier of the C library, and looks that the
// last one to come, whom nobody wakes, waits for the others.
func TestBarriers(t *testing.T) {
	t.Parallel()
	const rounds, sleepers = 12, 3 // of barrier.c
	tape := recordWaits(t, "barrier")
	notes, sum, err := causal.Annotate(tape.Events())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Found[causal.Barrier] < rounds*sleepers/2 {
		t.Errorf("found %d arrivals at barriers, want %d or most of them", sum.Found[causal.Barrier], rounds*sleepers)
	}
	full := 0
	c := notes.Cursor()
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if an := c.At(ev.Seq); ev.Op == event.OpFutex && ev.Kind == event.Call && ev.Ret == sleepers &&
			len(an.Waits) == sleepers {
			full++
		}
	}
	if full < rounds/2 {
		t.Errorf("%d times the last one waits for all others, of %d", full, rounds)
	}
}

// recordWaits compiles a program of testdata and records it with its wake-ups.
func recordWaits(t *testing.T, name string) *trace.Tape {
	t.Helper()
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "gcc")
	dir := t.TempDir()
	prog, path := filepath.Join(dir, name), filepath.Join(dir, name+".tape")
	if b, err := exec.Command("gcc", "-O1", "-o", prog, "-pthread",
		"testdata/"+name+".c").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, b)
	}
	cmd := exec.Command(testenv.Iotape(t), "record", "--backend", "ebpf", "--wakeups", "--no-index", "-o", path, "--",
		prog)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, b)
	}
	tape, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}
