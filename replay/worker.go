package replay

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/replay/queue"
)

// worker does the tasks of one lane, on a thread of its own: working directory, umask
// and identity belong to threads here.
type worker struct {
	*runner
	lane *lane
	bunk *bunk

	cwd     uint64
	umask   uint32
	uid     uint32
	gid     uint32
	pacer   pacer
	tally   tally
	back    int    // where goThrough left; see goBack
	scratch []byte // page-aligned, for O_DIRECT
	zeros   []byte // page-aligned, never written to
	iov     []unix.Iovec
	ring    *queue.Ring
	aio     *queue.AIO
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
	if w.plan.pace != PaceAFAP {
		sleepExactly()
	}
	w.pacer.schedule, w.pacer.clocks = &w.plan, threadClocks
	<-w.begin
	pos := uint64(0)
	for {
		b := w.lane.take(&w.stock)
		if b.last {
			break
		}
		deps := b.deps
		for i := range b.steps {
			pos++
			s := &b.steps[i]
			if w.plan.pace != PaceAFAP {
				w.pacer.when = b.whens[i]
			}
			w.step(s, b, deps[:s.deps])
			deps = deps[s.deps:]
			if w.plan.pace != PaceAFAP {
				if at := w.pacer.when.at; at != nil {
					at.Store(w.pacer.done)
				}
			}
			w.lane.finish(pos)
			if pos >= w.lane.wants.next.Load() {
				w.lane.tell(w.link, pos)
			}
		}
		if w.pacer.calls > 0 {
			w.pacer.end = clock()
		}
		w.stock.release(b)
	}
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runner.tally.merge(&w.tally, &w.pacer)
}

// step does one step, when it is due and all is done that it waits for.
func (w *worker) step(s *step, b *batch, deps []dep) {
	if w.plan.pace != PaceAFAP {
		w.pacer.before(s)
	}
	for _, d := range deps {
		if d.lane.done.Load() < d.pos {
			d.lane.await(d.pos, w.bunk, &w.halted)
		}
		if d.lag > 0 && w.plan.pace == PaceThink {
			w.plan.until(d.at.Load() + int64(float64(d.lag)/w.plan.speed))
		}
	}
	if sleep := w.pacer.when.sleep; sleep > 0 && w.plan.pace == PaceThink {
		w.plan.until(clock() + int64(float64(sleep)/w.plan.speed))
	}
	switch {
	case w.halted.Load():
		if s.task != nil {
			w.recycle(s.task)
		}
	case s.kind == stepTask:
		w.task(s)
	default:
		w.plain(s, b)
	}
}

// task does what is more than a plain step.
func (w *worker) task(s *step) {
	t := s.task
	made := t.action != emulate && t.ev.Kind == event.Call // not what it begins with
	var from int64
	if made {
		from = w.pacer.starts()
		w.pacer.returned = 0
	}
	w.do(t)
	if made {
		if w.pacer.returned == 0 { // it was more than one call
			w.pacer.finished()
		}
		w.tally.replayed(t.op, t.bytes(), from, w.pacer.returned)
	} else if w.plan.pace != PaceAFAP {
		w.pacer.computes()
	}
	w.recycle(t)
}

// recycle keeps a task for another event, without the memory of a large one.
func (r *runner) recycle(t *task) {
	if cap(t.data)+cap(t.want) > 1<<20 {
		t.data, t.want = nil, nil
	}
	r.tasks.Put(t)
}

// do performs a task and closes what it ends.
func (w *worker) do(t *task) {
	if t.setsDir != 0 && w.cwd != t.Cwd {
		w.keep()
	}
	switch t.action {
	case call:
		w.call(t)
	case copyIn:
		w.copyIn(t)
	case copyOut:
		w.copyOut(t)
	case clone:
		w.clone(t)
	case dedupe:
		w.dedupe(t)
	case openAtStart:
		w.openAtStart(t)
	case syncMapped:
		w.syncMapping(t)
	case lockFile:
		w.flock(t)
	case lockRange:
		w.lockRange(t)
	case nameSocket:
		w.nameSocket(t)
	case enterDir:
		dir := t.ev.Paths[0].Abs
		if err := unix.Chdir(dir); err != nil {
			w.mismatch(t, "working directory", dir, err.Error())
		}
		w.cwd = t.setsDir
	}
	if t.setsDir != 0 && t.action == call {
		w.cwd = t.setsDir
	}
	if t.publish {
		w.publish(t)
	}
	for _, o := range t.unlock {
		o.release()
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
	id := t.setsDir
	if id == 0 {
		id = t.dir
		if !w.enter(id) {
			return
		}
	}
	w.share(id)
}

// share lets all workers enter the worker's directory.
func (w *worker) share(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.cwds[id]; ok {
		return
	}
	if fd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil { // else what needs it will say so
		w.cwds[id] = fd
	}
}

// keep publishes the working directory before the worker leaves it, if it makes the calls
// of all threads: it is that of another one.
func (w *worker) keep() {
	if w.cwd != 0 && w.planner.order.Mode() == order.Recorded {
		w.share(w.cwd)
	}
}

// enter goes to a published working directory.
func (w *worker) enter(id uint64) bool {
	if w.cwd == id {
		return true
	}
	w.keep()
	w.mu.Lock()
	fd, ok := w.cwds[id]
	w.mu.Unlock()
	if ok {
		ok = unix.Fchdir(fd) == nil
	} else if dir, known := w.dirs.Load(id); known {
		ok = unix.Chdir(dir.(string)) == nil
	}
	if !ok {
		return false
	}
	w.cwd = id
	return true
}

// become takes on what the recorded thread was at the call.
func (w *worker) become(t *task) {
	if t.Umask != w.umask {
		unix.Umask(int(t.Umask))
		w.umask = t.Umask
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
func (w *worker) buffer(n int) []byte { return grow(&w.scratch, n) }

// nothing returns n zero bytes, page-aligned.
func (w *worker) nothing(n int) []byte { return grow(&w.zeros, n) }

// grow makes page-aligned memory at least n bytes large.
func grow(m *[]byte, n int) []byte {
	if n > len(*m) {
		if *m != nil {
			unix.Munmap(*m)
		}
		size := max(64<<10, (n+0xffff)&^0xffff)
		var err error
		if *m, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
			*m = nil
			return make([]byte, n)
		}
	}
	return (*m)[:n]
}
