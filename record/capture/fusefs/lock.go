// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"encoding/binary"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// locks are those of an open file. They are taken on the lower file, so those who use it without the mount see them:
// flock's by the open file of the handle, POSIX locks by an open file for each owner
// (fcntl(2), "Open file description locks"), which has what a process's locks have: they
// merge, they split, and all go at once.
//
// The kernel cannot be told to wait for one lock and be woken for another reason, so a
// waiter asks again: when a lock of the same file was given back here, and now and then
// for those who do not come through the mount.
type locks struct {
	mu     sync.Mutex
	owners map[uint64]*lockOwner
	given  chan struct{} // closed when a lock is given back
}

type lockOwner struct {
	fd  int
	pid uint32
}

const (
	askAgainFirst = time.Millisecond
	askAgainLast  = 50 * time.Millisecond
)

// back wakes those who wait for a lock.
func (l *locks) back() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given != nil {
		close(l.given)
		l.given = nil
	}
}

// wait returns a channel that is closed when a lock is given back.
func (l *locks) wait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given == nil {
		l.given = make(chan struct{})
	}
	return l.given
}

func (l *locks) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.owners {
		unix.Close(o.fd)
	}
	l.owners = nil
}

// do calls a function, which must not wait, with the open file of a lock's owner, which is
// made if there is none.
func (l *locks) do(fs *FS, h *handle, in *fuse.LkIn, call func(fd uintptr) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[in.Owner]
	if o == nil {
		fd, err := fs.reopen(h.node.fd, unix.O_RDWR)
		if err != nil { // a program that runs, or the mount of an ordinary user
			fd, err = fs.reopen(h.node.fd, int(h.flags.Load()&unix.O_ACCMODE))
		}
		if err != nil {
			return err
		}
		if l.owners == nil {
			l.owners = map[uint64]*lockOwner{}
		}
		o = &lockOwner{fd: fd, pid: in.Lk.Pid}
		l.owners[in.Owner] = o
	}
	return retry(func() error { return call(uintptr(o.fd)) })
}

// pid returns the process that holds a POSIX lock that conflicts with one, as far as it
// was taken through the mount; 0 otherwise, and without a lock.
func (l *locks) pid(not uint64, lk *unix.Flock_t) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for owner, o := range l.owners {
		if owner == not {
			continue
		}
		// A lock of the owner's own never conflicts: so it conflicts without him only if
		// it is another's. Asked with his open file, the answer "none" names him.
		probe := *lk
		probe.Pid = 0
		if unix.FcntlFlock(uintptr(o.fd), unix.F_OFD_GETLK, &probe) == nil && probe.Type == unix.F_UNLCK {
			return o.pid
		}
	}
	return 0
}

// unlockOwner gives back an owner's POSIX locks: he closed a descriptor of the file.
func (fs *FS) unlockOwner(n *node, owner uint64) {
	n.locks.mu.Lock()
	o := n.locks.owners[owner]
	delete(n.locks.owners, owner)
	n.locks.mu.Unlock()
	if o != nil {
		unix.Close(o.fd)
		n.locks.back()
	}
}

// GetLk asks who has a lock.
func (fs *FS) GetLk(_ <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	h := fs.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	c := fs.begin(&in.InHeader, event.OpFcntl)
	lk := flockOf(&in.Lk)
	errno := errnoOf(h.node.locks.do(fs, h, in,
		func(fd uintptr) error { return unix.FcntlFlock(fd, unix.F_OFD_GETLK, &lk) }))
	if errno == 0 {
		if lk.Type == unix.F_UNLCK {
			out.Lk = in.Lk
			out.Lk.Typ = unix.F_UNLCK
		} else {
			if lk.Pid <= 0 {
				want := flockOf(&in.Lk)
				lk.Pid = int32(h.node.locks.pid(in.Owner, &want))
			}
			out.Lk = fuse.FileLock{Typ: uint32(lk.Type), Pid: uint32(max(lk.Pid, 0)), Start: uint64(lk.Start),
				End: endOf(&lk)}
		}
	}
	c.lock(h, unix.F_GETLK, &lk, errno)
	return status(errno)
}

// SetLk takes or gives back a lock, without waiting.
func (fs *FS) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return fs.setLock(cancel, in, false)
}

// SetLkw is SetLk that waits.
func (fs *FS) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return fs.setLock(cancel, in, true)
}

func (fs *FS) setLock(cancel <-chan struct{}, in *fuse.LkIn, wait bool) fuse.Status {
	h := fs.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	if in.LkFlags&fuse.LK_FLOCK != 0 {
		how := map[uint32]int{unix.F_RDLCK: unix.LOCK_SH, unix.F_WRLCK: unix.LOCK_EX,
			unix.F_UNLCK: unix.LOCK_UN}[in.Lk.Typ]
		c := fs.begin(&in.InHeader, event.OpFlock)
		errno := h.node.locks.take(cancel, func() error { return unix.Flock(h.fd, how|unix.LOCK_NB) }, wait)
		c.file(0, h)
		c.arg(1, uint64(how))
		if !wait && how != unix.LOCK_UN {
			c.arg(1, uint64(how|unix.LOCK_NB))
		}
		c.done(0, errno)
		fs.gaveBack(in, h, errno)
		return status(errno)
	}
	c := fs.begin(&in.InHeader, event.OpFcntl)
	lk := flockOf(&in.Lk)
	errno := h.node.locks.take(cancel, func() error {
		return h.node.locks.do(fs, h, in,
			func(fd uintptr) error { lk := lk; return unix.FcntlFlock(fd, unix.F_OFD_SETLK, &lk) })
	}, wait)
	cmd := unix.F_SETLK
	if wait {
		cmd = unix.F_SETLKW
	}
	c.lock(h, cmd, &lk, errno)
	fs.gaveBack(in, h, errno)
	return status(errno)
}

// gaveBack wakes waiters after a lock was given back, or made weaker.
func (fs *FS) gaveBack(in *fuse.LkIn, h *handle, errno syscall.Errno) {
	if errno == 0 && in.Lk.Typ != unix.F_WRLCK {
		h.node.locks.back()
	}
}

// take tries until it gets the lock, or the caller gets a signal.
func (l *locks) take(cancel <-chan struct{}, try func() error, wait bool) syscall.Errno {
	for pause := askAgainFirst; ; pause = min(2*pause, askAgainLast) {
		given := l.wait()
		errno := errnoOf(try())
		if !wait || errno != unix.EAGAIN && errno != unix.EACCES {
			return errno
		}
		timer := time.NewTimer(pause)
		select {
		case <-cancel:
			timer.Stop()
			return unix.EINTR
		case <-given:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// flockOf is a request's lock as a system call has it.
func flockOf(lk *fuse.FileLock) unix.Flock_t {
	f := unix.Flock_t{Type: int16(lk.Typ), Whence: unix.SEEK_SET, Start: int64(lk.Start)}
	const toEnd = 1<<63 - 1
	if lk.End != toEnd {
		f.Len = int64(lk.End - lk.Start + 1)
	}
	return f
}

func endOf(f *unix.Flock_t) uint64 {
	if f.Len == 0 {
		return 1<<63 - 1
	}
	return uint64(f.Start + f.Len - 1)
}

// lock records an fcntl on locks.
func (c *call) lock(h *handle, cmd int, lk *unix.Flock_t, errno syscall.Errno) {
	le := binary.NativeEndian
	b := c.mem[:32]
	clear(b)
	le.PutUint16(b, uint16(lk.Type))
	le.PutUint16(b[2:], uint16(lk.Whence))
	le.PutUint64(b[8:], uint64(lk.Start))
	le.PutUint64(b[16:], uint64(lk.Len))
	le.PutUint32(b[24:], uint32(lk.Pid))
	c.file(0, h)
	c.arg(1, uint64(cmd))
	c.bytes(2, b)
	c.done(0, errno)
}
