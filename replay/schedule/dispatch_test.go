// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/replay/plan"
)

// recorder is an Executor that makes no calls, and notes the events of the steps that it gets.
type recorder struct {
	mu      sync.Mutex
	planned int
	done    []uint64
	step    func(seq uint64) // nil: nothing more
}

func (r *recorder) Planned(*plan.Task, bool) { r.planned++ }

func (r *recorder) Remote(*plan.Task) {}

func (r *recorder) Work(c *Consumer) {
	c.Run(func(s *plan.Step, b *Batch) {
		r.mu.Lock()
		r.done = append(r.done, s.Seq)
		r.mu.Unlock()
		if r.step != nil {
			r.step(s.Seq)
		}
		if s.Task != nil {
			c.Recycle(s.Task)
		}
	})
}

// dispatcherOf returns a dispatcher for a tape of two processes: the first writes a file, n
// times, which the second reads after that, n times.
func dispatcherOf(t *testing.T, x Executor, n int) *Dispatcher {
	t.Helper()
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2)
	for range n {
		s.Move(event.OpPwrite64, 3, 0, "hello")
	}
	s.Add(event.Event{Kind: event.Forked, Child: 2, Ret: 2})
	for range n {
		ev := event.Event{PID: 2, TID: 2, Op: event.OpPread64, Ret: 5, Count: 5, Args: [6]uint64{3, 0x1000, 5},
			Files: []event.File{{FD: 3, Known: true, Mode: tapescript.IsFile, Ino: s.Ino}},
			Bufs:  []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: 5, Inline: []byte("hello")}}}
		s.Add(ev)
	}
	tape := s.Close()
	p, err := plan.New(tape, &plan.Config{Order: order.Resource})
	if err != nil {
		t.Fatal(err)
	}
	return NewDispatcher(&Config{
		Planner: p, Loader: plan.NewLoader(tape, options.Data{}, true, func() {}), Executor: x,
		Pace: options.PaceAFAP, Speed: 1,
	})
}

// All steps are done once, and those that read a file after all that wrote it before.
func TestDispatch(t *testing.T) {
	const n = 3 * batchSteps
	r := &recorder{}
	if err := dispatcherOf(t, r, n).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := 2*n + 3; r.planned != want {
		t.Errorf("%d events were planned, want %d", r.planned, want)
	}
	seen, last := map[uint64]bool{}, uint64(0)
	for _, seq := range r.done {
		if seen[seq] {
			t.Errorf("event %d was done twice", seq)
		}
		if seen[seq] = true; seq < last {
			t.Errorf("event %d was done after event %d, which waits for it", seq, last)
		}
		last = seq
	}
	if len(seen) < 2*n {
		t.Errorf("%d steps were done, want %d at least", len(seen), 2*n)
	}
}

// A replay that is stopped ends with the first reason, and does not do what is left.
func TestDispatchStopped(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	r := &recorder{}
	d := dispatcherOf(t, r, 3*batchSteps)
	r.step = func(seq uint64) {
		if seq == 10 {
			d.Stop(first)
			d.Stop(second)
		}
	}
	if err := d.Run(t.Context()); err != first {
		t.Errorf("it ended with %v, want %v", err, first)
	}
	if last := r.done[len(r.done)-1]; last != 10 || !d.Halted() {
		t.Errorf("the last step was of event %d, want 10; halted: %v", last, d.Halted())
	}

	ctx, cancel := context.WithCancel(t.Context())
	r = &recorder{}
	d = dispatcherOf(t, r, 3*batchSteps)
	r.step = func(uint64) {
		cancel()
		for !d.Halted() {
			runtime.Gosched()
		}
	}
	if err := d.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, it ended with %v, want %v", err, context.Canceled)
	}
}
