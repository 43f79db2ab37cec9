// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// actors are threads that make files as their callers would: owned by them, with the
// group of a set-group-ID directory, masked with their umask unless a default ACL says
// what to mask with. All that is the lower file system's decision; it is only told who
// asks. Whether the caller may make the file was the kernel's decision before.
//
// These attributes belong to threads, and a thread that has changed its umask shares it
// with no other from then on: so the threads are kept for this.
type actors struct {
	jobs chan *job
	mu   sync.Mutex
	n    int
	root bool // the callers' ids can be taken on
}

// maxActors bounds the threads; more callers than that wait.
const maxActors = 16

type job struct {
	uid, gid uint32
	umask    uint32
	do       func()
	done     chan struct{}
}

func newActors() *actors {
	return &actors{jobs: make(chan *job), root: os.Geteuid() == 0}
}

// as calls a function in a thread that has a caller's file-system ids and umask.
func (a *actors) as(uid, gid, umask uint32, do func()) {
	j := &job{uid: uid, gid: gid, umask: umask & 0o777, do: do, done: make(chan struct{})}
	select {
	case a.jobs <- j:
	default:
		a.mu.Lock()
		if a.n < maxActors {
			a.n++
			go a.act()
		}
		a.mu.Unlock()
		a.jobs <- j
	}
	<-j.done
}

func (a *actors) act() {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	_ = unix.Unshare(unix.CLONE_FS)
	var uid, gid uint32
	full := capabilities()
	for j := range a.jobs {
		if a.root && gid != j.gid {
			_, _, _ = syscall.RawSyscall(unix.SYS_SETFSGID, uintptr(j.gid), 0, 0)
			gid = j.gid
		}
		if a.root && uid != j.uid {
			_, _, _ = syscall.RawSyscall(unix.SYS_SETFSUID, uintptr(j.uid), 0, 0)
			uid = j.uid
			// Leaving 0 took away the right to act on other users' files, which the
			// caller may have had by a group or a capability of its own.
			full.restore()
		}
		unix.Umask(int(j.umask))
		j.do()
		close(j.done)
	}
}

func (a *actors) close() { close(a.jobs) }

// capset is a thread's capabilities.
type capset struct{ data [2]unix.CapUserData }

func capabilities() *capset {
	var c capset
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if unix.Capget(&h, &c.data[0]) != nil {
		return nil
	}
	return &c
}

func (c *capset) restore() {
	if c != nil {
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		_ = unix.Capset(&h, &c.data[0])
	}
}
