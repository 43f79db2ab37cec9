package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
)

// annotated is what a tape's annotations say of who waits for whom (package causal).
type annotated struct {
	notes *causal.Cursor
	an    *causal.Annotation // of the event at hand
	tasks map[uint64]source  // that others will wait for, by the event's number
	seen  int
}

// source is a task that others wait for, and the last event that does.
type source struct {
	ref   order.Ref
	until uint64
	at    *atomic.Int64
}

// await is a wait for another task, and for a time after it.
type await struct {
	ref order.Ref
	lag int64         // ns
	at  *atomic.Int64 // when the other was done, on clock
}

// readAnnotations returns those of a tape.
func readAnnotations(t *trace.Tape) (*annotated, error) {
	notes, err := causal.Read(t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--order causal: the tape has no annotations; iotape annotate %s finds them", t.Name())
	}
	if err != nil {
		return nil, err
	}
	return &annotated{notes: notes.Cursor(), tasks: map[uint64]source{}}, nil
}

// read goes on to a task's event, and returns how long its thread computed before it, ns.
func (a *annotated) read(t *task) int64 {
	if t.Rest { // the open that it is of has waited
		a.an = new(causal.Annotation)
	} else {
		a.an = a.notes.At(t.ev.Seq)
	}
	return int64(a.an.Compute)
}

// idle reports whether the event at hand neither waits nor is waited for.
func (a *annotated) idle(t *task) bool {
	return len(a.an.Waits) == 0 && a.an.Sleep == 0 && a.an.Until <= t.ev.Seq
}

// apply takes the waits of the event at hand into its task, and remembers the task if
// others wait for it.
func (a *annotated) apply(t *task) {
	an := a.an
	t.sleep = int64(an.Sleep)
	for _, w := range an.Waits {
		// One that comes later in the order that explains the results cannot be waited for.
		if s, ok := a.tasks[w.Event]; ok && s.ref.Slot != t.ref.Slot {
			t.awaits = append(t.awaits, await{s.ref, int64(w.Lag), s.at})
		}
	}
	if an.Until > t.ev.Seq {
		t.at = new(atomic.Int64)
		a.tasks[t.ev.Seq] = source{t.ref, an.Until, t.at}
	}
	if a.seen++; a.seen%(1<<16) == 0 {
		for seq, s := range a.tasks {
			if s.until < t.ev.Seq {
				delete(a.tasks, seq)
			}
		}
	}
}
