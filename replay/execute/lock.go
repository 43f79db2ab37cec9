// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
)

// Types of locks (asm-generic/fcntl.h).
const lockRead, lockWrite, lockNone = 0, 1, 2

// lockPatience is how long a worker waits for a lock that was granted in the recording. The
// linear order has the release of a lock before the call that got it next, if an order
// explains that. If none does, or if locks were taken that are not modelled (SEEK_END), it
// may be released in a moment; if not, the call goes on without the lock, and is counted.
const lockPatience = 2 * time.Millisecond

// tryLock repeats an attempt that found the lock taken, if it had been granted.
func (w *worker) tryLock(t *plan.Task, attempt func() error) error {
	for end := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Microsecond) {
		err := attempt()
		if err != unix.EAGAIN && err != unix.EACCES || !t.Event.OK() || time.Now().After(end) || w.env.halted() ||
			w.env.single {
			return err
		}
	}
}

// flock takes or gives back a lock on an open file.
func (w *worker) flock(t *plan.Task) {
	how := int(t.Event.Args[1]) | unix.LOCK_NB
	w.checkLock(t, w.tryLock(t, func() error { return unix.Flock(int(w.descriptor(t, 0)), how) }))
}

// lockRange is fcntl with a lock.
func (w *worker) lockRange(t *plan.Task) {
	var l unix.Flock_t
	b := t.Event.BufArg(2).Inline
	if len(b) < 32 {
		return
	}
	le := binary.LittleEndian
	l.Type, l.Whence = int16(le.Uint16(b)), int16(le.Uint16(b[2:]))
	l.Start, l.Len = int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))
	fd := int(w.descriptor(t, 0))
	if t.Locks.Owner != nil {
		if l.Whence == unix.SEEK_CUR { // of the program's own descriptor
			l.Whence, l.Start = unix.SEEK_SET, l.Start+t.Event.FileArg(0).Pos
		}
		if fd = w.owned(t, fd, l.Type); fd < 0 {
			return
		}
	}
	if plan.AsksForLock(t.Event.Args[1]) {
		// The query was overwritten with the answer: any lock that conflicts is
		// as good, and that there is none is known by asking for a lock on all.
		if l.Type != lockNone && t.Event.OK() {
			want := l.Type
			l.Type, l.Pid = lockWrite, 0
			if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l); err == nil && l.Type == lockNone {
				w.env.check.Mismatch(t, "lock", lockName(want), lockName(l.Type))
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
func (w *worker) owned(t *plan.Task, fd int, typ int16) int {
	o := t.Locks.Owner
	if o.FD >= 0 {
		return o.FD
	}
	if typ == lockNone {
		return -1 // nothing is locked
	}
	var err error
	for _, mode := range [...]int{unix.O_RDWR, unix.O_RDONLY, unix.O_WRONLY} {
		if o.FD, err = unix.Openat(w.env.procFD, strconv.Itoa(fd), mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			return o.FD
		}
	}
	w.env.check.Mismatch(t, "lock", "taken", fmt.Sprintf("the file cannot be opened again: %v", err))
	return -1
}

func (w *worker) checkLock(t *plan.Task, err error) {
	runtime.KeepAlive(t)
	want := t.Event.Errno
	if want == syscall.EACCES {
		want = syscall.EAGAIN // either is said of a lock that is taken
	}
	got, _ := err.(syscall.Errno)
	f := t.Event.FileArg(0)
	_, doubt := w.env.lockRaces.Load(effect.InodeOf(f))
	if got == syscall.EAGAIN && want == 0 {
		w.env.lockRaces.Store(effect.InodeOf(f), true)
		doubt = true
	}
	if doubt && got != want {
		w.env.check.Unexplained()
		return
	}
	if got == syscall.EACCES {
		got = syscall.EAGAIN
	}
	if got != want && (w.env.checks&options.CheckReturns != 0 || (got == 0) != (want == 0)) {
		w.env.check.Mismatch(t, "errno", result.ErrorName(t.Event.Errno), result.ErrorName(err))
	}
}
