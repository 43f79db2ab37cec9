package settle_test

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

	"iotape/event"
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
		err = unix.FcntlFlock(uintptr(l.fds[c.open]), ofdSetLk, &unix.Flock_t{Type: c.how, Start: c.start, Len: c.length})
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
// settles them as if they had overlapped: made in the settled order, all return the same.
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
		order, doubts := settled(t, tape, nil)
		if len(doubts) > 0 {
			t.Errorf("doubts: %v\n%s", doubts, show(tape))
		}
		again := newLocker(t, filepath.Clean(dir))
		defer again.close()
		for i := range order {
			if ev := &order[i]; ev.Kind == event.Call {
				c := calls[ev.Seq]
				if got := again.do(c); got != c.errno {
					t.Errorf("event %d: %v of open file %d, %d [%d +%d]: %v, not %v\n%s\n%s", ev.Seq, c.op, c.open, c.how, c.start, c.length, got, c.errno, show(tape), show(order))
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
			c := &lockCall{tid: uint32(tid + 1), open: tid, start: int64(rapid.IntRange(0, 3).Draw(t, "start")) * 10, length: int64(rapid.IntRange(0, 3).Draw(t, "length")) * 10}
			switch rapid.IntRange(0, 8).Draw(t, fmt.Sprint("kind ", i)) {
			case 0, 1, 2, 3:
				c.op, c.how = event.OpFlock, rapid.SampledFrom([]int16{unix.LOCK_SH, unix.LOCK_EX, unix.LOCK_UN, unix.LOCK_UN}).Draw(t, "flock")
			default:
				c.op, c.how = event.OpFcntl, rapid.SampledFrom([]int16{unix.F_RDLCK, unix.F_WRLCK, unix.F_UNLCK, unix.F_UNLCK}).Draw(t, "fcntl")
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
