package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"iotape/causal"
	"iotape/replay/order"
	"iotape/trace"
)

// annotated is what a tape's annotations say of who waits for whom (package causal).
type annotated struct {
	notes *causal.Cursor
	tasks map[uint64]source // that others will wait for, by the event's number
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

// apply takes what an event's annotation says into its task, and remembers the task if
// others wait for it.
func (a *annotated) apply(t *task) {
	if t.Rest {
		return // the open that it is of has waited
	}
	an := a.notes.At(t.ev.Seq)
	t.think, t.sleep = int64(an.Compute), int64(an.Sleep)
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
