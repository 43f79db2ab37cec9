// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"syscall"

	"github.com/iotape/iotape/event"
)

// accessCollector lists the cells that a call accesses.
type accessCollector struct {
	*state
	list          []access
	coupled       bool // the call's names are coupled (see access)
	missingParent bool // and so are their directories: one may be what was missing
}

// add adds a cell to the list. It reports whether the cell is new there.
func (t *accessCollector) add(c int32, m accessMode) bool {
	if c < 0 {
		return false
	}
	for i := range t.list {
		if t.list[i].cell == c {
			if m != accessObserve {
				t.list[i].mode = max(t.list[i].mode, m)
			}
			return false
		}
	}
	t.list = append(t.list, access{cell: c, mode: m})
	return true
}

// couple marks a listed cell as coupled.
func (t *accessCollector) couple(c int32) {
	for i := range t.list {
		if t.list[i].cell == c {
			t.list[i].coupled = true
		}
	}
}

// collectors add the accesses of a call, by its class.
var collectors = [numClasses]func(*accessCollector, *event.Event, *footprint){
	classOpen:      (*accessCollector).openAccess,
	classStat:      (*accessCollector).statAccess,
	classLookup:    (*accessCollector).lookupAccess,
	classAttribute: (*accessCollector).attributeAccess,
	classReadlink:  (*accessCollector).lookupAccess,
	classUnlink:    (*accessCollector).unlinkAccess,
	classMake:      (*accessCollector).makeAccess,
	classLink:      (*accessCollector).linkAccess,
	classRename:    (*accessCollector).renameAccess,
	classTruncate:  (*accessCollector).truncateAccess,
	classList:      (*accessCollector).listingAccess,
	classLock:      (*accessCollector).lockAccess,
	classRead:      (*accessCollector).readAccess,
	classWrite:     (*accessCollector).writeAccess,
	classSeek:      (*accessCollector).seekAccess,
	classResize:    (*accessCollector).resizeAccess,
	classFstat:     (*accessCollector).fstatAccess,
	classCopy:      (*accessCollector).copyAccess,
}

// call adds the accesses of a call.
func (t *accessCollector) call(ev *event.Event, s *footprint) {
	if s.class < classList && s.class != classAttribute {
		t.coupled = t.couples(ev, s)
		t.missingParent = ev.Errno == syscall.ENOENT
	}
	if f := collectors[s.class]; f != nil {
		f(t, ev, s)
	}
}

// couples reports whether a call on names copies what one of them stands for.
func (t *accessCollector) couples(ev *event.Event, s *footprint) bool {
	switch s.class {
	case classLink, classRename, classTruncate:
		return true
	case classUnlink:
		if ev.Errno == 0 && s.kind != kindDir {
			return true
		}
	}
	n := s.names[0]
	return s.follow && n >= 0 && len(t.names[n].linkTargets) > 0
}

func (t *accessCollector) readAccess(ev *event.Event, s *footprint) {
	if ev.Errno == 0 && s.off >= 0 && ev.Count > 0 {
		t.readUpTo(s.file, s.off+ev.Ret, ev.Ret < ev.Count)
		t.add(s.pos, accessWrite)
	}
}

func (t *accessCollector) writeAccess(ev *event.Event, s *footprint) {
	if ev.Errno == 0 && ev.Ret > 0 && s.op != event.OpMmapPwrite {
		t.writeUpTo(s.file, s.off+ev.Ret, s.off < 0 || ev.Appends())
		t.add(s.pos, accessWrite)
	}
}

func (t *accessCollector) seekAccess(ev *event.Event, s *footprint) {
	if ev.Errno != 0 {
		return
	}
	if ev.Args[2] == seekEnd {
		t.add(t.files[s.file].size, accessRead)
	}
	if ev.Args[2] == seekCur && ev.Args[1] == 0 {
		t.add(s.pos, accessRead)
	} else {
		t.add(s.pos, accessWrite)
	}
}

func (t *accessCollector) resizeAccess(ev *event.Event, s *footprint) {
	switch {
	case ev.Errno != 0:
	case s.op != event.OpFallocate || ev.Args[1]&(fallocCollapse|fallocInsert) != 0:
		t.add(t.files[s.file].size, accessWrite)
	case ev.Args[1]&fallocKeepSize == 0:
		t.writeUpTo(s.file, int64(ev.Args[2])+int64(ev.Args[3]), false)
	}
}

func (t *accessCollector) fstatAccess(_ *event.Event, s *footprint) {
	t.add(t.files[s.file].size, accessRead)
	t.add(t.files[s.file].mode, accessRead)
	t.add(t.files[s.file].links, accessRead)
}

func (t *accessCollector) copyAccess(ev *event.Event, s *footprint) {
	if ev.Errno != 0 || ev.Ret < 0 {
		return
	}
	if s.file >= 0 && s.off >= 0 {
		t.readUpTo(s.file, s.off+ev.Ret, false)
	}
	if s.to >= 0 && s.toOff >= 0 {
		t.writeUpTo(s.to, s.toOff+ev.Ret, false)
	}
	t.add(s.pos, accessWrite)
	t.add(s.toPos, accessWrite)
}

// readUpTo adds the access of a read that ended at end, because the file did if it was short.
func (t *accessCollector) readUpTo(f int32, end int64, short bool) {
	if size := t.files[f].size; short || end > t.floor(size) {
		t.add(size, accessRead)
	}
}

// writeUpTo adds the access of a write that ended at end, or at the end of the file.
func (t *accessCollector) writeUpTo(f int32, end int64, appended bool) {
	switch size := t.files[f].size; {
	case appended:
		t.add(size, accessWrite)
	case end > t.floor(size):
		t.add(size, accessCommute)
	}
}

func (t *accessCollector) openAccess(ev *event.Event, s *footprint) {
	ok, mode, create := ev.Errno == 0, accessRead, s.flags&event.OpenCreat != 0
	if ok && create {
		f := ev.FileArg(event.ResultArg)
		if s.flags&event.OpenExcl != 0 || f == nil || f.Flags&event.OpenCreat != 0 || s.file < 0 {
			mode = accessWrite
		}
	}
	t.nameAccess(s.names[0], mode, s.follow, create)
	t.add(s.pos, accessWrite)
	if !ok || s.file < 0 {
		return
	}
	if mode == accessWrite || s.flags&event.OpenTrunc != 0 {
		t.add(t.files[s.file].size, accessWrite)
	}
	if mode == accessWrite {
		t.add(t.files[s.file].mode, accessWrite)
		t.add(t.files[s.file].links, accessWrite)
	}
}

func (t *accessCollector) statAccess(_ *event.Event, s *footprint) {
	t.nameAccess(s.names[0], accessRead, s.follow, false)
	if s.file < 0 {
		return
	}
	if s.size >= 0 {
		t.add(t.files[s.file].size, accessRead)
	}
	t.add(t.files[s.file].mode, accessRead)
	t.add(t.files[s.file].links, accessRead)
}

func (t *accessCollector) lookupAccess(_ *event.Event, s *footprint) {
	t.add(s.attr, accessRead)
	t.nameAccess(s.names[0], accessRead, s.follow, false)
}

func (t *accessCollector) truncateAccess(_ *event.Event, s *footprint) {
	t.nameAccess(s.names[0], accessRead, s.follow, false)
	if s.file >= 0 {
		t.add(t.files[s.file].size, accessWrite)
	}
}

func (t *accessCollector) unlinkAccess(ev *event.Event, s *footprint) {
	n := s.names[0]
	t.nameAccess(n, changeIf(ev.Errno == 0), false, false)
	if s.kind == kindDir {
		t.add(t.names[n].kids, accessRead)
	} else if ev.Errno == 0 {
		t.linkCountAccess(n)
	}
}

func (t *accessCollector) makeAccess(ev *event.Event, s *footprint) {
	n := s.names[0]
	t.nameAccess(n, changeIf(ev.Errno == 0), false, true)
	if ev.Errno == 0 && s.made != 0 && s.kind == kindDir {
		t.add(t.names[n].kids, accessWrite)
	}
}

func (t *accessCollector) linkAccess(ev *event.Event, s *footprint) {
	from, to := s.names[0], s.names[1]
	t.nameAccess(from, accessRead, s.follow, false)
	t.nameAccess(to, changeIf(ev.Errno == 0), false, true)
	if ev.Errno == 0 {
		t.linkCountAccess(from)
	}
}

func (t *accessCollector) renameAccess(ev *event.Event, s *footprint) {
	from, to := s.names[0], s.names[1]
	t.nameAccess(from, changeIf(ev.Errno == 0), s.follow, false)
	t.nameAccess(to, changeIf(ev.Errno == 0), false, true)
	if ev.Errno == 0 {
		t.linkCountAccess(to)
	}
	t.add(t.names[to].kids, accessRead)
	if ev.Errno == 0 {
		t.subtreeAccess(from)
		t.subtreeAccess(to)
	}
}

// changeIf is the mode of a call's access to a name that it changes if it succeeds.
func changeIf(succeeded bool) accessMode {
	if succeeded {
		return accessWrite
	}
	return accessRead
}

// nameAccess adds the accesses of a call to a name, and to those that symbolic links there
// lead to. makes says that the call is to make the name.
func (t *accessCollector) nameAccess(n int32, h accessMode, follow, makes bool) {
	if n < 0 {
		return
	}
	m := &t.names[n]
	fresh := t.add(m.value, h)
	if t.coupled {
		t.couple(m.value)
	}
	if p := m.parent; p >= 0 {
		if makes {
			t.add(t.names[p].value, accessRead)
			if t.missingParent {
				t.couple(t.names[p].value)
			}
		}
		if h == accessWrite {
			t.add(t.names[p].kids, accessCommute)
		}
	}
	if follow && fresh {
		for _, n := range m.linkTargets {
			t.nameAccess(n, h, follow, makes)
		}
	}
}

// subtreeAccess adds writes of the names below a directory that is renamed: of the first 64
// only, since all calls that use them have to be searched.
func (t *accessCollector) subtreeAccess(n int32) {
	const most = 64
	for c := t.names[n].child; c >= 0 && len(t.list) < most; c = t.names[c].sibling {
		t.add(t.names[c].value, accessWrite)
		t.subtreeAccess(c)
	}
}
