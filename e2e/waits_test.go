package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"iotape/causal"
	"iotape/event"
	"iotape/internal/testenv"
	"iotape/trace"
)

// TestWaits records a program that waits in all the ways that the kernel has, and looks
// for each of them in the annotations: which call waited, and for which call.
func TestWaits(t *testing.T) {
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "gcc")
	dir := t.TempDir()
	prog, path := filepath.Join(dir, "waits"), filepath.Join(dir, "waits.tape")
	if b, err := exec.Command("gcc", "-O1", "-o", prog, "testdata/waits.c").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, b)
	}
	cmd := exec.Command(testenv.Iotape(t), "record", "--backend", "ebpf", "--wakeups", "--no-index", "-o", path, "--", prog)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, b)
	}
	tape, err := trace.OpenTape(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
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
				if o := &events[by]; o.TID == events[w.Event].TID && (by > w.Event || w.Lag == 0) && (o.Kind == event.Call || o.Kind == event.Exited) {
					got = append(got, pair{name(e), name(o)})
					break
				}
			}
		}
		if len(an.Waits) > 0 && an.Sleep > 0 {
			t.Errorf("event %d, %s, waits and sleeps", e.Seq, name(e))
		}
	}
	want := []pair{{"read", "write"}, {"poll", "connect"}, {"poll", "write"}, {"epoll_wait", "write"}, {"epoll_wait", "write"}, {"rt_sigtimedwait", "kill"},
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
