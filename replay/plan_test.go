package replay

import (
	"errors"
	"io"
	"testing"

	"iotape/event"
	"iotape/replay/order"
)

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
	for {
		u := new(task)
		if err := p.next(u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
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
