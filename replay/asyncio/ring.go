// SPDX-License-Identifier: Apache-2.0

package asyncio

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Request is what is asked for, in the terms of either interface.
type Request struct {
	Op    uint8 // see the interface's operations
	FD    int32
	Addr  uint64 // of a buffer, or of an array of iovec
	Len   uint32 // bytes, or iovecs
	Off   int64  // -1 is the file's position, for a Ring
	Flags uint32 // RWF_…, or IORING_FSYNC_…
}

// Operations of a Ring (linux/io_uring.h).
const (
	RingReadv  = 1
	RingWritev = 2
	RingFsync  = 3
	RingRead   = 22
	RingWrite  = 23
)

// Ring is an io_uring with room for one request. It is used by one thread.
type Ring struct {
	fd             int
	rings, entries []byte
	sqTail, sqMask *uint32
	sqArray        *uint32
	cqHead, cqTail *uint32
	cqMask         uint32
	completions    unsafe.Pointer
}

type params struct {
	sqEntries, cqEntries, flags, cpu, idle, features, wqFD uint32
	_                                                      [3]uint32
	sq                                                     struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		addr                                                uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		addr                                                uint64
	}
}

type sqe struct {
	op, flags uint8
	prio      uint16
	fd        int32
	off       uint64
	addr      uint64
	len       uint32
	rw        uint32
	user      uint64
	_         [24]byte
}

type cqe struct {
	user  uint64
	res   int32
	flags uint32
}

// NewRing makes a ring.
func NewRing() (*Ring, error) {
	const entries, singleMap = 4, 1 // IORING_FEAT_SINGLE_MMAP
	var p params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, entries, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("make an io_uring: %w", errno)
	}
	r := &Ring{fd: int(fd)}
	if p.features&singleMap == 0 {
		r.Close()
		return nil, fmt.Errorf("make an io_uring: its queues need two mappings: %w", syscall.ENOSYS)
	}
	size := max(int(p.sq.array)+int(p.sqEntries)*4, int(p.cq.cqes)+int(p.cqEntries)*int(unsafe.Sizeof(cqe{})))
	var err error
	const offEntries = 0x10000000 // IORING_OFF_SQES
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.rings, err = unix.Mmap(r.fd, 0, size, prot, flags); err == nil {
		r.entries, err = unix.Mmap(r.fd, offEntries, int(p.sqEntries)*int(unsafe.Sizeof(sqe{})), prot, flags)
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("map an io_uring: %w", err)
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[off])) }
	r.sqTail, r.sqMask, r.sqArray = word(p.sq.tail), word(p.sq.mask), word(p.sq.array)
	r.cqHead, r.cqTail, r.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.mask)
	r.completions = unsafe.Pointer(&r.rings[p.cq.cqes])
	return r, nil
}

// Do makes a request and returns its result.
func (r *Ring) Do(q *Request) (int64, syscall.Errno) {
	tail := atomic.LoadUint32(r.sqTail)
	i := tail & *r.sqMask
	e := (*sqe)(unsafe.Pointer(&r.entries[uintptr(i)*unsafe.Sizeof(sqe{})]))
	*e = sqe{op: q.Op, fd: q.FD, off: uint64(q.Off), addr: q.Addr, len: q.Len, rw: q.Flags}
	*(*uint32)(unsafe.Add(unsafe.Pointer(r.sqArray), 4*uintptr(i))) = i
	atomic.StoreUint32(r.sqTail, tail+1)
	const getEvents = 1
	submit := uintptr(1)
	for {
		head := atomic.LoadUint32(r.cqHead)
		if submit == 0 && head != atomic.LoadUint32(r.cqTail) {
			c := (*cqe)(unsafe.Add(r.completions, uintptr(head&r.cqMask)*unsafe.Sizeof(cqe{})))
			res := c.res
			atomic.StoreUint32(r.cqHead, head+1)
			if res < 0 {
				return -1, syscall.Errno(-res)
			}
			return int64(res), 0
		}
		n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), submit, 1, getEvents, 0, 0)
		switch {
		case errno == 0:
			submit -= min(n, submit)
		case errno != syscall.EINTR:
			return -1, errno
		}
	}
}

// Close ends the ring.
func (r *Ring) Close() {
	for _, m := range [...][]byte{r.rings, r.entries} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	unix.Close(r.fd)
}
