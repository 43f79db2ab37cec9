// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"cmp"
	"maps"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// AppendState appends, as records, the state after all events that were applied:
// what a stream of the remaining records has to begin with. It appends nothing
// before the first event.
//
// Threads come first with their identities; then comes what posix.Model.State says, then
// where the processes run and with what, and last what was read at the entry of calls that
// have not returned. All have one time, just before the first event that may follow.
func (f *Follower) AppendState(b []byte) []byte {
	if f.assembler.sealed == 0 {
		return b
	}
	w := stateWriter{f: f, b: b, at: f.StateTime(),
		waiting: f.waiting()}
	threads := f.resolver.model.Threads()
	for _, t := range threads {
		w.task(t)
	}
	if len(threads) > 0 {
		for name, target := range f.resolver.model.Links() {
			w.link(threads[0], name, target)
		}
	}
	for ev := range f.resolver.model.State(f.facts) {
		w.state(ev)
	}
	for _, pid := range slices.Sorted(maps.Keys(f.alive())) {
		w.process(pid, f.processes.Of(0, pid))
	}
	w.entries(threads)
	return w.b
}

// Time returns the time of the state: no event after it was applied.
func (f *Follower) Time() uint64 { return f.assembler.sealed }

// waiting returns the events that are read and not applied, in order.
func (f *Follower) waiting() []*item {
	list := slices.Clone(f.assembler.queue.h)
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
	k := w.f.assembler.threads[t.TID]
	switch {
	case i >= 0:
		ev := &w.waiting[i].ev
		r.PPID, r.PGID, r.SID, r.UID, r.GID = ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID
		r.NSPID, r.NSTID = ev.NSPID, ev.NSTID
		copy(r.Comm[:], ev.Comm)
	case k != nil:
		r.PPID, r.PGID, r.SID, r.UID, r.GID = k.ppid, k.pgid, k.sid, k.uid, k.gid
		r.NSPID, r.NSTID = k.nspid, k.nstid
		copy(r.Comm[:], k.comm)
	default:
		return
	}
	w.put(&r)
}

// link writes a symbolic link that the trace told of; it is of no thread.
func (w *stateWriter) link(t *posix.Thread, name, target string) {
	r := trace.Record{Type: trace.RecLink, PID: t.PID, TID: t.TID}
	for _, s := range [...]string{name, target} {
		r.Pieces = append(r.Pieces, trace.Piece{Len: uint32(len(s)), Data: []byte(s)})
	}
	w.put(&r)
}

// state writes an event of the model's state.
func (w *stateWriter) state(ev *event.Event) {
	r := trace.Record{PID: ev.PID, TID: ev.TID}
	switch ev.Kind {
	case event.Forked:
		fork := ev.Fork()
		r.Type, r.Child, r.ChildTID, r.Share = trace.RecFork, fork.PID, fork.TID, fork.Share
	case event.Started:
		r.Type, r.Umask = trace.RecStart, ev.Umask()
		r.Pieces = trace.StartPieces(ev)
	case event.Inherited:
		f := &ev.Files[0]
		r.Type = trace.RecFile
		if ev.OwnsFile() {
			r.Flags = trace.FileOwn
		}
		r.Flags |= ev.OpenedOver() << trace.FileOverShift
		r.Objects = []trace.Object{{
			Open: uint32(f.Open), FD: f.FD, Ino: f.Ino, Dev: kernelDev(f.Dev), Rdev: kernelDev(f.Rdev), Mode: f.Mode, Flags: f.Flags,
			Size: f.Size, Pos: f.Pos, Nlink: f.Nlink, UID: f.UID, GID: f.GID,
		}}
		r.Pieces = trace.FilePieces(ev)
	}
	w.put(&r)
}

// process writes where a process runs and with what, if that is known.
func (w *stateWriter) process(pid uint32, d *facts.Described) {
	if d == nil {
		return
	}
	r := trace.Record{Type: trace.RecProcess, PID: pid, TID: pid}
	for part, b := range [...][]byte{facts.PartFacts: d.Text, facts.PartEnv: d.Env, facts.PartArgs: d.Args} {
		if b != nil {
			r.Pieces = append(r.Pieces, trace.Piece{Arg: uint8(part), Len: uint32(len(b)), Data: b})
		}
	}
	w.put(&r)
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
		if k := w.f.assembler.threads[t.TID]; k != nil {
			for _, e := range k.entries {
				put(t.PID, t.TID, 0, e.time, e.pieces)
			}
		}
	}
	for k, q := range w.f.assembler.requests {
		put(q.pid, k.tid, q.op, k.enter, q.pieces)
	}
}

// kernelDev is the inverse of statDev.
func kernelDev(d uint64) uint32 {
	major, minor := d>>8&0xfff, d&0xff|d>>12&0xfff00
	return uint32(major<<20 | minor)
}
