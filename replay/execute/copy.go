// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
)

// copyIn writes what the recording copied from a pipe or socket: zeros, if the trace does not have it.
func (w *worker) copyIn(t *plan.Task) {
	_, to := t.Event.CopySides()
	h := t.Files.FDs[to.FD]
	off := int64(-1)
	if !to.AtPosition(&t.Event) {
		off = to.Start(&t.Event)
	}
	data, zeros := t.Content.Data, int64(0)
	if t.Content.Missing && len(data) == 0 {
		zeros = min(t.Event.Ret, maxMoved)
	}
	for (len(data) > 0 || zeros > 0) && !w.env.halted() {
		if len(data) == 0 {
			data = w.buffer(int(min(zeros, maxScratch)))
			clear(data)
			zeros -= int64(len(data))
		}
		var n int
		var err error
		if off >= 0 {
			n, err = unix.Pwrite(h.FD, data, off)
			off += int64(n)
		} else {
			n, err = unix.Write(h.FD, data)
		}
		if err != nil {
			w.env.check.Mismatch(t, "errno", "0", result.ErrorName(err))
			return
		}
		data = data[n:]
	}
}

// copyOut reads what the recording copied to a pipe or socket, and checks it.
func (w *worker) copyOut(t *plan.Task) {
	from, _ := t.Event.CopySides()
	h := t.Files.FDs[from.FD]
	explicit := !from.AtPosition(&t.Event)
	want := int(max(0, min(t.Event.Ret, maxMoved)))
	buf := t.Event.BufArg(effect.ContentArg(t.Event.Op))
	compare := buf != nil && w.env.checks&options.CheckData != 0
	room := min(want, maxScratch)
	if compare {
		room = want
	}
	b := w.buffer(room)
	got := 0
	for got < want && !w.env.halted() {
		part := b[:min(room, want-got)]
		if compare {
			part = b[got:]
		}
		var n int
		var err error
		if explicit {
			n, err = unix.Pread(h.FD, part, from.Start(&t.Event)+int64(got))
		} else {
			n, err = unix.Read(h.FD, part)
		}
		if err != nil || n == 0 {
			break
		}
		got += n
	}
	if got != want {
		w.env.check.Mismatch(t, "result", fmt.Sprint(want), fmt.Sprint(got))
	} else if compare {
		w.env.check.Content(t, buf, b)
	}
}

// wholeCopy goes on with a copy until it has copied as much as the recorded one: any signal ends one in the middle, and
// the Go runtime sends its threads some. count is the argument that says how many bytes; positions and offsets
// are moved by the kernel.
func wholeCopy(want int64, count *uintptr, call func() (int64, syscall.Errno)) (done int64, errno syscall.Errno) {
	for {
		n, errno := call()
		if errno != 0 && done == 0 {
			return n, errno
		}
		if done += max(n, 0); n <= 0 || done >= want {
			return done, 0
		}
		*count -= min(uintptr(n), *count)
	}
}
