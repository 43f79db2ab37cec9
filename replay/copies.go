// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/trace"
)

// Copies is what came of several replays of one tape at once.
type Copies = result.Copies

// maxCopies bounds the processes that one command starts.
const maxCopies = 1000

// RunCopies replays a tape n times at once, as a load: each copy in a directory of its own, 1 to n,
// in the target. The initial trees are all made before the first call. Limits are of each copy, but for
// memory, which they share, and for bytes and files of the target's file system, which are counted
// together. An error means that one of them could not be run; the others are ended then.
func RunCopies(ctx context.Context, t *trace.Tape, o *Options, n int) (*Copies, error) {
	switch {
	case n < 1 || n > maxCopies:
		return nil, fmt.Errorf("%d copies of a replay: 1 to %d can run at once", n, maxCopies)
	case o.Team != nil || o.Log != nil:
		return nil, errors.New("copies of a replay run on one host, without a log")
	}
	p, err := prepare(ctx, t, o)
	if err != nil {
		return nil, err
	}
	var targets []*target
	defer func() {
		for _, x := range targets {
			x.private.restore()
		}
	}()
	for i := range n {
		into := filepath.Join(p.into, strconv.Itoa(i+1))
		if err := os.Mkdir(into, 0o755); err != nil && !(o.Force && errors.Is(err, os.ErrExist)) {
			return nil, fmt.Errorf("make the target of a copy: %w", err)
		}
		x, err := p.begin(ctx, into, n)
		if err != nil {
			return nil, copyError(i, err)
		}
		targets = append(targets, x)
	}
	if err := callsOfAll(ctx, targets); err != nil {
		return nil, err
	}
	all := &Copies{}
	for i, x := range targets {
		if err := x.compare(ctx); err != nil {
			return nil, copyError(i, err)
		}
		all.Add(x.answer.Report)
	}
	all.Finish()
	return all, nil
}

func copyError(i int, err error) error { return fmt.Errorf("copy %d: %w", i+1, err) }

// callsOfAll makes the calls of all targets at once. The first error ends them all.
func callsOfAll(ctx context.Context, targets []*target) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	last, sum := make([]execute.Progress, len(targets)), execute.Progress{}
	for i, x := range targets {
		all.Go(func() {
			err := x.calls(ctx, func(now execute.Progress) {
				mu.Lock()
				defer mu.Unlock()
				sum.Done += now.Done - last[i].Done
				sum.Different += now.Different - last[i].Different
				last[i] = now
				x.different(sum.Different)
				x.progress("replay", sum.Done, x.events*uint64(len(targets)))
			})
			if err != nil {
				cancel(copyError(i, err)) // the first one counts
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
