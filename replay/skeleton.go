package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"iotape/event"
	"iotape/posix"
	"iotape/trace"
	"iotape/tree"
)

// Skeleton is the initial tree that a replay needs, with paths relative to the
// replay's root.
type Skeleton struct {
	Manifest *tree.Manifest
	// Left are the paths that exist after the last event, as far as the trace
	// tells: what a replay of all events should leave.
	Left map[string]bool
	// Made are the files with content that was read and that the tape does not have:
	// they have zeros there.
	Made []madeFile
	// Listed are the directories of which Left has every entry.
	Listed []string
	tape   *trace.Tape
	pieces []piece  // by id-1 of the manifest's chunks
	inline [][]byte // small content that stands in events, by id-1 with inlineBit
}

const inlineBit = 1 << 63

// Content returns the bytes of one of the manifest's chunks.
func (s *Skeleton) Content(id uint64) ([]byte, error) {
	if id == 0 || id > uint64(len(s.pieces)) {
		return nil, fmt.Errorf("skeleton chunk %d of %d: %w", id, len(s.pieces), trace.ErrCorrupt)
	}
	p := s.pieces[id-1]
	if p.chunk&inlineBit != 0 {
		return s.inline[p.chunk&^inlineBit], nil
	}
	b, err := s.tape.Chunk(p.chunk)
	if err != nil {
		return nil, err
	}
	if uint64(p.skip)+uint64(p.len) > uint64(len(b)) {
		return nil, fmt.Errorf("chunk %d is shorter than its reference: %w", p.chunk, trace.ErrCorrupt)
	}
	return b[p.skip : p.skip+p.len], nil
}

// Infer finds the tree that a tape's events need: its snapshots, and beyond them
// everything that a call found although nothing in the trace had made it, with the
// content that was read before it was written. final, which may be nil, is the
// state after the recording; it decides only what the trace leaves open.
func Infer(ctx context.Context, t *trace.Tape, snapshots []*tree.Manifest, final *tree.Manifest) (*Skeleton, error) {
	in := &inference{
		sk:    &Skeleton{tape: t},
		names: newNames(final), model: posix.New(), final: final,
		arch: tapeArch(t), open: map[event.OpenID]*object{}, taken: map[string]inode{},
	}
	for _, s := range snapshots {
		in.snapshot(s)
	}
	er := t.NewEventReader()
	var ev event.Event
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := er.Next(&ev); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		closed := in.model.Apply(&ev)
		asCall(&ev)
		in.see(&ev)
		for _, id := range closed {
			delete(in.open, id)
		}
	}
	in.build()
	return in.sk, nil
}

func tapeArch(t *trace.Tape) event.Arch {
	if hosts := t.Manifest().Hosts; len(hosts) > 0 {
		if a, ok := event.ParseArch(hosts[0].Arch); ok {
			return a
		}
	}
	return event.AMD64
}

type inference struct {
	sk    *Skeleton
	names *names
	model *posix.Model
	final *tree.Manifest
	arch  event.Arch
	open  map[event.OpenID]*object
	taken map[string]inode // see ownFile
}

// snapshot makes everything in a snapshot known.
func (in *inference) snapshot(m *tree.Manifest) {
	for i := range m.Entries {
		e := &m.Entries[i]
		c := in.names.lookup("/"+e.Path, false)
		if c == nil {
			continue
		}
		o := in.names.exist(c, e.Type)
		o.typ, o.target = e.Type, e.Target
		entry := *e
		o.initial = &entry
		in.names.identify(c, inode{e.Dev, e.Ino})
		o.content.settled.add(0, 1<<62)
	}
	// Only now: a name that is not in a listed directory is known not to exist.
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Type == tree.Dir && e.Has(tree.KnownListing) {
			if c := in.names.lookup("/"+e.Path, false); c != nil {
				c.listed = true
			}
		}
	}
}

// build turns what was learnt into a manifest.
func (in *inference) build() {
	m := &tree.Manifest{Root: "/"}
	done := map[*object]bool{}
	current := in.names.current()
	living := map[*object]int{} // names now
	in.sk.Left = map[string]bool{".": true}
	in.names.each(func(p string, c *node) {
		in.sk.Left[p] = true
		living[c.obj]++
		if c.obj.typ == tree.Dir && (c.listed || c.obj.initial == nil) {
			in.sk.Listed = append(in.sk.Listed, p)
		}
	})
	for _, o := range in.names.initial {
		if done[o] || len(o.paths) == 0 {
			continue
		}
		done[o] = true
		in.complete(o, current[o])
		if made := o.content.made(); len(made) > 0 && o.id.ino != 0 {
			in.sk.Made = append(in.sk.Made, madeUp{o.id: &made}.list()...)
		}
		slices.SortFunc(o.paths, tree.ComparePaths)
		o.paths = slices.Compact(o.paths)
		for i, p := range o.paths {
			if tree.ValidPath(p) != nil {
				continue
			}
			if i > 0 && o.links == 1 && living[o] >= len(o.paths) {
				// It has one name: that is a symbolic link which every call followed.
				m.Entries = append(m.Entries, tree.Entry{Path: p, Type: tree.Symlink, Target: "/" + o.paths[0]})
				continue
			}
			e := *o.initial
			e.Path, e.Link = p, ""
			if len(o.paths) > 1 && o.links != 1 {
				e.Nlink, e.Known = uint32(len(o.paths)), e.Known|tree.KnownLinks
			}
			if i > 0 {
				e.Link, e.Chunks = o.paths[0], nil
			}
			m.Entries = append(m.Entries, e)
		}
	}
	m.Sort()
	m.Entries = slices.CompactFunc(m.Entries, func(a, b tree.Entry) bool { return a.Path == b.Path })
	in.sk.Manifest = m
}

// complete gives an initial object the attributes and content that are known, the
// trace's own findings first, then the state after the recording, where the
// trace left that as it was. now is the object's name after the last event, ""
// if it has none.
func (in *inference) complete(o *object, now string) {
	e := o.initial
	if e.Has(tree.KnownContent) { // from a snapshot
		for i := range e.Chunks {
			c := &e.Chunks[i]
			c.ID = in.chunk(piece{chunk: c.ID, len: c.Len})
		}
		return
	}
	if now != "" && in.final != nil {
		if last := in.final.Lookup(now); last != nil && (o.typ == 0 || o.typ == last.Type) {
			in.fill(o, last)
		}
	}
	switch {
	case o.typ == 0 && o.enters:
		o.typ = tree.Dir
	case o.typ == 0:
		o.typ = tree.File
	}
	if o.enters && !e.Has(tree.KnownMode) {
		e.Mode, e.Known = 0o755, e.Known|tree.KnownMode
	}
	e.Type, e.Target = o.typ, o.target
	switch {
	case e.Type != tree.Symlink:
		e.Target = ""
	case e.Target == "":
		// Nobody followed it; its length may have been seen.
		e.Target = strings.Repeat("?", int(min(max(o.length, 1), 4095)))
	}
	if e.Type != tree.File {
		e.Size, e.Known = 0, e.Known&^tree.KnownSize
		return
	}
	if u := o.content.unknown; len(u) > 0 {
		e.Size = max(e.Size, u[len(u)-1].to)
	}
	slices.SortFunc(o.content.pieces, func(a, b piece) int { return cmp.Compare(a.off, b.off) })
	for _, p := range o.content.pieces {
		e.Chunks = append(e.Chunks, tree.Chunk{Off: p.off, Len: p.len, ID: in.chunk(p)})
		e.Size = max(e.Size, p.off+int64(p.len))
	}
	e.Known |= tree.KnownSize
}

// fill takes what the trace left open from the state after it.
func (in *inference) fill(o *object, last *tree.Entry) {
	o.typ = last.Type
	e := o.initial
	if o.target == "" {
		o.target = last.Target
	}
	if !o.changed {
		if last.Has(tree.KnownMode) && !e.Has(tree.KnownMode) && !o.modeSet {
			e.Mode, e.Known = last.Mode, e.Known|tree.KnownMode
		}
		if last.Has(tree.KnownOwner) && !e.Has(tree.KnownOwner) && !o.ownerSet {
			e.UID, e.GID, e.Known = last.UID, last.GID, e.Known|tree.KnownOwner
		}
		if last.Has(tree.KnownXattrs) && !e.Has(tree.KnownXattrs) && !o.xattrsSet {
			e.Xattrs, e.Known = last.Xattrs, e.Known|tree.KnownXattrs
		}
		e.Rdev = last.Rdev
	}
	if last.Type != tree.File {
		return
	}
	if !o.grown && !e.Has(tree.KnownSize) && last.Has(tree.KnownSize) {
		e.Size, e.Known = last.Size, e.Known|tree.KnownSize
	}
	for _, c := range last.Chunks {
		for _, s := range o.content.settled.missing(c.Off, c.Off+int64(c.Len)) {
			o.content.pieces = append(o.content.pieces, piece{off: s.from, chunk: c.ID, skip: uint32(s.from - c.Off), len: uint32(s.to - s.from)})
		}
	}
}

// chunk gives a piece the number that the manifest knows it by.
func (in *inference) chunk(p piece) uint64 {
	in.sk.pieces = append(in.sk.pieces, p)
	return uint64(len(in.sk.pieces))
}
