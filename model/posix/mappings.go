// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"slices"

	"github.com/iotape/iotape/event"
)

// Space is a process's memory, as far as files are mapped into it. A mapping keeps
// its open file open, with or without descriptors (mmap(2)).
type Space struct {
	mappings []mapping // in no order, without overlaps
	program  Name      // that it was executed by
	users    int
}

type mapping struct {
	from, to uint64 // addresses, to excluded
	file     *OpenFile
}

// At returns the open file that is mapped at an address, nil if none is known to be.
func (s *Space) At(addr uint64) *OpenFile {
	for i := range s.mappings {
		if p := &s.mappings[i]; p.from <= addr && addr < p.to {
			return p.file
		}
	}
	return nil
}

type fileID struct{ dev, ino uint64 }

// mapped is the open file that a page read or stored to through a mapping belongs
// to, nil if it is not known: programs and their loader are mapped by execve.
func (m *Model) mapped(t *Thread, ev *event.Event, f *event.File) *OpenFile {
	id := fileID{f.Dev, f.Ino}
	if ev.Op == event.OpMmapPread {
		for i := range t.Space.mappings {
			if p := &t.Space.mappings[i]; p.from <= ev.Args[1] && ev.Args[1] < p.to &&
				(fileID{p.file.Dev, p.file.Ino}) == id {
				return p.file
			}
		}
	}
	var best *OpenFile
	for _, o := range m.byFile[id] {
		if writable := o.Flags&accessMode == oRdwr; best == nil || writable {
			best = o
			if writable {
				break
			}
		}
	}
	return best
}

const (
	accessMode = 3
	oRdwr      = 2
)

// hold adds a mapping to a space.
func (m *Model) hold(s *Space, p mapping) {
	p.file.ref()
	if p.file.mappings++; p.file.mappings == 1 {
		id := fileID{p.file.Dev, p.file.Ino}
		m.byFile[id] = append(m.byFile[id], p.file)
	}
	s.mappings = append(s.mappings, p)
}

// let ends a mapping, which is no longer in its space.
func (m *Model) let(o *OpenFile) {
	if o.mappings--; o.mappings == 0 {
		id := fileID{o.Dev, o.Ino}
		rest := slices.DeleteFunc(m.byFile[id], func(p *OpenFile) bool { return p == o })
		if m.byFile[id] = rest; len(rest) == 0 {
			delete(m.byFile, id)
		}
	}
	m.unref(o)
}

// unmap empties a range of addresses.
func (m *Model) unmap(s *Space, from, to uint64) {
	for i := 0; i < len(s.mappings); i++ {
		p := s.mappings[i]
		if p.to <= from || to <= p.from {
			continue
		}
		if p.from < from && to < p.to { // a hole in the middle
			s.mappings[i].to = from
			m.hold(s, mapping{to, p.to, p.file})
			continue
		}
		switch {
		case p.from < from:
			s.mappings[i].to = from
		case to < p.to:
			s.mappings[i].from = to
		default:
			last := len(s.mappings) - 1
			s.mappings[i] = s.mappings[last]
			s.mappings = s.mappings[:last]
			i--
			m.let(p.file)
		}
	}
}

// cloneSpace gives a child of fork its own memory.
func (m *Model) cloneSpace(s *Space) *Space {
	c := &Space{}
	for _, p := range s.mappings {
		m.hold(c, p)
	}
	return c
}

// leave ends a thread's use of its memory.
func (m *Model) leave(s *Space) {
	if s.users--; s.users > 0 {
		return
	}
	for _, p := range s.mappings {
		m.let(p.file)
	}
	s.mappings = nil
}

// pageEnd returns the end of the last page of a range.
func pageEnd(addr, n uint64) uint64 { return addr + (n+4095)&^4095 }

func (m *Model) mmapped(t *Thread, ev *event.Event) {
	const anonymous = 0x20
	if !ev.OK() {
		return
	}
	from := uint64(ev.Ret)
	p := mapping{from: from, to: pageEnd(from, ev.Args[1])}
	m.unmap(t.Space, p.from, p.to)
	if d := t.Table.Lookup(int32(ev.Args[4])); d != nil && ev.Args[3]&anonymous == 0 && d.Open.Ino != 0 &&
		event.FileType(d.Open.Mode) == event.TypeRegular {
		p.file = d.Open
		m.hold(t.Space, p)
	}
}

func (m *Model) munmapped(t *Thread, ev *event.Event) {
	if ev.OK() {
		m.unmap(t.Space, ev.Args[0], pageEnd(ev.Args[0], ev.Args[1]))
	}
}

func (m *Model) mremapped(t *Thread, ev *event.Event) {
	const dontUnmap = 4
	if !ev.OK() {
		return
	}
	old, oldBytes, to := ev.Args[0], ev.Args[1], uint64(ev.Ret)
	var file *OpenFile
	for _, p := range t.Space.mappings {
		if p.from <= old && old < p.to {
			file = p.file
		}
	}
	if file != nil {
		file.ref() // while it is moved
	}
	if ev.Args[3]&dontUnmap == 0 {
		m.unmap(t.Space, old, pageEnd(old, oldBytes))
	}
	m.unmap(t.Space, to, pageEnd(to, ev.Args[2]))
	if file != nil {
		m.hold(t.Space, mapping{to, pageEnd(to, ev.Args[2]), file})
		m.unref(file)
	}
}
