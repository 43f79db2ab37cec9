// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// filteredName is the tape of what the filter of a recording picks, while it is made.
const filteredName = "picked"

// applyFilter makes of the sealed tape the one of what the recording's filter picks: what
// iotape slice would make of the recording without one. It returns where that is.
func (u *Unfinished) applyFilter(ctx context.Context, filter string) (dir string, res *slice.Result, err error) {
	t, err := trace.Open(u.dir)
	if err != nil {
		return "", nil, err
	}
	defer t.Close()
	g, err := RecordingFilter(t)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(u.Work, filteredName)
	if err := os.RemoveAll(dir); err != nil {
		return "", nil, err
	}
	tw, err := trace.CreateTape(dir)
	if err != nil {
		return "", nil, err
	}
	defer tw.Abort()
	res, err = slice.Tape(ctx, tw, t, &slice.Options{Filter: g, Program: u.Program})
	if err != nil {
		os.RemoveAll(dir)
		if errors.Is(err, slice.ErrEmpty) {
			return "", nil, ErrNothingFits
		}
		return "", nil, stopped(err)
	}
	for i := range res.Manifest.Hosts {
		res.Manifest.Hosts[i].Window.Reason = "recorded with the filter " + filter
	}
	for _, name := range res.LeftOut {
		note(u.Reporter, "left out: %s, which is not that of what the filter picks", name)
	}
	u.assemble(res.Manifest)
	return dir, res, tw.Close(res.Manifest)
}

// RecordingFilter compiles the filter that a tape was recorded with.
func RecordingFilter(t *trace.Tape) (*predicate.Graph, error) {
	x, err := predicate.Parse(t.Host(0).Filter)
	if err != nil {
		return nil, fmt.Errorf("the recording's filter: %w", err)
	}
	g, err := predicate.Compile(x, slice.FilterOptions(t))
	if err != nil {
		return nil, fmt.Errorf("the recording's filter: %w", err)
	}
	return g, nil
}

// ErrNothingFits is returned if a recording's filter picks nothing: there is no tape.
var ErrNothingFits = errors.New("nothing that was recorded fits the filter: there is no tape")
