// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/digest"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/trace"
)

// Recorder turns what the tracer tells into records. It lives on the tracing
// thread.
type Recorder struct {
	o    *capture.Options
	arch event.Arch
	tr   *ptracer.Engine
	out  output

	// Finish, if set, is called when the last program has ended, before the rest of the
	// records is written: others add records until then (Append).
	Finish func()

	// RecordedUntil, if set, is the time now, or when a call began that has returned and is not recorded yet. What is
	// found in the files of mappings gets that time: the call can have ended the mapping.
	RecordedUntil func() uint64

	through [512]bool // native calls that stop and are not recorded
	started bool      // the command's first call was seen
	over    bool      // no call that begins is recorded any more
	events  uint64    // calls recorded
	began   uint64    // when a call was let go last, ns
	ended   uint64    // when the call returned that was handled last, ns

	rec     trace.Record // reused
	plan    []segment
	scratch []byte // content of one record
	proc    procReader
	turns   turns
	stores  stores
	aio     map[aioKey]*aioRequest
	urings  urings
	stacks  *stacks // nil: none are recorded
	cgroups cgroups

	unprivileged unprivileged
	live         int // threads

	attached running.Count // what ran when recording began

	// Place, if it is set, returns where in its program a thread makes its call that is stopped at an address.
	Place func(t *ptracer.Tracee, pc uint64) uint64
}

// thread is the state of a followed thread (Tracee.Data).
type thread struct {
	t     *ptracer.Tracee
	tid   uint32 // number that its records have; differs from t.TID between exec and its end
	task  task
	stat  int // descriptor of its schedstat, -1 if there is none
	inUse bool
	call  call
	turn  *turn // that its call has, or waits for
}

// call is a call that a thread is in.
type call struct {
	spec   *event.Spec
	nr     uint32
	args   [6]uint64
	enter  uint64 // ns
	cpu    uint64 // ns
	compat bool
	// offered is the room that a call was told of (Spec.Offer), MaxUint64 if unknown.
	offered uint64
	late    bool // the thread did not stop at its entry
}

func newRecorder(o *capture.Options, arch event.Arch, sw *trace.StreamWriter) *Recorder {
	r := &Recorder{
		o: o, arch: arch, out: output{sw: sw, digest: digest.New(o.Content)},
		scratch: make([]byte, 0, recordBytes), turns: turns{}, aio: map[aioKey]*aioRequest{},
	}
	r.stores = stores{r: r, files: map[fileID]*storedFile{}}
	r.urings.init(r)
	r.stacks, r.cgroups = newStacks(o), newCgroups()
	return r
}

// Handler returns what the tracer is to call.
func (r *Recorder) Handler() *ptracer.Handler {
	return &ptracer.Handler{Clock: now, Fork: r.fork, Exec: r.exec, Enter: r.enter, Leave: r.leave, Exit: r.exit,
		Signal: r.signal}
}

// of returns the state of a thread. A thread without one is the command's first,
// at its first call.
func (r *Recorder) of(t *ptracer.Tracee) *thread {
	if th, ok := t.Data.(*thread); ok {
		return th
	}
	th := r.newThread(t)
	r.identify(th)
	if !r.started {
		r.started = true
		r.startRecords(th)
		if r.o.Started != nil {
			r.o.Started(t.PID)
		}
	}
	return th
}

func (r *Recorder) newThread(t *ptracer.Tracee) *thread {
	th := &thread{t: t, tid: uint32(t.TID), stat: -1}
	t.Data = th
	r.live++
	return th
}

func (r *Recorder) enter(t *ptracer.Tracee, c *ptracer.Syscall) bool {
	if r.over || !c.Compat && c.NR < uint64(len(r.through)) && r.through[c.NR] {
		return false
	}
	th := r.of(t)
	spec := event.Lookup(event.OpUnknown)
	switch {
	case c.Compat:
		spec = event.Spec32(r.arch, uint32(c.NR))
	case c.NR < 1<<15:
		spec = event.Lookup(event.ByNumber(r.arch, int(c.NR)))
	}
	th.call = call{spec: spec, nr: uint32(c.NR), args: c.Args, compat: c.Compat, cpu: r.cpu(th)}
	th.inUse = true
	if r.live > 1 && takesTurns(spec.Op) {
		r.turns.take(th, r.file(th))
	}
	r.urings.reapOf(th, now())
	stack := r.stackAtEntry(th)
	// It begins when the thread goes on: the later that is told, the fewer calls seem to
	// have overlapped.
	th.call.enter = now()
	r.began = th.call.enter
	r.putStack(th, stack)
	r.noteOffer(th)
	r.enterRecord(th)
	r.requestsEnter(th)
	if th.call.spec.NoReturn {
		r.begin(th, th.call.enter, 0, 0)
		r.finish(th)
		return false
	}
	return true
}

// enterRecord writes the memory that has to be read before the call.
func (r *Recorder) enterRecord(th *thread) {
	r.plan = r.plan[:0]
	for i := range th.call.spec.Args {
		a := &th.call.spec.Args[i]
		switch {
		case !a.Kind.IsMemory():
		case a.When == event.AtEntry:
			r.planArg(th, i, 0)
		case a.When == event.AtBoth:
			r.planBefore(th, i)
		}
	}
	if len(r.plan) == 0 {
		return
	}
	op := event.OpUnknown // of the thread's next call
	if th.call.spec.Op.IsUring() {
		op = th.call.spec.Op
	}
	r.rec = trace.Record{
		Type: trace.RecEnter, Op: uint16(op), PID: uint32(th.t.PID), TID: th.tid, Enter: th.call.enter,
		Objects: r.rec.Objects[:0], Pieces: r.rec.Pieces[:0],
	}
	for i := range r.plan {
		s := &r.plan[i]
		s.fetch(th)
		if s.data == nil {
			r.rec.Pieces = append(r.rec.Pieces, trace.Piece{Arg: s.arg, Flags: s.flags, Len: uint32(s.n), Off: s.pos})
			continue
		}
		r.addPieces(s.arg, s.flags, s.data)
	}
	r.out.put(&r.rec)
}

// fetch reads the memory of a segment; what cannot be read is missing.
func (s *segment) fetch(th *thread) {
	if s.data != nil || s.bytes() == 0 {
		return
	}
	b := make([]byte, s.n)
	if s.read(th.t.TID, b) != len(b) {
		s.flags |= trace.PieceMissing
		return
	}
	s.data = b
}

// addPieces adds bytes that were read already.
func (r *Recorder) addPieces(arg, flags uint8, b []byte) {
	off := 0
	for {
		n := min(len(b)-off, recordBytes)
		r.rec.Pieces = append(r.rec.Pieces,
			trace.Piece{Arg: arg, Flags: flags, Len: uint32(n), Off: uint64(off), Data: b[off : off+n]})
		if off += n; off == len(b) {
			return
		}
	}
}

// begin fills r.rec with the call that a thread is in.
func (r *Recorder) begin(th *thread, exit uint64, ret int64, flags uint32) {
	c := &th.call
	if c.compat {
		flags |= trace.CallCompat
	}
	r.rec = trace.Record{
		Type: trace.RecCall, Op: uint16(c.spec.Op), PID: uint32(th.t.PID), TID: th.tid, Flags: flags,
		Enter: c.enter, Exit: exit, CPU: c.cpu, Ret: ret, Args: c.args, NR: c.nr,
		Objects: r.rec.Objects[:0], Pieces: r.rec.Pieces[:0],
	}
	r.plan = r.plan[:0]
}

// finish writes r.rec and the planned memory, and ends the call.
func (r *Recorder) finish(th *thread) {
	r.emit(th)
	r.events++
	th.inUse = false
	r.pass(th)
}

// pass ends a thread's turn.
func (r *Recorder) pass(th *thread) {
	if next := r.turns.pass(th); next != nil {
		r.began = next.call.enter
	}
}

func (r *Recorder) leave(t *ptracer.Tracee, ret int64) {
	th := r.of(t)
	if !th.inUse {
		return
	}
	c := &th.call
	exit := t.Seen // it had returned by then, whatever was handled since
	r.stores.after(th, exit, ret)
	r.uringsAfter(th, exit, ret)
	r.stackAtReturn(th, exit, ret)
	r.ended = exit
	r.out.noteSeen(exit)
	if r.began >= exit {
		exit = now() // what is looked up of files now may be that call's work
	}
	if r.refuses(th, exit, ret) {
		th.inUse = false
		r.pass(th)
		return
	}
	r.requestsLeave(th, ret)
	r.begin(th, exit, ret, 0)
	r.objects(th, ret)
	for i := range c.spec.Args {
		a := &c.spec.Args[i]
		if a.Kind.IsMemory() && a.When != event.AtEntry {
			r.planArg(th, i, ret)
		}
	}
	r.planOffer(th, ret)
	if c.spec.NeedsStop && ret > 0 {
		held := r.planHeld(th, ret)
		defer held.close()
	}
	r.finish(th)
	if th.tid != uint32(t.TID) {
		r.renamed(th)
	}
	if c.spec.Identity && !failed(ret) {
		r.identityChanged(th)
	}
	if c.spec.Facts && !failed(ret) {
		r.changed(t.PID)
	}
	r.maybeMoved(ret)
}

// Returned records a call that its thread made without a stop at its entry: from enter to exit,
// ns, with the raw result. offered is the room that it was told of (event.Spec.ValueResultArg), MaxUint64 if
// that is not known. The thread is stopped.
func (r *Recorder) Returned(t *ptracer.Tracee, c *ptracer.Syscall, enter, exit uint64, ret int64, offered uint64) {
	if c.NR < uint64(len(r.through)) && r.through[c.NR] {
		return
	}
	th := r.of(t)
	spec := event.Lookup(event.ByNumber(r.arch, int(c.NR)))
	th.call = call{spec: spec, nr: uint32(c.NR), args: c.Args, enter: enter, offered: offered,
		late: true}
	th.inUse = true
	t.Seen = exit
	r.leave(t, ret)
}

// Interrupted records a call that its thread made without a stop and never returned from.
func (r *Recorder) Interrupted(t *ptracer.Tracee, c *ptracer.Syscall, enter uint64) {
	th := r.of(t)
	spec := event.Lookup(event.ByNumber(r.arch, int(c.NR)))
	th.call = call{spec: spec, nr: uint32(c.NR), args: c.Args, enter: enter}
	th.inUse = true
	r.interrupt(th, max(t.Seen, enter))
}

// Engine returns the tracer. It is there while Run goes on.
func (r *Recorder) Engine() *ptracer.Engine { return r.tr }

// Do runs f on the tracing thread, soon.
func (r *Recorder) Do(f func()) { r.tr.Do(f) }

// Append adds records that others made, events of them calls. If until is not 0, no call that
// returned before is still to come, from anybody: the caller has asked HandledUntil. It is safe
// from any goroutine while Run goes on.
func (r *Recorder) Append(records []byte, events, until uint64) {
	r.out.append(records, events, until)
}

// HandledUntil returns a time before which no call returned that stopped and is still to be
// recorded, ns. It is safe from any goroutine when a program has been executed.
func (r *Recorder) HandledUntil() uint64 { return r.tr.HandledUntil() }

// failed reports whether a raw result is an error number.
func failed(ret int64) bool { return ret < 0 && ret >= -4095 }

// interrupt ends the call of a thread that never returned from it, at a time.
func (r *Recorder) interrupt(th *thread, at uint64) {
	if !th.inUse {
		return
	}
	r.begin(th, at, 0, trace.CallInterrupted)
	for i := range th.call.spec.Args {
		a := &th.call.spec.Args[i]
		if a.When == event.AtExit && (a.Kind == event.KindPath || a.Kind == event.KindText) && th.call.args[i] != 0 {
			r.plan = append(r.plan, segment{arg: uint8(i), flags: trace.PieceMissing})
		}
	}
	r.finish(th)
}

func (r *Recorder) fork(parent, child *ptracer.Tracee) {
	th := r.newThread(child)
	var from *thread
	if parent != nil {
		from = r.of(parent)
		rec := trace.Record{
			Type: trace.RecFork, PID: uint32(parent.PID), TID: from.tid, Exit: now(),
			Child: uint32(child.PID), ChildTID: uint32(child.TID), Share: r.shared(from, child),
		}
		r.out.put(&rec)
		if parent.PID != child.PID {
			r.stores.forked(parent.PID, child.PID)
			r.cgroups.forked(parent.PID, child.PID)
		}
	}
	if !r.identify(th) && from != nil {
		th.task = from.task // killed and reaped before it could be looked at
		th.task.ppid = uint32(parent.PID)
		r.taskRecord(th)
	}
}

// shared returns what a new thread shares with the one that made it.
func (r *Recorder) shared(parent *thread, child *ptracer.Tracee) uint64 {
	if parent.inUse && !parent.call.compat {
		switch parent.call.spec.Op {
		case event.OpFork:
			return 0
		case event.OpVfork:
			return trace.ShareVM
		case event.OpClone:
			return parent.call.args[0] & trace.ForkFlags
		case event.OpClone3:
			var b [8]byte
			if readMemory(parent.t.TID, parent.call.args[0], b[:]) == len(b) {
				return binary.LittleEndian.Uint64(b[:]) & trace.ForkFlags
			}
		}
	}
	if child.PID == parent.t.PID {
		return trace.ShareVM | trace.ShareFS | trace.ShareFiles | trace.ShareThread
	}
	return 0
}

func (r *Recorder) exec(t *ptracer.Tracee, _ int, replaced *ptracer.Tracee) {
	if replaced != nil {
		if th, ok := replaced.Data.(*thread); ok {
			r.interrupt(th, now())
			r.closeThread(th)
			r.live--
		}
	}
	r.stacks.forget(t.PID)
	if th, ok := t.Data.(*thread); ok {
		r.closeThread(th) // its schedstat may be another number's
	}
}

// renamed ends the number of a thread that took over its process's by execve.
func (r *Recorder) renamed(th *thread) {
	rec := trace.Record{Type: trace.RecExit, PID: uint32(th.t.PID), TID: th.tid, Exit: now()}
	r.out.put(&rec)
	th.tid = uint32(th.t.TID)
}

func (r *Recorder) exit(t *ptracer.Tracee, status unix.WaitStatus) {
	th, ok := t.Data.(*thread)
	if !ok {
		return
	}
	// Its parent may have heard of the end since, and have returned from wait4.
	at := max(t.Seen, r.ended)
	r.interrupt(th, at)
	r.stores.ended(t, th.tid, at)
	if t.TID == t.PID {
		r.abandon(th, func(*aioRequest) bool { return true })
		r.urings.gone(th, at)
		r.stacks.forget(t.PID)
		delete(r.cgroups.known, t.PID)
	}
	if th.tid != uint32(t.TID) {
		r.renamed(th)
	}
	rec := trace.Record{Type: trace.RecExit, PID: uint32(t.PID), TID: th.tid, Exit: at, Ret: int64(status)}
	r.out.put(&rec)
	r.closeThread(th)
	r.live--
}

func (r *Recorder) closeThread(th *thread) {
	if th.stat >= 0 {
		syscall.Close(th.stat)
		th.stat = -1
	}
}

// stop ends the recording while the programs go on.
func (r *Recorder) stop() {
	r.over = true
	r.tr.Threads(func(t *ptracer.Tracee) {
		if th, ok := t.Data.(*thread); ok {
			r.interrupt(th, now())
			r.urings.ending(th, now())
			r.closeThread(th)
		}
	})
	r.stores.finish()
	r.out.flush(now())
}

func (r *Recorder) close() { r.out.end() }
