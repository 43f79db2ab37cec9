// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/plan"
)

// partBytes is how much of a large write is in memory at a time.
const partBytes = 4 << 20

// writeLarge does a write whose content is too much to be in memory as a whole, part by part. What
// the tape does not have is zeros.
func (w *worker) writeLarge(t *plan.Task) {
	fd, off, pos := -1, int64(0), int64(-1)
	if h := t.Files.FDs[0]; h != nil {
		fd = h.FD
	}
	if t.Event.Op == event.OpPwrite64 {
		pos = int64(t.Event.Args[3])
	}
	size := t.Event.Ret
	part := w.buffer(partBytes)
	var failed syscall.Errno
	for off < size && !w.env.halted() {
		n := int(min(partBytes, size-off))
		data, _ := w.env.check.Tape.ContentRange(t.Content.Large, off, n, part[:0:n])
		clear(part[len(data):n])
		var done int
		var err error
		if pos >= 0 {
			done, err = unix.Pwrite(fd, part[:n], pos+off)
		} else {
			done, err = unix.Write(fd, part[:n])
		}
		if err == unix.EINTR {
			continue
		}
		if err != nil || done == 0 {
			failed, _ = err.(syscall.Errno)
			break
		}
		off += int64(done)
	}
	w.pacer.EndCall()
	if off > 0 {
		failed = 0 // as a write says it that began
	}
	w.env.check.Call(t, off, failed, new([event.MaxArgs][]byte))
}
