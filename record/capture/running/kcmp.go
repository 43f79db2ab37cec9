// SPDX-License-Identifier: Apache-2.0

package running

import (
	"slices"
	"sort"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/trace"
)

// What kcmp compares (linux/kcmp.h, kcmp(2)).
const (
	kcmpFile  = 0
	kcmpFiles = 2
	kcmpFS    = 3
)

// kcmp compares what two threads have: 0 if it is one, 1 or 2 for an order among
// others. It fails where the kernel lacks it or we may not look.
func kcmp(tid1, tid2, what, fd1, fd2 int) (int, bool) {
	r, _, e := unix.RawSyscall6(unix.SYS_KCMP, uintptr(tid1), uintptr(tid2), uintptr(what), uintptr(fd1), uintptr(fd2),
		0)
	return int(r), e == 0
}

// shared returns what two threads share of directory and table. If the kernel does
// not say, threads of a process share both, and others nothing.
func shared(a, b thread) uint64 {
	share := uint64(0)
	if a.pid == b.pid {
		share = trace.ShareFS | trace.ShareFiles
	}
	for what, bit := range map[int]uint64{kcmpFS: trace.ShareFS, kcmpFiles: trace.ShareFiles} {
		if r, ok := kcmp(a.tid, b.tid, what, 0, 0); ok && r == 0 {
			share |= bit
		} else if ok {
			share &^= bit
		}
	}
	return share
}

// OpenFiles numbers open files. Its zero value has given no number. Descriptors of one are found among those that look
// the same.
type OpenFiles struct {
	last uint32
	like map[file][]openFile // in kcmp's order
}

// openFile is a descriptor that stands for an open file.
type openFile struct {
	tid, fd int
	number  uint32
}

// Number returns the number, from 1 on, of the open file of a thread's descriptor o.FD: a new one if
// no descriptor before has it.
func (f *OpenFiles) Number(tid int, o *trace.Object) uint32 {
	if f.like == nil {
		f.like = map[file][]openFile{}
	}
	key := fileOf(o)
	key.flags &^= unix.O_CLOEXEC // of the descriptor
	list, me := f.like[key], openFile{tid: tid, fd: int(o.FD)}
	found := uint32(0)
	i := sort.Search(len(list), func(i int) bool {
		const after = 2
		r, ok := kcmp(list[i].tid, tid, kcmpFile, list[i].fd, me.fd)
		if ok && r == 0 {
			found = list[i].number
		}
		return !ok || r == 0 || r == after
	})
	if found != 0 {
		return found
	}
	f.last++
	me.number = f.last
	f.like[key] = slices.Insert(list, i, me)
	return me.number
}
