// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// Touched is what the calls of a recording named and changed: the paths whose
// state afterwards the tape keeps, so that a replay can be compared with it.
type Touched struct {
	paths   map[string]struct{}
	written map[fileID]bool // opened for writing; true if the trace determines the whole content
	torn    map[fileID]bool // some of what was written is not in the trace
	left    []fileID
}

type fileID struct{ dev, ino uint64 }

func newTouched() Touched {
	return Touched{paths: map[string]struct{}{}, written: map[fileID]bool{}, torn: map[fileID]bool{}}
}

// Len returns the number of paths.
func (t *Touched) Len() int { return len(t.paths) }

const accessMode = 3 // O_ACCMODE

func (t *Touched) see(ev *event.Event) {
	if ev.Kind == event.Inherited && len(ev.Files) > 0 {
		t.seeOpen(&ev.Files[0])
		return
	}
	if ev.Kind != event.Call {
		return
	}
	if io := ev.Traffic(); ev.Flags&event.Incomplete != 0 && io.To != nil {
		t.torn[fileID{io.To.Dev, io.To.Ino}] = true
	}
	for i := range ev.Paths {
		for _, p := range [...]string{ev.Paths[i].Abs, ev.Paths[i].Real} {
			if p != "" {
				t.paths[p] = struct{}{}
			}
		}
	}
	if c, ok := ev.Cloned(); ok && c.From != nil {
		t.notWhole(c.From) // nobody read what was taken from it
	}
	f := ev.FileArg(event.ResultArg)
	if !ev.OK() || f == nil || !f.Known || f.Flags&accessMode == 0 || event.FileType(f.Mode) != event.TypeRegular {
		return
	}
	id := fileID{f.Dev, f.Ino}
	asked := ev.OpenFlags()
	// That an open file made its file its duplicates say as well, also long after.
	whole := asked&uint64(f.Flags)&event.OpenCreat != 0 ||
		asked&(event.OpenTrunc|event.OpenTmpfile|event.OpenExcl) != 0
	t.written[id] = t.written[id] || whole
}

// seeOpen takes a file that was open before the recording began.
func (t *Touched) seeOpen(f *event.File) {
	if f.Path == "" || f.Path[0] != '/' || event.FileType(f.Mode) != event.TypeRegular || f.Nlink == 0 {
		return
	}
	t.paths[f.Path] = struct{}{}
	if f.Flags&accessMode != 0 && f.Size > 0 {
		t.notWhole(f) // what was written before is not in the trace
	} else if f.Flags&accessMode != 0 {
		t.written[fileID{f.Dev, f.Ino}] = true
	}
}

// notWhole notes that what the trace does not have of a file's content matters.
func (t *Touched) notWhole(f *event.File) {
	id := fileID{f.Dev, f.Ino}
	if _, known := t.written[id]; f.Known && !known {
		t.written[id] = false
	}
}

// Leave leaves a file out, by whatever name: others than the recorded program write to it.
func (t *Touched) Leave(f *os.File) {
	var st syscall.Stat_t
	if syscall.Fstat(int(f.Fd()), &st) == nil && event.FileType(st.Mode) == event.TypeRegular {
		t.left = append(t.left, fileID{st.Dev, st.Ino})
	}
}

// Final takes the state of all touched paths as it is now and writes it to the
// tape as trace.FinalName. Files that the recording wrote get their hash; those of
// which it wrote only a part get their content stored as well, because nothing
// else in the tape has the rest; or, where content is not to be kept, not even the hash,
// with which a replay that lacks the rest could not agree.
func Final(ctx context.Context, tw *trace.TapeWriter, t *Touched, content bool) (*tree.Manifest, error) {
	paths := make([]string, 0, len(t.paths))
	var partly []string
	for p := range t.paths {
		if virtual(p) || t.leaves(p) {
			continue
		}
		paths = append(paths, p)
		if whole, ok := t.lookup(p); ok && !whole && content {
			partly = append(partly, p)
		}
	}
	m, err := tree.TakePaths(ctx, "/", paths, func(p string) bool {
		whole, ok := t.lookup(p)
		return ok && (whole && !t.isTorn(p) || content)
	}, nil)
	if err != nil {
		return nil, err
	}
	if len(partly) > 0 {
		rest, err := tree.TakePaths(ctx, "/", partly, nil, &tree.TakeOptions{
			Sink: func(data []byte, _ int64) (uint64, error) { return tw.AddChunk(data) },
		})
		if err != nil {
			return nil, err
		}
		for i := range rest.Entries {
			if e := m.Lookup(rest.Entries[i].Path); e != nil && rest.Entries[i].Type == tree.File {
				link, nlink, known := e.Link, e.Nlink, e.Known&tree.KnownLinks
				*e = rest.Entries[i]
				e.Link, e.Nlink, e.Known = link, nlink, e.Known&^tree.KnownLinks|known
				if e.Link != "" {
					e.Chunks = nil
				}
			}
		}
	}
	return m, WriteTree(tw, trace.FinalName, m)
}

// isTorn reports whether the trace lacks some of what was written to the file at a path.
func (t *Touched) isTorn(p string) bool {
	var st syscall.Stat_t
	return len(t.torn) > 0 && syscall.Lstat(p, &st) == nil && t.torn[fileID{st.Dev, st.Ino}]
}

// leaves reports whether a path is of a file that is left out.
func (t *Touched) leaves(p string) bool {
	var st syscall.Stat_t
	return len(t.left) > 0 && syscall.Lstat(p, &st) == nil && slices.Contains(t.left, fileID{st.Dev, st.Ino})
}

// lookup says whether the file at a path was opened for writing, and whether the
// trace has its whole content.
func (t *Touched) lookup(p string) (whole, ok bool) {
	var st syscall.Stat_t
	if len(t.written) == 0 || syscall.Lstat(p, &st) != nil {
		return false, false
	}
	whole, ok = t.written[fileID{st.Dev, st.Ino}]
	return whole, ok
}

// virtual reports whether a path is in a file system that the kernel makes up.
func virtual(p string) bool {
	for _, dir := range [...]string{"/proc", "/sys"} {
		if p == dir || len(p) > len(dir) && p[:len(dir)+1] == dir+"/" {
			return true
		}
	}
	return false
}

// Snapshot takes the whole tree of a directory, given by its absolute path, and writes it to the tape, content
// included. The manifest's paths are relative to "/". Its name in the tape is trace.SnapshotName with a number after
// the
// first.
func Snapshot(ctx context.Context, tw *trace.TapeWriter, dir string, n int,
	progress func(entries int, bytes int64)) (*tree.Manifest, error) {
	m, err := tree.Take(ctx, dir, &tree.TakeOptions{
		Prefix:   cmp.Or(strings.TrimPrefix(dir, "/"), "."),
		Progress: progress,
		Sink:     func(data []byte, _ int64) (uint64, error) { return tw.AddChunk(data) },
	})
	if err != nil {
		return nil, err
	}
	return m, WriteTree(tw, SnapshotFile(n), m)
}

// SnapshotFile returns the name of the n-th snapshot in a tape, from 0.
func SnapshotFile(n int) string {
	if n == 0 {
		return trace.SnapshotName
	}
	return fmt.Sprintf("%s-%d", trace.SnapshotName, n)
}

// WriteTree adds a manifest of a tree to a tape.
func WriteTree(tw *trace.TapeWriter, name string, m *tree.Manifest) error {
	w, err := tw.Create(name)
	if err != nil {
		return err
	}
	if err := tree.Encode(w, m); err != nil {
		w.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	return w.Close()
}

// IsTree reports whether a file of a tape is a tree: a snapshot, or the final state.
func IsTree(name string) bool {
	return name == trace.SnapshotName || name == trace.FinalName || strings.HasPrefix(name, trace.SnapshotName+"-")
}

// CopyTree copies a tree with its content into another tape.
func CopyTree(ctx context.Context, c *trace.Copier, from, to string) error {
	r, err := c.From().OpenFile(from)
	if err != nil {
		return err
	}
	defer r.Close()
	m, err := tree.Decode(r)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	for i := range m.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		for k := range m.Entries[i].Chunks {
			ch := &m.Entries[i].Chunks[k]
			if ch.ID, err = c.Chunk(ch.ID); err != nil {
				return fmt.Errorf("%s: %s: %w", from, m.Entries[i].Path, err)
			}
		}
	}
	return WriteTree(c.To(), to, m)
}

// CheckTrees verifies that the trees of a tape can be read, and that their content is in
// the tape. It adds what is wrong to the report of trace.Tape.Check, but for files whose
// damage is in there already.
func CheckTrees(ctx context.Context, t *trace.Tape, rep *trace.CheckReport) error {
	for _, name := range slices.Sorted(maps.Keys(t.Manifest().Files)) {
		_, file := trace.SplitHostFile(name)
		if !IsTree(file) || slices.ContainsFunc(rep.Damage, func(d trace.Damage) bool { return d.File == name }) {
			continue
		}
		if err := checkTree(ctx, t, name); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			rep.Damage = append(rep.Damage, trace.Damage{File: name, Offset: -1, Err: err})
		}
	}
	return nil
}

func checkTree(ctx context.Context, t *trace.Tape, name string) error {
	r, err := t.OpenFile(name)
	if err != nil {
		return err
	}
	defer r.Close()
	m, err := tree.Decode(r)
	if err != nil {
		return err
	}
	for i := range m.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, c := range m.Entries[i].Chunks {
			data, err := t.Chunk(c.ID)
			if err != nil {
				return fmt.Errorf("content of %s: %w", m.Entries[i].Path, err)
			}
			if uint64(c.Len) > uint64(len(data)) {
				return fmt.Errorf("content of %s: %d bytes of chunk %d, which has %d: %w", m.Entries[i].Path, c.Len,
					c.ID, len(data), trace.ErrCorrupt)
			}
		}
	}
	return nil
}
