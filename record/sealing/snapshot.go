// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// Snapshot stores the state of directories in a tape without events.
func Snapshot(ctx context.Context, r Reporter, name string, dirs []string, program string) error {
	r = OrSilent(r)
	progress := r.Progress(report.Bytes)
	defer progress.Done()
	tw, err := trace.CreateTape(name)
	if err != nil {
		return err
	}
	defer tw.Abort()
	for i, dir := range dirs {
		m, err := seal.Snapshot(ctx, tw, dir, i, func(_ int, bytes int64) {
			progress.Update("taking the snapshot of "+dir, bytes, 0)
		})
		if err != nil {
			return fmt.Errorf("snapshot %s: %w", dir, err)
		}
		for _, n := range m.Notes {
			note(r, "snapshot: %s: %s", n.Path, n.Text)
		}
	}
	return tw.Close(&trace.Manifest{Program: program})
}

// copySnapshots copies what Snapshot stored into the tape that is being sealed.
func copySnapshots(ctx context.Context, tw *trace.TapeWriter, name string) error {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) || name == "" {
		return nil
	}
	t, err := trace.Open(name)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	defer t.Close()
	copier := trace.NewCopier(t, tw)
	for i := 0; ; i++ {
		file := seal.SnapshotFile(i)
		if _, ok := t.Manifest().Files[file]; !ok {
			return nil
		}
		if err := seal.CopyTree(ctx, copier, file, file); err != nil {
			return err
		}
	}
}
