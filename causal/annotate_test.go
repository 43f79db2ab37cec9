// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

const ms = int64(time.Millisecond)

// woken adds a wake-up of a thread in an operation.
func (x *tape) woken(tid, by uint32, at int64, in event.Op) int {
	return x.add(tid, at, at, 0, func(e *event.Event) {
		e.Kind, e.Child, e.Ret, e.Args[0] = event.Woken, by, int64(by), uint64(in)
	})
}

// storage adds a call on a file.
func (x *tape) storage(tid uint32, enter, exit int64, op event.Op, fill func(*event.Event)) int {
	return x.add(tid, enter, exit, op, func(e *event.Event) {
		e.Offset, e.Ret = 0, 1
		e.Files = []event.File{{Open: 99, Known: true, Mode: event.TypeRegular, Ino: 7, Path: "/f"}}
		if fill != nil {
			fill(e)
		}
	})
}

func (x *tape) all() iter.Seq2[*event.Event, error] {
	return func(yield func(*event.Event, error) bool) {
		for _, e := range x.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// annotated returns the annotations, one event a line: "4: compute 5ms, wait 1, sleep 2ms".
func (x *tape) annotated() (*Annotations, string) {
	x.t.Helper()
	n, _, err := Annotate(x.all())
	if err != nil {
		x.t.Fatal(err)
	}
	var lines []string
	c := n.Cursor()
	for seq := range n.Events() {
		var parts []string
		an := c.At(seq)
		if an.Compute > 0 {
			parts = append(parts, fmt.Sprintf("compute %v", an.Compute))
		}
		for _, w := range an.Waits {
			s := fmt.Sprintf("wait %d", w.Event)
			if w.Lag > 0 {
				s += fmt.Sprintf("+%v", w.Lag)
			}
			parts = append(parts, s)
		}
		if an.Sleep > 0 {
			parts = append(parts, fmt.Sprintf("sleep %v", an.Sleep))
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("%d: %s", seq, strings.Join(parts, ", ")))
		}
	}
	return n, strings.Join(lines, "\n")
}

func (x *tape) wantAnnotated(lines ...string) {
	x.t.Helper()
	if _, got := x.annotated(); got != strings.Join(lines, "\n") {
		x.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
	}
}

func TestWakeups(t *testing.T) {
	t.Run("in a call that returns first", func(t *testing.T) {
		x := &tape{t: t}
		x.add(1, 0, 0, event.OpGetpid, nil)
		x.add(2, 0, 0, event.OpGetpid, nil)
		x.woken(1, 2, 50, event.OpFutex)
		x.add(2, 49, 51, event.OpFutex, nil)
		x.add(1, 10, 60, event.OpFutex, nil)
		x.wantAnnotated("3: compute 49ns", "4: compute 10ns, wait 3")
	})
	t.Run("in a call that returns later: its beginning counts", func(t *testing.T) {
		x := &tape{t: t}
		x.add(1, 0, 0, event.OpGetpid, nil)
		x.add(2, 0, 0, event.OpGetpid, nil)
		x.woken(1, 2, 5*ms, event.OpFutex)
		x.add(1, 1, 5*ms+10, event.OpFutex, nil)
		x.add(2, 5*ms-10, 9*ms, event.OpFutex, nil)
		x.wantAnnotated("3: compute 1ns, wait 1+4.99999ms", "4: compute 4.99999ms")
	})
	t.Run("within the storage system they are its own matter", func(t *testing.T) {
		x := &tape{t: t}
		x.add(1, 0, 0, event.OpGetpid, nil)
		x.add(2, 0, 0, event.OpGetpid, nil)
		x.woken(1, 2, 50, event.OpFsync)
		x.storage(2, 40, 51, event.OpRead, nil)
		x.storage(1, 10, 60, event.OpFsync, nil)
		x.wantAnnotated("3: compute 40ns", "4: compute 10ns")
	})
	t.Run("by an end", func(t *testing.T) {
		x := &tape{t: t}
		x.add(1, 0, 0, event.OpGetpid, nil)
		x.add(2, 0, 0, event.OpGetpid, nil)
		x.add(2, 30, 30, 0, func(e *event.Event) { e.Kind = event.Exited })
		x.woken(1, 2, 31, event.OpFutex)
		x.add(1, 10, 60, event.OpFutex, nil)
		x.wantAnnotated("4: compute 10ns, wait 2")
	})
	t.Run("by the recorder, which passes on a child's end", func(t *testing.T) {
		x := &tape{t: t}
		x.add(1, 0, 0, event.OpGetpid, nil)
		x.add(1, 1, 1, 0, func(e *event.Event) { e.Kind, e.Child, e.Ret = event.Forked, 2, 2 })
		x.add(2, 2, 2, event.OpGetpid, nil)
		x.add(2, 3*ms, 3*ms, 0, func(e *event.Event) { e.Kind = event.Exited })
		x.woken(1, 99, 3*ms+1, event.OpPselect6)
		x.add(1, 10, 3*ms+2, event.OpPselect6, func(e *event.Event) { e.Errno = 514 })
		// That end is over: the next sleep has nothing to do with it.
		x.woken(1, 99, 5*ms, event.OpPselect6)
		x.add(1, 3*ms+4, 5*ms+2, event.OpPselect6, func(e *event.Event) { e.Errno = 514 })
		x.wantAnnotated("2: compute 1ns, wait 1", "5: compute 10ns, wait 3", "7: compute 2ns, sleep 1.999996ms")
	})
	t.Run("passed on in one call", func(t *testing.T) { // 3 writes into a full pipe that 2 empties, for 1
		x := &tape{t: t}
		for tid := range uint32(3) {
			x.add(tid+1, 0, 0, event.OpGetpid, nil)
		}
		x.woken(2, 1, 20, event.OpWrite)
		x.woken(3, 2, 25, event.OpRead)
		x.add(1, 19, 30, event.OpRead, nil)
		x.add(3, 1, 31, event.OpRead, nil)
		x.add(2, 1, 40, event.OpWrite, nil)
		x.wantAnnotated("5: compute 19ns", "6: compute 1ns, wait 3, wait 5", "7: compute 1ns, wait 5")
	})
	t.Run("by somebody outside it is a sleep", func(t *testing.T) {
		x := &tape{t: t}
		x.add(1, 0, 0, event.OpGetpid, nil)
		x.woken(1, 0, 3*ms, event.OpRecvfrom)
		x.add(1, 1, 3*ms+5, event.OpRecvfrom, nil)
		x.wantAnnotated("2: compute 1ns, sleep 2.999999ms")
	})
}

func TestSleeps(t *testing.T) {
	x := &tape{t: t}
	x.add(1, 0, 0, event.OpGetpid, nil)
	x.woken(1, 0, 2*ms, event.OpClockNanosleep)
	x.add(1, 1, 2*ms+1, event.OpClockNanosleep, nil)
	// A wait that another thread ends is none, though an interrupt does it.
	x.pipe(2, 2*ms+2, 10, 11)
	x.woken(1, 0, 4*ms, event.OpPoll)
	x.write(2, 4*ms-1, 4*ms+1, 11, 1)
	x.add(1, 3*ms, 4*ms+2, event.OpPoll, func(e *event.Event) { e.Ret = 1 })
	x.read(1, 4*ms+3, 4*ms+4, 10, 1)
	_, got := x.annotated()
	for _, want := range []string{"2: compute 1ns, sleep 1.999999ms", "6: compute 999.999µs, wait 5"} {
		if !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("got\n%s\nwithout %s", got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	named := func(op event.Op, path string) (event.Op, func(*event.Event)) {
		return op, func(e *event.Event) { e.Paths = []event.Path{{Raw: path, Abs: path}} }
	}
	t.Run("names", func(t *testing.T) {
		x := &tape{t: t}
		op, fill := named(event.OpMkdir, "/d")
		x.add(1, 1, 2, op, fill)
		op, fill = named(event.OpStat, "/d")
		x.add(2, 3, 4, op, fill)
		x.add(3, 3, 5, op, fill)
		op, fill = named(event.OpRmdir, "/d")
		x.add(1, 6, 7, op, fill)
		op, fill = named(event.OpStat, "/d/x")
		x.add(2, 8, 9, op, fill)
		x.wantAnnotated("1: wait 0", "2: wait 0", "3: compute 4ns, wait 1, wait 2", "4: compute 4ns, wait 3")
	})
	t.Run("bytes", func(t *testing.T) {
		x := &tape{t: t}
		at := func(off, n int64) func(*event.Event) {
			return func(e *event.Event) { e.Offset, e.Ret = off, n }
		}
		x.storage(1, 1, 2, event.OpPwrite64, at(0, 10))
		x.storage(1, 3, 4, event.OpPwrite64, at(10, 10))
		x.storage(2, 5, 6, event.OpPread64, at(0, 10))
		x.storage(3, 5, 7, event.OpPread64, at(20, 10))
		x.storage(3, 8, 9, event.OpPwrite64, at(5, 10))
		x.wantAnnotated("1: compute 1ns", "2: wait 0", "4: compute 1ns, wait 1, wait 2")
	})
}

func TestLocks(t *testing.T) {
	x := &tape{t: t}
	lock := func(tid uint32, at int64, open event.OpenID, op uint64) int {
		return x.add(tid, at, at+1, event.OpFlock, func(e *event.Event) {
			e.Args[1], e.Files = op, []event.File{{Open: open, Ino: 3}}
		})
	}
	const shared, exclusive, unlock = 1, 2, 8
	lock(1, 1, 10, exclusive)
	lock(1, 3, 10, unlock)
	lock(2, 5, 20, shared)
	lock(3, 7, 30, shared)
	lock(2, 9, 20, unlock)
	lock(3, 11, 30, unlock)
	lock(1, 13, 10, exclusive)
	x.wantAnnotated("1: compute 2ns", "2: wait 1", "3: wait 1", "4: compute 4ns", "5: compute 4ns",
		"6: compute 10ns, wait 4, wait 5")
}

// TestRecordLocks: locks of processes on ranges, which a close or an end gives up.
func TestRecordLocks(t *testing.T) {
	x := &tape{t: t}
	lock := func(tid uint32, at int64, open event.OpenID, kind byte, from, n byte) int {
		return x.add(tid, at, at+1, event.OpFcntl, func(e *event.Event) {
			flock := make([]byte, 32)
			flock[0], flock[8], flock[16] = kind, from, n
			e.Args[1], e.Files = fSETLKW, []event.File{{Open: open, Ino: 3}}
			e.Bufs = []event.Buf{{Arg: 2, Kind: event.KindStruct, Inline: flock}}
		})
	}
	const read, write, unlock = 0, 1, 2
	lock(1, 1, 10, write, 0, 20)                                                               // 0
	lock(1, 3, 10, unlock, 0, 10)                                                              // 1: the first half
	lock(2, 5, 20, write, 0, 10)                                                               // 2: after 1
	x.add(1, 7, 8, event.OpClose, func(e *event.Event) { e.Files = []event.File{{Open: 10}} }) // 3: the second half
	lock(3, 9, 30, read, 15, 5)                                                                // 4: after 3
	x.add(2, 11, 11, 0, func(e *event.Event) { e.Kind, e.PID = event.Exited, 2 })              // 5
	// 6: after 5, which is after 1
	lock(4, 13, 40, write, 5, 1)
	lock(4, 15, 40, write, 100, 1) // 7: nobody else's
	x.wantAnnotated("1: compute 2ns", "2: wait 1", "3: compute 4ns", "4: wait 3", "6: wait 5", "7: compute 2ns")
}

// TestLocksOfProcesses: locks of fcntl outlast the thread that took them, and an execve,
// but not their descriptor nor their process's last thread.
func TestLocksOfProcesses(t *testing.T) {
	const pid = 1
	exec := func(tid uint32) func(*tape) int {
		return func(x *tape) int { return x.add(tid, 20, 21, event.OpExecve, func(e *event.Event) { e.PID = pid }) }
	}
	exit := func(tid uint32) func(*tape) int {
		return func(x *tape) int {
			return x.add(tid, 22, 22, 0, func(e *event.Event) { e.Kind, e.PID = event.Exited, pid })
		}
	}
	call := func(op event.Op, args ...uint64) func(*tape) int {
		return func(x *tape) int {
			return x.add(1, 24, 25, op, func(e *event.Event) { copy(e.Args[:], args) })
		}
	}
	for _, c := range []struct {
		name  string
		flags uint32
		calls []func(*tape) int // the last of them gives it up
	}{
		{"its first thread is not its last", 0, []func(*tape) int{exit(1), exit(2)}},
		{"its first thread is its last", 0, []func(*tape) int{exit(2), exit(1)}},
		{"it executes", 0, []func(*tape) int{exit(2), exec(1), exit(1)}},
		{"its second thread executes", 0, []func(*tape) int{exit(1), exec(2), exit(1)}},
		{"close-on-exec", event.OpenCloexec, []func(*tape) int{exit(2), exec(1)}},
		{"the number is of another", 0, []func(*tape) int{call(event.OpDup2, 9, 4), call(event.OpDup2, 9, 3)}},
		{"a range is closed", 0, []func(*tape) int{call(event.OpCloseRange, 4, 9, 0), call(event.OpCloseRange, 0, 9, 4), call(event.OpCloseRange, 3, 3, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &tape{t: t}
			lock := func(tid uint32, at int64) int {
				return x.add(tid, at, at+1, event.OpFcntl, func(e *event.Event) {
					flock := make([]byte, 32)
					flock[0] = 1 // F_WRLCK
					e.Args[1], e.Files = fSETLKW, []event.File{{Open: event.OpenID(10 * tid), Ino: 3, FD: 3,
						Flags: c.flags}}
					e.Bufs = []event.Buf{{Arg: 2, Kind: event.KindStruct, Inline: flock}}
				})
			}
			lock(1, 1)
			x.add(1, 3, 4, 0, func(e *event.Event) { e.Kind, e.Child, e.Ret = event.Forked, 2, pid })
			var last int
			for _, do := range c.calls {
				last = do(x)
			}
			to := lock(7, 30)
			notes, _, err := Annotate(x.all())
			if err != nil {
				t.Fatal(err)
			}
			if want := []uint64{uint64(last)}; !slices.Equal(notes.Before(uint64(to)), want) {
				t.Errorf("the next lock waits for %v, want %v", notes.Before(uint64(to)), want)
			}
		})
	}
}

// TestConnections has two sockets each that were connected without saying their ends.
func TestConnections(t *testing.T) {
	for _, c := range []struct {
		name    string
		address []byte
	}{
		{"TCP", []byte{2, 0, 0x12, 0x34, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"local", append([]byte{1, 0}, "/run/x\x00"...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &tape{t: t}
			sock := func(open event.OpenID, arg int8) event.File {
				return event.File{Arg: arg, Open: open, Known: true, Mode: event.TypeSocket, Path: "socket:[1]"}
			}
			at := []event.Buf{{Arg: 1, Kind: event.KindStruct, Inline: c.address}}
			x.add(1, 1, 2, event.OpBind, func(e *event.Event) { e.Files, e.Bufs = []event.File{sock(5, 0)}, at })
			x.add(1, 3, 9, event.OpAccept,
				func(e *event.Event) { e.Files = []event.File{sock(5, 0), sock(6, event.ResultArg)} })
			x.add(2, 7, 10, event.OpConnect, func(e *event.Event) { e.Files, e.Bufs = []event.File{sock(7, 0)}, at })
			x.add(3, 11, 12, event.OpConnect, func(e *event.Event) { e.Files, e.Bufs = []event.File{sock(8, 0)}, at })
			x.add(1, 13, 14, event.OpAccept,
				func(e *event.Event) { e.Files = []event.File{sock(5, 0), sock(9, event.ResultArg)} })
			on := func(tid uint32, op event.Op, at int64, open event.OpenID, n int64) {
				x.add(tid, at, at+1, op, func(e *event.Event) { e.Ret, e.Files = n, []event.File{sock(open, 0)} })
			}
			on(3, event.OpSendto, 15, 8, 4)
			on(2, event.OpSendto, 15, 7, 6)
			on(1, event.OpRecvfrom, 17, 6, 3)
			on(1, event.OpRecvfrom, 19, 6, 3)
			on(1, event.OpRecvfrom, 21, 9, 4)
			on(1, event.OpSendto, 23, 9, 1)
			on(3, event.OpRecvfrom, 25, 8, 1)
			x.want("10>11 bytes, 2>1 connect, 3>4 connect, 5>9 bytes, 6>7 bytes, 6>8 bytes")
		})
	}
}

func TestDatagrams(t *testing.T) {
	x := &tape{t: t}
	address := []byte{2, 0, 0x12, 0x34, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	sock := func(open event.OpenID, arg int8) []event.File {
		return []event.File{{Arg: arg, Open: open, Mode: event.TypeSocket}}
	}
	for i, open := range []event.OpenID{5, 6} {
		x.add(uint32(i+1), 1, 2, event.OpSocket,
			func(e *event.Event) { e.Args[1], e.Files = sockDgram, sock(open, event.ResultArg) })
	}
	x.add(1, 3, 4, event.OpBind, func(e *event.Event) {
		e.Files, e.Bufs = sock(5, 0), []event.Buf{{Arg: 1, Kind: event.KindStruct, Inline: address}}
	})
	send := func(at int64, text string) {
		x.add(2, at, at+1, event.OpSendto, func(e *event.Event) {
			e.Ret, e.Files = int64(len(text)), sock(6, 0)
			e.Bufs = []event.Buf{{Arg: 1, Kind: event.KindBuf, Inline: []byte(text)},
				{Arg: 4, Kind: event.KindStruct, Inline: address}}
		})
	}
	send(5, "one")
	send(7, "lost")
	send(9, "two")
	for i, text := range []string{"two", "one"} {
		x.add(1, int64(11+2*i), int64(12+2*i), event.OpRecvfrom, func(e *event.Event) {
			e.Ret, e.Files, e.Bufs = int64(len(text)), sock(5,
				0), []event.Buf{{Arg: 1, Kind: event.KindBuf, Inline: []byte(text)}}
		})
	}
	x.want("3>7 bytes, 5>6 bytes")
}

// TestReduction: what is left of the waits orders events exactly as all of them do.
func TestReduction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.IntRange(2, 5).Draw(t, "threads")
		n := rapid.IntRange(2, 60).Draw(t, "events")
		line := make([]uint32, n)
		for i := range line {
			line[i] = uint32(rapid.IntRange(0, lines-1).Draw(t, "thread"))
		}
		var waits []waitFor
		for to := 1; to < n; to++ {
			for _, from := range rapid.SliceOfN(rapid.IntRange(0, to-1), 0, 3).Draw(t, "waits") {
				if line[from] != line[to] {
					waits = append(waits, waitFor{to: uint32(to), from: uint32(from)})
				}
			}
		}
		want := reach(line, waits)
		left := reduce(line, lines, slices.Clone(waits))
		if got := reach(line, left); !slices.EqualFunc(got, want, slices.Equal[[]bool]) {
			t.Fatalf("%v became %v", waits, left)
		}
		for i := range left { // and none of it is superfluous
			if got := reach(line, slices.Delete(slices.Clone(left), i, i+1)); slices.EqualFunc(got, want,
				slices.Equal[[]bool]) && lines <= 2 {
				t.Fatalf("%v is superfluous in %v", left[i], left)
			}
		}
	})
}

// reach says which events come before which.
func reach(line []uint32, waits []waitFor) [][]bool {
	all := make([][]bool, len(line))
	for i := range line {
		all[i] = make([]bool, len(line))
		for j := range i {
			direct := line[i] == line[j] ||
				slices.ContainsFunc(waits, func(w waitFor) bool { return int(w.to) == i && int(w.from) == j })
			if direct {
				all[i][j] = true
				for k := range j {
					all[i][k] = all[i][k] || all[j][k]
				}
			}
		}
	}
	return all
}

func text(t *testing.T, x *tape, n *Annotations) string {
	t.Helper()
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	err := n.WriteText(w, x.all(), nil, func(dst []byte,
		e *event.Event) []byte {
		return fmt.Appendf(dst, "%d %s\n", e.TID, e.Op)
	})
	if err := errors.Join(err, w.Flush()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextComesBack(t *testing.T) {
	x := &tape{t: t}
	x.add(1, 0, 0, event.OpGetpid, nil)
	x.add(2, 0, 0, event.OpGetpid, nil)
	x.woken(1, 2, 5*ms, event.OpFutex)
	x.add(1, 1, 5*ms+10, event.OpFutex, nil)
	x.add(2, 5*ms-10, 9*ms, event.OpFutex, nil)
	x.woken(1, 0, 12*ms, event.OpNanosleep)
	x.add(1, 6*ms, 12*ms, event.OpNanosleep, nil)
	n, want := x.annotated()
	written := text(t, x, n)
	back, err := ReadText(strings.NewReader(written), x.all())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.data, n.data) {
		t.Errorf("%s\nis of other annotations than\n%s", written, want)
	}
}

// TestTextTwice: a wait, or its signal, that is said twice is one; the longer lag counts.
func TestTextTwice(t *testing.T) {
	x := &tape{t: t}
	for i := range 4 {
		x.add(uint32(i%2+1), int64(i), int64(i), event.OpGetpid, nil)
	}
	n, err := ReadText(strings.NewReader("EVENTS(4)\n0 x\nSIGNAL(1)\nSIGNAL(1)\nWAIT(0)\nWAIT(0, 5ms)\nWAIT(0, "+
		"1ms)\n1 x\n"), x.all())
	if err != nil {
		t.Fatal(err)
	}
	an := n.Cursor().At(1)
	if want := []Dependency{{Event: 0, Lag: 5 * time.Millisecond}}; !slices.Equal(an.Waits, want) {
		t.Errorf("%+v", an.Waits)
	}
}

// TestTextLong has times that do not fit 32 bits, nor the integers of a float.
func TestTextLong(t *testing.T) {
	x := &tape{t: t}
	for i := range 2 {
		x.add(uint32(i%2+1), int64(i), int64(i), event.OpGetpid, nil)
	}
	for _, ns := range []time.Duration{1<<31 + 1, 1<<53 + 1, 1<<60 + 1, maxNS} {
		in := fmt.Sprintf("EVENTS(2)\n0 x\nSIGNAL(1)\nCOMPUTE(%v)\nWAIT(0, %v)\nSLEEP(%v)\n1 x\n", ns, ns, ns)
		n, err := ReadText(strings.NewReader(in), x.all())
		if err != nil {
			t.Fatal(err)
		}
		an := n.Cursor().At(1)
		if an.Compute != ns || an.Sleep != ns || len(an.Waits) != 1 || an.Waits[0].Lag != ns {
			t.Errorf("%v: %+v", ns, an)
		}
		if out := text(t, x, n); !strings.Contains(out, fmt.Sprintf("COMPUTE(%v)", ns)) ||
			!strings.Contains(out, fmt.Sprintf("WAIT(0, %v)", ns)) {
			t.Errorf("%s", out)
		}
	}
}

func TestBadText(t *testing.T) {
	x := &tape{t: t}
	for i := range 6 {
		x.add(uint32(i%2+1), int64(i), int64(i), event.OpGetpid, nil)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "it is empty: the first line is to be EVENTS(n)"},
		{"another tape", "EVENTS(7)\n", "line 1: annotations of 7 events; the tape has 6"},
		{"no head", "0 x\n", "line 1: the first line is to be EVENTS(n)"},
		{"no such event", "EVENTS(6)\nWAIT(6)\n1 x\n", "line 2: there is no event 6; the last is 5"},
		{"order", "EVENTS(6)\n1 x\n0 x\n", "line 3: event 0 stands behind event 1"},
		{"time", "EVENTS(6)\nCOMPUTE(-1ms)\n1 x\n", "line 2: COMPUTE(-1ms): no time such as 1.5ms"},
		{"long", "EVENTS(6)\nCOMPUTE(640000h)\nCOMPUTE(640000h)\n1 x\n", "line 3: COMPUTE(640000h): with what stands before it, that is longer than 640511h56m49.213693951s"},
		{"long lag", "EVENTS(6)\nWAIT(0, 640600h)\n1 x\n", "line 2: WAIT(0, 640600h): that is longer than 640511h56m49.213693951s"},
		{"word", "EVENTS(6)\nYIELD(1)\n1 x\n", "line 2: YIELD is neither COMPUTE, SLEEP, WAIT nor SIGNAL"},
		{"own", "EVENTS(6)\nWAIT(0)\n2 x\n", "line 3: event 2 waits for event 0, which is of its own thread"},
		{"at the end", "EVENTS(6)\nCOMPUTE(1ms)\n", "there is no event behind the last line"},
		{"no SIGNAL", "EVENTS(6)\nWAIT(0)\n1 x\n", "dead-lock: event 1 waits for event 0, which does not signal it: write SIGNAL(1) behind that, or remove the WAIT(0)"},
		{"no WAIT", "EVENTS(6)\n0 x\nSIGNAL(1)\n1 x\n", "event 0 signals event 1, which does not wait for it: write WAIT(0) before that, or remove the SIGNAL(1)"},
		{"circle", "EVENTS(6)\nWAIT(5)\n2 x\nSIGNAL(3)\nWAIT(2)\n3 x\n5 x\nSIGNAL(2)\n",
			"dead-lock: event 2 (thread 1) waits for event 5 (thread 2), before which comes event 3; event 3 (thread 2) waits for event 2 (thread 1)"},
		{"later", "EVENTS(6)\nWAIT(3)\n2 x\n3 x\nSIGNAL(2)\n", "event 2 waits for event 3, which returned after it: an event can wait for earlier ones only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := ReadText(strings.NewReader(c.text), x.all()); err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestUntil: who follows the annotations knows how long an event is to be remembered.
func TestUntil(t *testing.T) {
	x := &tape{t: t}
	x.pipe(1, 0, 10, 11)
	x.write(1, 1, 2, 11, 2)
	x.read(2, 3, 4, 10, 1)
	x.read(3, 5, 6, 10, 1)
	n, _ := x.annotated()
	c := n.Cursor()
	for seq, want := range []uint64{0, 3, 0, 0} {
		if got := c.At(uint64(seq)).Until; got != want {
			t.Errorf("event %d until %d, want %d", seq, got, want)
		}
	}
}

// TestCursor reads in any order what was written in one.
func TestCursor(t *testing.T) {
	b := &builder{}
	for i := range uint64(3 * blockEvents) {
		an := Annotation{Compute: time.Duration(i)}
		if i > 0 && i%7 == 0 {
			an.Waits = []Dependency{{Event: i - 1, Lag: time.Duration(i)}}
		}
		b.add(&an)
	}
	head := []byte{version, 0x80, 0x18} // 3072
	n, err := decode(append(head, b.notes.data...))
	if err != nil {
		t.Fatal(err)
	}
	c := n.Cursor()
	for _, i := range []uint64{0, 1, 7, 2000, 1999, 2001, 3071, 3072, 14} {
		an := c.At(i)
		if i < 3072 && an.Compute != time.Duration(i) || (i%7 == 0 && i > 0 && i < 3072) != (len(an.Waits) == 1) {
			t.Errorf("event %d: %+v", i, an)
		}
	}
	if got := n.Before(14); !slices.Equal(got, []uint64{13}) {
		t.Errorf("before 14: %v", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 4, 1, 10, 1, 1, 0}) // event 1 waits for event 0
	f.Add([]byte{1, 1, 9, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := decode(b)
		if (n == nil) == (err == nil) {
			t.Fatalf("%v and %v", n, err)
		}
		if n == nil {
			return
		}
		again := &builder{}
		c := n.Cursor()
		for i := range n.Events() {
			for _, w := range c.At(i).Waits {
				if w.Event >= i {
					t.Fatalf("event %d waits for %d", i, w.Event)
				}
			}
			again.add(c.At(i))
		}
		if len(again.notes.data) > len(n.data) {
			t.Fatalf("%d bytes became %d", len(n.data), len(again.notes.data))
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("EVENTS(4)\nCOMPUTE(1ms)\n0 x\nSIGNAL(1)\nWAIT(0, 3µs)\nSLEEP(1s)\n1 x\n")
	f.Fuzz(func(t *testing.T, s string) {
		x := &tape{}
		for i := range 4 {
			x.add(uint32(i%2+1), int64(i), int64(i), event.OpGetpid, nil)
		}
		n, err := ReadText(strings.NewReader(s), x.all())
		if err != nil {
			return
		}
		back, err := ReadText(strings.NewReader(text(t, x, n)), x.all())
		if err != nil || !bytes.Equal(back.data, n.data) {
			t.Fatalf("%q: %v", s, err)
		}
	})
}
