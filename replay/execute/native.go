// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/asyncio"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
)

// asRequest makes the call of a request as a request. ok is false if it cannot be one.
func (w *worker) asRequest(t *plan.Task, args *[event.MaxArgs]uintptr) (ret int64, errno syscall.Errno, ok bool) {
	q := asyncio.Request{FD: int32(args[0]), Addr: uint64(args[1]), Len: uint32(args[2]), Off: int64(args[3])}
	var ring, aio uint8
	switch t.Event.Op {
	case event.OpPread64:
		ring, aio = asyncio.RingRead, asyncio.AIORead
	case event.OpPwrite64:
		ring, aio = asyncio.RingWrite, asyncio.AIOWrite
	case event.OpRead, event.OpWrite:
		ring, q.Off = asyncio.RingRead, -1
		if t.Event.Op == event.OpWrite {
			ring = asyncio.RingWrite
		}
	case event.OpPreadv2:
		ring, aio, q.Flags = asyncio.RingReadv, asyncio.AIOReadv, uint32(args[5])
	case event.OpPwritev2:
		ring, aio, q.Flags = asyncio.RingWritev, asyncio.AIOWritev, uint32(args[5])
	case event.OpFsync:
		ring, aio, q = asyncio.RingFsync, asyncio.AIOFsync, asyncio.Request{FD: q.FD}
	case event.OpFdatasync:
		const datasync = 1
		ring, aio, q = asyncio.RingFsync, asyncio.AIOFdatasync, asyncio.Request{FD: q.FD}
		if q.Flags = datasync; t.Op.IsAIO() {
			q.Flags = 0
		}
	default:
		return 0, 0, false
	}
	var err error
	if t.Op.IsAIO() {
		if w.aio == nil {
			if w.aio, err = asyncio.NewAIO(); err != nil {
				w.lacks(err, byCalls)
				return 0, 0, false
			}
		}
		q.Op = aio
		ret, errno = w.aio.Do(&q)
	} else {
		if w.ring == nil {
			if w.ring, err = asyncio.NewRing(); err != nil {
				w.lacks(err, byCalls)
				return 0, 0, false
			}
		}
		q.Op = ring
		ret, errno = w.ring.Do(&q)
	}
	return ret, errno, true
}

// byCalls is what is done about interfaces that the machine does not have.
const byCalls = "calls are made instead"

// throughMapping reads or stores a range of a file through a mapping of it. ok is false
// if it cannot be mapped. The file may be shorter than it was; behind its last page is
// nothing to touch.
func (w *worker) throughMapping(t *plan.Task, args *[event.MaxArgs]uintptr) (ret int64, errno syscall.Errno, ok bool) {
	const page = 4096
	fd, off, n := int(args[0]), int64(args[3]), int64(args[2])
	var st unix.Stat_t
	if n <= 0 || off < 0 || unix.Fstat(fd, &st) != nil || off >= st.Size {
		return 0, 0, false
	}
	n = min(n, st.Size-off)
	from := off &^ (page - 1)
	prot := unix.PROT_READ
	if t.Event.Op == event.OpMmapPwrite {
		prot |= unix.PROT_WRITE
	}
	m, err := unix.Mmap(fd, from, int(off-from+n), prot, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, false
	}
	defer unix.Munmap(m)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			ret, errno, ok = -1, syscall.EFAULT, true // another thread cut the file
		}
	}()
	if prot&unix.PROT_WRITE != 0 {
		copy(m[off-from:], t.Content.Data)
		n = t.Event.Ret // what is behind the end is of a call that returned later
	} else {
		copy(w.buffer(int(n)), m[off-from:]) // where the call would have put it
	}
	runtime.KeepAlive(t)
	return n, 0, true
}

// syncMapping makes durable what was stored through a mapping: all of the file, of which
// the program asked for a part.
func (w *worker) syncMapping(t *plan.Task) {
	if h := t.Files.FDs[0]; h != nil && h.FD >= 0 {
		if err := unix.Fdatasync(h.FD); err != nil {
			w.env.check.Mismatch(t, "errno", "0", result.ErrorName(err))
		}
	}
}
