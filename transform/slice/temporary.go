// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// Temporary makes a slice of a tape in a new directory below dir ("": os.TempDir). Close of
// the returned tape removes the directory. It returns ErrEmpty if no event is wanted.
func Temporary(ctx context.Context, t *trace.Tape, dir string, o *Options) (*trace.Tape, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	path := filepath.Join(dir, "iotape-filter")
	wholefile.RemoveLeft(path)
	work, err := wholefile.CreateDir(path, 0o700)
	if err != nil {
		return nil, err
	}
	part, err := into(ctx, t, filepath.Join(work.Temp, filepath.Base(t.Name())), o)
	if err != nil {
		return nil, errors.Join(err, work.Close())
	}
	part.OnClose(work.Close)
	return part, nil
}

// into makes a slice at a place and opens it.
func into(ctx context.Context, t *trace.Tape, name string, o *Options) (*trace.Tape, error) {
	tw, err := trace.CreateTape(name)
	if err != nil {
		return nil, err
	}
	defer tw.Abort()
	res, err := Tape(ctx, tw, t, o)
	if err != nil {
		return nil, err
	}
	if err := tw.Close(res.Manifest); err != nil {
		return nil, err
	}
	return trace.Open(name)
}

// Fitting makes a temporary slice of what a filter picks. It is an error if that is nothing.
func Fitting(ctx context.Context, t *trace.Tape, dir string, g *predicate.Graph, program string) (*trace.Tape, error) {
	part, err := Temporary(ctx, t, dir, &Options{Filter: g, Program: program})
	if errors.Is(err, ErrEmpty) {
		return nil, fmt.Errorf("%s has no events that match the filter", t.Name())
	}
	return part, err
}

// Events iterates over the events of a tape that a filter accepts; over all if it is nil.
// done, which may be nil, is called with the filter's matcher when the iteration has ended.
func Events(t *trace.Tape, g *predicate.Graph, done func(*predicate.Matcher)) iter.Seq2[*event.Event, error] {
	if g == nil {
		return t.Events()
	}
	return func(yield func(*event.Event, error) bool) {
		m := g.NewMatcher()
		if done != nil {
			defer done(m)
		}
		for ev, err := range t.Events() {
			if (err != nil || m.Match(ev)) && !yield(ev, err) {
				return
			}
		}
	}
}
