package replay

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/order"
)

// Locks of fcntl belong to a process and a file, and a replay is one process. Each
// process of the recording that locks a file therefore gets an open file of its own for
// that, and its locks are locks of that open file (F_OFD_SETLK, fcntl(2)): these
// conflict with others' as the process's did. They go when the process loses any
// descriptor of the file, however that is (eventsource.State.Closed).

// owner is a process's locks on a file.
type owner struct {
	fd    int // -1 until the first lock
	users []order.Ref
}

type ownerKey struct {
	pid  uint32
	file effect.Inode
}

// fcntl commands (asm-generic/fcntl.h).
const (
	fGetLk, fSetLk, fSetLkw          = 5, 6, 7
	fOFDGetLk, fOFDSetLk, fOFDSetLkw = 36, 37, 38
	lockRead, lockWrite, lockNone    = 0, 1, 2 // l_type
)

// isLock reports whether an fcntl is about locks on ranges.
func isLock(ev *event.Event) bool {
	switch ev.Args[1] {
	case fGetLk, fSetLk, fSetLkw, fOFDGetLk, fOFDSetLk, fOFDSetLkw:
		return ev.Op == event.OpFcntl
	}
	return false
}

// planLock plans a lock of fcntl.
func (p *planner) planLock(t *task) {
	f := t.ev.FileArg(0)
	if t.fds[0] == nil || t.ev.BufArg(2) == nil || f == nil || !f.Known {
		return
	}
	t.action = lockRange
	if t.ev.Args[1] >= fOFDGetLk {
		return
	}
	k := ownerKey{t.ev.PID, effect.InodeOf(f)}
	if p.owners[k] == nil {
		p.owners[k] = &owner{fd: -1}
	}
	t.owner = p.owners[k]
}

// unlocks finds which locks an event ends.
func (p *planner) unlocks(t *task) {
	if len(p.owners) == 0 {
		return
	}
	for _, file := range t.Closed {
		k := ownerKey{t.ev.PID, file}
		if o := p.owners[k]; o != nil {
			t.unlock = append(t.unlock, o)
			delete(p.owners, k)
		}
	}
}

// lockPatience is how long a lock is waited for that was granted in the recording. The
// linear order has whoever gave it back before whoever got it, wherever an order explains
// that. Where none does, or where locks were taken that are not followed (SEEK_END), it may
// be given back in a moment; if not, the call goes without the lock, and is counted.
const lockPatience = 2 * time.Millisecond

// tryLock repeats an attempt that found the lock taken, if it had been granted.
func (w *worker) tryLock(t *task, attempt func() error) error {
	for end := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Microsecond) {
		err := attempt()
		if err != unix.EAGAIN && err != unix.EACCES || !t.ev.OK() || time.Now().After(end) || w.halted.Load() || w.planner.order.Mode() == order.Recorded {
			return err
		}
	}
}

// flock takes or gives back a lock on an open file.
func (w *worker) flock(t *task) {
	how := int(t.ev.Args[1]) | unix.LOCK_NB
	w.checkLock(t, w.tryLock(t, func() error { return unix.Flock(int(w.descriptor(t, 0)), how) }))
}

// lockRange is fcntl with a lock.
func (w *worker) lockRange(t *task) {
	var l unix.Flock_t
	b := t.ev.BufArg(2).Inline
	if len(b) < 32 {
		return
	}
	le := binary.LittleEndian
	l.Type, l.Whence = int16(le.Uint16(b)), int16(le.Uint16(b[2:]))
	l.Start, l.Len = int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))
	fd := int(w.descriptor(t, 0))
	if t.owner != nil {
		if l.Whence == unix.SEEK_CUR { // of the program's own descriptor
			l.Whence, l.Start = unix.SEEK_SET, l.Start+t.ev.FileArg(0).Pos
		}
		if fd = w.owned(t, fd, l.Type); fd < 0 {
			return
		}
	}
	if cmd := t.ev.Args[1]; cmd == fGetLk || cmd == fOFDGetLk {
		// What was asked for was overwritten with the answer: any lock that conflicts is
		// as good, and that there is none is known by asking for a lock on all.
		if l.Type != lockNone && t.ev.OK() {
			want := l.Type
			l.Type, l.Pid = lockWrite, 0
			if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l); err == nil && l.Type == lockNone {
				w.mismatch(t, "lock", lockName(want), lockName(l.Type))
			}
		}
		return
	}
	w.checkLock(t, w.tryLock(t, func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &l) }))
}

func lockName(typ int16) string {
	switch typ {
	case lockRead:
		return "F_RDLCK"
	case lockWrite:
		return "F_WRLCK"
	case lockNone:
		return "F_UNLCK"
	}
	return strconv.Itoa(int(typ))
}

// owned returns the descriptor that a process's locks on a file belong to.
func (w *worker) owned(t *task, fd int, typ int16) int {
	o := t.owner
	if o.fd >= 0 {
		return o.fd
	}
	if typ == lockNone {
		return -1 // nothing is locked
	}
	var err error
	for _, mode := range [...]int{unix.O_RDWR, unix.O_RDONLY, unix.O_WRONLY} {
		if o.fd, err = unix.Openat(w.procFD, strconv.Itoa(fd), mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			return o.fd
		}
	}
	w.mismatch(t, "lock", "taken", fmt.Sprintf("the file cannot be opened again: %v", err))
	return -1
}

func (w *worker) checkLock(t *task, err error) {
	runtime.KeepAlive(t)
	want := t.ev.Errno
	if want == syscall.EACCES {
		want = syscall.EAGAIN // either is said of a lock that is taken
	}
	got, _ := err.(syscall.Errno)
	f := t.ev.FileArg(0)
	_, doubt := w.lockDoubts.Load(effect.InodeOf(f))
	if got == syscall.EAGAIN && want == 0 {
		w.lockDoubts.Store(effect.InodeOf(f), true)
		doubt = true
	}
	if doubt && got != want {
		w.doubted()
		return
	}
	if got == syscall.EACCES {
		got = syscall.EAGAIN
	}
	if got != want && (w.checks&CheckReturns != 0 || (got == 0) != (want == 0)) {
		w.mismatch(t, "errno", errName(t.ev.Errno), errName(err))
	}
}

// release ends locks.
func (o *owner) release() {
	if o.fd >= 0 {
		unix.Close(o.fd)
		o.fd = -1
	}
}
