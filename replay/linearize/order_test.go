// SPDX-License-Identifier: Apache-2.0

package linearize_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/linearize"
)

// The constructors of the tables below. Every call is made by the thread of its number in
// the table, so that all may overlap.

func named(op event.Op, errno syscall.Errno, names ...string) event.Event {
	ev := event.Event{Op: op, Errno: errno, Offset: -1, Count: -1}
	if errno != 0 {
		ev.Ret = -1
	}
	for i, n := range names {
		ev.Paths = append(ev.Paths, event.Path{Arg: int8(i), Raw: n, Abs: n})
	}
	return ev
}

const testInode = 77

func moved(op event.Op, off int64, content string, count int) event.Event {
	ev := event.Event{Op: op, Offset: off, Count: int64(count), Ret: int64(len(content))}
	ev.Args[2], ev.Args[3] = uint64(count), uint64(off)
	ev.Files = []event.File{{Open: 5, Known: true, Dev: 9, Ino: testInode, Mode: 0o100644, Size: -1}}
	ev.Bufs = []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: int64(len(content)),
		Inline: []byte(content)}}
	return ev
}

func statted(size int64, mode uint32) event.Event {
	ev := event.Event{Op: event.OpFstat, Offset: -1, Count: -1}
	ev.Bufs = []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindStruct,
		Inline: statOf(answer{ino: testInode, size: size}, mode)}}
	return ev
}

func attribute(op event.Op, errno syscall.Errno, value string) event.Event {
	ev := event.Event{Op: op, Errno: errno, Offset: -1, Count: -1, Ret: int64(len(value))}
	ev.Files = []event.File{{Open: 5, Known: true, Dev: 9, Ino: testInode, Mode: 0o100644}}
	ev.Bufs = []event.Buf{
		{Arg: 1, Dir: event.In, Kind: event.KindText, Inline: []byte("user.x\x00")},
		{Arg: 2, Kind: event.KindBuf, Len: int64(len(value)), Inline: []byte(value)},
	}
	return ev
}

// at gives a call its times.
func at(ev event.Event, enter, exit int64) event.Event {
	ev.Enter, ev.Exit = enter, exit
	return ev
}

// TestOrder has tapes, and the order that they are to come out in.
func TestOrder(t *testing.T) {
	chmod := func(mode uint64) event.Event {
		ev := attribute(event.OpFchmod, 0, "")
		ev.Bufs = nil
		ev.Args[1] = mode
		return ev
	}
	executes := func(errno syscall.Errno) event.Event {
		ev := named(event.OpAccess, errno, "/w/x")
		ev.Args[1] = 1 // X_OK
		return ev
	}
	opened := func(name string, flags uint64, ino uint64, created bool) event.Event {
		ev := named(event.OpOpen, 0, name)
		ev.Args[1] = flags
		f := event.File{Arg: event.ResultArg, Open: event.OpenID(ino), Known: true, Dev: 9, Ino: ino, Mode: 0o100644}
		if created {
			f.Flags = event.OpenCreat
		}
		ev.Files = []event.File{f}
		return ev
	}
	link := named(event.OpSymlink, 0, "/w/l")
	link.Bufs = []event.Buf{{Arg: 0, Kind: event.KindText, Inline: []byte("x\x00")}}
	link.Paths[0].Arg = 1
	locks := func(how uint64, open event.OpenID, errno syscall.Errno) event.Event {
		ev := event.Event{
			Op: event.OpFlock, Errno: errno, Offset: -1, Count: -1,
			Files: []event.File{{Open: open, Known: true, Dev: 9, Ino: testInode, Mode: 0o100644}},
		}
		ev.Args[1] = how
		return ev
	}
	closes := locks(0, 5, 0)
	closes.Op = event.OpClose
	ends := event.Event{Kind: event.Exited, TID: 1}
	late := at(named(event.OpUnlink, 0, "/w/x"), 5, 20)
	late.Flags = event.Late
	for _, c := range []struct {
		name        string
		tape        []event.Event
		want        []uint64
		unexplained map[uint64]linearize.Unexplained
	}{
		{name: "nothing shared", want: []uint64{0, 1, 2}, tape: []event.Event{
			at(named(event.OpUnlink, 0, "/w/x"), 0, 10), at(named(event.OpUnlink, 0, "/w/y"), 1, 11),
			at(moved(event.OpPwrite64, 0, "a", 1), 2, 12)}},
		{name: "a read saw a write that returned later", want: []uint64{1, 0}, tape: []event.Event{
			at(moved(event.OpPread64, 0, "newnew", 6), 0, 10), at(moved(event.OpPwrite64, 0, "newnew", 6), 1, 11)}},
		{name: "a read did not see a write that returned earlier", want: []uint64{1, 0}, tape: []event.Event{
			at(moved(event.OpPwrite64, 0, "newnew", 6), 0, 10), at(moved(event.OpPread64, 0, "oldold", 6), 1, 11)}},
		{name: "a later read tells which write was the last", want: []uint64{1, 0, 2}, tape: []event.Event{
			at(moved(event.OpPwrite64, 0, "aaaaaa", 6), 0, 10), at(moved(event.OpPwrite64, 2, "bbbbbb", 6), 1, 11),
			at(moved(event.OpPread64, 0, "aaaaaabb", 8), 20, 30)}},
		{name: "other bytes of the file", want: []uint64{0, 1}, tape: []event.Event{
			at(moved(event.OpPread64, 100, "x", 1), 0, 10), at(moved(event.OpPwrite64, 0, "x", 1), 1, 11)}},
		{name: "a read in the middle of a write", want: []uint64{0, 1, 2},
			unexplained: map[uint64]linearize.Unexplained{1: linearize.UnexplainedContent}, tape: []event.Event{
				at(moved(event.OpPwrite64, 0, "oldold", 6), -20, -10),
				at(moved(event.OpPread64, 0, "newold", 6), 0, 10),
				at(moved(event.OpPwrite64, 0, "newnew", 6), -1, 11)}},
		{name: "a size within a write", want: []uint64{0, 1, 2, 3},
			unexplained: map[uint64]linearize.Unexplained{1: linearize.UnexplainedSize}, tape: []event.Event{
				at(statted(100, 0o100644), -20, -10), at(statted(4096, 0o100644), 0, 10),
				at(moved(event.OpPwrite64, 100, "long", 4), -1, 11), at(statted(104, 0o100644), 20, 30)}},
		{name: "permissions", want: []uint64{0, 2, 1}, tape: []event.Event{
			at(chmod(0o600), -20, -10), at(chmod(0o640), 0, 10), at(statted(1, 0o100600), 1, 11)}},
		{name: "nobody may execute yet", want: []uint64{0, 1, 3, 2}, tape: []event.Event{
			at(opened("/w/x", 0, testInode, false), -40, -30), at(chmod(0o644), -20, -10), at(chmod(0o755), 0, 5),
			at(executes(syscall.EACCES), 1, 6)}},
		{name: "somebody may execute already", want: []uint64{0, 1, 3, 2}, tape: []event.Event{
			at(opened("/w/x", 0, testInode, false), -40, -30), at(chmod(0o644), -20, -10), at(executes(0), 0, 5),
			at(chmod(0o755), 1, 6)}},
		{name: "an attribute is set and looked at", want: []uint64{0, 2, 1}, tape: []event.Event{
			at(attribute(event.OpFremovexattr, 0, ""), -20, -10), at(attribute(event.OpFgetxattr, 0, "v"), 0, 10),
			at(attribute(event.OpFsetxattr, 0, "v"), 1, 11)}},
		{name: "an attribute is looked for and set", want: []uint64{1, 0}, tape: []event.Event{
			at(attribute(event.OpFsetxattr, 0, "v"), 0, 10),
			at(attribute(event.OpFgetxattr, syscall.ENODATA, ""), 1, 11)}},
		{name: "through a symbolic link", want: []uint64{0, 1, 3, 2}, tape: []event.Event{
			at(named(event.OpUnlink, 0, "/w/x"), -20, -15), at(link, -10, -5),
			at(named(event.OpStat, 0, "/w/x"), 5, 10), at(opened("/w/l", event.OpenCreat, 3, true), 1, 11)}},
		{name: "one name of a file that replaces another", want: []uint64{0, 1, 3, 2}, tape: []event.Event{
			at(opened("/w/x", event.OpenCreat, 3, true), -40, -30), at(opened("/w/y", event.OpenCreat, 4, true), -20, -10),
			at(opened("/w/y", 0, 3, false), 0, 10), at(named(event.OpRename, 0, "/w/x", "/w/y"), 1, 11)}},
		{name: "a new file has the inode of one that was replaced", want: []uint64{0, 1, 3, 2}, tape: []event.Event{
			at(opened("/w/x", event.OpenCreat, 3, true), -40, -30), at(opened("/w/y", event.OpenCreat, 4, true), -20, -10),
			at(opened("/w/z", event.OpenCreat, 3, true), 0, 10), at(named(event.OpRename, 0, "/w/y", "/w/x"), 1, 11)}},
		{name: "an exclusive open that found something was before the unlink", want: []uint64{1, 0},
			tape: []event.Event{
				at(named(event.OpUnlink, 0, "/w/x"), 0, 10), func() event.Event {
					ev := at(named(event.OpOpen, syscall.EEXIST, "/w/x"), 1, 11)
					ev.Args[1] = event.OpenCreat | event.OpenExcl
					return ev
				}()}},
		{name: "a lock that a close gave back", want: []uint64{0, 2, 1}, tape: []event.Event{
			at(locks(2, 5, 0), -20, -10), at(locks(2, 6, 0), 0, 10), at(closes, 1, 11)}},
		{name: "a close that may have left the lock", want: []uint64{0, 1, 2}, tape: []event.Event{
			at(locks(2, 5, 0), -20, -10), at(closes, 1, 9), at(locks(6, 6, syscall.EAGAIN), 0, 10)}},
		{name: "a lock that went with its process", want: []uint64{0, 2}, tape: []event.Event{
			at(locks(2, 5, 0), -20, -10), at(ends, -5, -5), at(locks(2, 6, 0), 0, 10)}},
		{name: "a lock that nobody has is refused", want: []uint64{0, 1},
			unexplained: map[uint64]linearize.Unexplained{1: linearize.UnexplainedResult}, tape: []event.Event{
				at(locks(8, 5, 0), 0, 9), at(locks(6, 6, syscall.EAGAIN), 1, 10)}},
		{name: "what came too late keeps its place", want: []uint64{0, 1}, tape: []event.Event{
			at(named(event.OpStat, syscall.ENOENT, "/w/z"), 25, 30), late}},
		{name: "requests of one thread overlap", want: []uint64{1, 0}, tape: func() []event.Event {
			a, b := at(moved(event.OpAIOPread, 0, "newnew", 6), 0, 10),
				at(moved(event.OpAIOPwrite, 0, "newnew", 6), 1, 11)
			a.TID, b.TID = 9, 9
			return []event.Event{a, b}
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			tape := forks()
			for i, ev := range c.tape {
				ev.Seq, ev.PID = uint64(i), 1
				if ev.TID == 0 {
					ev.TID = uint32(i + 1)
				}
				tape = append(tape, ev)
			}
			order, unexplained := linearized(t, tape, nil)
			var got []uint64
			for _, ev := range order {
				if ev.Kind == event.Call {
					got = append(got, ev.Seq)
				}
			}
			if !slices.Equal(got, c.want) || fmt.Sprint(unexplained) != fmt.Sprint(c.unexplained) {
				t.Errorf("order %v, unexplained %v, want %v and %v", got, unexplained, c.want, c.unexplained)
			}
		})
	}
}

// forks announces four threads.
func forks() (tape []event.Event) {
	for tid := range uint32(4) {
		tape = append(tape, event.Event{Kind: event.Forked, TID: 1, Child: tid + 1, Enter: -100, Exit: -100})
	}
	return tape
}

// TestLongCall has a call that took effect early and returned when much more had happened
// than a window holds: something else that it explains makes the window grow.
func TestLongCall(t *testing.T) {
	h := history{
		{op: op{op: event.OpOpen, a: "/w/x", flags: event.OpenCreat | 2, open: 1},
			tid: 1, enter: 0, effect: 1, exit: 2},
		{op: op{op: event.OpUnlink, a: "/w/x"}, tid: 2, enter: 10, effect: 11, exit: 1 << 40},
	}
	for i := range int64(5000) {
		h = append(h, &call{
			op: op{op: event.OpStat, a: "/w/x"}, tid: uint32(1 + i%2*2), enter: 100 + i*10, effect: 101 + i*10,
			exit: 102 + i*10,
		})
	}
	tape := h.run(newWorld())
	order, unexplained := linearized(t, tape, &linearize.Options{Window: 64})
	if err := h.check(order, newWorld()); err != nil || len(unexplained) > 0 {
		t.Errorf("%v; %d unexplained", err, len(unexplained))
	}
	// Not farther than it may.
	order, unexplained = linearized(t, tape, &linearize.Options{Window: 64, MaxWindow: 1024})
	if len(order) != len(tape) || len(unexplained) == 0 {
		t.Errorf("%d events of %d, %d unexplained", len(order), len(tape), len(unexplained))
	}
}

// TestGrowsBehindAListing has the window grow when a listing in it has been given already,
// by calls that name more of what is in the directory.
func TestGrowsBehindAListing(t *testing.T) {
	h := history{
		{op: op{op: event.OpOpen, a: "/w/x", flags: event.OpenCreat | 2, open: 1},
			tid: 1, enter: 0, effect: 1, exit: 2},
		{op: op{op: event.OpGetdents64, a: "/w"}, tid: 1, enter: 3, effect: 4, exit: 5},
		{op: op{op: event.OpUnlink, a: "/w/x"}, tid: 2, enter: 10, effect: 11, exit: 1 << 40},
	}
	for i := range int64(2000) {
		name := "/w/x"
		if i%50 == 49 {
			name = fmt.Sprintf("/w/%d", i)
		}
		h = append(h, &call{
			op: op{op: event.OpStat, a: name}, tid: uint32(1 + i%2*2), enter: 100 + i*10, effect: 101 + i*10,
			exit: 102 + i*10,
		})
	}
	order, unexplained := linearized(t, h.run(newWorld()), &linearize.Options{Window: 64})
	if err := h.check(order, newWorld()); err != nil || len(unexplained) > 0 {
		t.Errorf("%v; %d unexplained", err, len(unexplained))
	}
}

// TestGrowsBehindARace has the window grow when a call that races with one behind it has
// been given already: what it did is done, and is not looked for an order of.
func TestGrowsBehindARace(t *testing.T) {
	h := history{
		{op: op{op: event.OpMkdir, a: "/w/d"}, tid: 1, enter: 0, effect: 1, exit: 2},
		{op: op{op: event.OpMkdir, a: "/w/d"}, tid: 2, enter: 1205, effect: 1230, exit: 1 << 40},
		{op: op{op: event.OpRmdir, a: "/w/d"}, tid: 1, enter: 1210, effect: 1215, exit: 1220},
	}
	for i := range int64(500) {
		name := "/w/y"
		if i > 125 {
			name = "/w/d"
		}
		h = append(h, &call{
			op: op{op: event.OpStat, a: name}, tid: uint32(1 + i%2*2), enter: 100 + i*10, effect: 101 + i*10,
			exit: 102 + i*10,
		})
	}
	order, unexplained := linearized(t, h.run(newWorld()), &linearize.Options{Window: 64})
	if err := h.check(order, newWorld()); err != nil || len(unexplained) > 0 {
		t.Errorf("%v; %d unexplained", err, len(unexplained))
	}
}

// TestLent has a source that overwrites what it lent when it is called again.
func TestLent(t *testing.T) {
	var h history
	h = append(h, &call{
		op: op{op: event.OpOpen, a: "/w/x", flags: event.OpenCreat | 2, open: 1}, tid: 1, enter: 0, effect: 1, exit: 2,
	})
	for i := range int64(3000) {
		h = append(h, &call{
			op: op{op: event.OpFstat, open: 1}, tid: uint32(1 + i%3), enter: 10 + i*10, effect: 20 + i*10,
			exit: 35 + i*10,
		})
	}
	tape := h.run(newWorld())
	i, lent := 0, make([]byte, 256)
	s := linearize.New(func(ev *event.Event) error {
		if i == len(tape) {
			return io.EOF
		}
		*ev = *tape[i].Clone()
		i++
		for k := range lent {
			lent[k] = 0xee
		}
		for b := range ev.Bufs {
			ev.Bufs[b].Inline = lent[:copy(lent, ev.Bufs[b].Inline)]
		}
		return nil
	}, &linearize.Options{Window: 64})
	var ev event.Event
	for n := 0; ; n++ {
		if err := s.Next(&ev); err == io.EOF {
			if n != len(tape) {
				t.Errorf("%d events of %d", n, len(tape))
			}
			return
		}
		for _, b := range ev.Bufs {
			if ino := binary.LittleEndian.Uint64(b.Inline[8:]); ino != h[ev.Seq].want.ino {
				t.Fatalf("event %d: inode %#x", ev.Seq, ino)
			}
		}
	}
}

// TestDamage has a tape with an error in the middle: what is before it comes before it,
// what is behind it after.
func TestDamage(t *testing.T) {
	damage := errors.New("damaged block")
	var tape []event.Event
	for i := range uint64(100) {
		ev := at(named(event.OpStat, 0, "/w/x"), int64(i*10), int64(i*10+15))
		ev.Seq, ev.TID = i, uint32(1+i%2)
		tape = append(tape, ev)
	}
	first, second := source(append(forks(), tape[:50]...)), source(tape[50:])
	broken := false
	s := linearize.New(func(ev *event.Event) error {
		if err := first(ev); err != io.EOF {
			return err
		}
		if !broken {
			broken = true
			return damage
		}
		return second(ev)
	}, nil)
	var got []uint64
	var ev event.Event
	at := -1
	for {
		err := s.Next(&ev)
		if err == io.EOF {
			break
		}
		switch {
		case err != nil && !errors.Is(err, damage):
			t.Fatal(err)
		case err != nil:
			at = len(got)
		case ev.Kind == event.Call:
			got = append(got, ev.Seq)
		}
	}
	if len(got) != 100 || at != 50 || !slices.IsSorted(got) {
		t.Errorf("%d events, the error after %d: %v", len(got), at, got)
	}
}

// TestAllocations holds a stage to the memory that it has.
func TestAllocations(t *testing.T) {
	tape := threadsTape(4, 3000, func(tid, i int) op {
		return op{
			op:   []event.Op{event.OpPwrite64, event.OpPread64, event.OpFstat, event.OpFtruncate}[i%4],
			open: event.OpenID(1 + tid%2), off: int64(i%50) * 10, len: 10,
		}
	})
	l := lender{tape: tape, n: 1 << 40}
	s := linearize.New(l.next, nil)
	var ev event.Event
	some := func() {
		for range 5000 {
			if err := s.Next(&ev); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 8 {
		some()
	}
	if n := testing.AllocsPerRun(10, some); n > 50 {
		t.Errorf("%v allocations in 5,000 events", n)
	}
}
