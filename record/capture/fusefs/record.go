// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"errors"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/digest"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/trace"
)

// A Recording takes what is done through a mount into a stream of its own. Its fields
// do not change while it is attached.
type Recording struct {
	Stream  *trace.StreamWriter
	Content capture.Content
	// Want, if set, says which operations are recorded. It is called in the operation's
	// way, from several goroutines.
	Want func(*Operation) bool

	state *attached // while attached
}

// Operation is what a recording may choose by.
type Operation struct {
	Op       event.Op
	Path     string // below the lower directory, "." for itself; "" for an operation on a descriptor
	PID, TID uint32 // of the caller; 0 if that is the kernel or not visible here
	UID, GID uint32
}

// Counts says what a recording has.
type Counts struct {
	Events uint64 // calls
	Lost   uint64 // records that could not be written
	Err    error  // the first error of the stream, nil if there was none
}

const (
	frameBytes = 1 << 20                // a frame is written when it has as much
	flushEvery = 100 * time.Millisecond // and at least so often
)

// dispatcher gives finished calls to the recordings, one after the other: so the stream has
// them in the order of their returns.
type dispatcher struct {
	mu         sync.Mutex
	recordings []*attached
	pieces     []trace.Piece // of the record at hand, as one recording wants them
	start      time.Time     // at baseNS
	baseNS     uint64
}

// attached is the state of an attached Recording.
type attached struct {
	*Recording
	digest *digest.Rewriter // nil if nothing is hashed
	known  map[uint32]version
	told   map[uint32]bool // processes that are described, by a thread that is known
	buf    []byte
	inBuf  uint64 // records
	round  uint32
	counts Counts
}

// version tells what a stream says of a thread from what has to be said.
type version struct{ birth, task uint64 }

func (r *dispatcher) init() {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	r.baseNS, r.start = uint64(ts.Nano()), time.Now()
}

// now returns the time of CLOCK_MONOTONIC in ns, without a system call.
func (r *dispatcher) now() uint64 { return r.baseNS + uint64(time.Since(r.start)) }

// call is an operation from its request to its record.
type call struct {
	fs  *FS
	who identity
	rec trace.Record
	st  unix.Stat_t
	mem [256]byte // of small structures

	names [2]named // path arguments
	after func()   // what the call does to the names that nodes have
}

// named is a path argument, which is found out when the call is recorded: so the names of
// a recording are those that its earlier calls gave.
type named struct {
	arg   int
	node  *node  // the file, or the directory
	entry string // in the directory; "" for the file itself
}

var calls = sync.Pool{New: func() any { return &call{} }}

// call starts a call of a thread.
func (fs *FS) call(who identity, op event.Op) *call {
	c := calls.Get().(*call)
	c.fs, c.who, c.names, c.after = fs, who, [2]named{}, nil
	c.rec = trace.Record{
		Type: trace.RecCall, Op: uint16(op), PID: who.pid, TID: who.tid, Enter: fs.rec.now(),
		NR:      uint32(event.Number(fs.arch, op)),
		Objects: c.rec.Objects[:0], Pieces: c.rec.Pieces[:0],
	}
	return c
}

// failing is the largest error number (MAX_ERRNO, linux/err.h).
const failing = 4095

// pointer is what pointers to the caller's memory are recorded as: a request does not
// say where that was, only that it was somewhere.
const pointer = 0x1000

func (c *call) arg(i int, v uint64) { c.rec.Args[i] = v }

// bytes records memory of an argument, which must stay as it is until the call is done.
func (c *call) bytes(i int, b []byte) {
	c.rec.Args[i] = pointer
	c.rec.Pieces = append(c.rec.Pieces, trace.Piece{Arg: uint8(i), Len: uint32(len(b)), Data: b})
}

// add records a part of an argument's memory.
func (c *call) add(i int, off uint64, b []byte) {
	if len(b) > 0 {
		c.rec.Pieces = append(c.rec.Pieces, trace.Piece{Arg: uint8(i), Off: off, Len: uint32(len(b)), Data: b})
	}
}

func (c *call) text(i int, s string) { c.bytes(i, unsafe.Slice(unsafe.StringData(s), len(s))) }

// name records a path argument: a file's, or, with an entry, that of an entry of a
// directory. What it is relative to is the working directory.
func (c *call) name(i int, n *node, entry string) {
	if i > 0 && c.spec().Args[i-1].Kind == event.KindDirFD {
		c.cwd(i - 1)
	}
	k := 0
	if c.names[0].node != nil {
		k = 1
	}
	c.names[k] = named{i, n, entry}
}

// resolve adds the path arguments to the record and returns the first.
func (c *call) resolve() (first string) {
	for i := len(c.names) - 1; i >= 0; i-- {
		if nm := &c.names[i]; nm.node != nil {
			first = c.fs.nodes.below(nm.node, nm.entry)
			c.text(nm.arg, first)
		}
	}
	return first
}

// cwd says that an argument is AT_FDCWD.
func (c *call) cwd(i int) {
	cwd := event.AtFDCWD
	c.rec.Args[i] = uint64(cwd)
}

func (c *call) spec() *event.Spec { return event.Lookup(event.Op(c.rec.Op)) }

// stat records a struct stat.
func (c *call) stat(i int, st *unix.Stat_t) {
	c.bytes(i, unsafe.Slice((*byte)(unsafe.Pointer(st)), unsafe.Sizeof(*st)))
}

// file records a descriptor argument.
func (c *call) file(i int, h *handle) {
	c.rec.Args[i] = uint64(h.number)
	c.object(i, h)
}

// object records what is known of an open file. event.ResultArg is that of the result.
func (c *call) object(i int, h *handle) {
	if unix.Fstat(h.fd, &c.st) != nil {
		return
	}
	c.rec.Objects = append(c.rec.Objects, h.object(i, &c.st))
}

func (h *handle) object(i int, st *unix.Stat_t) trace.Object {
	return trace.Object{
		Ino: st.Ino, Size: st.Size, Dev: kernelDev(st.Dev), Rdev: kernelDev(st.Rdev),
		Mode: st.Mode, Flags: h.flags.Load(), Nlink: uint32(st.Nlink), UID: st.Uid, GID: st.Gid, FD: h.number,
		Arg: int8(i),
	}
}

// kernelDev is a device number as records have it.
func kernelDev(dev uint64) uint32 { return unix.Major(dev)<<20 | unix.Minor(dev)&0xfffff }

// done records the call with its result and gives it back. ret is ignored if it failed.
func (c *call) done(ret int64, errno syscall.Errno) {
	if errno != 0 {
		ret = -int64(min(errno, failing))
	}
	c.rec.Ret = ret
	c.fs.rec.put(c)
	c.free()
}

// free gives the call back unrecorded.
func (c *call) free() {
	clear(c.rec.Pieces[:cap(c.rec.Pieces)]) // they point into the request
	c.fs, c.names, c.after = nil, [2]named{}, nil
	calls.Put(c)
}

func (r *dispatcher) put(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.rec.Exit = max(r.now(), c.rec.Enter+1)
	if c.after != nil {
		defer c.after()
	}
	if len(r.recordings) == 0 {
		return
	}
	path := c.resolve()
	for _, t := range r.recordings {
		if t.Want != nil && !t.Want(&Operation{Op: event.Op(c.rec.Op), Path: path, PID: c.who.pid, TID: c.who.tid,
			UID: c.who.uid, GID: c.who.gid}) {
			continue
		}
		t.introduce(c)
		all := c.rec.Pieces
		c.rec.Pieces = r.wanted(t, &c.rec)
		t.put(&c.rec)
		c.rec.Pieces = all
		t.counts.Events++
	}
}

// wanted returns the pieces of a record as far as a recording keeps them.
func (r *dispatcher) wanted(t *attached, rec *trace.Record) []trace.Piece {
	if t.Content == (capture.Content{}) {
		return rec.Pieces
	}
	r.pieces = t.Content.Trim(r.pieces[:0], event.Lookup(event.Op(rec.Op)), rec.Pieces)
	return r.pieces
}

// introduce records the caller if the stream does not know it as it is. All callers
// share the mount's descriptors and working directory, as if it had cloned them so.
func (t *attached) introduce(c *call) {
	who := &c.who
	old := t.known[who.tid]
	if old == who.version {
		if told, seen := t.told[who.pid]; seen && !told && !withinExec(c) {
			t.describe(who, c.rec.Enter)
		}
		return
	}
	fs := c.fs
	if old.birth != who.birth {
		t.put(&trace.Record{
			Type: trace.RecFork, PID: fs.self.pid, TID: fs.self.tid, Exit: c.rec.Enter,
			Child: who.pid, ChildTID: who.tid, Share: trace.ShareFS | trace.ShareFiles,
		})
	}
	t.put(who.record(c.rec.Enter))
	t.known[who.tid] = who.version
	if withinExec(c) {
		t.told[who.pid] = false
	} else if !t.told[who.pid] || who.tid == who.pid { // of a thread the name alone can be another
		t.describe(who, c.rec.Enter)
	}
}

// withinExec reports whether a call may be one that execve makes as it closes descriptors. The kernel lets nobody read
// the environment of the process then, and execve waits for the end of this call: to read it would be for ever.
func withinExec(c *call) bool {
	switch event.Op(c.rec.Op) {
	case event.OpClose, event.OpFcntl, event.OpFlock:
		return true
	}
	return false
}

// describe records where a caller runs and with what. One that has ended leaves nothing to read.
func (t *attached) describe(who *identity, now uint64) {
	t.told[who.pid] = true
	rec := running.ProcessRecord(int(who.pid), now, running.EnvNames, running.Running)
	if len(rec.Pieces) > 0 && rec.Pieces[0].Len > 0 {
		t.put(&rec)
	}
}

func (t *attached) put(rec *trace.Record) {
	if t.counts.Err != nil {
		t.counts.Lost++
		return
	}
	t.buf = trace.AppendRecord(t.buf, rec)
	t.inBuf++
	if len(t.buf) >= frameBytes {
		t.flush(rec.Exit)
	}
}

// flush writes what was recorded until a time.
func (t *attached) flush(until uint64) {
	if len(t.buf) == 0 {
		return
	}
	if err := t.Stream.WriteRecords(trace.Frame{Round: t.round, Until: until}, t.digest.Payload(t.buf)); err != nil {
		t.counts.Err = err
		t.counts.Lost += t.inBuf
	}
	t.round++
	t.buf, t.inBuf = t.buf[:0], 0
}

// flush writes what all recordings have.
func (r *dispatcher) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.recordings {
		t.flush(r.now())
	}
}

// attach begins a recording: with what is open now.
func (r *dispatcher) attach(fs *FS, t *Recording) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.state != nil {
		return errors.New("attach a recording: it is attached already")
	}
	s := &attached{Recording: t, digest: digest.New(t.Content), known: map[uint32]version{},
		told: map[uint32]bool{}}
	t.state = s
	now := r.now()
	s.put(fs.self.record(now))
	s.describe(&fs.self, now)
	s.known[fs.self.tid] = fs.self.version
	s.put(&trace.Record{Type: trace.RecStart, PID: fs.self.pid, TID: fs.self.tid, Exit: now,
		Pieces: []trace.Piece{textPiece(fs.lowerPath)}})
	fs.files.each(func(h *handle) {
		var st unix.Stat_t
		if unix.Fstat(h.fd, &st) != nil {
			return
		}
		path, _ := fs.nodes.path(h.node)
		s.put(&trace.Record{
			Type: trace.RecFile, Flags: trace.FileOwn, PID: fs.self.pid, TID: fs.self.tid, Exit: now,
			Objects: []trace.Object{h.object(0, &st)}, Pieces: []trace.Piece{textPiece(fs.lowerName(path))},
		})
	})
	r.recordings = append(r.recordings, s)
	return nil
}

func textPiece(s string) trace.Piece { return trace.Piece{Len: uint32(len(s)), Data: []byte(s)} }

// detach ends a recording. The stream is its owner's again.
func (r *dispatcher) detach(t *Recording) Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := t.state
	if s == nil {
		return Counts{}
	}
	s.flush(r.now())
	t.state = nil
	for i, other := range r.recordings {
		if other == s {
			r.recordings = append(r.recordings[:i:i], r.recordings[i+1:]...)
			break
		}
	}
	return s.counts
}

// gone records that threads have ended, which is noticed late.
func (r *dispatcher) gone(ids []identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for _, t := range r.recordings {
		for i := range ids {
			if t.known[ids[i].tid].birth != ids[i].birth {
				continue
			}
			delete(t.known, ids[i].tid)
			delete(t.told, ids[i].tid)
			t.put(&trace.Record{Type: trace.RecExit, PID: ids[i].pid, TID: ids[i].tid, Exit: now})
		}
	}
}
