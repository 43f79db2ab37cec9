// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// maxErrno bounds the results that are errors on every Linux architecture
// (MAX_ERRNO, linux/err.h).
const maxErrno = 4095

// record takes one record of the stream.
func (a *assembler) record(r *trace.Record) error {
	if a.flags = 0; r.Type != trace.RecStack { // whose flags are a number
		a.flags = r.Flags & (trace.RecordLate | trace.RecordBehind)
	}
	switch r.Type {
	case trace.RecCall:
		return a.call(r)
	case trace.RecData:
		return a.data(r)
	case trace.RecEnter:
		if r.Op != 0 { // a request, of which a thread may have many
			a.requests[callKey{r.TID, r.Enter}] = request{r.PID, r.Op, clonePieces(r.Pieces)}
			return nil
		}
		a.thread(r.TID).enter(r)
	case trace.RecTask:
		t := a.thread(r.TID)
		t.identified = true
		t.ppid, t.pgid, t.sid, t.uid, t.gid = r.PPID, r.PGID, r.SID, r.UID, r.GID
		t.nspid, t.nstid = r.NSPID, r.NSTID
		comm, _, _ := bytes.Cut(r.Comm[:], []byte{0})
		t.comm = string(comm)
	case trace.RecFork:
		it := a.simple(r, event.Forked)
		it.ev.SetFork(event.Fork{PID: r.Child, TID: r.ChildTID, Share: r.Share})
		a.inherit(r)
		a.queue.push(it)
	case trace.RecExit:
		a.finishCall(a.thread(r.TID), r.TID)
		it := a.simple(r, event.Exited)
		it.ev.SetExitStatus(event.ExitStatus(r.Ret))
		a.queue.push(it)
		delete(a.threads, r.TID)
		for k := range a.requests { // few or none
			if k.tid == r.TID {
				delete(a.requests, k)
			}
		}
	case trace.RecWake:
		it := a.simple(r, event.Woken)
		it.ev.SetWakeup(event.Wakeup{PID: r.Child, TID: r.ChildTID, In: event.Op(r.Op)})
		a.queue.push(it)
	case trace.RecLoss:
		a.lost(r.Exit, r.Count, r.Reason)
	case trace.RecFile, trace.RecLink, trace.RecStart:
		a.atStart(r)
	case trace.RecStack:
		return a.stacks.take(r)
	case trace.RecSignal:
		a.signal(r)
	case trace.RecNote:
		a.note(r)
	case trace.RecProcess:
		a.process(r)
	}
	return nil // a type of a newer version
}

// note takes a note from outside the recorded programs. Its process may have ended.
func (a *assembler) note(r *trace.Record) {
	it := a.newItem(r.Exit)
	it.ev.Kind, it.ev.PID, it.ev.TID = event.NoteMark, r.PID, r.TID
	it.ev.Enter, it.ev.Exit = int64(r.Exit), int64(r.Exit)
	if a.threads[r.TID] != nil {
		a.identify(&it.ev, r)
	}
	if len(r.Pieces) > 0 {
		it.ev.SetNote(string(r.Pieces[0].Data))
	}
	a.queue.push(it)
}

// signal takes a delivered signal. A record without its siginfo_t says nothing.
func (a *assembler) signal(r *trace.Record) {
	if len(r.Pieces) == 0 || event.SignalNumber(r.Pieces[0].Data) == 0 {
		return
	}
	info := bytes.Clone(r.Pieces[0].Data[:min(len(r.Pieces[0].Data), event.SiginfoBytes)])
	it := a.simple(r, event.Signalled)
	it.ev.SetSignal(event.SignalNumber(info), event.SignalAction(r.Flags&0xff))
	it.ev.Bufs = append(it.ev.Bufs,
		event.Buf{Dir: event.Out, Kind: event.KindStruct, Len: int64(len(info)), Inline: info})
	a.queue.push(it)
}

// atStart takes a record of what there was at the start.
func (a *assembler) atStart(r *trace.Record) {
	switch r.Type {
	case trace.RecFile:
		it := a.simple(r, event.Inherited)
		it.ev.SetOwnsFile(r.Flags&trace.FileOwn != 0)
		it.ev.SetOpenedOver(r.Flags >> trace.FileOverShift & trace.FileOverMask)
		for i := range r.Objects {
			f := file(&r.Objects[i])
			f.Arg, f.Open = 0, event.OpenID(r.Objects[i].Open)
			if len(r.Pieces) > 0 {
				f.Path = string(r.Pieces[0].Data)
			}
			for j := range r.Pieces[min(len(r.Pieces), 1):] {
				switch p := &r.Pieces[1+j]; {
				case p.Arg == trace.RealPiece:
					f.Real = string(p.Data)
				case p.Arg == socketPiece:
					f.Path = cmp.Or(endsName(p, f.Ino, nil), f.Path)
				case p.Arg == trace.MappedPiece && len(p.Data) == 16 && f.FD == event.MappedFD:
					le := binary.LittleEndian
					it.ev.SetMapping(le.Uint64(p.Data), le.Uint64(p.Data[8:]))
				}
			}
			it.ev.Files = append(it.ev.Files, f)
		}
		a.queue.push(it)
	case trace.RecLink:
		if len(r.Pieces) == 2 {
			a.link(string(r.Pieces[0].Data), string(r.Pieces[1].Data))
		}
	case trace.RecStart:
		it := a.simple(r, event.Started)
		it.ev.SetUmask(r.Umask)
		trace.TakeStart(&it.ev, r.Pieces)
		a.queue.push(it)
	}
}

// inherit gives a new thread its maker's identity until it says its own, which it
// may have done already on another shard.
func (a *assembler) inherit(r *trace.Record) {
	if t := a.threads[r.ChildTID]; t != nil && t.identified {
		return
	}
	child := *a.thread(r.TID)
	child.entries, child.identified, child.unfinished = nil, false, 0
	if r.Share&trace.ShareThread == 0 {
		child.ppid = r.PID
	}
	a.threads[r.ChildTID] = &child
}

// maxEntries bounds the RecEnter records that wait for their call: all but the last
// are of calls that were lost, or have not been seen yet.
const maxEntries = 8

// enter keeps what was read at the entry of a call.
func (t *thread) enter(r *trace.Record) {
	e := entry{time: r.Enter, pieces: clonePieces(r.Pieces)}
	t.entries = slices.DeleteFunc(t.entries, func(old entry) bool { return old.time == e.time })
	if len(t.entries) >= maxEntries {
		t.entries = slices.Delete(t.entries, 0, 1)
	}
	t.entries = append(t.entries, e)
}

func clonePieces(pieces []trace.Piece) []trace.Piece {
	c := slices.Clone(pieces)
	for i := range c {
		c[i].Data = bytes.Clone(c[i].Data)
	}
	return c
}

// entered returns what was read at the entry of the call that began at a time, and
// forgets what came before.
func (t *thread) entered(at uint64) []trace.Piece {
	var pieces []trace.Piece
	for _, e := range t.entries {
		if e.time == at {
			pieces = e.pieces
		}
	}
	t.entries = slices.DeleteFunc(t.entries, func(e entry) bool { return e.time <= at })
	return pieces
}

func (a *assembler) thread(tid uint32) *thread {
	t := a.threads[tid]
	if t == nil {
		t = &thread{}
		a.threads[tid] = t
	}
	return t
}

// simple starts an event that is no call.
func (a *assembler) simple(r *trace.Record, kind event.EventKind) *item {
	it := a.newItem(r.Exit)
	it.ev.Kind = kind
	a.identify(&it.ev, r)
	it.ev.Enter, it.ev.Exit = int64(r.Exit), int64(r.Exit)
	return it
}

func (a *assembler) identify(ev *event.Event, r *trace.Record) {
	t := a.thread(r.TID)
	ev.PID, ev.TID = r.PID, r.TID
	ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID, ev.Comm = t.ppid, t.pgid, t.sid, t.uid, t.gid, t.comm
	ev.NSPID, ev.NSTID = t.nspid, t.nstid
}

// call builds the event of a RecCall.
func (a *assembler) call(r *trace.Record) error {
	it := a.newItem(r.Exit)
	ev := &it.ev
	a.identify(ev, r)
	ev.Op, ev.NR = event.Op(r.Op), r.NR
	ev.Enter, ev.Exit, ev.CPU = int64(r.Enter), int64(r.Exit), int64(r.CPU)
	ev.Args = r.Args
	ev.Ret = r.Ret
	if r.Ret < 0 && r.Ret >= -maxErrno {
		ev.Errno, ev.Ret = syscall.Errno(-r.Ret), -1
	}
	if r.Flags&trace.CallInterrupted != 0 {
		ev.Flags |= event.Interrupted
	}
	if r.Flags&trace.CallMissed != 0 {
		ev.Flags |= event.Missed
	}
	if r.Flags&trace.CallUntimed != 0 {
		ev.Flags |= event.Untimed
	}
	if r.Flags&trace.CallStandIn != 0 {
		ev.Flags |= event.Synthetic
	}
	ev.Flags |= event.EventFlags(r.Flags/trace.CallUnknownArg) * event.UnknownArg & event.UnknownArgs
	if r.Flags&trace.CallDelays != 0 {
		ev.Flags |= event.Delays
		ev.DelayBefore, ev.DelayWithin = r.DelayBefore, r.DelayWithin
	}
	spec := ev.Spec()
	a.files(ev, spec, r)
	if r.Flags&trace.CallCompat != 0 {
		a.widen(ev)
	}
	ev.Offset, _ = posix.Extent(ev)
	it.base = max(ev.Offset, 0)
	if o := object(r, 0); o != nil {
		it.past = o.Past
	}
	if t := a.thread(r.TID); len(t.entries) > 0 {
		it.entry = t.entered(r.Enter)
		if err := a.pieces(it, it.entry); err != nil {
			return err
		}
	}
	if q, ok := a.requests[callKey{r.TID, r.Enter}]; ok {
		it.entry = q.pieces
		if err := a.pieces(it, q.pieces); err != nil {
			return err
		}
		delete(a.requests, callKey{r.TID, r.Enter})
	}
	if err := a.pieces(it, r.Pieces); err != nil {
		return err
	}
	a.stacks.give(ev)
	nameSockets(ev, r)
	ordinary := event.Number(a.arch, ev.Op) >= 0
	if ordinary {
		a.finishCall(a.thread(r.TID), r.TID)
	}
	if r.Flags&trace.CallMore != 0 {
		it.pending = true
		a.open[callKey{r.TID, r.Enter}] = it
		if ordinary {
			a.thread(r.TID).unfinished = r.Enter
		}
	} else if text, ok := ev.WrittenNote(); ok {
		ev.SetNote(text)
	}
	a.queue.push(it)
	return nil
}

// finishCall gives up waiting for the content of a thread's last call: what the
// thread did next is here, and all of the call was written before that.
func (a *assembler) finishCall(t *thread, tid uint32) {
	if t.unfinished == 0 {
		return
	}
	if it := a.open[callKey{tid, t.unfinished}]; it != nil {
		a.partial(it)
	}
	t.unfinished = 0
}

// partial takes a call as it is, although its content has not all arrived.
func (a *assembler) partial(it *item) {
	delete(a.open, callKey{it.ev.TID, uint64(it.ev.Enter)})
	it.pending = false
	it.ev.Flags |= event.Incomplete
	a.losses[trace.LossPartial]++
}

// widen makes a 32-bit call one of its operation.
func (a *assembler) widen(ev *event.Event) {
	ev.Flags |= event.Compat
	if ev.Op == event.OpUnknown {
		return
	}
	event.TranslateCompat(a.arch, ev.NR, &ev.Args)
	if f := ev.FileArg(0); event.Name32(a.arch, ev.NR) == "_llseek" && ev.Errno == 0 && f != nil && f.Known {
		ev.Ret = f.Pos // the call says it in memory
	}
}

// files lists the descriptors of a call with what the kernel said of them.
func (a *assembler) files(ev *event.Event, spec *event.Spec, r *trace.Record) {
	for i := range spec.Args {
		if k := spec.Args[i].Kind; k != event.KindFD && k != event.KindDirFD {
			continue
		}
		fd := int32(r.Args[i])
		if fd < 0 {
			continue
		}
		f := event.File{Arg: int8(i), FD: fd}
		if o := object(r, int8(i)); o != nil {
			f = file(o)
			f.FD = fd
		}
		ev.Files = append(ev.Files, f)
	}
	if ev.Errno != 0 {
		return
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		if o.Arg < 0 || ev.FileArg(int(o.Arg)) == nil {
			ev.Files = append(ev.Files, file(o))
		}
	}
}

func object(r *trace.Record, arg int8) *trace.Object {
	for i := range r.Objects {
		if r.Objects[i].Arg == arg {
			return &r.Objects[i]
		}
	}
	return nil
}

func file(o *trace.Object) event.File {
	return event.File{
		Arg: o.Arg, FD: o.FD, Known: o.Ino != 0 || o.Mode != 0,
		Dev: statDev(o.Dev), Ino: o.Ino, Mode: o.Mode, Flags: o.Flags, Nlink: o.Nlink, UID: o.UID, GID: o.GID,
		Size: o.Size, Pos: o.Pos, Rdev: statDev(o.Rdev),
	}
}

// statDev turns the kernel's device number into stat's (new_encode_dev in
// linux/kdev_t.h, glibc's makedev).
func statDev(d uint32) uint64 {
	major, minor := uint64(d>>20), uint64(d&0xfffff)
	return minor&0xff | major&0xfff<<8 | minor&^0xff<<12
}

// data adds a RecData record to its call.
func (a *assembler) data(r *trace.Record) error {
	key := callKey{r.TID, r.Enter}
	it := a.open[key]
	if it == nil {
		return nil // its call was lost, and that is counted
	}
	if err := a.pieces(it, r.Pieces); err != nil {
		return err
	}
	if r.Flags&trace.DataLast != 0 {
		it.pending = false
		delete(a.open, key)
	}
	return nil
}
