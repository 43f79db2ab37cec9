// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/internal/team"
)

// Recorder records a task's part, and returns the directory of its tape.
type Recorder func(ctx context.Context, t *Task) (tape string, err error)

// Join makes this process a member of the team whose hub is at an address, and does what it
// is told. Secret and name are as in package team.
func Join(ctx context.Context, hub, secret, name string, record Recorder) error {
	w, err := team.Join(ctx, hub, secret, name)
	if err != nil {
		return err
	}
	defer w.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { w.Close() })()
	t, err := receiveTask(w, hub)
	if err != nil {
		return err
	}
	go w.Ping()
	orders, ended := make(chan *throttle.Order), make(chan struct{})
	go func() {
		defer close(ended)
		cancel(receiveOrders(ctx, w, orders))
	}()
	answer, err := t.do(ctx, w, orders, record)
	if err != nil {
		if gone := context.Cause(ctx); gone != nil {
			return gone
		}
		return errors.Join(err, w.Send(kindFail, []byte(err.Error())))
	}
	if err := w.Send(kindAnswer, answer); err != nil {
		return err
	}
	for { // until the hub has all answers
		select {
		case <-orders:
		case <-ended:
			return nil
		}
	}
}

// receiveTask waits for the task from the hub at an address. Until then it tells the hub the
// time.
func receiveTask(w *team.Wire, hub string) (*Task, error) {
	for {
		kind, b, err := w.Receive()
		t := new(Task)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the hub at %s: %w", hub, err)
		case kind == kindClock:
			if err := send(w, kindClock, read()); err != nil {
				return nil, err
			}
		case kind != kindTask || json.Unmarshal(b, t) != nil || len(t.Argv) == 0:
			return nil, fmt.Errorf("the hub at %s does not say what to do", hub)
		default:
			return t, nil
		}
	}
}

// receiveOrders passes on the hub's orders, until the connection or the context ends. It
// returns why.
func receiveOrders(ctx context.Context, w *team.Wire, orders chan<- *throttle.Order) error {
	for {
		kind, b, err := w.Receive()
		o := new(throttle.Order)
		if err == nil && (kind != kindOrder || json.Unmarshal(b, o) != nil) {
			err = errors.New("it said something that makes no sense")
		}
		if err != nil {
			return fmt.Errorf("the hub: %w", err)
		}
		select {
		case orders <- o:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// do does the task, and returns the answer.
func (t *Task) do(ctx context.Context, w *team.Wire, orders <-chan *throttle.Order, record Recorder) ([]byte, error) {
	if t.Dir != "" {
		if err := os.Chdir(t.Dir); err != nil {
			return nil, fmt.Errorf("the command's directory: %w", err)
		}
	}
	if t.Record {
		tape, err := record(ctx, t)
		if err != nil {
			return nil, err
		}
		return []byte("{}"), sendDir(w, tape)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	r, err := throttle.Watch(ctx, &throttle.Options{
		Command: ptracer.Command{Argv: t.Argv, Files: [3]*os.File{null, null, os.Stderr}},
		Scope:   t.Scope, Serial: t.Serial, Hold: t.Hold, Period: t.Period, Known: t.Known, Patience: t.Patience,
		Most: t.Most, Budget: t.Budget,
		Peers: &throttle.Peers{Tell: func(s *throttle.State) { _ = send(w, kindState, s) }, Told: orders},
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(r)
}
