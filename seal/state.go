package seal

import (
	"cmp"
	"slices"

	"iotape/event"
	"iotape/posix"
	"iotape/trace"
)

// AppendState appends, as records, the state after all events that were applied:
// what a stream of the remaining records has to begin with. It appends nothing
// before the first event.
//
// Threads come first with their identities, then what they share with each other,
// then working directories and descriptors, and last what was read at the entry of
// calls that have not returned. All have one time, just before the first event that
// may follow.
func (f *Follower) AppendState(b []byte) []byte {
	if f.s.sealed == 0 {
		return b
	}
	w := stateWriter{f: f, b: b, at: f.s.sealed - min(f.s.sealed-1, followSlackNS), waiting: f.waiting()}
	threads := f.s.model.Threads()
	for _, t := range threads {
		w.task(t)
	}
	w.relations(threads)
	for _, t := range threads {
		if !w.fs[t.FS] {
			w.start(t)
		}
		if !w.tables[t.Table] {
			w.files(t)
		}
	}
	w.entries(threads)
	return w.b
}

// Time returns the time of the state: no event after it was applied.
func (f *Follower) Time() uint64 { return f.s.sealed }

// waiting returns the events that are read and not applied, in order.
func (f *Follower) waiting() []*item {
	list := slices.Clone(f.s.queue.h)
	slices.SortFunc(list, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.arrival, b.arrival))
	})
	return list
}

// stateWriter is one AppendState.
type stateWriter struct {
	f       *Follower
	b       []byte
	at      uint64 // ns
	waiting []*item
	fs      map[*posix.FS]bool // written
	tables  map[*posix.Table]bool
}

func (w *stateWriter) put(r *trace.Record) {
	if r.Exit == 0 {
		r.Exit = w.at
	}
	w.b = trace.AppendRecord(w.b, r)
}

// task writes a thread's identity: what it was at the first event that was read and
// is not yet applied, else what it is now.
func (w *stateWriter) task(t *posix.Thread) {
	r := trace.Record{Type: trace.RecTask, PID: t.PID, TID: t.TID}
	i := slices.IndexFunc(w.waiting, func(it *item) bool { return it.ev.TID == t.TID && it.ev.Kind != event.LossMark })
	k := w.f.s.threads[t.TID]
	switch {
	case i >= 0:
		ev := &w.waiting[i].ev
		r.PPID, r.PGID, r.SID, r.UID, r.GID = ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID
		copy(r.Comm[:], ev.Comm)
	case k != nil:
		r.PPID, r.PGID, r.SID, r.UID, r.GID = k.ppid, k.pgid, k.sid, k.uid, k.gid
		copy(r.Comm[:], k.comm)
	default:
		return
	}
	w.put(&r)
}

// relations writes which threads share what: as if one had made the other.
func (w *stateWriter) relations(threads []*posix.Thread) {
	w.fs, w.tables = map[*posix.FS]bool{}, map[*posix.Table]bool{}
	for i, t := range threads {
		best, share := -1, uint64(0)
		for k, o := range threads[:i] {
			s := uint64(0)
			if o.FS == t.FS {
				s |= trace.ShareFS
			}
			if o.Table == t.Table {
				s |= trace.ShareFiles
			}
			if o.PID == t.PID {
				s |= trace.ShareVM | trace.ShareThread
			}
			if s > share {
				best, share = k, s
			}
		}
		if best >= 0 {
			o := threads[best]
			w.put(&trace.Record{Type: trace.RecFork, PID: o.PID, TID: o.TID, Child: t.PID, ChildTID: t.TID, Share: share})
		}
	}
}

// start writes a thread's working directory and mask.
func (w *stateWriter) start(t *posix.Thread) {
	w.fs[t.FS] = true
	r := trace.Record{Type: trace.RecStart, PID: t.PID, TID: t.TID, Umask: t.FS.Umask}
	if dir := t.FS.Cwd; dir != "" {
		r.Pieces = []trace.Piece{{Len: uint32(len(dir)), Data: []byte(dir)}}
	}
	w.put(&r)
}

// files writes the descriptors of a thread's table.
func (w *stateWriter) files(t *posix.Thread) {
	w.tables[t.Table] = true
	for _, fd := range t.Table.Numbers() {
		d := t.Table.Lookup(fd)
		o, path := w.object(d.Open)
		o.FD = fd
		o.Flags &^= oCloexec
		if d.CloExec {
			o.Flags |= oCloexec
		}
		r := trace.Record{Type: trace.RecFile, PID: t.PID, TID: t.TID, Objects: []trace.Object{o}}
		if !d.Open.Given {
			r.Flags = trace.FileOwn
		}
		if path != "" {
			r.Pieces = []trace.Piece{{Len: uint32(len(path)), Data: []byte(path)}}
		}
		w.put(&r)
	}
}

// oCloexec is the flag of a descriptor among those of open files (fcntl.h);
// onlyAtOpen are those that act at open and mean nothing later.
const (
	oCloexec   = 0o2000000
	onlyAtOpen = oCreat | oExcl | oTrunc | 0o400 // and O_NOCTTY
)

// object describes an open file, and names it.
func (w *stateWriter) object(open *posix.OpenFile) (o trace.Object, path string) {
	o = trace.Object{Open: uint32(open.ID), Ino: open.Ino, Dev: kernelDev(open.Dev), Mode: open.Mode, Flags: open.Flags}
	facts := w.f.opens[open.ID]
	if facts == nil {
		o.Flags &^= onlyAtOpen
		return o, open.Path
	}
	if n := w.f.inodes[facts.id]; n != nil {
		s := &n.file
		o.Ino, o.Dev, o.Rdev, o.Mode = s.Ino, kernelDev(s.Dev), kernelDev(s.Rdev), s.Mode
		o.Size, o.Nlink, o.UID, o.GID = s.Size, s.Nlink, s.UID, s.GID
		o.Pos, o.Flags = facts.pos, facts.flags
	}
	if facts.path == "" && open.Path != "" { // it has no name any more
		o.Nlink = 0
		return o, open.Path + " (deleted)"
	}
	o.Flags &^= onlyAtOpen
	return o, facts.path
}

// entries writes what was read at the entry of calls that are not applied.
func (w *stateWriter) entries(threads []*posix.Thread) {
	put := func(pid, tid uint32, op uint16, enter uint64, pieces []trace.Piece) {
		w.put(&trace.Record{Type: trace.RecEnter, Op: op, PID: pid, TID: tid, Enter: enter, Pieces: pieces})
	}
	for _, it := range w.waiting {
		if len(it.entry) > 0 {
			op := it.ev.Op
			if !op.IsUring() && !op.IsAIO() {
				op = 0
			}
			put(it.ev.PID, it.ev.TID, uint16(op), uint64(it.ev.Enter), it.entry)
		}
	}
	for _, t := range threads {
		if k := w.f.s.threads[t.TID]; k != nil {
			for _, e := range k.entries {
				put(t.PID, t.TID, 0, e.time, e.pieces)
			}
		}
	}
	for k, q := range w.f.s.requests {
		put(q.pid, k.tid, q.op, k.enter, q.pieces)
	}
}

// kernelDev is the inverse of statDev.
func kernelDev(d uint64) uint32 {
	major, minor := d>>8&0xfff, d&0xff|d>>12&0xfff00
	return uint32(major<<20 | minor)
}
