// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
)

// Annotations are what a tape's annotations say of which event waits for which (package
// causal).
type Annotations struct {
	notes   *causal.Cursor
	current *causal.Annotation       // of the event at hand
	tasks   map[uint64]annotatedTask // that others will wait for, by the event's number
	seen    int
}

// annotatedTask is a task that others wait for, and the last event that does.
type annotatedTask struct {
	ref   order.Ref
	until uint64
	done  *atomic.Int64
}

// Wait is a wait for another task, and for a time after it.
type Wait struct {
	Ref  order.Ref
	Lag  int64         // ns
	Done *atomic.Int64 // when the other was done, by the replay's clock
}

// ReadAnnotations returns those of a tape.
func ReadAnnotations(t *trace.Tape) (*Annotations, error) {
	notes, err := causal.Read(t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--order causal: the tape has no annotations; iotape annotate %s finds them", t.Name())
	}
	if err != nil {
		return nil, err
	}
	return NewAnnotations(notes), nil
}

// NewAnnotations returns annotations for a Planner of the same tape.
func NewAnnotations(notes *causal.Annotations) *Annotations {
	return &Annotations{notes: notes.Cursor(), tasks: map[uint64]annotatedTask{}}
}

// next goes on to a task's event, and returns how long its thread computed before it, ns.
func (a *Annotations) next(t *Task) int64 {
	if t.Rest { // the open that it is of has waited
		a.current = new(causal.Annotation)
	} else {
		a.current = a.notes.At(t.Event.Seq)
	}
	return int64(a.current.Compute)
}

// idle reports whether the event at hand neither waits nor is waited for.
func (a *Annotations) idle(t *Task) bool {
	return len(a.current.Waits) == 0 && a.current.Sleep == 0 && a.current.Until <= t.Event.Seq
}

// apply takes the waits of the event at hand into its task, and remembers the task if
// others wait for it.
func (a *Annotations) apply(t *Task) {
	an := a.current
	t.Time.Sleep = int64(an.Sleep)
	for _, w := range an.Waits {
		// One that comes later in the order that explains the results cannot be waited for.
		if s, ok := a.tasks[w.Event]; ok && s.ref.Slot != t.Order.Ref.Slot {
			t.Order.Waits = append(t.Order.Waits, Wait{s.ref, int64(w.Lag), s.done})
		}
	}
	if an.Until > t.Event.Seq {
		t.Order.Done = new(atomic.Int64)
		a.tasks[t.Event.Seq] = annotatedTask{t.Order.Ref, an.Until, t.Order.Done}
	}
	if a.seen++; a.seen%(1<<16) == 0 {
		for seq, s := range a.tasks {
			if s.until < t.Event.Seq {
				delete(a.tasks, seq)
			}
		}
	}
}
