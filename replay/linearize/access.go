package linearize

import (
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// access is how a call concerns a cell.
type access struct {
	cell int32
	mode accessMode
	// coupled: the call copies the value of a cell to another one. If calls race for one
	// of them, the values of the others must be known as well.
	coupled bool
}

type accessMode uint8

const (
	accessRead    accessMode = iota
	accessCommute            // changes it, in a way that commutes with other such changes
	accessWrite
	accessRange   // of content: calls race for ranges (collide)
	accessObserve // reports its value when the call returned: races with none
)

// findAccesses lists the cells that a call accesses, each once.
func (s *state) findAccesses(sl *slot) {
	t := accessCollector{state: s, list: sl.accesses[:0]}
	t.callAccesses(&sl.ev, &sl.footprint)
	if sl.span.file >= 0 {
		t.add(s.files[sl.span.file].content, accessRange)
	}
	if sl.observed = -1; sl.ev.Op < requests {
		sl.observed = sl.footprint.observedSize(&sl.ev)
	}
	if sl.observed >= 0 {
		t.add(s.files[sl.footprint.file].size, accessObserve)
	}
	sl.accesses = t.list
}

type accessCollector struct {
	*state
	list          []access
	coupled       bool // the call's names are coupled (see access)
	missingParent bool // and so are their directories: one may be what was missing
}

// add adds a cell to the list. It reports whether it was not there.
func (t *accessCollector) add(c int32, h accessMode) bool {
	if c < 0 {
		return false
	}
	for i := range t.list {
		if t.list[i].cell == c {
			if h != accessObserve {
				t.list[i].mode = max(t.list[i].mode, h)
			}
			return false
		}
	}
	t.list = append(t.list, access{cell: c, mode: h})
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

func (t *accessCollector) callAccesses(ev *event.Event, s *footprint) {
	ok := ev.Errno == 0
	switch s.class {
	case classRead:
		if ok && s.off >= 0 && ev.Count > 0 {
			t.readAccess(s.file, s.off+ev.Ret, ev.Ret < ev.Count)
			t.add(s.pos, accessWrite)
		}
	case classWrite:
		if ok && ev.Ret > 0 && s.op != event.OpMmapPwrite {
			t.writeAccess(s.file, s.off+ev.Ret, s.off < 0 || appends(ev, s))
			t.add(s.pos, accessWrite)
		}
	case classSeek:
		if ok && ev.Args[2] == seekEnd {
			t.add(t.files[s.file].size, accessRead)
		}
		if ok && ev.Args[2] == seekCur && ev.Args[1] == 0 {
			t.add(s.pos, accessRead)
		} else if ok {
			t.add(s.pos, accessWrite)
		}
	case classResize:
		if !ok {
			break
		}
		if s.op == event.OpFallocate && ev.Args[1]&(fallocCollapse|fallocInsert) == 0 {
			if ev.Args[1]&fallocKeepSize == 0 {
				t.writeAccess(s.file, int64(ev.Args[2])+int64(ev.Args[3]), false)
			}
			break
		}
		t.add(t.files[s.file].size, accessWrite)
	case classFstat:
		t.add(t.files[s.file].size, accessRead)
		t.add(t.files[s.file].mode, accessRead)
		t.add(t.files[s.file].links, accessRead)
	case classList:
		t.listingAccess(s.names[0])
	case classLock:
		t.lockAccess(ev, s)
	case classAttribute:
		t.attributeAccess(ev, s)
	case classCopy:
		if !ok || ev.Ret < 0 {
			break
		}
		if s.file >= 0 && s.off >= 0 {
			t.readAccess(s.file, s.off+ev.Ret, false)
		}
		if s.to >= 0 && s.toOff >= 0 {
			t.writeAccess(s.to, s.toOff+ev.Ret, false)
		}
		t.add(s.pos, accessWrite)
		t.add(s.toPos, accessWrite)
	default:
		t.nameCallAccesses(ev, s, ok)
	}
}

// readAccess adds the access of a read that ended at end, because the file did if it was short.
func (t *accessCollector) readAccess(f int32, end int64, short bool) {
	if size := t.files[f].size; short || end > t.floor(size) {
		t.add(size, accessRead)
	}
}

// writeAccess adds the access of a write that ended at end, or at the end of the file.
func (t *accessCollector) writeAccess(f int32, end int64, appended bool) {
	switch size := t.files[f].size; {
	case appended:
		t.add(size, accessWrite)
	case end > t.floor(size):
		t.add(size, accessCommute)
	}
}

func (t *accessCollector) nameCallAccesses(ev *event.Event, s *footprint, ok bool) {
	n := s.names[0]
	t.coupled = s.class == classLink || s.class == classRename || s.class == classTruncate || ok && s.class == classUnlink && s.kind != kindDir || s.follow && n >= 0 && len(t.names[n].linkTargets) > 0
	t.missingParent = ev.Errno == syscall.ENOENT
	switch s.class {
	case classOpen:
		h := accessRead
		if ok && s.flags&effect.OCreat != 0 {
			if f := ev.FileArg(event.ResultArg); s.flags&effect.OExcl != 0 || f == nil || f.Flags&effect.OCreat != 0 || s.file < 0 {
				h = accessWrite
			}
		}
		t.nameAccess(n, h, s.follow, s.flags&effect.OCreat != 0)
		t.add(s.pos, accessWrite)
		if ok && s.file >= 0 && (h == accessWrite || s.flags&effect.OTrunc != 0) {
			t.add(t.files[s.file].size, accessWrite)
		}
		if ok && s.file >= 0 && h == accessWrite {
			t.add(t.files[s.file].mode, accessWrite)
			t.add(t.files[s.file].links, accessWrite)
		}
	case classStat:
		t.nameAccess(n, accessRead, s.follow, false)
		if s.file >= 0 && s.size >= 0 {
			t.add(t.files[s.file].size, accessRead)
		}
		if s.file >= 0 {
			t.add(t.files[s.file].mode, accessRead)
			t.add(t.files[s.file].links, accessRead)
		}
	case classTruncate:
		t.nameAccess(n, accessRead, s.follow, false)
		if s.file >= 0 {
			t.add(t.files[s.file].size, accessWrite)
		}
	case classUnlink, classMake:
		h := accessRead
		if ok {
			h = accessWrite
		}
		t.nameAccess(n, h, false, s.class == classMake)
		if ok && s.class == classUnlink && s.kind != kindDir {
			t.linkCountAccess(n)
		}
		switch {
		case s.class == classUnlink && s.kind == kindDir:
			t.add(t.names[n].kids, accessRead)
		case ok && s.made != 0 && s.kind == kindDir:
			t.add(t.names[n].kids, accessWrite)
		}
	case classLink, classRename:
		from, to := accessRead, accessRead
		if ok {
			to = accessWrite
			if s.class == classRename {
				from = accessWrite
			}
		}
		t.nameAccess(n, from, s.follow, false)
		t.nameAccess(s.names[1], to, false, true)
		if ok && s.class == classLink {
			t.linkCountAccess(n)
		} else if ok {
			t.linkCountAccess(s.names[1])
		}
		if s.class == classRename {
			t.add(t.names[s.names[1]].kids, accessRead)
			if ok {
				t.subtreeAccess(n)
				t.subtreeAccess(s.names[1])
			}
		}
	default:
		t.add(s.attr, accessRead)
		t.nameAccess(n, accessRead, s.follow, false)
	}
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

// floor is what a size is at least in the window: what it was before, unless a call
// there cuts it.
func (s *state) floor(size int32) int64 {
	c := &s.cells[size]
	if c.cut < s.oldest {
		return max(c.value, 0)
	}
	return c.floor
}

// noteShortening notes what a call does to the floor of a size. It reports whether that is lower
// now than calls of the window may have seen it.
func (s *state) noteShortening(sl *slot) bool {
	ev, sub := &sl.ev, &sl.footprint
	if sub.file < 0 || !ev.OK() {
		return false
	}
	to := int64(-1)
	switch sub.class {
	case classOpen:
		if sub.flags&(effect.OTrunc|effect.OCreat) != 0 {
			to = 0
		}
	case classTruncate:
		to = int64(ev.Args[1])
	case classResize:
		if sub.op == event.OpFtruncate {
			to = int64(ev.Args[1])
		} else if ev.Args[1]&fallocCollapse != 0 {
			to = 0
		}
	}
	if to < 0 {
		return false
	}
	size := s.files[sub.file].size
	c, floor := &s.cells[size], s.floor(size)
	c.cut, c.floor = sl.n, min(floor, to)
	return to < floor
}

// race notes a call's access to a cell, and marks the cell as raced if it conflicts with
// that of an overlapping call that returned before.
func (s *state) race(sl *slot, t access) {
	c, began, racing := &s.cells[t.cell], sl.ev.Enter, false
	switch t.mode {
	case accessRead:
		racing = max(c.adds, c.sets) > began
		c.reads = max(c.reads, sl.exit)
	case accessCommute:
		racing = max(c.reads, c.sets) > began
		c.adds, c.changed = max(c.adds, sl.exit), max(c.changed, sl.n)
	case accessWrite:
		racing = max(c.reads, c.adds, c.sets) > began
		c.sets, c.changed = max(c.sets, sl.exit), max(c.changed, sl.n)
	}
	if racing {
		c.racing, s.racing = max(c.racing, sl.n), max(s.racing, sl.n)
	}
}

// raced reports whether calls of the window race for a cell.
func (s *state) raced(c int32) bool { return s.cells[c].racing >= s.oldest }

// spread marks the cells that a call couples to a raced one as raced, too. It reports
// whether there were any.
func (s *state) spread(sl *slot) bool {
	tied, racing := false, false
	for _, t := range sl.accesses {
		tied = tied || t.coupled && s.needed(t.cell)
		racing = racing || s.raced(t.cell)
	}
	if !tied || !racing {
		return false
	}
	for _, t := range sl.accesses {
		if t.coupled && s.needed(t.cell) {
			s.cells[t.cell].racing = s.oldest
		}
	}
	return true
}

// needed reports whether a cell that is not raced has to be searched to know its value: it
// changes in the window, or is not known before.
func (s *state) needed(c int32) bool {
	return !s.raced(c) && (s.cells[c].value == unknown || s.cells[c].changed >= s.oldest)
}

// member returns a cell with what it needs for the present search.
func (s *state) member(c int32) *cell {
	cell := &s.cells[c]
	if cell.round != s.round {
		cell.round, cell.root, cell.component = s.round, c, -1
	}
	return cell
}

// rootOf returns the root of a cell's component.
func (s *state) rootOf(c int32) int32 {
	for s.cells[c].root != c {
		s.cells[c].root = s.cells[s.cells[c].root].root
		c = s.cells[c].root
	}
	return c
}

// join puts the cells that are raced for, of those that one call concerns, into one
// component, and returns its root; -1 if none is raced for.
func (s *state) join(sl *slot) int32 {
	root := int32(-1)
	for _, t := range sl.accesses {
		if !s.raced(t.cell) {
			continue
		}
		s.member(t.cell)
		r := s.rootOf(t.cell)
		if root >= 0 && r != root {
			s.cells[r].root = root
			continue
		}
		root = r
	}
	return root
}
