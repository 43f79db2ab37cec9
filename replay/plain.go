package replay

import (
	"bytes"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// sampled is how many plain steps there are for one whose time is taken when calls are
// made as fast as possible: reading the clock twice takes a tenth of a short call.
const sampled = 16

// plain does a plain read or write.
func (w *worker) plain(s *step, b *batch) {
	timed := w.plan.pace != PaceAFAP || w.tally.untimed >= sampled-1
	var from int64
	if timed {
		from = w.pacer.starts()
		w.tally.untimed = 0
	} else {
		w.tally.untimed++
	}
	fd := uintptr(noFD)
	if s.h.fd >= 0 {
		fd = uintptr(s.h.fd)
	}
	var buf []byte
	switch {
	case s.kind == stepRead:
		buf = w.buffer(int(s.count))
	case s.data == nil:
		buf = w.nothing(int(s.count))
	default:
		buf = s.bytes()
		if len(buf) != int(s.count) { // it wrote less than it was given
			full := w.buffer(int(s.count))
			clear(full[copy(full, buf):])
			buf = full
		}
	}
	var r, off uintptr
	var errno syscall.Errno
	if off = 0; s.places {
		off = uintptr(s.off)
	}
	for {
		if s.short {
			r, _, errno = unix.RawSyscall6(uintptr(s.nr), fd, address(buf), uintptr(s.count), off, 0, 0)
		} else {
			r, _, errno = unix.Syscall6(uintptr(s.nr), fd, address(buf), uintptr(s.count), off, 0, 0)
		}
		if errno != syscall.EINTR {
			break
		}
	}
	runtime.KeepAlive(b)
	if timed {
		w.tally.replayed(s.op, s.ret, from, w.pacer.finished())
	} else {
		w.tally.counted(s.op, s.ret)
	}
	if w.log.calls() {
		w.log.call(s.seq, s.tid, s.op, s.h.path, int64(r), errno)
	}
	switch {
	case errno != 0:
		w.differs(s, "errno", "0", errName(errno))
	case int64(r) != s.ret && w.checks&CheckReturns != 0:
		w.differs(s, "result", fmt.Sprint(s.ret), fmt.Sprint(int64(r)))
	case s.parts > 0:
		if want, got, differ := w.compareParts(b.parts[s.part:s.part+s.parts], buf[:r]); differ {
			w.differs(s, "content", want, got)
		}
	case s.compare && !bytes.Equal(buf[:r], s.bytes()):
		want, got := firstDifference(s.bytes(), buf[:r])
		w.differs(s, "content", want, got)
	}
}

// firstDifference shows where two buffers differ.
func firstDifference(want, got []byte) (string, string) {
	if len(want) != len(got) {
		return fmt.Sprintf("%d bytes", len(want)), fmt.Sprintf("%d bytes", len(got))
	}
	i := 0
	for want[i] == got[i] {
		i++
	}
	show := func(b []byte) string { return fmt.Sprintf("%q at byte %d", b[i:min(len(b), i+16)], i) }
	return show(want), show(got)
}
