package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"iotape/event"
	"iotape/trace"
)

// runner is the execution of a tape's events.
type runner struct {
	planner *planner
	root    bool // may change owners and identities
	checks  Checks
	abort   bool // at the first difference
	plan    schedule
	timings timings
	arch    event.Arch
	uid     uint32
	procFD  int // /proc/self/fd

	mu      sync.Mutex
	cond    sync.Cond
	prefix  uint64       // tasks from the first on that are done
	done    [window]bool // by number modulo window, from prefix on
	report  *Report
	cwds    map[uint64]int // O_PATH descriptors of published working directories
	stopped error

	workers map[uint32]*worker
	live    sync.WaitGroup
	pool    sync.Pool
}

// run does all events of a tape in the present root directory.
func run(ctx context.Context, t *trace.Tape, procFD int, c *confined, progress func(done uint64)) (*Report, []madeFile, error) {
	r := &runner{
		root: unix.Geteuid() == 0, checks: c.Checks, abort: c.Abort, arch: tapeArch(t), uid: uint32(unix.Geteuid()),
		procFD: procFD,
		report: newReport(), cwds: map[uint64]int{}, workers: map[uint32]*worker{},
		pool: sync.Pool{New: func() any { return new(task) }},
	}
	r.cond.L = &r.mu
	r.plan.pace, r.plan.speed = c.Pace, c.Speed
	r.timings.schedule = &r.plan
	r.planner = newPlanner(t, r.root, newMadeUp(c.Made))
	err := r.feed(ctx, progress)
	for _, w := range r.workers {
		close(w.queue)
	}
	r.live.Wait()
	for _, fd := range r.cwds {
		unix.Close(fd)
	}
	if err == nil || err == errAborted {
		err = r.stopped
	}
	if err == errAborted {
		r.report.Aborted, err = true, nil
	}
	r.report.Timing = r.timings.timing()
	return r.report, r.planner.made.list(), err
}

// feed plans tasks and hands them to their workers.
func (r *runner) feed(ctx context.Context, progress func(uint64)) error {
	stop := context.AfterFunc(ctx, func() { r.stop(ctx.Err()) })
	defer stop()
	for {
		t := r.pool.Get().(*task)
		floor, err := r.room(r.planner.n)
		if err != nil {
			return err
		}
		if err := r.planner.next(t, floor); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		r.report.count(t)
		if t.n == 0 {
			r.plan.first, r.plan.start = t.ev.Enter, clock()
		}
		w := r.workers[t.ev.TID]
		if w == nil {
			w = &worker{runner: r, tid: t.ev.TID, queue: make(chan *task, 256), pacer: pacer{schedule: &r.plan}, umask: ^uint32(0), uid: ^uint32(0), gid: ^uint32(0)}
			r.workers[t.ev.TID] = w
			r.live.Add(1)
			go w.loop()
		}
		exited, n := t.exited, t.n
		w.queue <- t
		if exited {
			close(w.queue)
			delete(r.workers, w.tid)
		}
		if progress != nil && n%1024 == 0 {
			progress(n)
		}
	}
}

// room waits until task n fits into the window, and returns how many are done.
func (r *runner) room(n uint64) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.stopped == nil && n >= r.prefix+window {
		r.cond.Wait()
	}
	return r.prefix, r.stopped
}

// wait blocks until the first need tasks are done.
func (r *runner) wait(need uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.prefix < need && r.stopped == nil {
		r.cond.Wait()
	}
	return r.stopped == nil
}

func (r *runner) finish(n uint64) {
	r.mu.Lock()
	r.done[n%window] = true
	advanced := false
	for r.done[r.prefix%window] {
		r.done[r.prefix%window] = false
		r.prefix++
		advanced = true
	}
	r.mu.Unlock()
	if advanced {
		r.cond.Broadcast()
	}
}

// errAborted stops a replay at its first difference.
var errAborted = errors.New("a result differs")

func (r *runner) stop(err error) {
	r.mu.Lock()
	if r.stopped == nil {
		r.stopped = err
	}
	r.mu.Unlock()
	r.plan.halted.Store(true)
	r.cond.Broadcast()
}

// worker does the tasks of one node, on a thread of its own: working directory,
// umask and identity belong to threads here.
type worker struct {
	*runner
	tid   uint32
	queue chan *task

	cwd     uint64
	umask   uint32
	uid     uint32
	gid     uint32
	pacer   pacer
	scratch []byte // page-aligned, for O_DIRECT
	iov     []unix.Iovec
	strings [event.MaxArgs][]byte
	small   [event.MaxArgs][256]byte
}

func (w *worker) loop() {
	defer w.live.Done()
	// Not unlocked: the thread's file-system state is its own and ends with it.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		w.stop(fmt.Errorf("separate a thread's working directory: %w", err))
	}
	if w.plan.pace == PaceRecorded {
		// Sleeps that end when they should (prctl(2)).
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	}
	for t := range w.queue {
		w.pacer.before(t)
		if w.wait(t.need) {
			w.pacer.starts(t)
			w.do(t)
			w.pacer.finished(t)
		}
		n := t.n
		w.pool.Put(t)
		w.finish(n)
	}
	if w.scratch != nil {
		unix.Munmap(w.scratch)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pacer.report(&w.timings)
}

// do performs a task and closes what it ends.
func (w *worker) do(t *task) {
	switch t.action {
	case call:
		w.call(t)
	case copyIn:
		w.copyIn(t)
	case copyOut:
		w.copyOut(t)
	case clone:
		w.clone(t)
	case openOwn:
		w.openOwn(t)
	case enterDir:
		dir := t.ev.Paths[0].Abs
		if err := unix.Chdir(dir); err != nil {
			w.mismatch(t, "working directory", dir, err.Error())
		}
		w.cwd = t.setsCwd
	}
	if t.setsCwd != 0 && t.action == call {
		w.cwd = t.setsCwd
	}
	if t.publish {
		w.publish(t)
	}
	for _, h := range t.closes {
		if h.fd >= 0 {
			unix.Close(h.fd)
			h.fd = -1
		}
	}
}

// publish opens the thread's working directory for those that will share it.
func (w *worker) publish(t *task) {
	id := t.setsCwd
	if id == 0 {
		id = t.cwd
		if !w.enter(id) {
			return
		}
	}
	fd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // what needs it will say so
	}
	w.mu.Lock()
	w.cwds[id] = fd
	w.mu.Unlock()
}

// enter goes to a published working directory.
func (w *worker) enter(id uint64) bool {
	if w.cwd == id {
		return true
	}
	w.mu.Lock()
	fd, ok := w.cwds[id]
	w.mu.Unlock()
	if !ok || unix.Fchdir(fd) != nil {
		return false
	}
	w.cwd = id
	return true
}

// become takes on what the recorded thread was at the call.
func (w *worker) become(t *task) {
	if t.umask != w.umask {
		unix.Umask(int(t.umask))
		w.umask = t.umask
	}
	if !w.root || t.ev.UID == w.uid && t.ev.GID == w.gid {
		return
	}
	// The group first: without root's identity it could not be changed.
	if w.uid != 0 && w.uid != ^uint32(0) {
		setfsid(unix.SYS_SETFSUID, 0)
	}
	setfsid(unix.SYS_SETFSGID, t.ev.GID)
	setfsid(unix.SYS_SETFSUID, t.ev.UID)
	w.uid, w.gid = t.ev.UID, t.ev.GID
}

// setfsid changes one thread's identity for file access; the kernel reports no
// errors here (setfsuid(2)).
func setfsid(trap uintptr, id uint32) {
	_, _, _ = unix.RawSyscall(trap, uintptr(id), 0, 0)
}

// buffer returns page-aligned scratch memory of at least n bytes.
func (w *worker) buffer(n int) []byte {
	if n > len(w.scratch) {
		if w.scratch != nil {
			unix.Munmap(w.scratch)
		}
		size := max(64<<10, (n+0xffff)&^0xffff)
		m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			w.scratch = nil
			return make([]byte, n)
		}
		w.scratch = m
	}
	return w.scratch[:n]
}
