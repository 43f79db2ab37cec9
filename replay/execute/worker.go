// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/asyncio"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/replay/schedule"
	"github.com/iotape/iotape/replay/verify"
)

// environment is what all workers of a replay share.
type environment struct {
	root   bool // may change owners and identities
	single bool // one worker makes the calls of all threads
	// privileged says that set-id bits, capabilities and device numbers are made.
	privileged bool
	leftOff    leftOff
	native     options.Native
	checks     options.Checks
	// procFD, namesFD, ruleset and bare are as in inside.
	procFD  int
	namesFD int
	ruleset int
	bare    bool
	space   space
	check   *verify.Checker
	log     *result.Log
	dirs    directories
	fifos   atomic.Bool // there may be FIFOs in the target
	// lockRaces are the files (effect.Inode) of which a lock could not be had that had been
	// granted: what follows on them is not explained.
	lockRaces sync.Map
	stop      func(error) // stops the replay
	halted    func() bool // reports whether it was stopped
}

// worker does the steps of one queue, on a thread of its own: working directory, umask and
// identity belong to threads here.
type worker struct {
	env      *environment
	consumer *schedule.Consumer
	pacer    *schedule.Pacer // of the consumer
	tally    result.Tally
	untimed  int   // plain steps since the last one that was timed
	unlooked int64 // bytes that were written since it looked for space

	cwd   uint64
	umask uint32
	uid   uint32
	gid   uint32
	// asRoot says that it has root's capabilities, as another user perhaps.
	asRoot bool
	back   int // where redirectPaths left; see restoreDirectory

	scratch []byte // page-aligned, for O_DIRECT
	zeros   []byte // page-aligned, never written to
	iov     []unix.Iovec
	ring    *asyncio.Ring
	aio     *asyncio.AIO
	strings [event.MaxArgs][]byte
	small   [event.MaxArgs][256]byte
}

func newWorker(env *environment, c *schedule.Consumer) *worker {
	const none = ^uint32(0)
	return &worker{
		env: env, consumer: c, pacer: &c.Pacer, untimed: sampled, back: -1, umask: none, uid: none, gid: none,
	}
}

// close gives back what the worker has.
func (w *worker) close() {
	if w.ring != nil {
		w.ring.Close()
	}
	if w.aio != nil {
		w.aio.Close()
	}
	for _, m := range [...][]byte{w.scratch, w.zeros} {
		if m != nil {
			unix.Munmap(m)
		}
	}
}

// step does one step.
func (w *worker) step(s *plan.Step, b *schedule.Batch) {
	if s.Kind == plan.StepTask {
		w.task(s.Task)
	} else {
		w.plainStep(s, b)
	}
}

// task does what is more than a plain step.
func (w *worker) task(t *plan.Task) {
	switch {
	case !w.reserve(takes(t)) || mayMakeFile(t) && !w.reserveFile():
	case t.MakesCall():
		from := w.pacer.BeginCall()
		w.do(t)
		w.tally.Replayed(t.Op, t.Bytes(), from, w.pacer.Returned())
	default: // it makes no recorded call
		w.do(t)
		if w.pacer.Paced() {
			w.pacer.EndStep()
		}
	}
	w.consumer.Recycle(t)
}

// do performs a task and closes what it ends.
func (w *worker) do(t *plan.Task) {
	if t.Dir.Sets != 0 && w.cwd != t.Cwd {
		w.keepDirectory()
	}
	w.act(t)
	if t.Dir.Sets != 0 && t.Action == plan.MakeCall {
		w.cwd = t.Dir.Sets
	}
	if t.Dir.Publish {
		w.publishDirectory(t)
	}
	for _, o := range t.Locks.Ends {
		closeFD(&o.FD)
	}
	for _, h := range t.Files.Closes {
		closeFD(&h.FD)
	}
}

// closeFD closes a descriptor, if it is open.
func closeFD(fd *int) {
	if *fd >= 0 {
		unix.Close(*fd)
		*fd = -1
	}
}

// act performs a task's action.
func (w *worker) act(t *plan.Task) {
	switch t.Action {
	case plan.MakeCall:
		w.call(t)
	case plan.CopyIn:
		w.copyIn(t)
	case plan.CopyOut:
		w.copyOut(t)
	case plan.CloneRange:
		w.clone(t)
	case plan.DedupeRange:
		w.dedupe(t)
	case plan.OpenAtStart:
		w.openAtStart(t)
	case plan.SyncMapped:
		w.syncMapping(t)
	case plan.LockFile:
		w.flock(t)
	case plan.LockRange:
		w.lockRange(t)
	case plan.NameSocket:
		w.nameSocket(t)
	case plan.EnterDir:
		dir := t.Event.Paths[0].Abs
		if err := unix.Chdir(dir); err != nil {
			w.env.check.Mismatch(t, "working directory", dir, err.Error())
		}
		w.cwd = t.Dir.Sets
	}
}

// lacks notes once what the machine lacks, and what is done about it.
func (w *worker) lacks(err error, instead string) {
	w.env.check.Problem(fmt.Sprintf("%v: %s", err, instead))
}

// applyCredentials gives the thread the umask and identity that the recorded one had at the call.
func (w *worker) applyCredentials(t *plan.Task) {
	if t.Umask != w.umask {
		unix.Umask(int(t.Umask))
		w.umask = t.Umask
	}
	if !w.env.root || t.Event.UID == w.uid && t.Event.GID == w.gid && t.Root == w.asRoot {
		return
	}
	// The group first: without root's identity it could not be changed.
	if w.uid != 0 && w.uid != ^uint32(0) {
		setfsid(unix.SYS_SETFSUID, 0)
	}
	setfsid(unix.SYS_SETFSGID, t.Event.GID)
	if w.asRoot && !t.Root {
		setfsid(unix.SYS_SETFSUID, 0) // the way from root to another user takes capabilities away
	}
	setfsid(unix.SYS_SETFSUID, t.Event.UID)
	if t.Root && t.Event.UID != 0 {
		raise()
	}
	w.uid, w.gid, w.asRoot = t.Event.UID, t.Event.GID, t.Root
}

// setfsid changes one thread's identity for file access; the kernel reports no
// errors here (setfsuid(2)).
func setfsid(trap uintptr, id uint32) {
	_, _, _ = unix.RawSyscall(trap, uintptr(id), 0, 0)
}

// buffer returns page-aligned scratch memory of at least n bytes.
func (w *worker) buffer(n int) []byte { return grow(&w.scratch, n) }

// zeroBuffer returns n zero bytes, page-aligned.
func (w *worker) zeroBuffer(n int) []byte { return grow(&w.zeros, n) }

// grow makes page-aligned memory at least n bytes large.
func grow(m *[]byte, n int) []byte {
	if n > len(*m) {
		if *m != nil {
			unix.Munmap(*m)
		}
		size := max(64<<10, (n+0xffff)&^0xffff)
		const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
		var err error
		if *m, err = unix.Mmap(-1, 0, size, prot, flags); err != nil {
			*m = nil
			return make([]byte, n)
		}
	}
	return (*m)[:n]
}
