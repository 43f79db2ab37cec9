package replay

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
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/order"
)

// rest plans all that is left.
func (p *planner) rest(t *testing.T) (tasks []*task) {
	t.Helper()
	for {
		u := new(task)
		if err := p.next(u); errors.Is(err, io.EOF) {
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
	s := newScript(t)
	s.call(event.OpMkdirat, 0, 0, [6]uint64{at(), 0, 0o755}, "d")
	by := func(pid, tid uint32, ev event.Event) {
		ev.PID, ev.TID = pid, tid
		s.add(ev)
	}
	const all = event.ShareFiles | event.ShareFS | event.ShareVM | event.ShareThread
	by(1, 1, event.Event{Kind: event.Forked, Child: 2, Ret: 2})
	by(2, 2, event.Event{Op: event.OpChdir, Args: [6]uint64{0x1000}, Paths: []event.Path{{Raw: "d"}}})
	by(2, 2, event.Event{Kind: event.Forked, Child: 3, Ret: 2, Args: [6]uint64{all}})
	by(2, 3, event.Event{Kind: event.Forked, Child: 4, Ret: 2, Args: [6]uint64{all}})
	by(2, 4, event.Event{Op: event.OpMkdirat, Args: [6]uint64{at(), 0x1000, 0o755}, Paths: []event.Path{{Arg: 1, Raw: "x"}}})
	tape := s.close()
	p := newPlanner(tape, true, newMadeUp(tape, nil, false), nil, nil, order.Resource)
	published := order.Ref{}
	var last *task
	for _, u := range p.rest(t) {
		if u.ev.TID == 2 && u.publish {
			published = u.ref
		}
		last = u
	}
	if published.Pos == 0 || last.ev.TID != 4 {
		t.Fatalf("nothing is published (%v), or thread %d is the last", published, last.ev.TID)
	}
	for _, d := range last.deps {
		if d.Slot == published.Slot && d.Pos >= published.Pos {
			return
		}
	}
	t.Errorf("the call in the directory waits for %v, not for %v, which publishes it", last.deps, published)
}

// Flags that say how a call was measured leave it what it is.
func TestOrdinary(t *testing.T) {
	const unknown = event.EventFlags(1 << 15)
	for f, want := range map[event.EventFlags]bool{0: true, unknown: true, event.Interrupted: false, event.Compat: false, event.Late | unknown: false, event.Incomplete: false, event.StandIn: false} {
		if got := ordinary(f); got != want {
			t.Errorf("flags %#x: %v, want %v", f, got, want)
		}
	}
}

// TestPlainWithDelays: calls that say how long their threads waited for a processor are as
// plain as others, and that is not computing.
func TestPlainWithDelays(t *testing.T) {
	s := newScript(t)
	s.open(3, "f", effect.OCreat|2)
	const text = "hello"
	add := func(op event.Op, enter, cpu int64, flags event.EventFlags, before uint32) {
		ev := event.Event{Op: op, Enter: enter, Exit: enter + 10, CPU: cpu, Flags: flags, DelayBefore: before, Ret: int64(len(text)), Count: int64(len(text)),
			Args:  [6]uint64{3, 0x1000, uint64(len(text)), 0},
			Files: []event.File{{Arg: 0, FD: 3, Known: true, Mode: syscall.S_IFREG | 0o644, Ino: s.ino}},
			Bufs:  []event.Buf{{Arg: 1, Dir: event.Lookup(op).Args[1].Dir, Kind: event.KindBuf, Len: int64(len(text)), Inline: []byte(text)}}}
		s.add(ev)
	}
	const ms = 1_000_000
	add(event.OpPwrite64, 10*ms, 0, event.Delays, 0)
	add(event.OpPread64, 20*ms+10, 0, event.Delays, 3*ms)             // its clock is behind
	add(event.OpPread64, 30*ms+20, 10*ms, event.Delays, 20*ms)        // all of it, and more
	add(event.OpPread64, 90*ms+30, 15*ms, event.Delays, ms)           // it slept
	add(event.OpPread64, 95*ms+40, 16*ms, event.Delays|event.Late, 0) // not plain
	tape := s.close()
	p := newPlanner(tape, true, newMadeUp(tape, nil, false), nil, nil, order.Resource)
	var plain []int64
	for _, u := range p.rest(t) {
		if u.step.kind != stepTask {
			plain = append(plain, u.think)
		}
	}
	if len(plain) != 4 || plain[1] != 7*ms || plain[2] != 0 || plain[3] != 5*ms+maxTickNS {
		t.Errorf("plain steps after computing %v ns", plain)
	}
}

// An event that does nothing, waits for nothing and is waited for by nobody is no task: what
// the thread computed before it counts for its next one.
func TestIdleEventsCompute(t *testing.T) {
	s := newScript(t)
	s.call(event.OpMkdirat, 0, 0, [6]uint64{at(), 0, 0o755}, "a")
	for range 3 {
		s.add(event.Event{Op: event.OpGetpid})
	}
	s.call(event.OpMkdirat, 0, 0, [6]uint64{at(), 0, 0o755}, "b")
	s.add(event.Event{PID: 2, TID: 2, Op: event.OpMkdirat, Args: [6]uint64{at(), 0x1000, 0o755}, Paths: []event.Path{{Arg: 1, Raw: "c"}}})
	tape := s.close()
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
	p := newPlanner(tape, true, newMadeUp(tape, nil, false), nil, nil, order.Resource)
	p.notes = &annotated{notes: notes.Cursor(), tasks: map[uint64]source{}}
	var got []string
	for _, u := range p.rest(t) {
		if !u.idle && u.ev.Seq > 1 {
			got = append(got, fmt.Sprintf("%d after %v, %d waits", u.ev.Seq, time.Duration(u.think), len(u.awaits)))
		}
	}
	if want := []string{"3 after 3ms, 0 waits", "5 after 12ms, 0 waits", "6 after 0s, 1 waits"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
