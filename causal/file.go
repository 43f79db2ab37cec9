// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
)

// files follows what threads did to names and to bytes of files: a name is used after it
// was made and before it is removed; bytes are read after they were written, and written
// anew after that. Of threads that do this at the same time, the tape's order counts.
type files struct {
	names map[name]*nameUse
	bytes map[inode]*contentUse
	spans int // of all parts
	edge  func(to, from int, why Reason)
}

type name struct {
	host uint32
	list bool // the names in the directory, not its own
	path string
}

// mark is the last event of a thread that did something.
type mark struct {
	line  uint32
	event uint32
}

// nameUse is who changed and who used something, the last event of each thread.
type nameUse struct {
	changes, uses []mark
}

// contentUse is who read and wrote which bytes of a file.
type contentUse struct {
	head  part            // the first part: most files have no other
	parts map[int64]*part // the rest, by number
	whole part            // accesses that are larger than partsAtOnce
	wrote []mark          // the last write of each thread
}

// part is so much of a file that there are few accesses to remember of it.
type part struct {
	spans []span
	last  uint32
}

type span struct {
	from, to int64
	mark
	write bool
}

// Limits: beyond, what was touched longest ago is forgotten.
const (
	maxMarks    = 16        // threads, of one name
	maxWriters  = 128       // threads, of one file
	maxNames    = 1 << 20   // in all
	partBytes   = 256 << 10 // of a file
	partsAtOnce = 64        // of one access
	maxSpans    = 128       // of one part
	allSpans    = 1 << 21   // of all
)

func newFiles(edge func(to, from int, why Reason)) *files {
	return &files{names: map[name]*nameUse{}, bytes: map[inode]*contentUse{}, edge: edge}
}

// see takes the next call of a thread.
func (f *files) see(i int, line uint32, ev *event.Event) {
	m := mark{line, uint32(i)}
	spec := ev.Spec()
	for k := range ev.Paths {
		if abs := ev.Paths[k].Reached(); abs != "" && !virtual(abs) {
			f.path(m, ev, spec, k, abs)
		}
	}
	if ev.Effect() == event.EffectList {
		if d := ev.FileArg(0); d != nil && d.Reached() != "" {
			f.touch(name{ev.Host, true, d.Reached()}, m, false)
		}
	}
	f.content(m, ev)
}

// virtual reports names that the kernel makes up.
func virtual(path string) bool {
	return strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") || strings.HasPrefix(path, "/dev/")
}

// path notes the use of a name.
func (f *files) path(m mark, ev *event.Event, spec *event.Spec, k int, abs string) {
	n := name{ev.Host, false, abs}
	dir := "/"
	if at := strings.LastIndexByte(abs, '/'); at > 0 {
		dir = abs[:at]
	}
	change := false
	if ev.OK() {
		switch mode, _ := ev.NameUse(k); mode {
		case event.NameCreate, event.NameRemove, event.NameFrom, event.NameTo:
			change = true
		case event.NameOpen:
			flags := ev.OpenFlags()
			// Whether it made the file, a call does not say.
			change = flags&event.OpenCreat != 0 && (flags&event.OpenExcl != 0 || f.names[n] == nil)
		}
	}
	f.touch(n, m, change)
	f.touch(name{ev.Host, false, dir}, m, false)
	if change {
		f.touch(name{ev.Host, true, dir}, m, true)
		if ev.Effect() == event.EffectRmdir {
			f.touch(name{ev.Host, true, abs}, m, false)
		}
	}
}

// touch notes a use or a change. Changes of a list of names do not concern each other.
func (f *files) touch(n name, m mark, change bool) {
	u := f.names[n]
	if u == nil {
		if len(f.names) >= maxNames {
			f.forgetNames(m.event)
		}
		u = &nameUse{}
		f.names[n] = u
	}
	if !change || !n.list {
		f.after(m, u.changes)
	}
	if !change {
		u.uses = note(u.uses, m, maxMarks)
		return
	}
	f.after(m, u.uses)
	if n.list {
		u.changes = note(u.changes, m, maxMarks)
		return
	}
	u.changes, u.uses = append(u.changes[:0], m), u.uses[:0]
}

// after makes an event wait for what others did.
func (f *files) after(m mark, list []mark) {
	for _, o := range list {
		if o.line != m.line {
			f.edge(int(m.event), int(o.event), Name)
		}
	}
}

// note puts the last event of a thread into a list of so many at most.
func note(list []mark, m mark, most int) []mark {
	oldest := 0
	for i := range list {
		if list[i].line == m.line {
			list[i] = m
			return list
		}
		if list[i].event < list[oldest].event {
			oldest = i
		}
	}
	if len(list) >= most {
		list[oldest] = m
		return list
	}
	return append(list, m)
}

func (f *files) forgetNames(now uint32) {
	for n, u := range f.names {
		last := uint32(0)
		for _, m := range append(u.changes, u.uses...) {
			last = max(last, m.event)
		}
		if now-last > maxNames/4 {
			delete(f.names, n)
		}
	}
	if len(f.names) >= maxNames {
		clear(f.names)
	}
}

// content notes what a call reads and writes of files.
func (f *files) content(m mark, ev *event.Event) {
	if !ev.OK() {
		return
	}
	if ev.OpenFlags()&event.OpenTrunc != 0 {
		f.extent(m, ev, ev.FileArg(event.ResultArg), 0, wholeFile, true)
		return
	}
	switch ev.Effect() {
	case event.EffectTruncate, event.EffectAllocate:
		f.extent(m, ev, ev.FileArg(0), 0, wholeFile, true)
		return
	case event.EffectSync:
		f.sync(m, ev, ev.FileArg(0))
		return
	}
	io := ev.Traffic()
	if io.Bytes() == 0 {
		return
	}
	if io.From != nil && io.To != nil { // the offsets of both sides are not known here
		f.extent(m, ev, io.From, 0, wholeFile, false)
		f.extent(m, ev, io.To, 0, wholeFile, true)
		return
	}
	from, to := ev.Offset, ev.Offset+io.Bytes()
	if ev.Offset < 0 {
		from, to = 0, wholeFile
	}
	if io.Writes {
		f.extent(m, ev, io.To, from, to, true)
	} else {
		f.extent(m, ev, io.From, from, to, false)
	}
}

func (f *files) use(ev *event.Event, file *event.File) *contentUse {
	if !file.Is(event.TypeRegular) && !file.Is(event.TypeBlock) {
		return nil
	}
	k := inode{ev.Host, file.Dev, file.Ino}
	u := f.bytes[k]
	if u == nil {
		u = &contentUse{}
		f.bytes[k] = u
	}
	return u
}

// sync makes a flush wait for the writes before it. Nothing has to wait for a flush.
func (f *files) sync(m mark, ev *event.Event, file *event.File) {
	if u := f.use(ev, file); u != nil {
		for _, o := range u.wrote {
			if o.line != m.line {
				f.edge(int(m.event), int(o.event), Content)
			}
		}
	}
}

// extent notes that bytes of a file were read or written.
func (f *files) extent(m mark, ev *event.Event, file *event.File, from, to int64, write bool) {
	u := f.use(ev, file)
	if u == nil {
		return
	}
	if write {
		u.wrote = note(u.wrote, m, maxWriters)
	}
	s := span{from, to, m, write}
	f.meet(&u.whole, s)
	first, last := from/partBytes, (to-1)/partBytes
	if last-first >= partsAtOnce {
		f.meet(&u.head, s)
		for _, n := range slices.Sorted(maps.Keys(u.parts)) {
			if p := u.parts[n]; from < (n+1)*partBytes && n*partBytes < to {
				if f.meet(p, s); len(p.spans) == 0 {
					delete(u.parts, n)
				}
			}
		}
		f.keep(&u.whole, s)
	} else {
		for n := first; n <= last; n++ {
			p := u.part(n)
			f.meet(p, s)
			f.keep(p, span{max(from, n*partBytes), min(to, (n+1)*partBytes), m, write})
		}
	}
	f.bound(m.event)
}

// part returns a part by number.
func (u *contentUse) part(n int64) *part {
	if n == 0 {
		return &u.head
	}
	p := u.parts[n]
	if p == nil {
		if u.parts == nil {
			u.parts = map[int64]*part{}
		}
		p = &part{}
		u.parts[n] = p
	}
	return p
}

// meet makes an access wait for those that it must not overtake.
func (f *files) meet(p *part, with span) {
	kept := p.spans[:0]
	for _, s := range p.spans {
		hit := s.from < with.to && with.from < s.to
		if hit && (s.write || with.write) && s.line != with.line {
			f.edge(int(with.event), int(s.event), Content)
		}
		// What is written over needs no order of its own any more; what the same
		// thread does once more, neither.
		over := with.from <= s.from && s.to <= with.to
		if over && (with.write || !s.write && s.line == with.line) {
			continue
		}
		kept = append(kept, s)
	}
	f.spans -= len(p.spans) - len(kept)
	p.spans = kept
}

// keep remembers an access.
func (f *files) keep(p *part, s span) {
	if n := len(p.spans); n >= maxSpans {
		p.spans = coarsen(p.spans)
		f.spans -= n - len(p.spans)
	}
	p.spans = append(p.spans, s)
	p.last = s.event
	f.spans++
}

// coarsen makes one span of what each thread read, and one of what it wrote.
func coarsen(spans []span) []span {
	var out []span
	for _, s := range spans {
		merged := false
		for i := range out {
			if o := &out[i]; o.line == s.line && o.write == s.write {
				o.from, o.to, o.event, merged = min(o.from, s.from), max(o.to, s.to), max(o.event, s.event), true
			}
		}
		if !merged {
			out = append(out, s)
		}
	}
	return out[max(0, len(out)-maxSpans/2):]
}

// bound forgets accesses if there are too many of them.
func (f *files) bound(now uint32) {
	if f.spans <= allSpans {
		return
	}
	for k, u := range f.bytes {
		for n, p := range u.parts {
			if now-p.last > allSpans/8 {
				f.spans -= len(p.spans)
				delete(u.parts, n)
			}
		}
		if len(u.parts) == 0 && now-max(u.head.last, u.whole.last) > allSpans/8 {
			f.spans -= len(u.head.spans) + len(u.whole.spans)
			delete(f.bytes, k)
		}
	}
	if f.spans > allSpans {
		clear(f.bytes)
		f.spans = 0
	}
}
