// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// ErrNotEmpty is wrapped when the target has something in it.
var ErrNotEmpty = errors.New("directory is not empty")

// Restore makes in a directory the tree that a tape's events need to find, and nothing
// else: what a replay begins with.
func Restore(ctx context.Context, t *trace.Tape, dir string, o *RestoreOptions) (*Restored, error) {
	layout, err := eventsource.NewLayout(t, nil, o.Shared)
	if err != nil {
		return nil, err
	}
	into, err := prepareTarget(dir, o.Force)
	if err != nil {
		return nil, err
	}
	sk, _, err := infer(ctx, t, layout)
	if err != nil {
		return nil, err
	}
	private, err := openPrivate(into)
	if err != nil {
		return nil, err
	}
	defer private.restore()
	return makeInitialTree(ctx, sk, into, o.PrivilegedFiles)
}

// RestoreOptions say how Restore makes a tree. The fields are as in Options.
type RestoreOptions struct {
	Force           bool
	Shared          []string
	PrivilegedFiles bool
}

// Restored is what Restore made.
type Restored struct {
	Entries  int
	Problems []string // what the target did not allow
	LeftOff  LeftOff
}

// infer finds the initial tree, and reads the final one; nil if the tape has none.
func infer(ctx context.Context, t *trace.Tape, layout eventsource.Layout) (*initialtree.Tree, *tree.Manifest, error) {
	snapshots, final, err := trees(t, layout)
	if err != nil {
		return nil, nil, err
	}
	key := layout.Key()
	if sk := initialtree.Stored(t, key); sk != nil {
		return sk, final, nil
	}
	sk, err := initialtree.Infer(ctx, t, snapshots, final, layout)
	if err != nil {
		return nil, nil, fmt.Errorf("find the initial tree: %w", err)
	}
	store(t, key, sk)
	return sk, final, nil
}

// storeFrom is how many events a tape has whose initial tree and order are stored: of fewer they are found in less than
// a tenth of a second.
var storeFrom uint64 = 100_000

// store stores what was found of a tape, for the next replay. If it cannot be stored, it will be found again.
func store(t *trace.Tape, key string, sk *initialtree.Tree) {
	found := sk.Order
	if sk.Order = nil; t.Manifest().Counts.Events < storeFrom {
		return
	}
	if err := eventsource.StoreOrder(t, key, found); err == nil {
		_ = sk.Store(key)
	}
}

// makeInitialTree makes the initial tree.
func makeInitialTree(
	ctx context.Context, initial *initialtree.Tree, into string, privileged bool,
) (*Restored, error) {
	r := new(Restored)
	entries := initial.Entries()
	if !privileged {
		entries = withoutPrivileges(entries, &r.LeftOff)
	}
	made, err := tree.RestoreEntries(ctx, entries, into, initial.Content, &tree.RestoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("make the initial tree: %w", err)
	}
	r.Entries = made.Entries
	for _, p := range made.Problems {
		r.Problems = append(r.Problems, p.String())
	}
	return r, nil
}

// config returns the configuration of the process that makes the calls.
func (o *Options) config(
	t *trace.Tape, layout eventsource.Layout, initial *initialtree.Tree, into string,
) *execute.Config {
	c := &execute.Config{
		Tape: t.Dir(), Into: into, Checks: o.Checks, Abort: o.Abort,
		Pace: cmp.Or(o.Pace, PaceAFAP), Speed: cmp.Or(o.Speed, 1), Sleep: o.Sleep,
		Order: o.Order, Native: o.Native, Privileged: o.PrivilegedFiles, Layout: layout, Data: o.Data,
		FIFOs: o.Force || initial.FIFOs(), Elsewhere: initial.Elsewhere, Specials: initial.Specials,
		Tainted: initial.Tainted, LeftOut: initial.LeftOut, Others: initial.Others, Overlays: initial.Overlays,
	}
	if t.Manifest().Counts.Events >= storeFrom {
		c.OrderKey = layout.Key()
	}
	if o.Log != nil {
		c.LogLevel = cmp.Or(o.LogLevel, LogDifferences)
	}
	return c
}

// execute has the calls made. The answer is never nil.
func (o *Options) execute(
	ctx context.Context, c *execute.Config, progress func(execute.Progress),
) (*execute.Answer, error) {
	if o.Team == nil {
		return execute.Run(ctx, c, o.Log, progress)
	}
	var err error
	if c.Tape, err = filepath.Abs(c.Tape); err != nil {
		return new(execute.Answer), err
	}
	return runTeam(ctx, o.Team, c)
}

// syncTarget waits until the target's file system has on its storage what was made on it. Else
// calls that are measured would wait for that: one that goes past the page cache for the
// pages of its file, and the first flush of any file, on some file systems, for all of them.
func syncTarget(into string) error {
	dir, err := os.Open(into)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("store the initial tree: %w", err)
	}
	return nil
}

// prepareTarget makes the target and returns its absolute path.
func prepareTarget(dir string, force bool) (string, error) {
	if dir == "" {
		return "", errors.New("replay needs a directory to replay into")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", fmt.Errorf("make the target: %w", err)
	}
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	if abs == "/" {
		return "", errors.New("replay into the root directory is refused")
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		return "", fmt.Errorf("look into the target: %w", err)
	}
	if len(entries) > 0 && !force {
		return "", fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return abs, nil
}
