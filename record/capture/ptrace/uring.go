// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Of linux/io_uring.h.
const (
	offsetSQRing = 0 // of mmap: what is mapped
	offsetCQRing = 0x8000000
	offsetSQEs   = 0x10000000
	offsetMask   = 0xf8000000 // the others select rings of buffers

	setupSQPoll    = 1 << 1
	setupSQE128    = 1 << 10
	setupCQE32     = 1 << 11
	setupNoMmap    = 1 << 14
	setupNoSQArray = 1 << 16

	enterRegisteredRing = 1 << 4
	registerRings       = 20
	unregisterRings     = 21
	registerLast        = 1 << 31 // the ring itself is named by its registered number

	cqeBytes    = 16
	cqeNotif    = 8
	paramsBytes = 120 // struct io_uring_params
	rsrcBytes   = 16  // struct io_uring_rsrc_update
)

// uringKey is how a process names a ring.
type uringKey struct {
	pid int
	fd  int32
}

// uring is a ring: where its queues are in the memory of the process, and its requests under way. No
// privilege shows what the kernel takes from it. But only io_uring_enter gives requests to the kernel, so
// they are read at its entry; and completions are read from their queue when a thread of the process stops.
type uring struct {
	key    uringKey
	flags  uint32
	unseen bool // its requests are not seen, which was said

	sq, cq, sqes uint64 // addresses; 0: not mapped
	sqSize       uint32 // entries
	cqSize       uint32
	sqHead       uint32 // offsets from sq
	sqTail       uint32
	sqArray      uint32
	cqHead       uint32 // offsets from cq
	cqTail       uint32
	cqes         uint32
	seen         uint32 // completions that were read, as the kernel counts

	buffers []buffers // that it may choose from, the last ones count

	requests []*uringRequest // in the order of their submission
	held     int             // bytes of their content that were read at submission
	last     *thread         // that entered it last
}

// uringRequest is a request of a ring.
type uringRequest struct {
	request
	event.Request
	chained bool   // the request before it is in the same chain
	buffer  uint64 // that the kernel took of a group; 0: not known
	content []byte // what it writes, if that is known already
}

// urings are the rings of all processes.
type urings struct {
	r     *Recorder
	rings map[uringKey]*uring
	names map[registeredKey]uringKey
	some  atomic.Bool // there are rings, or were
}

// registeredKey is the number under which a thread has registered a ring for itself.
type registeredKey struct {
	tid    int
	number uint32
}

func (u *urings) init(r *Recorder) {
	u.r, u.rings, u.names = r, map[uringKey]*uring{}, map[registeredKey]uringKey{}
}

// created learns a ring (io_uring_setup(2)).
func (u *urings) created(th *thread, ret int64) {
	var p [paramsBytes]byte
	if th.read(th.call.args[1], p[:]) != len(p) {
		return
	}
	word := func(off int) uint32 { return binary.LittleEndian.Uint32(p[off:]) }
	g := &uring{
		key: uringKey{th.t.PID, int32(ret)}, flags: word(8), sqSize: word(0), cqSize: word(4), last: th,
		sqHead: word(40), sqTail: word(44), sqArray: word(64), cqHead: word(80), cqTail: word(84), cqes: word(100),
	}
	if old := u.rings[g.key]; old != nil { // whose descriptor was closed without a stop
		u.endAll(old, th, now())
	}
	g.unseen = g.flags&setupSQPoll != 0 // the kernel takes requests by itself
	if g.flags&setupNoMmap != 0 {       // the program's own memory
		g.sqes = binary.LittleEndian.Uint64(p[72:])
		g.sq = binary.LittleEndian.Uint64(p[112:])
		g.cq = g.sq
	}
	u.rings[g.key] = g
	u.some.Store(true)
	if g.unseen {
		u.lose("the requests of an io_uring with IORING_SETUP_SQPOLL are not recorded without eBPF")
	}
}

// uringsAfter is told of a call that has returned, before it is recorded.
func (r *Recorder) uringsAfter(th *thread, exit uint64, ret int64) {
	c, u := &th.call, &r.urings
	switch {
	case c.compat:
		return
	case c.spec.Op == event.OpIoUringEnter: // also of one that failed
		u.leave(th, ret)
	case failed(ret):
	case c.spec.Op == event.OpIoUringSetup:
		u.created(th, ret)
	case c.spec.Op == event.OpIoUringRegister:
		u.registered(th, ret)
	case c.spec.Op == event.OpMmap && len(u.rings) > 0:
		u.mapped(th, ret)
	case c.spec.Op == event.OpClose:
		u.closed(th, uringKey{th.t.PID, int32(c.args[0])}, exit)
	case c.spec.Op == event.OpExecve || c.spec.Op == event.OpExecveat:
		u.gone(th, exit)
		return
	}
	u.reapOf(th, max(exit-1, c.enter))
}

// lose says that requests are not recorded, and why.
func (u *urings) lose(why string) {
	if u.r.o.Note != nil {
		u.r.o.Note(why)
	}
	u.r.out.lose(&trace.Record{Type: trace.RecLoss, Exit: now(), Count: 1, Reason: trace.LossUnseen})
}

// mapped learns where a program has mapped a ring's queues (mmap(2)).
func (u *urings) mapped(th *thread, ret int64) {
	a := &th.call.args
	g := u.rings[uringKey{th.t.PID, int32(a[4])}]
	if g == nil || a[3]&unix.MAP_ANONYMOUS != 0 {
		return
	}
	switch a[5] & offsetMask { // it may be mapped anew
	case offsetSQRing:
		g.sq, g.cq = 0, 0
	case offsetSQEs:
		g.sqes = 0
	}
	g.place(a[5], uint64(ret))
}

// closed forgets a ring whose descriptor is closed, unless a thread has it under another number.
func (u *urings) closed(th *thread, key uringKey, at uint64) {
	g := u.rings[key]
	if g == nil {
		return
	}
	for _, named := range u.names {
		if named == key {
			return
		}
	}
	u.reap(g, th, at)
	u.endAll(g, th, at)
	delete(u.rings, key)
}

// locate finds the queues of a ring among the mappings of a process, where its calls of mmap were not seen.
// It reports whether that is certain.
func (u *urings) locate(g *uring, th *thread) bool {
	maps, err := os.ReadFile(u.r.proc.name(th.t.TID, "maps"))
	if err != nil {
		return false
	}
	known := map[uint64]bool{}
	for key, other := range u.rings {
		if key.pid == th.t.PID {
			known[other.sq], known[other.cq], known[other.sqes] = true, true, true
		}
	}
	for line := range bytes.Lines(maps) {
		f := bytes.Fields(line) // address, permissions, offset, device, inode, name (proc_pid_maps(5))
		if len(f) < 6 || !bytes.Equal(f[5], []byte("anon_inode:[io_uring]")) {
			continue
		}
		first, _, _ := bytes.Cut(f[0], []byte("-"))
		at, err1 := strconv.ParseUint(string(first), 16, 64)
		off, err2 := strconv.ParseUint(string(f[2]), 16, 64)
		if err1 != nil || err2 != nil || known[at] {
			continue
		}
		if !g.place(off, at) {
			return false // those of another ring
		}
	}
	return g.sq != 0 && g.sqes != 0
}

// place notes where a mapping of a ring is, by its offset. It returns false if that is known already.
func (g *uring) place(off, at uint64) bool {
	switch off & offsetMask {
	case offsetSQRing: // on kernels of today both queues
		if g.sq != 0 {
			return false
		}
		if g.sq = at; g.cq == 0 {
			g.cq = at
		}
	case offsetCQRing:
		g.cq = at
	case offsetSQEs:
		if g.sqes != 0 {
			return false
		}
		g.sqes = at
	}
	return true
}

// registered learns the numbers under which a thread has registered rings, or that it has them no more.
func (u *urings) registered(th *thread, ret int64) {
	c := &th.call
	op := c.args[1] &^ registerLast
	if g := u.rings[uringKey{th.t.PID, int32(c.args[0])}]; g != nil && op == registerBufferRing {
		g.ringOfBuffers(th, c.args[2])
		return
	}
	if op != registerRings && op != unregisterRings {
		return
	}
	for i := range min(uint64(ret), maxRequests) {
		var b [rsrcBytes]byte
		if th.read(c.args[2]+rsrcBytes*i, b[:]) != len(b) {
			return
		}
		key := registeredKey{th.t.TID, binary.LittleEndian.Uint32(b[:])}
		if delete(u.names, key); op == registerRings {
			u.names[key] = uringKey{th.t.PID, int32(binary.LittleEndian.Uint64(b[8:]))}
		}
	}
}

// entered returns the ring that a call enters, nil if it is not known.
func (u *urings) entered(th *thread) (uringKey, *uring) {
	c := &th.call
	key := uringKey{th.t.PID, int32(c.args[0])}
	if c.args[3]&enterRegisteredRing != 0 {
		key = u.names[registeredKey{th.t.TID, uint32(c.args[0])}]
	}
	return key, u.rings[key]
}

// enter takes what a call is going to submit. Requests begin a nanosecond apart, which tells them apart.
func (u *urings) enter(th *thread) {
	c := &th.call
	_, g := u.entered(th)
	if g == nil || g.unseen || c.args[1] == 0 {
		return
	}
	if (g.sq == 0 || g.sqes == 0) && !u.locate(g, th) {
		g.unseen = true
		u.lose("the requests of an io_uring whose queues are not found are not recorded without eBPF")
		return
	}
	g.last = th
	head, ok1 := th.word32(g.sq + uint64(g.sqHead))
	tail, ok2 := th.word32(g.sq + uint64(g.sqTail))
	if !ok1 || !ok2 || g.sqSize == 0 {
		return
	}
	if len(g.requests) == 0 { // completions until now are of nothing that is followed
		g.seen, _ = th.word32(g.cq + uint64(g.cqTail))
	}
	n := min(uint64(tail-head), c.args[1], uint64(g.sqSize))
	chained := false
	for i := range uint32(n) {
		at := (head + i) & (g.sqSize - 1)
		if g.flags&setupNoSQArray == 0 {
			if at, ok1 = th.word32(g.sq + uint64(g.sqArray) + 4*uint64(at)); !ok1 || at >= g.sqSize {
				continue // the kernel leaves it out, too
			}
		}
		q := u.take(g, th, at, c.enter+1+uint64(i), chained)
		chained = q != nil && q.Flags&(event.SQELink|event.SQEHardLink) != 0
	}
}

// take reads an entry of the submission queue.
func (u *urings) take(g *uring, th *thread, at uint32, enter uint64, chained bool) *uringRequest {
	size := uint64(event.HeadBytes)
	if g.flags&setupSQE128 != 0 {
		size *= 2
	}
	q := &uringRequest{request: request{tid: th.tid}, chained: chained}
	if th.read(g.sqes+size*uint64(at), q.head[:event.HeadBytes]) != event.HeadBytes {
		return nil
	}
	binary.LittleEndian.PutUint64(q.head[event.HeadBytes:], uint64(int64(g.key.fd)))
	q.Request = event.RequestOf(event.UringOp(q.head[0]), q.head[:])
	q.call = call{spec: event.Lookup(q.Op), nr: uint32(q.head[0]), enter: enter,
		cpu: th.call.cpu, offered: ^uint64(0)}
	q.decode(th)
	as := q.thread(th)
	u.r.rec.Objects = u.r.rec.Objects[:0]
	u.r.requestObjects(&as, q)
	q.objects = append(q.objects, u.r.rec.Objects...)
	u.r.enterRecord(&as)
	u.hold(g, th, q)
	g.requests = append(g.requests, q)
	return q
}

// thread returns the thread that submitted a request, in the request. Memory is read through th.
func (q *uringRequest) thread(th *thread) thread {
	return thread{t: th.t, tid: q.tid, task: th.task, stat: -1, call: q.call}
}

// requestObjects adds what is known of a request's files: those that it names by descriptors, not by slots of
// its ring's table.
func (r *Recorder) requestObjects(as *thread, q *uringRequest) {
	for _, i := range q.call.spec.Objects() {
		if !q.InSlot(&q.call.args, i) {
			r.addObject(as, int32(q.call.args[i]), i)
		}
	}
}

const (
	heldEach = 8 << 20 // bytes of content of a request that are read at its submission
	heldAll  = 64 << 20
)

// hold reads what a request writes. The program leaves that as it is until it sees the completion, which may
// be before the recorder sees it. The content of one in a chain can come from the request before it.
func (u *urings) hold(g *uring, th *thread, q *uringRequest) {
	if q.chained {
		return
	}
	for i := range q.call.spec.Args {
		parts := q.writes(i)
		n := min(total(parts), uint64(u.r.o.Content.Of(q.call.spec, i).Bytes()))
		if n == 0 || n > heldEach || g.held+int(n) > heldAll {
			continue
		}
		q.content = make([]byte, 0, n)
		for _, p := range parts {
			at := len(q.content)
			q.content = q.content[:at+int(min(p.n, n-uint64(at)))]
			if th.read(p.addr, q.content[at:]) != len(q.content)-at {
				q.content = nil
				return
			}
		}
		g.held += len(q.content)
		return
	}
}

// writes returns where the content stands that a request writes, if argument i is that.
func (q *uringRequest) writes(i int) []segment {
	a := &q.call.spec.Args[i]
	switch {
	case a.Dir != event.In || q.call.args[i] == 0:
	case a.Kind == event.KindBuf && a.LenArg < event.MaxArgs:
		return []segment{{addr: q.call.args[i], n: q.call.args[a.LenArg] & math.MaxInt32}}
	case a.Kind == event.KindVec:
		return elements(q.shape)
	}
	return nil
}

// elements returns the memory of an iovec array.
func elements(shape []byte) (list []segment) {
	for v := shape; len(v) >= iovecBytes; v = v[iovecBytes:] {
		list = append(list, segment{addr: binary.LittleEndian.Uint64(v), n: binary.LittleEndian.Uint64(v[8:])})
	}
	return list
}

// total returns how many bytes memory has.
func total(list []segment) (sum uint64) {
	for i := range list {
		sum += min(list[i].n, math.MaxInt32)
	}
	return sum
}

// leave forgets what a call did not submit.
func (u *urings) leave(th *thread, ret int64) {
	c := &th.call
	key, g := u.entered(th)
	if g == nil && ret > 0 && c.args[1] > 0 {
		u.rings[key] = &uring{key: key, unseen: true}
		u.lose("the requests of an io_uring that was made before the recording, or by another process, are not " +
			"recorded without eBPF")
	}
	if g == nil || g.unseen {
		return
	}
	first := c.enter + 1 + uint64(max(ret, 0))
	kept := g.requests[:0]
	for _, q := range g.requests {
		if q.tid == th.tid && q.call.enter >= first && q.call.enter <= c.enter+uint64(g.sqSize) {
			g.held -= len(q.content)
			continue
		}
		kept = append(kept, q)
	}
	clear(g.requests[len(kept):])
	g.requests = kept
}

func (th *thread) word32(addr uint64) (uint32, bool) {
	var b [4]byte
	ok := th.read(addr, b[:]) == len(b)
	return binary.LittleEndian.Uint32(b[:]), ok
}
