// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// file is one inode, of one generation: a number that is given again is another file.
type file struct {
	same  *file        // what it turned out to be, if it was known by a name only
	id    effect.Inode // zero while unknown
	names int          // that are known
	// alone is the slot + 1 of the only tasks that accessed the file, up to number last.
	// While there is one, the resources say nothing.
	alone    uint32
	last     uint64
	changed  bool // by one of these
	locked   bool // a task has locked it
	lastRead Ref  // the last of these, if they all only read content
	growth   growth

	whole resource // all of the content: changed, in commuting order, by every access to a part
	parts map[part]*resource
	size  resource
	attr  resource // mode, owner, times, extended attributes
	links resource // how many names it has
	locks resource
	tried []Ref // tasks that were refused one, the last of each slot
	sync  syncPoint
}

// part is a range of a file's content.
type part struct {
	big bool // of bigBytes; else a page
	n   int64
}

// resolved returns what a file turned out to be.
func (f *file) resolved() *file {
	for f.same != nil {
		f = f.same
	}
	return f
}

// Content is divided into pages (x86-64's and most file systems' block), for larger
// accesses into large parts.
const (
	pageBytes = 1 << 12
	bigBytes  = 1 << 20
	maxPages  = 32
)

// open is an open file.
type open struct {
	pos  resource
	file *file
	dir  *name // of a directory
}

// use returns a file's resources for the present task, or nil if no other slot ever
// accessed it, so that there is nothing to wait for.
func (f *file) use(o *Order, a access) *file {
	switch f.alone {
	case 0:
		f.alone = o.self.Slot + 1
		fallthrough
	case o.self.Slot + 1:
		f.last = o.self.Pos
		f.changed = f.changed || a != accessRead
		return nil
	case shared:
		return f
	}
	return f.share()
}

// share ends the time in which one slot alone used the file. If it changed anything,
// whatever it changed is what others use now.
func (f *file) share() *file {
	if f.alone != 0 && f.alone != shared {
		before := Ref{f.alone - 1, f.last}
		for _, r := range [...]*resource{&f.whole, &f.size, &f.attr, &f.links, &f.locks} {
			if r.since(before); !f.changed {
				r.kind = accessRead
			}
		}
		if !f.changed {
			f.whole, f.lastRead = resource{}, before
		}
	}
	f.alone = shared
	return f
}

const shared = ^uint32(0)

func (f *file) done(o *Order) bool {
	if f.alone != shared {
		return f.alone == 0 || o.isDone(Ref{f.alone - 1, f.last})
	}
	return f.whole.done(o) && f.size.done(o) && f.attr.done(o) && f.links.done(o) && f.locks.done(o)
}

// fileOf returns what a descriptor is of.
func (o *Order) fileOf(f *event.File) *file {
	if f == nil || f.Open == 0 && !f.Known {
		return nil
	}
	if f.Open != 0 {
		if p := o.opens[f.Open]; p != nil && p.file != nil {
			p.file = p.file.resolved()
			return p.file
		}
	}
	return o.inode(f)
}

func (o *Order) inode(f *event.File) *file {
	if !f.Known || f.Ino == 0 {
		return nil
	}
	return o.byInode(effect.InodeOf(f))
}

func (o *Order) byInode(id effect.Inode) *file {
	x := o.files[id]
	if x == nil {
		x = &file{id: id}
		o.files[id] = x
	}
	return x
}

// openOf returns the state of an open file.
func (o *Order) openOf(f *event.File) *open {
	if f == nil || f.Open == 0 {
		return nil
	}
	p := o.opens[f.Open]
	if p == nil {
		p = &open{file: o.inode(f)}
		o.opens[f.Open] = p
	}
	return p
}

// Closed says that the last descriptor of an open file is gone.
func (o *Order) Closed(id event.OpenID) { delete(o.opens, id) }

// content is an access to a range of a file's content; to is excluded.
func (f *file) content(o *Order, a access, from, to int64) {
	if f = f.use(o, a); f == nil {
		return
	}
	if from < 0 || to <= from || to-from > 1<<40 {
		f.everything(o)
		return
	}
	if a != accessRead {
		o.wait(f.lastRead)
	}
	f.whole.access(o, accessCommute)
	first, last := from/bigBytes, (to-1)/bigBytes
	if last-first > maxPages {
		f.everything(o)
		return
	}
	pages := (to-1)/pageBytes - from/pageBytes + 1
	for n := first; n <= last; n++ {
		if pages <= maxPages {
			f.part(part{true, n}).access(o, accessCommute)
		} else {
			f.part(part{true, n}).access(o, a)
		}
	}
	if pages <= maxPages {
		for n := from / pageBytes; n <= (to-1)/pageBytes; n++ {
			f.part(part{false, n}).access(o, a)
		}
	}
}

func (f *file) part(p part) *resource {
	r := f.parts[p]
	if r == nil {
		if f.parts == nil {
			f.parts = map[part]*resource{}
		}
		r = &resource{}
		f.parts[p] = r
	}
	return r
}

// everything is an access to all content, which commutes with no other.
func (f *file) everything(o *Order) {
	if f = f.use(o, accessWrite); f != nil {
		o.wait(f.lastRead)
		f.whole.access(o, accessWrite)
		clear(f.parts)
	}
}

// access is an access to another property of the file.
func (f *file) access(o *Order, which func(*file) *resource, a access) {
	if f = f.use(o, a); f != nil {
		which(f).access(o, a)
	}
}

func size(f *file) *resource  { return &f.size }
func attr(f *file) *resource  { return &f.attr }
func links(f *file) *resource { return &f.links }
func locks(f *file) *resource { return &f.locks }

// pipe is what goes through a pipe: bytes, in order.
type pipe struct {
	wrote  int64 // bytes
	read   int64
	writes []written
}

type written struct {
	begin, end int64 // of the bytes, counted from the first
	by         Ref
}
