// SPDX-License-Identifier: Apache-2.0

package linearize_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

// lockCall is a call on locks of one of four open files of one file.
type lockCall struct {
	op            event.Op // flock, or fcntl with F_OFD_SETLK
	open          int
	how           int16 // of flock: operation; of fcntl: type
	start, length int64
	tid           uint32
	enter, effect int64
	exit          int64
	errno         syscall.Errno
}

const (
	lockFiles = 4
	ofdSetLk  = 37
)

// locker makes such calls on the kernel.
type locker struct {
	path string
	fds  [lockFiles]int
}

func newLocker(t interface{ Fatal(...any) }, dir string) *locker {
	f, err := os.CreateTemp(dir, "locked")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	l := &locker{path: f.Name()}
	for i := range l.fds {
		if l.fds[i], err = unix.Open(l.path, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *locker) close() {
	for _, fd := range l.fds {
		unix.Close(fd)
	}
	os.Remove(l.path)
}

func (l *locker) do(c *lockCall) syscall.Errno {
	var err error
	if c.op == event.OpFlock {
		err = unix.Flock(l.fds[c.open], int(c.how)|unix.LOCK_NB)
	} else {
		err = unix.FcntlFlock(uintptr(l.fds[c.open]), ofdSetLk, &unix.Flock_t{
			Type: c.how, Start: c.start, Len: c.length,
		})
	}
	e, _ := err.(syscall.Errno)
	return e
}

func (c *lockCall) event() event.Event {
	ev := event.Event{Op: c.op, PID: 1, TID: c.tid, Enter: c.enter, Exit: c.exit, Errno: c.errno, Offset: -1, Count: -1}
	if c.errno != 0 {
		ev.Ret = -1
	}
	ev.Files = []event.File{{Open: event.OpenID(c.open + 1), Known: true, Dev: 9, Ino: 5, Mode: 0o100644}}
	switch c.op {
	case event.OpFlock:
		ev.Args[1] = uint64(c.how | unix.LOCK_NB)
	case event.OpFcntl:
		b := make([]byte, 32)
		le := binary.LittleEndian
		le.PutUint16(b, uint16(c.how))
		le.PutUint64(b[8:], uint64(c.start))
		le.PutUint64(b[16:], uint64(c.length))
		ev.Args[1] = ofdSetLk
		ev.Bufs = []event.Buf{{Arg: 2, Dir: event.In, Kind: event.KindStruct, Len: 32, Inline: b}}
	}
	return ev
}

// TestLocks lets the kernel say what calls on locks return, one after the other, and
// orders them as if they had overlapped: made in the linear order, all return the same.
func TestLocks(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		calls := drawLocks(t)
		first := newLocker(t, filepath.Clean(dir))
		defer first.close()
		byEffect := slices.Clone(calls)
		slices.SortFunc(byEffect, func(a, b *lockCall) int { return int(a.effect - b.effect) })
		for _, c := range byEffect {
			c.errno = first.do(c)
		}
		slices.SortFunc(calls, func(a, b *lockCall) int { return int(a.exit - b.exit) })
		tape := forks()
		for i, c := range calls {
			ev := c.event()
			ev.Seq = uint64(i)
			tape = append(tape, ev)
		}
		order, unexplained := linearized(t, tape, nil)
		if len(unexplained) > 0 {
			t.Errorf("unexplained: %v\n%s", unexplained, show(tape))
		}
		again := newLocker(t, filepath.Clean(dir))
		defer again.close()
		for i := range order {
			if ev := &order[i]; ev.Kind == event.Call {
				c := calls[ev.Seq]
				if got := again.do(c); got != c.errno {
					t.Errorf("event %d: %v of open file %d, %d [%d +%d]: %v, not %v\n%s\n%s", ev.Seq, c.op, c.open,
						c.how, c.start, c.length, got, c.errno, show(tape), show(order))
				}
			}
		}
	})
}

// drawLocks draws calls of four threads, each with an open file of its own. There are no
// closes: a tape does not tell whether one was the last.
func drawLocks(t *rapid.T) (calls []*lockCall) {
	for tid := range lockFiles {
		now := int64(10)
		for i := range rapid.IntRange(1, 12).Draw(t, "calls") {
			c := &lockCall{
				tid: uint32(tid + 1), open: tid, start: int64(rapid.IntRange(0, 3).Draw(t, "start")) * 10,
				length: int64(rapid.IntRange(0, 3).Draw(t, "length")) * 10,
			}
			switch rapid.IntRange(0, 8).Draw(t, fmt.Sprint("kind ", i)) {
			case 0, 1, 2, 3:
				c.op, c.how = event.OpFlock, rapid.SampledFrom([]int16{unix.LOCK_SH, unix.LOCK_EX, unix.LOCK_UN,
					unix.LOCK_UN}).Draw(t, "flock")
			default:
				c.op, c.how = event.OpFcntl, rapid.SampledFrom([]int16{unix.F_RDLCK, unix.F_WRLCK, unix.F_UNLCK,
					unix.F_UNLCK}).Draw(t, "fcntl")
			}
			at := func(x int64) int64 { return x*8 + int64(tid) }
			c.enter = at(now + int64(rapid.IntRange(1, 5).Draw(t, "think")))
			c.effect = c.enter + 8*int64(rapid.IntRange(0, 20).Draw(t, "until effect"))
			c.exit = c.effect + 8*int64(rapid.IntRange(0, 20).Draw(t, "until return"))
			now = c.exit / 8
			calls = append(calls, c)
		}
	}
	return calls
}

// TestLocksOfProcesses: what a process locked by fcntl goes with its last thread, which may
// be another one than the first.
func TestLocksOfProcesses(t *testing.T) {
	setLk := func(pid, tid uint32, enter, exit int64, errno syscall.Errno) event.Event {
		c := lockCall{
			op: event.OpFcntl, open: int(pid), how: unix.F_WRLCK, length: 10, tid: tid, enter: enter, exit: exit,
			errno: errno,
		}
		ev := c.event()
		ev.PID, ev.Args[1] = pid, unix.F_SETLK
		return ev
	}
	ends := func(tid uint32, at int64) event.Event {
		return event.Event{Kind: event.Exited, PID: 1, TID: tid, Enter: at, Exit: at}
	}
	closes := func(tid uint32, enter, exit int64) event.Event {
		c := lockCall{op: event.OpClose, open: 1, tid: tid, enter: enter, exit: exit}
		return c.event()
	}
	for _, c := range []struct {
		name string
		tape []event.Event
		want []uint64 // calls
	}{
		{"its first thread ended, so another one's close gave it back", []event.Event{
			setLk(1, 1, -20, -10, 0), ends(1, -5), setLk(8, 8, 0, 10, 0), closes(2, 1, 11)}, []uint64{0, 3, 2}},
		{"another thread ended, so the first one's close gave it back", []event.Event{
			setLk(1, 1, -20, -10, 0), ends(2, -5), setLk(8, 8, 0, 10, 0), closes(1, 1, 11)}, []uint64{0, 3, 2}},
		{"its last thread ended", []event.Event{
			ends(1, -25), setLk(1, 2, -20, -10, 0), ends(2, -5), setLk(8, 8, 0, 10, 0),
			setLk(9, 9, 1, 11, syscall.EAGAIN)}, []uint64{1, 3, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tape []event.Event
			for _, child := range []uint32{2, 8, 9} {
				ev := event.Event{
					Kind: event.Forked, PID: 1, TID: 1, Child: child, Ret: int64(child), Enter: -100, Exit: -100,
				}
				if child == 2 {
					ev.Ret, ev.Args[0] = 1, event.ShareThread|event.ShareFiles
				}
				tape = append(tape, ev)
			}
			for i, ev := range c.tape {
				ev.Seq = uint64(i)
				tape = append(tape, ev)
			}
			order, unexplained := linearized(t, tape, nil)
			var got []uint64
			for _, ev := range order {
				if ev.Kind == event.Call {
					got = append(got, ev.Seq)
				}
			}
			if !slices.Equal(got, c.want) || len(unexplained) > 0 {
				t.Errorf("order %v, unexplained %v; want %v and none", got, unexplained, c.want)
			}
		})
	}
}
