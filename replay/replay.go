package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
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
	Renames eventsource.Renames
	// Shared are directories whose files the machines of a tape have in common; of what is
	// not below one, each machine has its own.
	Shared []string
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

// Restore makes in a directory the tree that a tape's events need to find, and nothing
// else: what a replay begins with. It returns how many entries were made and what the
// target did not allow. shared is as in Options.
func Restore(ctx context.Context, t *trace.Tape, dir string, force bool, shared []string) (entries int, problems []string, err error) {
	layout, err := eventsource.NewLayout(t, nil, shared)
	if err != nil {
		return 0, nil, err
	}
	into, err := prepareTarget(dir, force)
	if err != nil {
		return 0, nil, err
	}
	sk, _, err := infer(ctx, t, layout)
	if err != nil {
		return 0, nil, err
	}
	return makeInitialTree(ctx, sk, into, true)
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
func makeInitialTree(ctx context.Context, sk *initialtree.Tree, into string, devices bool) (entries int, problems []string, err error) {
	made, err := tree.RestoreEntries(ctx, sk.Entries(), into, sk.Content, &tree.RestoreOptions{BlankDevices: !devices})
	if err != nil {
		return 0, nil, fmt.Errorf("make the initial tree: %w", err)
	}
	for _, p := range made.Problems {
		problems = append(problems, p.String())
	}
	return made.Entries, problems, nil
}

// Run replays a tape into a directory. The Report says whether everything agreed;
// an error means that it could not be run.
func Run(ctx context.Context, t *trace.Tape, o *Options) (*Report, error) {
	layout, err := eventsource.NewLayout(t, o.Renames, o.Shared)
	if err != nil {
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
	events := t.Manifest().Counts.Events
	progress("plan", 0, events)
	sk, final, err := infer(ctx, t, layout)
	if err != nil {
		return nil, err
	}
	entries, problems, err := makeInitialTree(ctx, sk, into, o.Devices)
	if err != nil {
		return nil, err
	}
	if o.Abort && len(problems) > 0 {
		rep := newReport()
		rep.InitialEntries, rep.Problems, rep.Aborted = entries, problems, true
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
	c := &confined{Devices: o.Devices, Sleep: o.Sleep, Layout: layout, Native: o.Native, Data: o.Data, LogLevel: level, Tape: t.Dir(), Into: into, Checks: o.Checks, Abort: o.Abort, Pace: pace, Speed: cmp.Or(o.Speed, 1), Order: o.Order, Made: sk.Made, FIFOs: o.Force || sk.FIFOs(), Elsewhere: sk.Elsewhere}
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
	rep.ElapsedNS, rep.Machines = time.Since(start).Nanoseconds(), layout.Machines()
	slices.SortFunc(rep.Kinds, func(a, b Kind) int { return cmp.Compare(a.Seq, b.Seq) })
	rep.InitialEntries, rep.Problems = entries, append(rep.Problems, problems...)
	if o.Checks&CheckTree != 0 && final != nil && !rep.Aborted {
		progress("compare", events, events)
		if err := compareTree(ctx, rep, into, final, sk, effect.NewRanges(answer.Made), t, o.Devices); err != nil {
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

// trees reads the tape's snapshots and its final tree; nil if it has none. Of several
// recordings of one tree of files, the snapshot of that which began first says what it
// began with, and of a file in the end that which ended last.
func trees(t *trace.Tape, layout eventsource.Layout) (snapshots []*tree.Manifest, final *tree.Manifest, err error) {
	hosts := make([][]string, len(layout)) // names of their trees
	for _, name := range slices.Sorted(maps.Keys(t.Manifest().Files)) {
		if host, file := trace.SplitHostFile(name); host < len(layout) && (file == trace.SnapshotName || strings.HasPrefix(file, trace.SnapshotName+"-") || file == trace.FinalName) {
			hosts[host] = append(hosts[host], name)
		}
	}
	byTime := func(when func(*eventsource.Host) int64) []int {
		list := make([]int, len(layout))
		for i := range list {
			list[i] = i
		}
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(when(&layout[a]), when(&layout[b])) })
		return list
	}
	begun := map[int]bool{} // machines
	for _, i := range byTime(func(h *eventsource.Host) int64 { return h.Begun }) {
		h := &layout[i]
		for _, name := range hosts[i] {
			if begun[h.Machine] || isFinal(name) {
				continue
			}
			m, err := readTree(t, name, h)
			if err != nil {
				return nil, nil, err
			}
			if len(begun) > 0 {
				m.Entries = slices.DeleteFunc(m.Entries, func(e tree.Entry) bool { return !h.Own("/" + e.Path) })
			}
			snapshots = append(snapshots, m)
		}
		begun[h.Machine] = true
	}
	for _, i := range byTime(func(h *eventsource.Host) int64 { return -h.Ended }) {
		for _, name := range hosts[i] {
			if !isFinal(name) {
				continue
			}
			m, err := readTree(t, name, &layout[i])
			if err != nil {
				return nil, nil, err
			}
			if final == nil {
				final = m
				continue
			}
			later := final.Entries
			for _, e := range m.Entries {
				if (&tree.Manifest{Entries: later}).Lookup(e.Path) == nil {
					final.Entries = append(final.Entries, e)
				}
			}
			final.Sort()
		}
	}
	return snapshots, final, nil
}

func isFinal(name string) bool {
	_, file := trace.SplitHostFile(name)
	return file == trace.FinalName
}

func readTree(t *trace.Tape, name string, h *eventsource.Host) (*tree.Manifest, error) {
	r, err := t.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	m, err := tree.Decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rename(m, h)
	return m, nil
}

// rename gives what is in a host's tree the names, and devices, of the replay.
func rename(m *tree.Manifest, h *eventsource.Host) {
	if len(h.Renames) == 0 {
		return
	}
	relative := func(p string) string {
		if p == "" {
			return p
		}
		return cmp.Or(strings.TrimPrefix(h.Renames.Path(path.Join("/", p)), "/"), ".")
	}
	var left []tree.Entry
	for i := range m.Entries {
		e := &m.Entries[i]
		dir, name := path.Split("/" + e.Path)
		e.Target = h.Renames.From(path.Clean(dir), e.Target)
		e.Path, e.Link, e.Dev = relative(e.Path), relative(e.Link), h.Device(e.Dev)
		if at := path.Join(h.Renames.Path(path.Clean(dir)), name); e.Type == tree.Dir && h.Own(at) && !h.Own("/"+e.Path) {
			left = append(left, tree.Entry{Path: at[1:], Type: tree.Dir}) // a listing shows what is shared where it was
		}
	}
	m.Entries = append(m.Entries, left...)
	m.Sort()
	m.Entries = slices.CompactFunc(m.Entries, func(a, b tree.Entry) bool { return a.Path == b.Path })
}

// compareTree compares what the recording left with what the replay did.
func compareTree(ctx context.Context, rep *Report, into string, final *tree.Manifest, sk *initialtree.Tree, made effect.Ranges, t *trace.Tape, devices bool) error {
	content, several := contentOf(t), len(t.Manifest().Hosts) > 1
	want := &tree.Manifest{}
	var paths []string
	hash := map[string]bool{}
	for i := range final.Entries {
		e := final.Entries[i]
		// What was only looked for, or run, is not part of what the replay makes; nor what
		// others removed after the recording that found it had ended.
		if effect.Virtual("/"+e.Path) || !sk.Remains(e.Path) && (several || !e.Has(tree.KnownHash)) {
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
func findExtra(rep *Report, into string, sk *initialtree.Tree) error {
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
			if p := path.Join(dir, e.Name()); !sk.Remains(p) {
				rep.Tree = append(rep.Tree, tree.Difference{Path: p, Field: "entry", Want: "absent", Got: "present"})
			}
		}
	}
	return nil
}
