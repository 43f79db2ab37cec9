package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"iotape/trace"
	"iotape/tree"
)

// Options say how to replay. Into is needed.
type Options struct {
	// Into is the target: the root directory of everything that is replayed. It is
	// made if it does not exist, and must be empty unless Force is set.
	Into  string
	Force bool
	// Verify compares every result, and the tree in the end.
	Verify bool
	// Progress is told now and then how far the run is, in events. It may be nil.
	Progress func(phase string, done, total uint64)
}

// ErrNotEmpty is wrapped when the target has something in it.
var ErrNotEmpty = errors.New("directory is not empty")

// ErrHosts is wrapped for a tape of several hosts: what they did is not of one tree of
// files, nor of one set of processes.
var ErrHosts = errors.New("the tape has several hosts")

// Run replays a tape into a directory. The Report says whether everything agreed;
// an error means that it could not be run.
func Run(ctx context.Context, t *trace.Tape, o *Options) (*Report, error) {
	if n := len(t.Manifest().Hosts); n > 1 {
		return nil, fmt.Errorf("replay of %d recordings at a time: %w", n, ErrHosts)
	}
	into, err := prepareTarget(o.Into, o.Force)
	if err != nil {
		return nil, err
	}
	progress := o.Progress
	if progress == nil {
		progress = func(string, uint64, uint64) {}
	}
	snapshots, final, err := trees(t)
	if err != nil {
		return nil, err
	}
	events := t.Manifest().Counts.Events
	progress("plan", 0, events)
	sk, err := Infer(ctx, t, snapshots, final)
	if err != nil {
		return nil, fmt.Errorf("find the initial tree: %w", err)
	}
	made, err := tree.Restore(ctx, sk.Manifest, into, sk.Content, nil)
	if err != nil {
		return nil, fmt.Errorf("make the initial tree: %w", err)
	}
	start := time.Now()
	answer, err := runConfined(ctx, &confined{Tape: t.Dir(), Into: into, Verify: o.Verify, Made: sk.Made}, func(done uint64) { progress("replay", done, events) })
	rep := answer.Report
	if err != nil {
		return rep, err
	}
	rep.ElapsedNS = time.Since(start).Nanoseconds()
	rep.Skeleton = made.Entries
	for _, p := range made.Problems {
		rep.Problems = append(rep.Problems, fmt.Sprintf("%s: %v: %s and %d more", p.Kind, p.Err, p.Path, p.Count-1))
	}
	if o.Verify && final != nil {
		progress("compare", events, events)
		if err := compareTree(ctx, rep, into, final, sk, newMadeUp(answer.Made)); err != nil {
			return rep, err
		}
	}
	return rep, nil
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

// trees reads the tape's snapshots and its final tree; nil if it has none.
func trees(t *trace.Tape) (snapshots []*tree.Manifest, final *tree.Manifest, err error) {
	var names []string
	for name := range t.Manifest().Files {
		if name == trace.SnapshotName || strings.HasPrefix(name, trace.SnapshotName+"-") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		m, err := readTree(t, name)
		if err != nil {
			return nil, nil, err
		}
		snapshots = append(snapshots, m)
	}
	if _, ok := t.Manifest().Files[trace.FinalName]; ok {
		final, err = readTree(t, trace.FinalName)
	}
	return snapshots, final, err
}

func readTree(t *trace.Tape, name string) (*tree.Manifest, error) {
	r, err := t.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	m, err := tree.Decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// compareTree compares what the recording left with what the replay did.
func compareTree(ctx context.Context, rep *Report, into string, final *tree.Manifest, sk *Skeleton, made madeUp) error {
	want := &tree.Manifest{}
	var paths []string
	hash := map[string]bool{}
	for i := range final.Entries {
		e := final.Entries[i]
		// What was only looked for, or run, is not part of what the replay makes.
		if virtual("/"+e.Path) || !sk.Left[e.Path] && !e.Has(tree.KnownHash) {
			continue
		}
		if made[inode{e.Dev, e.Ino}] != nil && e.Has(tree.KnownHash) {
			e.Known &^= tree.KnownHash
			rep.TreeMadeUp++
		}
		paths = append(paths, e.Path)
		hash[e.Path] = e.Has(tree.KnownHash)
		want.Entries = append(want.Entries, e)
	}
	want.Sort()
	got, err := tree.TakePaths(ctx, into, paths, func(p string) bool { return hash[p] }, nil)
	if err != nil {
		return fmt.Errorf("look at the replayed tree: %w", err)
	}
	opt := &tree.CompareOptions{Ignore: tree.KnownListing}
	if os.Geteuid() != 0 {
		opt.Ignore |= tree.KnownOwner
	}
	rep.TreePaths = len(paths)
	rep.Tree = append(rep.Tree, tree.Compare(want, got, opt)...)
	return findExtra(rep, into, sk)
}

// findExtra looks for names that the recording did not leave, in directories where
// it is known which it did.
func findExtra(rep *Report, into string, sk *Skeleton) error {
	root, err := os.OpenRoot(into)
	if err != nil {
		return fmt.Errorf("look at the replayed tree: %w", err)
	}
	defer root.Close()
	for _, dir := range sk.Listed {
		if virtual("/" + dir) {
			continue
		}
		d, err := root.Open(dir)
		if err != nil {
			continue // missing: told already
		}
		entries, err := d.ReadDir(-1)
		d.Close()
		if err != nil {
			continue // no directory: likewise
		}
		for _, e := range entries {
			if p := path.Join(dir, e.Name()); !sk.Left[p] {
				rep.Tree = append(rep.Tree, tree.Difference{Path: p, Field: "entry", Want: "absent", Got: "present"})
			}
		}
	}
	return nil
}
