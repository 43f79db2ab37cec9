// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

const (
	maxRequests  = 1 << 16 // of one call that are looked at
	ioEventBytes = 32      // struct io_event
	aioRingBytes = 32      // struct aio_ring (fs/aio.c), which an AIO context points to; events follow
	aioRingMagic = 0xa10a10a1
	maxAIOLook   = 4096 // completions of a ring that are looked at
)

// aioKey tells requests of Linux AIO apart: a process does not use a control block
// again before its completion.
type aioKey struct {
	pid  int
	addr uint64 // of the control block
}

// request is a request between its submission and its completion.
type request struct {
	call    call
	tid     uint32 // of the thread that submitted it
	head    [event.RequestBytes]byte
	shape   []byte // its iovec array, which need not stay
	objects []trace.Object
}

// aioRequest is one of Linux AIO, submitted by io_submit.
type aioRequest struct {
	request
	ctx  uint64
	tail uint32 // of the context's ring before it
}

// requestsEnter takes what a call submits: before it, because another thread may be
// told of the completion before the call returns. Requests begin a nanosecond apart,
// which tells them apart.
func (r *Recorder) requestsEnter(th *thread) {
	c := &th.call
	switch {
	case c.compat: // the control blocks of 32-bit programs are not looked into
	case c.spec.Op == event.OpIoSubmit:
		for i := range min(c.args[1], maxRequests) {
			if addr, ok := th.word(c.args[2] + 8*i); ok {
				r.submit(th, addr, c.enter+1+i)
			}
		}
	case c.spec.Op == event.OpIoDestroy: // the ring is gone when it returns
		r.abandon(th, func(q *aioRequest) bool { return q.ctx == c.args[0] })
	case c.spec.Op == event.OpIoUringEnter:
		r.urings.enter(th)
	case c.spec.Op == event.OpExitGroup:
		r.abandon(th, func(*aioRequest) bool { return true })
		r.urings.ending(th, c.enter)
	}
}

// requestsLeave ends what a call was told of, and forgets what it did not submit.
func (r *Recorder) requestsLeave(th *thread, ret int64) {
	c := &th.call
	switch {
	case c.compat:
	case c.spec.Op == event.OpIoSubmit:
		for i := uint64(max(ret, 0)); i < min(c.args[1], maxRequests); i++ {
			addr, _ := th.word(c.args[2] + 8*i)
			key := aioKey{th.t.PID, addr}
			if q := r.aio[key]; q != nil && q.call.enter == c.enter+1+i {
				delete(r.aio, key)
			}
		}
	case c.spec.Op == event.OpIoGetevents || c.spec.Op == event.OpIoPgetevents:
		var ev [ioEventBytes]byte
		for i := range min(uint64(max(ret, 0)), maxRequests) {
			if th.read(c.args[3]+ioEventBytes*i, ev[:]) != len(ev) {
				return
			}
			key := aioKey{th.t.PID, binary.LittleEndian.Uint64(ev[8:])}
			if q := r.aio[key]; q != nil {
				delete(r.aio, key)
				r.complete(th, q, int64(binary.LittleEndian.Uint64(ev[16:])), 0)
			}
		}
	}
}

// word reads 64 bits of a thread's memory.
func (th *thread) word(addr uint64) (uint64, bool) {
	var b [8]byte
	ok := th.read(addr, b[:]) == len(b)
	return binary.LittleEndian.Uint64(b[:]), ok
}

// submit takes one control block (struct iocb).
func (r *Recorder) submit(th *thread, addr, enter uint64) {
	q := &aioRequest{request: request{tid: th.tid}, ctx: th.call.args[0]}
	if th.read(addr, q.head[:event.HeadBytes]) != event.HeadBytes {
		return
	}
	key := aioKey{th.t.PID, addr}
	if old := r.aio[key]; old != nil {
		r.complete(th, old, 0, trace.CallInterrupted)
	}
	le := binary.LittleEndian
	le.PutUint64(q.head[event.HeadBytes:], q.ctx)
	le.PutUint64(q.head[event.HeadBytes+8:], addr)
	command := le.Uint16(q.head[16:])
	q.call = call{spec: event.Lookup(event.AIOOp(command)), nr: uint32(command), enter: enter, cpu: th.call.cpu}
	q.decode(th)
	if ring, ok := th.aioRing(q.ctx); ok {
		q.tail = ring.tail
	}
	// The descriptor may stand for another file when the request completes.
	r.rec.Objects = r.rec.Objects[:0]
	for _, i := range q.call.spec.Objects() {
		r.addObject(th, int32(q.call.args[i]), i)
	}
	q.objects = append(q.objects, r.rec.Objects...)
	r.aio[key] = q
}

// decode reads a request's arguments from its head, and its vector.
func (q *request) decode(th *thread) {
	for i, f := range q.call.spec.Fields {
		q.call.args[i] = f.Get(q.head[:event.HeadBytes])
		if a := &q.call.spec.Args[i]; a.Kind == event.KindVec {
			if n := q.call.spec.Fields[a.LenArg].Get(q.head[:event.HeadBytes]); n <= maxIovecs {
				q.shape, _ = readIovecs(th.t.TID, q.call.args[i], int(n), iovecBytes)
			}
		}
	}
}

// complete writes the call of a request. One that was not seen to complete is looked
// for in the context's ring.
func (r *Recorder) complete(th *thread, q *aioRequest, ret int64, flags uint32) {
	if flags&trace.CallInterrupted != 0 {
		if res, ok := th.aioResult(q); ok {
			ret, flags = res, 0
		}
	}
	at := thread{t: th.t, tid: q.tid, task: th.task, stat: -1, call: q.call}
	r.begin(&at, now(), ret, flags)
	r.rec.Objects = append(r.rec.Objects, q.objects...)
	for i := range q.call.spec.Args {
		a := &q.call.spec.Args[i]
		moved := ret
		if flags&trace.CallInterrupted != 0 { // what it was to write is known
			if moved = 1 << 30; a.Dir != event.In {
				continue
			}
		}
		switch {
		case a.Kind == event.KindVec && q.shape != nil:
			r.planIovecs(&at, uint8(i), a, q.shape, moved)
		case a.Kind == event.KindBuf:
			r.planArg(&at, i, moved)
		}
	}
	r.plan = append(r.plan, segment{arg: event.RequestArg, data: q.head[:]})
	r.emit(&at)
	r.events++
}

// abandon ends requests of a thread's process that nothing was heard of.
func (r *Recorder) abandon(th *thread, which func(*aioRequest) bool) {
	for key, q := range r.aio {
		if key.pid == th.t.PID && which(q) {
			delete(r.aio, key)
			r.complete(th, q, 0, trace.CallInterrupted)
		}
	}
}

// aioRing is the head of a context's ring.
type aioRing struct{ nr, tail uint32 }

func (th *thread) aioRing(ctx uint64) (g aioRing, ok bool) {
	var b [aioRingBytes]byte
	if th.read(ctx, b[:]) != len(b) || binary.LittleEndian.Uint32(b[16:]) != aioRingMagic {
		return g, false
	}
	g.nr, g.tail = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[12:])
	return g, g.nr > 0 && g.tail < g.nr
}

// aioResult looks in the ring for a completion that came after the request.
func (th *thread) aioResult(q *aioRequest) (int64, bool) {
	ring, ok := th.aioRing(q.ctx)
	if !ok {
		return 0, false
	}
	n := (ring.tail + ring.nr - q.tail%ring.nr) % ring.nr
	addr := binary.LittleEndian.Uint64(q.head[event.HeadBytes+8:])
	var ev [ioEventBytes]byte
	for i := range min(n, maxAIOLook) {
		at := (ring.tail + ring.nr - 1 - i) % ring.nr
		if th.read(q.ctx+aioRingBytes+ioEventBytes*uint64(at), ev[:]) != len(ev) {
			break
		}
		if binary.LittleEndian.Uint64(ev[8:]) == addr {
			return int64(binary.LittleEndian.Uint64(ev[16:])), true
		}
	}
	return 0, false
}
