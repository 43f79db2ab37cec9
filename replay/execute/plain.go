// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/schedule"
)

// sampled is how many plain steps there are for one whose time is taken when calls are
// made as fast as possible: reading the clock twice takes a tenth of a short call.
const sampled = 16

// plainStep does a plain read or write.
func (w *worker) plainStep(s *plan.Step, b *schedule.Batch) {
	if s.Kind == plan.StepWrite && !w.reserve(int64(s.Count)) {
		return
	}
	timed := w.pacer.Paced() || w.untimed >= sampled-1
	var from int64
	if timed {
		from = w.pacer.BeginCall()
		w.untimed = 0
	} else {
		w.untimed++
	}
	fd := uintptr(closedFD)
	if s.Handle.FD >= 0 {
		fd = uintptr(s.Handle.FD)
	}
	var buf []byte
	switch {
	case s.Kind == plan.StepRead:
		buf = w.buffer(int(s.Count))
	case !s.HasBytes():
		buf = w.zeroBuffer(int(s.Count))
	default:
		buf = s.Bytes()
		if len(buf) != int(s.Count) { // it wrote less than it was given
			full := w.buffer(int(s.Count))
			clear(full[copy(full, buf):])
			buf = full
		}
	}
	var r, off uintptr
	var errno syscall.Errno
	if off = 0; s.HasOffset {
		off = uintptr(s.Offset)
	}
	for {
		if s.Short {
			r, _, errno = unix.RawSyscall6(uintptr(s.Number), fd, address(buf), uintptr(s.Count), off, 0, 0)
		} else {
			r, _, errno = unix.Syscall6(uintptr(s.Number), fd, address(buf), uintptr(s.Count), off, 0, 0)
		}
		if errno != syscall.EINTR {
			break
		}
	}
	runtime.KeepAlive(b)
	if timed {
		w.tally.Replayed(s.Op, s.Ret, from, w.pacer.EndCall())
	} else {
		w.tally.Counted(s.Op, s.Ret)
	}
	if w.env.log.Calls() {
		w.env.log.Call(s.Seq, s.TID, s.Op, s.Handle.Path, int64(r), errno)
	}
	w.env.check.Step(s, b.Arena.Sums, int64(r), errno, buf)
}
