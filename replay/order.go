package replay

import (
	"slices"

	"iotape/event"
)

// window is how many tasks may be under way or waiting at once.
const window = 4096

// order finds which earlier tasks a task has to wait for.
//
// Only tasks that are not yet done matter, and those are fewer than window. All
// numbers are task numbers + 1, so that 0 is none.
type order struct {
	exits [window]int64 // return times of the last tasks, by number modulo window
	keys  map[any]*use
	aged  uint64 // tasks at the last cleaning of keys
}

// use is who last touched something.
type use struct {
	wrote uint64
	read  uint64
	spans []ranged // for file content
}

type ranged struct {
	span
	task  uint64
	write bool
}

func newOrder() order { return order{keys: map[any]*use{}} }

// overlap returns how many tasks from the first on had returned before the
// event of t began. Tasks stand in the order of their returns.
func (o *order) overlap(t *task, floor uint64) uint64 {
	lo := floor
	if t.n > window && t.n-window > lo {
		lo = t.n - window
	}
	hi := t.n
	for lo < hi {
		mid := (lo + hi) / 2
		if o.exits[mid%window] < t.ev.Enter {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// done notes a planned task.
func (o *order) done(t *task) {
	// A late event keeps its place: times never go back here.
	exit := t.ev.Exit
	if t.n > 0 {
		exit = max(exit, o.exits[(t.n-1)%window])
	}
	o.exits[t.n%window] = exit
	if t.n-o.aged > 16*window {
		for k, u := range o.keys {
			if max(u.wrote, u.read)+window < t.n {
				delete(o.keys, k)
			}
		}
		o.aged = t.n
	}
}

type (
	nameKey    string          // what a name stands for
	listKey    string          // which names a directory has
	openKey    event.OpenID    // a file position
	contentKey struct{ inode } // what a file holds
	endKey     struct{ inode } // where it ends, for appends
)

// conflicts makes a task wait for those that touched the same thing, if either of
// them changes it.
func (o *order) conflicts(t *task) {
	ev, spec := &t.ev, t.ev.Spec()
	for i := range ev.Paths {
		abs := ev.Paths[i].Abs
		if abs == "" {
			continue
		}
		mutates := spec.Class == event.Namespace && changesName(ev.Op, i) || openFlags(ev)&oCreat != 0
		o.touch(t, nameKey(abs), mutates)
		if dir := parent(abs); mutates {
			o.touch(t, listKey(dir), true)
		}
		if ev.Op == event.OpRmdir || ev.Op == event.OpUnlinkat {
			o.touch(t, listKey(abs), true)
		}
	}
	if ev.Op == event.OpGetdents64 || ev.Op == event.OpGetdents {
		if f := ev.FileArg(0); f != nil {
			o.touch(t, listKey(f.Path), false)
		}
	}
	f := ev.FileArg(0)
	if f == nil || spec.Class != event.Data && spec.Class != event.Namespace {
		return
	}
	if spec.Class == event.Namespace || usesPosition(ev.Op) {
		o.touch(t, openKey(f.Open), true)
	}
	if f.Flags&oAppend != 0 && usesPosition(ev.Op) {
		o.touch(t, endKey{inode{f.Dev, f.Ino}}, true)
	}
	if spec.Class == event.Data && f.Known && f.Ino != 0 {
		o.touchRange(t, contentKey{inode{f.Dev, f.Ino}})
	}
}

func parent(abs string) string {
	for i := len(abs) - 1; i > 0; i-- {
		if abs[i] == '/' {
			return abs[:i]
		}
	}
	return "/"
}

func changesName(op event.Op, path int) bool {
	switch op {
	case event.OpReadlink, event.OpReadlinkat, event.OpChdir:
		return false
	case event.OpLink, event.OpLinkat:
		return path == 1
	}
	return true
}

func usesPosition(op event.Op) bool {
	switch op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev, event.OpLseek, event.OpSendfile:
		return true
	}
	return false
}

func (o *order) touch(t *task, key any, write bool) {
	u := o.use(key)
	t.after(u.wrote)
	if write {
		t.after(u.read)
		u.wrote = t.n + 1
	} else {
		u.read = t.n + 1
	}
}

func (o *order) use(key any) *use {
	u := o.keys[key]
	if u == nil {
		u = &use{}
		o.keys[key] = u
	}
	return u
}

// touchRange is touch for a range of a file. What changes the size, or has no
// known range, concerns the whole file.
func (o *order) touchRange(t *task, key contentKey) {
	ev := &t.ev
	u := o.use(key)
	r := ranged{span: span{0, 1 << 62}, task: t.n + 1, write: true}
	switch ev.Op {
	case event.OpRead, event.OpPread64, event.OpReadv, event.OpPreadv, event.OpPreadv2, event.OpMmapPread:
		r.write = false
		fallthrough
	case event.OpWrite, event.OpPwrite64, event.OpWritev, event.OpPwritev, event.OpPwritev2, event.OpMmapPwrite:
		if ev.OK() && ev.Offset >= 0 {
			// A short read stopped at the end of the file: it depends on what comes after.
			r.span = span{ev.Offset, ev.Offset + max(ev.Ret, ev.Count)}
		}
	case event.OpLseek, event.OpFadvise64, event.OpReadahead:
		return
	}
	u.read = t.n + 1 // for aging
	live := u.spans[:0]
	for _, s := range u.spans {
		if s.task+window < t.n {
			continue
		}
		live = append(live, s)
		if (s.write || r.write) && s.from < r.to && r.from < s.to {
			t.after(s.task)
		}
	}
	const maxSpans = 64
	if len(live) >= maxSpans {
		// Too many to tell apart: one that covers them all, up to the last.
		all := ranged{span: span{0, 1 << 62}, write: true}
		for _, s := range live {
			all.task = max(all.task, s.task)
		}
		live = slices.Grow(live[:0], maxSpans)
		live = append(live, all)
	}
	u.spans = append(live, r)
}
