// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
)

func newPlanner(t *testing.T, tape *trace.Tape, c *Config) *Planner {
	t.Helper()
	p, err := New(tape, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// planAll plans all that is left.
func planAll(t *testing.T, p *Planner) (tasks []*Task) {
	t.Helper()
	for {
		u := new(Task)
		if err := p.Next(u); errors.Is(err, io.EOF) {
			return tasks
		} else if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, u)
	}
}

// A thread that did nothing but make another one leads from that one to its own maker: what
// its maker published, a working directory, is there before it is used.
func TestThreadOfAnIdleThread(t *testing.T) {
	s := tapescript.New(t)
	s.Call(event.OpMkdirat, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, 0o755}, "d")
	by := func(pid, tid uint32, ev event.Event) {
		ev.PID, ev.TID = pid, tid
		s.Add(ev)
	}
	const all = event.ShareFiles | event.ShareFS | event.ShareVM | event.ShareThread
	by(1, 1, event.Event{Kind: event.Forked, Child: 2, Ret: 2})
	by(2, 2, event.Event{Op: event.OpChdir, Args: [6]uint64{0x1000}, Paths: []event.Path{{Raw: "d"}}})
	by(2, 2, event.Event{Kind: event.Forked, Child: 3, Ret: 2, Args: [6]uint64{all}})
	by(2, 3, event.Event{Kind: event.Forked, Child: 4, Ret: 2, Args: [6]uint64{all}})
	by(2, 4, event.Event{
		Op: event.OpMkdirat, Args: [6]uint64{tapescript.AtFDCWD(), 0x1000, 0o755},
		Paths: []event.Path{{Arg: 1, Raw: "x"}},
	})
	tape := s.Close()
	p := newPlanner(t, tape, &Config{Order: order.Resource})
	published := order.Ref{}
	var last *Task
	for _, u := range planAll(t, p) {
		if u.Event.TID == 2 && u.Dir.Publish {
			published = u.Order.Ref
		}
		last = u
	}
	if published.Pos == 0 || last.Event.TID != 4 {
		t.Fatalf("nothing is published (%v), or thread %d is the last", published, last.Event.TID)
	}
	for _, d := range last.Order.Deps {
		if d.Slot == published.Slot && d.Pos >= published.Pos {
			return
		}
	}
	t.Errorf("the call in the directory waits for %v, not for %v, which publishes it", last.Order.Deps, published)
}

// Flags that say how a call was measured leave it what it is.
func TestOrdinary(t *testing.T) {
	const unknown = event.EventFlags(1 << 15)
	for f, want := range map[event.EventFlags]bool{0: true, unknown: true, event.Interrupted: false,
		event.Compat: false, event.Late | unknown: false, event.Incomplete: false, event.Synthetic: false} {
		if got := ordinary(f); got != want {
			t.Errorf("flags %#x: %v, want %v", f, got, want)
		}
	}
}

// TestPlainWithDelays: calls that say how long their threads waited for a processor are as
// plain as others, and that is not computing.
func TestPlainWithDelays(t *testing.T) {
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2)
	const text = "hello"
	add := func(op event.Op, enter, cpu int64, flags event.EventFlags, before uint32) {
		ev := event.Event{Op: op, Enter: enter, Exit: enter + 10, CPU: cpu, Flags: flags, DelayBefore: before,
			Ret: int64(len(text)), Count: int64(len(text)),
			Args:  [6]uint64{3, 0x1000, uint64(len(text)), 0},
			Files: []event.File{{Arg: 0, FD: 3, Known: true, Mode: syscall.S_IFREG | 0o644, Ino: s.Ino}},
			Bufs: []event.Buf{{Arg: 1, Dir: event.Lookup(op).Args[1].Dir, Kind: event.KindBuf, Len: int64(len(text)),
				Inline: []byte(text)}}}
		s.Add(ev)
	}
	const ms = 1_000_000
	add(event.OpPwrite64, 10*ms, 0, event.Delays, 0)
	add(event.OpPread64, 20*ms+10, 0, event.Delays, 3*ms)             // its clock is behind
	add(event.OpPread64, 30*ms+20, 10*ms, event.Delays, 20*ms)        // all of it, and more
	add(event.OpPread64, 90*ms+30, 15*ms, event.Delays, ms)           // it slept
	add(event.OpPread64, 95*ms+40, 16*ms, event.Delays|event.Late, 0) // not plain
	tape := s.Close()
	p := newPlanner(t, tape, &Config{Order: order.Resource})
	var plain []int64
	for _, u := range planAll(t, p) {
		if u.Step.Kind != StepTask {
			plain = append(plain, u.Time.Think)
		}
	}
	if len(plain) != 4 || plain[1] != 7*ms || plain[2] != 0 || plain[3] != 5*ms+maxTickNS {
		t.Errorf("plain steps after computing %v ns", plain)
	}
}

// An event that does nothing, waits for nothing and is waited for by no task is no task: what
// the thread computed before it counts for its next one.
func TestIdleEventsCompute(t *testing.T) {
	s := tapescript.New(t)
	s.Call(event.OpMkdirat, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, 0o755}, "a")
	for range 3 {
		s.Add(event.Event{Op: event.OpGetpid})
	}
	s.Call(event.OpMkdirat, 0, 0, [6]uint64{tapescript.AtFDCWD(), 0, 0o755}, "b")
	s.Add(event.Event{
		PID: 2, TID: 2, Op: event.OpMkdirat, Args: [6]uint64{tapescript.AtFDCWD(), 0x1000, 0o755},
		Paths: []event.Path{{Arg: 1, Raw: "c"}},
	})
	tape := s.Close()
	notes, err := causal.ReadText(strings.NewReader(`EVENTS(7)
COMPUTE(1ms)
2 1 getpid
COMPUTE(2ms)
3 1 getpid
SIGNAL(6)
COMPUTE(4ms)
4 1 getpid
COMPUTE(8ms)
5 1 mkdirat
WAIT(3)
6 2 mkdirat
`), tape.Events())
	if err != nil {
		t.Fatal(err)
	}
	p := newPlanner(t, tape, &Config{Order: order.Resource, Annotations: NewAnnotations(notes)})
	var got []string
	for _, u := range planAll(t, p) {
		if !u.Order.Idle && u.Event.Seq > 1 {
			got = append(got, fmt.Sprintf("%d after %v, %d waits", u.Event.Seq, time.Duration(u.Time.Think),
				len(u.Order.Waits)))
		}
	}
	if want := []string{"3 after 3ms, 0 waits", "5 after 12ms, 0 waits", "6 after 0s, 1 waits"}; !slices.Equal(got,
		want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
