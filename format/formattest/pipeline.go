// SPDX-License-Identifier: Apache-2.0

package formattest

import (
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Pipeline returns a tape of what viewers show: a shell (10) forks a child (11) that
// reads from a pipe, writes to it in two calls and is woken; a request to an io_uring is
// under way meanwhile. The child's first read waits for the first write, its second
// finds the second. Events are lost, and a call fails,
// within which the kernel read mapped memory.
func Pipeline(t testing.TB) *trace.Tape {
	tape, _ := Tape(t, func(im *format.Import) error {
		w, err := im.Host("mill")
		if err != nil {
			return err
		}
		w.Head.ClockNS, w.Head.WallNS, w.Head.Kernel = 500, 1_700_000_000_000_000_500, "6.18"
		w.Head.Backend = "test"
		for _, err := range []error{
			w.Task(&format.Task{PID: 10, TID: 10, PPID: 1, UID: 1000, Comm: "sh"}, 1000),
			w.Start(10, "/home", 0o22, 1000),
		} {
			if err != nil {
				return err
			}
		}
		call := func(pid uint32, enter, exit uint64, op event.Op, ret int64, more func(c *format.Call),
			args ...uint64) {
			c := &format.Call{PID: pid, TID: pid, Op: op, Enter: enter, Exit: exit, Ret: ret}
			copy(c.Args[:], args)
			if more != nil {
				more(c)
			}
			if err == nil {
				err = w.Call(c)
			}
		}
		record := func(r *trace.Record) {
			if err == nil {
				err = w.Record(r)
			}
		}
		call(10, 1000, 1100, event.OpPipe2, 0, func(c *format.Call) {
			c.Bytes(0, []byte{3, 0, 0, 0, 4, 0, 0, 0}, 0)
			c.Objects = []trace.Object{end(event.MemoryArg, 3), end(event.MemoryArg, 4)}
		}, 1, 0)
		record(&trace.Record{Type: trace.RecFork, PID: 10, TID: 10, Exit: 1250, Child: 11, ChildTID: 11})
		record(&trace.Record{Type: trace.RecTask, PID: 11, TID: 11, PPID: 10, UID: 1000, Exit: 1260,
			Comm: [16]byte{'s', 'h'}})
		call(11, 1300, 1350, event.OpClose, 0, nil, 4)
		record(&trace.Record{Type: trace.RecCall, Op: uint16(event.OpClone), PID: 10, TID: 10, Enter: 1200, Exit: 1400,
			Ret: 11, NR: 56})
		call(11, 1410, 1490, event.OpExecve, 0,
			func(c *format.Call) { c.Text(0, "/bin/cat", false); c.Strings(1, []string{"cat", "-u"}) }, 1, 1, 1)
		record(&trace.Record{Type: trace.RecTask, PID: 11, TID: 11, PPID: 10, UID: 1000, Exit: 1495,
			Comm: [16]byte{'c', 'a', 't'}})
		record(&trace.Record{Type: trace.RecWake, Op: uint16(event.OpRead), PID: 11, TID: 11, Exit: 1620, Child: 10,
			ChildTID: 10})
		// The reader returns before the writer does.
		call(11, 1500, 1640, event.OpRead, 5,
			func(c *format.Call) { c.Bytes(1, []byte("hello"), 0); c.Objects = []trace.Object{end(0, 3)} }, 3, 1, 4096)
		call(10, 1600, 1650, event.OpWrite, 5,
			func(c *format.Call) { c.Bytes(1, []byte("hello"), 0); c.Objects = []trace.Object{end(0, 4)} }, 4, 1, 5)
		call(10, 1700, 1750, event.OpWrite, 6,
			func(c *format.Call) { c.Bytes(1, []byte(" world"), 0); c.Objects = []trace.Object{end(0, 4)} }, 4, 1, 6)
		call(11, 1800, 1850, event.OpRead, 6,
			func(c *format.Call) { c.Bytes(1, []byte(" world"), 0); c.Objects = []trace.Object{end(0, 3)} }, 3, 1, 4096)
		record(&trace.Record{Type: trace.RecLoss, Exit: 1860, Count: 7})
		call(11, 1910, 1920, event.OpMmapPread, 4096, nil, ^uint64(0), 0, 4096, 0, 8)
		call(11, 1900, 1950, event.OpOpenat, -2, func(c *format.Call) { c.Text(1, "gone\xff", false) }, ^uint64(99), 1,
			0)
		call(10, 1760, 2000, event.OpUringFsync, 0, nil, 4)
		call(10, 1990, 2010, event.OpClose, 0, nil, 4)
		call(11, 2100, 2100, event.OpExitGroup, 0, nil, 3)
		call(10, 2200, 2200, event.OpExitGroup, 0, nil, 0)
		return err
	})
	return tape
}

// end is an end of the pipe.
func end(arg int8, fd int32) trace.Object {
	return trace.Object{Arg: arg, FD: fd, Dev: 13, Ino: 77, Mode: 0o010600, Nlink: 1}
}
