// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/trace"
)

// identity is a thread as records name it.
type identity struct {
	pid, tid, ppid, pgid, sid, uid, gid uint32
	comm                                [16]byte
	version
}

func (k *identity) record(now uint64) *trace.Record {
	return &trace.Record{
		Type: trace.RecTask, PID: k.pid, TID: k.tid, Exit: now,
		PPID: k.ppid, PGID: k.pgid, SID: k.sid, UID: k.uid, GID: k.gid, Comm: k.comm,
	}
}

// callers are the threads that used the mount. A request has only the thread's number,
// which the kernel gives away again when the thread has ended; /proc/N/comm, kept open,
// belongs to the thread and not to the number: it cannot be read any more once the
// thread has ended, and it says when a program was executed. Identity is read when a
// thread is new, or has another name.
type callers struct {
	mu     sync.Mutex
	byTID  map[uint32]*caller
	births uint64
	sweep  int // size at which the dead are looked for
}

type caller struct {
	identity
	comm int // descriptor of its name
}

// leastSweep is how many threads are kept, and their descriptors, before the first look
// for dead ones.
const leastSweep = 128

// of returns the thread of a request. What cannot be seen (the kernel itself, another pid
// namespace) is the mount itself, with the request's user.
func (k *callers) of(self *identity, tid, uid, gid uint32) (who identity, dead []identity) {
	if tid == 0 {
		return *self, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.byTID[tid]
	if c != nil {
		var comm [16]byte
		switch n, err := unix.Pread(c.comm, comm[:], 0); {
		case err != nil || n == 0:
			unix.Close(c.comm)
			delete(k.byTID, tid)
			c = nil
		default:
			comm[n-1] = 0 // the newline
			if comm != c.identity.comm {
				c.read()
				c.identity.comm = comm
				c.task++
			}
		}
	}
	if c == nil {
		if c = k.meet(tid); c == nil {
			return *self, nil
		}
		if len(k.byTID) > max(k.sweep, leastSweep) {
			dead = k.bury()
		}
	}
	if c.uid != uid || c.gid != gid {
		c.uid, c.gid = uid, gid
		c.task++
	}
	return c.identity, dead
}

// meet takes a new thread, nil if it is not to be seen.
func (k *callers) meet(tid uint32) *caller {
	fd, err := unix.Open(procName(tid, "comm"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	c := &caller{comm: fd}
	c.tid, c.pid = tid, tid
	n, err := unix.Pread(fd, c.identity.comm[:], 0)
	if err != nil || n == 0 || !c.read() {
		unix.Close(fd)
		return nil
	}
	c.identity.comm[n-1] = 0
	k.births++
	c.birth = k.births
	k.byTID[tid] = c
	return c
}

// read reads what the kernel says of the thread. It reads nothing that waits for the end of an execve, as /proc/N/stat
// and /proc/N/environ do: execve closes descriptors meanwhile, and waits for our answer.
func (c *caller) read() bool {
	status, err := os.ReadFile(procName(c.tid, "status"))
	if err != nil {
		return false
	}
	found := 0
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		to := map[string]*uint32{"Tgid": &c.pid, "PPid": &c.ppid, "NSpgid": &c.pgid, "NSsid": &c.sid}[string(name)]
		if f := bytes.Fields(value); to != nil && len(f) > 0 { // of nested namespaces the first is the outermost
			*to = number(f[0])
			found++
		}
	}
	return found >= 4
}

// bury forgets the threads that have ended.
func (k *callers) bury() (dead []identity) {
	for tid, c := range k.byTID {
		var b [16]byte
		if n, err := unix.Pread(c.comm, b[:], 0); err != nil || n == 0 {
			unix.Close(c.comm)
			delete(k.byTID, tid)
			dead = append(dead, c.identity)
		}
	}
	k.sweep = 2 * len(k.byTID)
	return dead
}

func (k *callers) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.byTID {
		unix.Close(c.comm)
	}
	clear(k.byTID)
}

// own returns the identity of the process that serves the mount.
func (k *callers) own() (identity, error) {
	k.byTID = map[uint32]*caller{}
	c := k.meet(uint32(os.Getpid()))
	if c == nil {
		return identity{}, errNoProc
	}
	unix.Close(c.comm)
	delete(k.byTID, c.tid)
	c.uid, c.gid = uint32(os.Geteuid()), uint32(os.Getegid())
	return c.identity, nil
}

func procName(tid uint32, name string) string {
	return "/proc/" + strconv.FormatUint(uint64(tid), 10) + "/" + name
}

func number(b []byte) uint32 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return uint32(n)
}
