// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/replay/verify"
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
	sk, err := initialtree.Infer(ctx, t, snapshots, final, layout)
	if err != nil {
		return nil, nil, fmt.Errorf("find the initial tree: %w", err)
	}
	return sk, final, nil
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

// Run replays a tape into a directory. The Report says whether everything agreed;
// an error means that it could not be run.
func Run(ctx context.Context, t *trace.Tape, o *Options) (*Report, error) {
	layout, err := eventsource.NewLayout(t, o.Renames, o.Shared)
	if err != nil {
		return nil, err
	}
	layout.SetOwners(eventsource.Owners{Users: o.Users, Groups: o.Groups})
	into, err := prepareTarget(o.Into, o.Force)
	if err != nil {
		return nil, err
	}
	progress := o.Progress
	if progress == nil {
		progress = func(string, uint64, uint64) {}
	}
	events := t.Manifest().Counts.Events
	progress("plan", 0, events)
	initial, final, err := infer(ctx, t, layout)
	if err != nil {
		return nil, err
	}
	most, err := o.maxBytes(initial, into)
	if err != nil {
		return nil, err
	}
	private, err := openPrivate(into)
	if err != nil {
		return nil, err
	}
	defer private.restore()
	made, err := makeInitialTree(ctx, initial, into, o.PrivilegedFiles)
	if err != nil {
		return nil, err
	}
	if o.Abort && len(made.Problems) > 0 {
		rep := result.New()
		rep.InitialEntries, rep.Problems, rep.LeftOff, rep.Aborted = made.Entries, made.Problems, made.LeftOff, true
		return rep, nil
	}
	c := o.config(t, layout, initial, into)
	c.Limits = o.limits(most, into)
	private.beginCalls()
	c.Group, c.Target = private.group, private.inode()
	if c.Pace != PaceAFAP && made.Entries > 0 {
		if err := syncTarget(into); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	answer, err := o.execute(ctx, c, func(done uint64) { progress("replay", done, events) })
	rep := answer.Report
	if err != nil {
		return rep, err
	}
	rep.ElapsedNS, rep.Machines = time.Since(start).Nanoseconds(), layout.Machines()
	slices.SortFunc(rep.Kinds, func(a, b Kind) int { return cmp.Compare(a.Seq, b.Seq) })
	rep.InitialEntries, rep.Problems = made.Entries, append(rep.Problems, made.Problems...)
	rep.LeftOff.Add(made.LeftOff)
	rep.Confinement.Add(private.confinement())
	private.restore()
	if o.Checks&CheckTree != 0 && final != nil && !rep.Aborted {
		progress("compare", events, events)
		trees := verify.Trees{
			Into: into, Final: final, Initial: initial, Tainted: effect.NewRanges(answer.Tainted), Tape: t,
			Privileged: o.PrivilegedFiles,
		}
		return rep, trees.Compare(ctx, rep)
	}
	return rep, nil
}

// config returns the configuration of the process that makes the calls.
func (o *Options) config(
	t *trace.Tape, layout eventsource.Layout, initial *initialtree.Tree, into string,
) *execute.Config {
	c := &execute.Config{
		Tape: t.Dir(), Into: into, Checks: o.Checks, Abort: o.Abort,
		Pace: cmp.Or(o.Pace, PaceAFAP), Speed: cmp.Or(o.Speed, 1), Sleep: o.Sleep,
		Order: o.Order, Native: o.Native, Privileged: o.PrivilegedFiles, Layout: layout, Data: o.Data,
		FIFOs: o.Force || initial.FIFOs(), Elsewhere: initial.Elsewhere, Tainted: initial.Tainted,
		LeftOut: initial.LeftOut,
	}
	if o.Log != nil {
		c.LogLevel = cmp.Or(o.LogLevel, LogDifferences)
	}
	return c
}

// execute has the calls made. The answer is never nil.
func (o *Options) execute(ctx context.Context, c *execute.Config, progress func(uint64)) (*execute.Answer, error) {
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
