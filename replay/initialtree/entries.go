// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"iter"
	"slices"
	"strings"

	"github.com/iotape/iotape/tree"
)

// Entries returns the initial tree in the order of a manifest. An entry is valid until
// the next one. There may be millions: they are made as they are asked for.
func (s *Tree) Entries() iter.Seq[*tree.Entry] {
	if s.kept != nil {
		return s.kept.all()
	}
	return func(yield func(*tree.Entry) bool) {
		w := walk{s: s, yield: yield, firsts: map[*object]string{}}
		w.below(s.names.root, "")
	}
}

// Manifest returns all entries at once.
func (s *Tree) Manifest() *tree.Manifest {
	m := &tree.Manifest{Root: "/"}
	for e := range s.Entries() {
		m.Entries = append(m.Entries, *e)
	}
	return m
}

// FIFOs reports whether the initial tree may have any.
func (s *Tree) FIFOs() bool {
	if s.kept != nil {
		return s.kept.fifos()
	}
	for _, block := range s.names.objects.blocks {
		for i := range block {
			if block[i].initial && block[i].typ == tree.FIFO {
				return true
			}
		}
	}
	return false
}

// Remains reports whether a path exists after the last event, as far as the trace proves:
// whether a replay of all events should leave it.
func (s *Tree) Remains(path string) bool {
	if s.kept != nil {
		return s.kept.remains(path)
	}
	c := s.names.find(path)
	return c != nil && c.obj != nil
}

// Listed returns the directories of whose entries Remains knows every one.
func (s *Tree) Listed() iter.Seq[string] {
	if s.kept != nil {
		return s.kept.listed()
	}
	return func(yield func(string) bool) {
		for p, c := range s.names.current() {
			if c.obj.allKnown() && !yield(p) {
				return
			}
		}
	}
}

// allKnown reports whether all names in a directory are known.
func (o *object) allKnown() bool {
	return o.typ == tree.Dir && (o.below != nil && o.below.listed || !o.initial)
}

// current returns every name that exists now, with its path, except the root.
func (n *names) current() iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) {
		var below func(c *node, prefix string) bool
		below = func(c *node, prefix string) bool {
			d := c.obj.below
			if d == nil || d.owner != c || len(prefix) > tree.MaxPathBytes {
				return true
			}
			for k := d.first; k != nil; k = k.next {
				if k.obj == nil {
					continue
				}
				if p := prefix + k.name; !yield(p, k) || !below(k, p+"/") {
					return false
				}
			}
			return true
		}
		below(n.root, "")
	}
}

// walk is one iteration over the initial tree.
type walk struct {
	s      *Tree
	yield  func(*tree.Entry) bool
	firsts map[*object]string // the first of an object's several names
	entry  tree.Entry
}

// below yields what was in a directory. It returns false if the iteration is to end.
func (w *walk) below(c *node, prefix string) bool {
	d := c.was.below
	if d == nil || c.was.first != c || len(prefix) > tree.MaxPathBytes {
		return true
	}
	var children []*node
	for k := d.first; k != nil; k = k.next {
		if k.was != nil {
			children = append(children, k)
		}
	}
	slices.SortFunc(children, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	for _, k := range children {
		p := prefix + k.name
		if tree.ValidPath(p) != nil {
			continue
		}
		w.fill(k.was, p)
		if !w.yield(&w.entry) || k.was.typ == tree.Dir && !w.below(k, p+"/") {
			return false
		}
	}
	return true
}

// fill makes the entry of an object under one of its names.
func (w *walk) fill(o *object, path string) {
	d, e := o.details(), &w.entry
	several := len(d.others) > 0
	first, again := w.firsts[o]
	if several && !again {
		w.firsts[o] = path
	}
	if several && o.links == 1 && w.s.living[o] >= 1+len(d.others) {
		// One name, and several were found: the others are symbolic links, which every
		// call followed.
		if several = false; again {
			*e = tree.Entry{Path: path, Type: tree.Symlink, Target: "/" + first}
			return
		}
	}
	*e = tree.Entry{}
	if d.entry != nil {
		*e = *d.entry
	}
	e.Path, e.Type, e.Link, e.Chunks = path, o.typ, "", nil
	e.Known, e.Mode, e.UID, e.GID, e.Size, e.Xattrs = o.known, o.mode, o.uid, o.gid, o.size, d.xattrs
	switch o.typ {
	case tree.File:
		e.Known |= tree.KnownSize
	case tree.CharDev, tree.BlkDev:
		e.Rdev = d.rdev
	case tree.Symlink:
		// If no call followed it, its length may have been seen.
		if e.Target = d.target; e.Target == "" {
			e.Target = strings.Repeat("?", int(min(max(d.length, 1), 4095)))
		}
	}
	if o.typ != tree.File {
		e.Size, e.Known = 0, e.Known&^tree.KnownSize
	}
	if several {
		e.Nlink, e.Known = uint32(1+len(d.others)), e.Known|tree.KnownLinks
	}
	if again {
		e.Link = first
		return
	}
	for i, p := range w.s.pieces[d.from:d.end] {
		e.Chunks = append(e.Chunks, tree.Chunk{Off: p.off, Len: p.len, ID: uint64(d.from + i + 1)})
	}
}
