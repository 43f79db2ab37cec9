package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"iotape/replay/effect"
	"iotape/replay/feed"
	"iotape/replay/order"
	"iotape/replay/skeleton"
	"iotape/trace"
	"iotape/tree"
)

// Options say how to replay. Into is needed.
type Options struct {
	// Into is the target: the root directory of everything that is replayed. It is
	// made if it does not exist, and must be empty unless Force is set.
	Into  string
	Force bool
	// Checks is what is compared with the recording.
	Checks Checks
	// Abort stops at the first result that differs, and before the first event if the
	// target does not allow all of what it begins with; else the replay goes on.
	Abort bool
	// Pace and Speed say when calls are made. "" is PaceAFAP; with another one, Speed 2
	// is twice as fast as recorded, and 0 is 1.
	Pace  Pace
	Speed float64
	// Devices makes device nodes with their numbers, for root; else they have number 0:0,
	// which leads to no driver.
	Devices bool
	// Sleep makes threads sleep for as long as they computed, with PaceThink: that leaves
	// the processors to others.
	Sleep bool
	// Order is how much of the recorded order is kept; the zero value keeps all.
	Order order.Mode
	// Renames puts what was done below some directories below others.
	Renames feed.Renames
	// Native says what is repeated in the way that it was done.
	Native Native
	// Data is what is written.
	Data Data
	// Log, if it is not nil, gets a line for what LogLevel says; "" is LogDifferences.
	Log      *os.File
	LogLevel LogLevel
	// Team, if it is not nil, makes the calls. A log cannot be had of it.
	Team Team
	// Progress is told now and then how far the run is, in events. It may be nil.
	Progress func(phase string, done, total uint64)
}

// ErrNotEmpty is wrapped when the target has something in it.
var ErrNotEmpty = errors.New("directory is not empty")

// ErrHosts is wrapped for a tape of several hosts: what they did is not of one tree of
// files, nor of one set of processes.
var ErrHosts = errors.New("the tape has several hosts")

func oneHost(t *trace.Tape) error {
	if n := len(t.Manifest().Hosts); n > 1 {
		return fmt.Errorf("replay of %d recordings at a time: %w", n, ErrHosts)
	}
	return nil
}

// Restore makes in a directory the tree that a tape's events need to find, and nothing
// else: what a replay begins with. It returns how many entries were made and what the
// target did not allow.
func Restore(ctx context.Context, t *trace.Tape, dir string, force bool) (entries int, problems []string, err error) {
	if err := oneHost(t); err != nil {
		return 0, nil, err
	}
	into, err := prepareTarget(dir, force)
	if err != nil {
		return 0, nil, err
	}
	snapshots, final, err := trees(t, nil)
	if err != nil {
		return 0, nil, err
	}
	_, entries, problems, err = makeSkeleton(ctx, t, into, snapshots, final, nil, true)
	return entries, problems, err
}

// makeSkeleton infers and makes the initial tree.
func makeSkeleton(ctx context.Context, t *trace.Tape, into string, snapshots []*tree.Manifest, final *tree.Manifest, renames feed.Renames, devices bool) (sk *skeleton.Skeleton, entries int, problems []string, err error) {
	if sk, err = skeleton.Infer(ctx, t, snapshots, final, renames); err != nil {
		return nil, 0, nil, fmt.Errorf("find the initial tree: %w", err)
	}
	made, err := tree.RestoreEntries(ctx, sk.Entries(), into, sk.Content, &tree.RestoreOptions{BlankDevices: !devices})
	if err != nil {
		return nil, 0, nil, fmt.Errorf("make the initial tree: %w", err)
	}
	for _, p := range made.Problems {
		problems = append(problems, p.String())
	}
	return sk, made.Entries, problems, nil
}

// Run replays a tape into a directory. The Report says whether everything agreed;
// an error means that it could not be run.
func Run(ctx context.Context, t *trace.Tape, o *Options) (*Report, error) {
	if err := oneHost(t); err != nil {
		return nil, err
	}
	into, err := prepareTarget(o.Into, o.Force)
	if err != nil {
		return nil, err
	}
	progress := o.Progress
	if progress == nil {
		progress = func(string, uint64, uint64) {}
	}
	snapshots, final, err := trees(t, o.Renames)
	if err != nil {
		return nil, err
	}
	events := t.Manifest().Counts.Events
	progress("plan", 0, events)
	sk, entries, problems, err := makeSkeleton(ctx, t, into, snapshots, final, o.Renames, o.Devices)
	if err != nil {
		return nil, err
	}
	if o.Abort && len(problems) > 0 {
		rep := newReport()
		rep.Skeleton, rep.Problems, rep.Aborted = entries, problems, true
		return rep, nil
	}
	pace := cmp.Or(o.Pace, PaceAFAP)
	if pace != PaceAFAP && entries > 0 {
		if err := stored(into); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	level := o.LogLevel
	if o.Log == nil {
		level = ""
	} else if level == "" {
		level = LogDifferences
	}
	c := &confined{Devices: o.Devices, Sleep: o.Sleep, Renames: o.Renames, Native: o.Native, Data: o.Data, LogLevel: level, Tape: t.Dir(), Into: into, Checks: o.Checks, Abort: o.Abort, Pace: pace, Speed: cmp.Or(o.Speed, 1), Order: o.Order, Made: sk.Made, FIFOs: o.Force || sk.FIFOs(), Elsewhere: sk.Elsewhere}
	var answer *message
	if o.Team != nil {
		if c.Tape, err = filepath.Abs(c.Tape); err != nil {
			return nil, err
		}
		answer, err = runTeam(ctx, o.Team, c)
	} else {
		answer, err = runConfined(ctx, c, o.Log, func(done uint64) { progress("replay", done, events) })
	}
	rep := answer.Report
	if err != nil {
		return rep, err
	}
	rep.ElapsedNS = time.Since(start).Nanoseconds()
	slices.SortFunc(rep.Kinds, func(a, b Kind) int { return cmp.Compare(a.Seq, b.Seq) })
	rep.Skeleton, rep.Problems = entries, append(rep.Problems, problems...)
	if o.Checks&CheckTree != 0 && final != nil && !rep.Aborted {
		progress("compare", events, events)
		if err := compareTree(ctx, rep, into, final, sk, effect.NewRanges(answer.Made), contentOf(t), o.Devices); err != nil {
			return rep, err
		}
	}
	return rep, nil
}

// stored waits until the target's file system has on its storage what was made on it. Else
// calls whose time is told would wait for that: one that goes past the page cache for the
// pages of its file, and the first flush of any file, on some file systems, for all of them.
func stored(into string) error {
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

// trees reads the tape's snapshots and its final tree; nil if it has none.
func trees(t *trace.Tape, renames feed.Renames) (snapshots []*tree.Manifest, final *tree.Manifest, err error) {
	var names []string
	for name := range t.Manifest().Files {
		if name == trace.SnapshotName || strings.HasPrefix(name, trace.SnapshotName+"-") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		m, err := readTree(t, name, renames)
		if err != nil {
			return nil, nil, err
		}
		snapshots = append(snapshots, m)
	}
	if _, ok := t.Manifest().Files[trace.FinalName]; ok {
		final, err = readTree(t, trace.FinalName, renames)
	}
	return snapshots, final, err
}

func readTree(t *trace.Tape, name string, renames feed.Renames) (*tree.Manifest, error) {
	r, err := t.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	m, err := tree.Decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rename(m, renames)
	return m, nil
}

// rename renames what is in a tree.
func rename(m *tree.Manifest, renames feed.Renames) {
	if len(renames) == 0 {
		return
	}
	relative := func(p string) string {
		if p == "" || p == "." {
			return p
		}
		return cmp.Or(strings.TrimPrefix(renames.Path("/"+p), "/"), ".")
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		e.Path, e.Link, e.Target = relative(e.Path), relative(e.Link), renames.Path(e.Target)
	}
	m.Sort()
	m.Entries = slices.CompactFunc(m.Entries, func(a, b tree.Entry) bool { return a.Path == b.Path })
}

// compareTree compares what the recording left with what the replay did.
func compareTree(ctx context.Context, rep *Report, into string, final *tree.Manifest, sk *skeleton.Skeleton, made effect.Ranges, content trace.AnonymisedContent, devices bool) error {
	want := &tree.Manifest{}
	var paths []string
	hash := map[string]bool{}
	for i := range final.Entries {
		e := final.Entries[i]
		// What was only looked for, or run, is not part of what the replay makes.
		if effect.Virtual("/"+e.Path) || !sk.Left(e.Path) && !e.Has(tree.KnownHash) {
			continue
		}
		if e.Has(tree.KnownHash) && (made[effect.Inode{Dev: e.Dev, Ino: e.Ino}] != nil || !hashHolds(content, &e)) {
			e.Known &^= tree.KnownHash
			rep.TreeMadeUp++
		}
		if !devices {
			e.Rdev = 0
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
func findExtra(rep *Report, into string, sk *skeleton.Skeleton) error {
	root, err := os.OpenRoot(into)
	if err != nil {
		return fmt.Errorf("look at the replayed tree: %w", err)
	}
	defer root.Close()
	for dir := range sk.Listed() {
		if effect.Virtual("/" + dir) {
			continue
		}
		d, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0) // a FIFO would wait
		if err != nil {
			continue // missing: told already
		}
		entries, err := d.ReadDir(-1)
		d.Close()
		if err != nil {
			continue // no directory: likewise
		}
		for _, e := range entries {
			if p := path.Join(dir, e.Name()); !sk.Left(p) {
				rep.Tree = append(rep.Tree, tree.Difference{Path: p, Field: "entry", Want: "absent", Got: "present"})
			}
		}
	}
	return nil
}
