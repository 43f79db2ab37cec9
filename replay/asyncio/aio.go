// SPDX-License-Identifier: Apache-2.0

package asyncio

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of an AIO (linux/aio_abi.h).
const (
	AIORead      = 0
	AIOWrite     = 1
	AIOFsync     = 2
	AIOFdatasync = 3
	AIOReadv     = 7
	AIOWritev    = 8
)

// AIO is a context of Linux's asynchronous I/O. It is used by one thread.
type AIO struct{ ctx uintptr }

type iocb struct {
	_      [3]uint32 // data, key
	rw     uint32
	op     uint16
	_      int16 // priority
	fd     uint32
	buf    uint64
	bytes  uint64
	offset int64
	_      [2]uint64 // reserved, flags, eventfd
}

type ioEvent struct {
	data, obj uint64
	res, res2 int64
}

// NewAIO makes a context.
func NewAIO() (*AIO, error) {
	a := new(AIO)
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 4, uintptr(unsafe.Pointer(&a.ctx)), 0); errno != 0 {
		return nil, fmt.Errorf("make an AIO context: %w", errno)
	}
	return a, nil
}

// Do makes a request and returns its result.
func (a *AIO) Do(q *Request) (int64, syscall.Errno) {
	cb := &iocb{op: uint16(q.Op), fd: uint32(q.FD), buf: q.Addr, bytes: uint64(q.Len), offset: q.Off, rw: q.Flags}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, a.ctx, 1, uintptr(unsafe.Pointer(&cb))); errno != 0 {
		return -1, errno
	}
	var ev ioEvent
	for {
		n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, a.ctx, 1, 1, uintptr(unsafe.Pointer(&ev)), 0, 0)
		switch {
		case errno == syscall.EINTR || errno == 0 && n == 0:
			continue
		case errno != 0:
			return -1, errno
		case ev.res < 0:
			return -1, syscall.Errno(-ev.res)
		}
		return ev.res, 0
	}
}

// Close ends the context.
func (a *AIO) Close() { _, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, a.ctx, 0, 0) }
