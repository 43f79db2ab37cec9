// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/trace"
)

// completion is an entry of a ring's completion queue.
type completion struct {
	userData uint64
	result   int32
	flags    uint32
	// consumed says that the program may have seen it, and may have used the memory of the request again.
	consumed bool
}

// reapOf reads the completions of the rings of a thread's process. They are recorded as of a time, ns.
func (u *urings) reapOf(th *thread, at uint64) {
	if len(u.rings) == 0 {
		return
	}
	for key, g := range u.rings {
		if key.pid == th.t.PID {
			u.reap(g, th, at)
		}
	}
}

// tick reads the completions of all rings.
func (u *urings) tick() {
	for _, g := range u.rings {
		u.reap(g, g.last, now())
	}
}

// reap reads what has come into a completion queue since it was read last.
func (u *urings) reap(g *uring, th *thread, at uint64) {
	if len(g.requests) == 0 || g.cq == 0 || g.cqSize == 0 {
		return
	}
	tail, ok := th.word32(g.cq + uint64(g.cqTail))
	if !ok || tail == g.seen {
		return
	}
	head, _ := th.word32(g.cq + uint64(g.cqHead))
	if n := tail - g.seen; n > g.cqSize {
		u.r.out.lose(&trace.Record{Type: trace.RecLoss, Exit: now(), Count: uint64(n - g.cqSize),
			Reason: trace.LossRequests})
		g.seen = tail - g.cqSize
	}
	for ; g.seen != tail; g.seen++ {
		c, ok := g.completion(th, g.seen)
		if !ok {
			g.seen = tail
			return
		}
		c.consumed = int32(head-g.seen) > 0
		u.completed(g, th, c, at)
	}
}

// completion reads an entry of the completion queue.
func (g *uring) completion(th *thread, n uint32) (c completion, ok bool) {
	size := uint64(cqeBytes)
	if g.flags&setupCQE32 != 0 {
		size *= 2
	}
	var b [cqeBytes]byte
	if th.read(g.cq+uint64(g.cqes)+size*uint64(n&(g.cqSize-1)), b[:]) != len(b) {
		return c, false
	}
	le := binary.LittleEndian
	return completion{userData: le.Uint64(b[:]), result: int32(le.Uint32(b[8:])), flags: le.Uint32(b[12:])}, true
}

// completed ends the request that a completion is of: the oldest one with its word.
func (u *urings) completed(g *uring, th *thread, c completion, at uint64) {
	if c.flags&cqeNotif != 0 {
		return // its memory is free; the result came before
	}
	i := slices.IndexFunc(g.requests, func(q *uringRequest) bool { return q.UserData == c.userData })
	if i < 0 {
		return
	}
	q := g.requests[i]
	u.silent(g, th, i, at)
	if q.Flags&event.SQEBufferSelect != 0 {
		q.buffer = g.selected(th, q.BufIndex, uint16(c.flags>>16))
	}
	u.end(th, q, c, at)
	if q.Op == event.OpUringProvideBuffers && c.result >= 0 {
		g.provided(&q.call)
	}
	if c.flags&event.CQEMore != 0 && !noticed(q.Op) {
		q.call.enter = max(at, q.call.enter) + 1 // of the next
		return
	}
	g.drop(slices.Index(g.requests, q))
}

// noticed reports whether a request completes twice: with its result, and when its memory is free.
func noticed(op event.Op) bool { return op == event.OpUringSendZC || op == event.OpUringSendmsgZC }

func (g *uring) drop(i int) {
	g.held -= len(g.requests[i].content)
	g.requests = slices.Delete(g.requests, i, i+1)
}

// silent ends the requests that came before one in its chain and whose success is not told.
func (u *urings) silent(g *uring, th *thread, i int, at uint64) {
	for i > 0 && g.requests[i].chained && g.requests[i-1].Flags&event.SQESkipSuccess != 0 {
		i--
	}
	for g.requests[i].Flags&event.SQESkipSuccess != 0 && i+1 < len(g.requests) && g.requests[i+1].chained {
		q := g.requests[i]
		u.end(th, q, completion{result: int32(q.full()), consumed: true}, at)
		g.drop(i)
	}
}

// full returns what a request moves if nothing cuts it short.
func (q *uringRequest) full() uint64 {
	if q.call.spec.Class != event.Data || q.call.spec.Result != event.KindSize {
		return 0
	}
	for i := range q.call.spec.Args {
		a := &q.call.spec.Args[i]
		switch {
		case a.Kind == event.KindBuf && a.LenArg < event.MaxArgs:
			return q.call.args[a.LenArg] & math.MaxInt32
		case a.Kind == event.KindVec:
			return total(elements(q.shape)) & math.MaxInt32
		}
	}
	return 0
}

// end writes the call of a request.
func (u *urings) end(th *thread, q *uringRequest, c completion, at uint64) {
	r := u.r
	ret := int64(c.result)
	binary.LittleEndian.PutUint32(q.head[event.HeadBytes+8:], c.flags)
	as := q.thread(th)
	if q.buffer != 0 && ret > 0 {
		as.call.args[1] = q.buffer
		if as.call.args[2] == 0 {
			as.call.args[2] = uint64(ret) // as much as the buffer has room for
		}
	}
	r.begin(&as, max(at, q.call.enter+1), ret, 0)
	r.addRequestObjects(&as, q, ret)
	held := heldFile{-1}
	for i := range q.call.spec.Args {
		a := &q.call.spec.Args[i]
		if !a.Kind.IsMemory() || a.When == event.AtEntry {
			continue
		}
		from := len(r.plan)
		switch {
		case q.content != nil && ret > 0 && q.writes(i) != nil:
			r.planHeldContent(q, i, uint64(ret))
			continue
		case a.Kind == event.KindVec && q.shape != nil:
			r.planIovecs(&as, uint8(i), a, q.shape, ret)
		case a.Kind == event.KindBuf && q.Flags&event.SQEBufferSelect != 0:
			r.planSelected(&as, q, i, ret)
		default:
			r.planArg(&as, i, ret)
		}
		if c.consumed {
			r.confirm(&as, from, a.Dir == event.In)
		}
	}
	if q.call.spec.NeedsStop && ret > 0 {
		held = r.planSpliced(&as, ret)
	}
	r.plan = append(r.plan, segment{arg: event.RequestArg, data: q.head[:]})
	r.emit(&as)
	held.close()
	r.events++
}

// addRequestObjects adds to r.rec what is known of the files of a request that has ended: as they are now, if
// its descriptors still stand for them, else as they were at its submission.
func (r *Recorder) addRequestObjects(as *thread, q *uringRequest, ret int64) {
	c := &as.call
	for _, was := range q.objects {
		o, ok := r.proc.object(as.t.TID, int(was.FD), int(was.Arg))
		if !ok || o.Ino != was.Ino || o.Dev != was.Dev {
			o = was
		}
		r.rec.Objects = append(r.rec.Objects, o)
	}
	if _, slot := q.Slot(ret); !failed(ret) && !slot {
		r.madeObjects(as, ret)
	}
	r.rec.Pieces = running.AppendEnds(r.rec.Pieces, as.t.PID, r.rec.Objects, c.spec.Op.TellsEnds())
}

// planSelected adds the content of a buffer that the kernel took of a group.
func (r *Recorder) planSelected(as *thread, q *uringRequest, i int, ret int64) {
	if ret <= 0 {
		return
	}
	s := segment{arg: uint8(i), n: uint64(ret), addr: q.buffer}
	if q.buffer == 0 {
		s.flags = trace.PieceMissing
	}
	r.planContent(q.call.spec, s)
}

// planHeldContent adds the content of a request that was read at its submission.
func (r *Recorder) planHeldContent(q *uringRequest, i int, moved uint64) {
	keep := uint64(r.o.Content.Of(q.call.spec, i).Bytes())
	n := min(moved, total(q.writes(i)))
	if q.shape != nil {
		r.plan = append(r.plan, segment{arg: uint8(i), flags: trace.PieceShape, data: q.shape})
	}
	if have := min(n, uint64(len(q.content))); have > 0 {
		r.plan = append(r.plan, segment{arg: uint8(i), data: q.content[:have]})
	}
	r.planOmitted(uint8(i), 0, keep, n)
}

// confirm looks at memory that a completed request filled, or wrote from, and that the program may have used again
// since: the segments of the plan from a number on. Where the file has the same bytes, they are what was moved. Else
// what was written is what the file has, and what was read is missing.
func (r *Recorder) confirm(as *thread, from int, written bool) {
	fd, off := r.movedAt(as)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	for i := from; i < len(r.plan); i++ {
		s := &r.plan[i]
		if s.data != nil || s.bytes() == 0 {
			continue
		}
		got, want := make([]byte, s.n), make([]byte, s.n)
		n, err := 0, error(nil)
		if fd >= 0 {
			n, err = unix.Pread(fd, want, off+int64(s.pos))
		}
		known := fd >= 0 && err == nil && uint64(n) == s.n
		if !known || !written && (s.read(as.t.TID, got) != n || !bytes.Equal(got, want)) {
			s.flags |= trace.PieceMissing
			continue
		}
		s.data = want
	}
}

// movedAt opens the regular file that a request read or wrote at an offset of its own; -1 if it did not.
func (r *Recorder) movedAt(as *thread) (fd int, off int64) {
	switch as.call.spec.Op.Like() {
	case event.OpPread64, event.OpPreadv2, event.OpPwrite64, event.OpPwritev2:
		off = int64(as.call.args[3])
	default:
		return -1, 0
	}
	if off < 0 {
		return -1, 0
	}
	return r.openRequestFile(as, 0), off
}

// openRequestFile opens the regular file of a descriptor argument for reading; -1 if it cannot.
func (r *Recorder) openRequestFile(as *thread, arg int) int {
	for i := range r.rec.Objects {
		o := &r.rec.Objects[i]
		if int(o.Arg) != arg || o.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if fd, err := r.proc.open(as.t.TID, int(o.FD)); err == nil {
			return fd
		}
	}
	return -1
}

// planSpliced adds the bytes that a request moved between two descriptors, from the side that is a file.
func (r *Recorder) planSpliced(as *thread, ret int64) heldFile {
	seg := segment{n: min(uint64(ret), uint64(r.o.Content.Of(as.call.spec, 0).Bytes()))}
	r.planOmitted(0, 0, seg.n, uint64(ret))
	if as.call.spec.Op == event.OpUringSplice {
		for _, arg := range []int{0, 2} { // its offset is the next argument
			off := int64(as.call.args[arg+1])
			if fd := r.openRequestFile(as, arg); fd >= 0 && off >= 0 {
				seg.file, seg.addr = fd+1, uint64(off)
				r.planBytes(seg)
				return heldFile{fd}
			}
		}
	}
	if seg.flags = trace.PieceMissing; seg.n > 0 {
		r.plan = append(r.plan, seg)
	}
	return heldFile{-1}
}

// ending ends the requests of a process that nothing was heard of, while it has the memory that they are in. Its
// other threads may still be in calls.
func (u *urings) ending(th *thread, at uint64) {
	u.reapOf(th, at)
	for key, g := range u.rings {
		if key.pid == th.t.PID {
			u.endAll(g, th, at)
			g.unseen = true
		}
	}
}

// gone does so when it has another memory, or none, and forgets its rings.
func (u *urings) gone(th *thread, at uint64) {
	for key, g := range u.rings {
		if key.pid == th.t.PID {
			u.endAll(g, th, at)
			delete(u.rings, key)
		}
	}
	for key, named := range u.names {
		if named.pid == th.t.PID {
			delete(u.names, key)
		}
	}
}

// endAll ends the requests of a ring that nothing was heard of.
func (u *urings) endAll(g *uring, th *thread, at uint64) {
	for _, q := range g.requests {
		u.interrupt(th, q, at)
	}
	g.requests, g.held = nil, 0
}

// interrupt writes the call of a request that was not seen to complete. The success of some is never told.
func (u *urings) interrupt(th *thread, q *uringRequest, at uint64) {
	if q.Flags&event.SQESkipSuccess != 0 {
		u.end(th, q, completion{result: int32(q.full()), consumed: true}, at)
		return
	}
	r := u.r
	as := q.thread(th)
	r.begin(&as, max(at, q.call.enter+1), 0, trace.CallInterrupted)
	r.rec.Objects = append(r.rec.Objects, q.objects...)
	if q.content != nil {
		for i := range q.call.spec.Args {
			if q.writes(i) != nil {
				r.planHeldContent(q, i, math.MaxInt32)
			}
		}
	}
	r.plan = append(r.plan, segment{arg: event.RequestArg, data: q.head[:]})
	r.emit(&as)
	r.events++
}
