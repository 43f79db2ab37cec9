// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"path/filepath"

	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/trace"
)

// AddTape reads the tape in the directory path and adds its row. location is where the tape
// is kept, "": at path. progress, which may
// be nil, is told how many of how many events are read. It returns how many rows are new, 0 or 1.
func (c *Catalogue) AddTape(
	ctx context.Context, path, location string, o suite.Options, progress func(done, total uint64),
) (added int, err error) {
	if location == "" {
		if location, err = filepath.Abs(path); err != nil {
			return 0, err
		}
	}
	t, err := trace.Open(path)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	if progress != nil {
		o.Progress = func(done uint64) { progress(done, t.Manifest().Counts.Events) }
	}
	r, err := OfTape(ctx, t, location, &o)
	if err != nil {
		return 0, err
	}
	return c.Add(ctx, r)
}
