package settle

import (
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// touch is how a call concerns a cell.
type touch struct {
	cell int32
	how  how
	// The call carries over what a name stands for to another cell, or from one: if
	// calls race for one of them, what the others are must be known as well.
	tied bool
}

type how uint8

const (
	looks how = iota
	adds      // changes it so that the order among calls which add does not matter
	changes
	ranged // of content: calls race for ranges (collide)
	tells  // says what it was when the call returned: races with none
)

// touches lists the cells that a call concerns, each once.
func (s *state) touches(sl *slot) {
	t := toucher{state: s, list: sl.touches[:0]}
	t.call(&sl.ev, &sl.subject)
	if sl.span.file >= 0 {
		t.touch(s.files[sl.span.file].content, ranged)
	}
	if sl.told = -1; sl.ev.Op < requests {
		sl.told = sl.subject.told(&sl.ev)
	}
	if sl.told >= 0 {
		t.touch(s.files[sl.subject.file].size, tells)
	}
	sl.touches = t.list
}

type toucher struct {
	*state
	list []touch
	tied bool // the call's names are
	lost bool // and so are the directories that they are in
}

// touch adds a cell to the list. It reports whether it was not there.
func (t *toucher) touch(c int32, h how) bool {
	if c < 0 {
		return false
	}
	for i := range t.list {
		if t.list[i].cell == c {
			if h != tells {
				t.list[i].how = max(t.list[i].how, h)
			}
			return false
		}
	}
	t.list = append(t.list, touch{cell: c, how: h})
	return true
}

// tie marks a cell that is in the list.
func (t *toucher) tie(c int32) {
	for i := range t.list {
		if t.list[i].cell == c {
			t.list[i].tied = true
		}
	}
}

func (t *toucher) call(ev *event.Event, s *subject) {
	ok := ev.Errno == 0
	switch s.class {
	case classRead:
		if ok && s.off >= 0 && ev.Count > 0 {
			t.reads(s.file, s.off+ev.Ret, ev.Ret < ev.Count)
			t.touch(s.pos, changes)
		}
	case classWrite:
		if ok && ev.Ret > 0 && s.op != event.OpMmapPwrite {
			t.writes(s.file, s.off+ev.Ret, s.off < 0 || appends(ev, s))
			t.touch(s.pos, changes)
		}
	case classSeek:
		if ok && ev.Args[2] == seekEnd {
			t.touch(t.files[s.file].size, looks)
		}
		if ok && ev.Args[2] == seekCur && ev.Args[1] == 0 {
			t.touch(s.pos, looks)
		} else if ok {
			t.touch(s.pos, changes)
		}
	case classResize:
		if !ok {
			break
		}
		if s.op == event.OpFallocate && ev.Args[1]&(fallocCollapse|fallocInsert) == 0 {
			if ev.Args[1]&fallocKeepSize == 0 {
				t.writes(s.file, int64(ev.Args[2])+int64(ev.Args[3]), false)
			}
			break
		}
		t.touch(t.files[s.file].size, changes)
	case classFstat:
		t.touch(t.files[s.file].size, looks)
		t.touch(t.files[s.file].mode, looks)
		t.touch(t.files[s.file].links, looks)
	case classList:
		t.listing(s.names[0])
	case classLock:
		t.locking(ev, s)
	case classAttribute:
		t.attribute(ev, s)
	case classCopy:
		if !ok || ev.Ret < 0 {
			break
		}
		if s.file >= 0 && s.off >= 0 {
			t.reads(s.file, s.off+ev.Ret, false)
		}
		if s.to >= 0 && s.toOff >= 0 {
			t.writes(s.to, s.toOff+ev.Ret, false)
		}
		t.touch(s.pos, changes)
		t.touch(s.toPos, changes)
	default:
		t.namesOf(ev, s, ok)
	}
}

// reads is of a read that ended at end, because the file did if it was short.
func (t *toucher) reads(f int32, end int64, short bool) {
	if size := t.files[f].size; short || end > t.floor(size) {
		t.touch(size, looks)
	}
}

// writes is of a write that ended at end, or at the end of the file.
func (t *toucher) writes(f int32, end int64, appended bool) {
	switch size := t.files[f].size; {
	case appended:
		t.touch(size, changes)
	case end > t.floor(size):
		t.touch(size, adds)
	}
}

func (t *toucher) namesOf(ev *event.Event, s *subject, ok bool) {
	n := s.names[0]
	t.tied = s.class == classLink || s.class == classRename || s.class == classTruncate || ok && s.class == classUnlink && s.kind != kindDir || s.follow && n >= 0 && len(t.names[n].leads) > 0
	t.lost = ev.Errno == syscall.ENOENT
	switch s.class {
	case classOpen:
		h := looks
		if ok && s.flags&effect.OCreat != 0 {
			if f := ev.FileArg(event.ResultArg); s.flags&effect.OExcl != 0 || f == nil || f.Flags&effect.OCreat != 0 || s.file < 0 {
				h = changes
			}
		}
		t.name(n, h, s.follow, s.flags&effect.OCreat != 0)
		t.touch(s.pos, changes)
		if ok && s.file >= 0 && (h == changes || s.flags&effect.OTrunc != 0) {
			t.touch(t.files[s.file].size, changes)
		}
		if ok && s.file >= 0 && h == changes {
			t.touch(t.files[s.file].mode, changes)
			t.touch(t.files[s.file].links, changes)
		}
	case classStat:
		t.name(n, looks, s.follow, false)
		if s.file >= 0 && s.size >= 0 {
			t.touch(t.files[s.file].size, looks)
		}
		if s.file >= 0 {
			t.touch(t.files[s.file].mode, looks)
			t.touch(t.files[s.file].links, looks)
		}
	case classTruncate:
		t.name(n, looks, s.follow, false)
		if s.file >= 0 {
			t.touch(t.files[s.file].size, changes)
		}
	case classUnlink, classMake:
		h := looks
		if ok {
			h = changes
		}
		t.name(n, h, false, s.class == classMake)
		if ok && s.class == classUnlink && s.kind != kindDir {
			t.links(n)
		}
		switch {
		case s.class == classUnlink && s.kind == kindDir:
			t.touch(t.names[n].kids, looks)
		case ok && s.made != 0 && s.kind == kindDir:
			t.touch(t.names[n].kids, changes)
		}
	case classLink, classRename:
		from, to := looks, looks
		if ok {
			to = changes
			if s.class == classRename {
				from = changes
			}
		}
		t.name(n, from, s.follow, false)
		t.name(s.names[1], to, false, true)
		if ok && s.class == classLink {
			t.links(n)
		} else if ok {
			t.links(s.names[1])
		}
		if s.class == classRename {
			t.touch(t.names[s.names[1]].kids, looks)
			if ok {
				t.below(n)
				t.below(s.names[1])
			}
		}
	default:
		t.touch(s.attr, looks)
		t.name(n, looks, s.follow, false)
	}
}

// name is of a name, and of those that symbolic links there lead to. makes says that
// the call is to make it.
func (t *toucher) name(n int32, h how, follow, makes bool) {
	if n < 0 {
		return
	}
	m := &t.names[n]
	fresh := t.touch(m.at, h)
	if t.tied {
		t.tie(m.at)
	}
	if p := m.parent; p >= 0 {
		if makes {
			t.touch(t.names[p].at, looks)
			if t.lost {
				t.tie(t.names[p].at)
			}
		}
		if h == changes {
			t.touch(t.names[p].kids, adds)
		}
	}
	if follow && fresh {
		for _, n := range m.leads {
			t.name(n, h, follow, makes)
		}
	}
}

// below is of the names in a directory that another name is given, or taken from: of
// some of them, since all that use them would have to be followed.
func (t *toucher) below(n int32) {
	const most = 64
	for c := t.names[n].child; c >= 0 && len(t.list) < most; c = t.names[c].sibling {
		t.touch(t.names[c].at, changes)
		t.below(c)
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

// cuts notes what a call does to the floor of a size. It reports whether that is lower
// now than calls of the window may have seen it.
func (s *state) cuts(sl *slot) bool {
	ev, sub := &sl.ev, &sl.subject
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

// race notes that a call touches a cell, and marks the cell if it races for it with one
// that returned before.
func (s *state) race(sl *slot, t touch) {
	c, began, racing := &s.cells[t.cell], sl.ev.Enter, false
	switch t.how {
	case looks:
		racing = max(c.adds, c.sets) > began
		c.reads = max(c.reads, sl.exit)
	case adds:
		racing = max(c.reads, c.sets) > began
		c.adds, c.changed = max(c.adds, sl.exit), max(c.changed, sl.n)
	case changes:
		racing = max(c.reads, c.adds, c.sets) > began
		c.sets, c.changed = max(c.sets, sl.exit), max(c.changed, sl.n)
	}
	if racing {
		c.racing, s.racing = max(c.racing, sl.n), max(s.racing, sl.n)
	}
}

// raced reports whether calls of the window race for a cell.
func (s *state) raced(c int32) bool { return s.cells[c].racing >= s.oldest }

// spread lets the cells that a call ties to one which is raced for count as raced for,
// too. It reports whether there were any.
func (s *state) spread(sl *slot) bool {
	tied, racing := false, false
	for _, t := range sl.touches {
		tied = tied || t.tied && s.needed(t.cell)
		racing = racing || s.raced(t.cell)
	}
	if !tied || !racing {
		return false
	}
	for _, t := range sl.touches {
		if t.tied && s.needed(t.cell) {
			s.cells[t.cell].racing = s.oldest
		}
	}
	return true
}

// needed reports whether a cell that nobody races for has to be followed to know its
// value: it changes in the window, or is not known before.
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
// component, and returns its root; -1 if nobody races for any.
func (s *state) join(sl *slot) int32 {
	root := int32(-1)
	for _, t := range sl.touches {
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
