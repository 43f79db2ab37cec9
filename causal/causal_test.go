// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

// tape builds events from a few words a line: thread, enter, exit, what.
type tape struct {
	t      *testing.T
	events []*event.Event
}

func (x *tape) add(tid uint32, enter, exit int64, op event.Op, fill func(*event.Event)) int {
	e := &event.Event{Seq: uint64(len(x.events)), Op: op, PID: tid, TID: tid, Enter: enter, Exit: exit, CPU: enter}
	if fill != nil {
		fill(e)
	}
	x.events = append(x.events, e)
	return len(x.events) - 1
}

func (x *tape) pipe(tid uint32, at int64, read, write event.OpenID) int {
	return x.add(tid, at, at, event.OpPipe2, func(e *event.Event) {
		e.Files = []event.File{{Arg: event.MemoryArg, Open: read}, {Arg: event.MemoryArg, Open: write}}
	})
}

func (x *tape) write(tid uint32, enter, exit int64, open event.OpenID, n int64) int {
	return x.add(tid, enter, exit, event.OpWrite,
		func(e *event.Event) { e.Ret, e.Files = n, []event.File{{Open: open}} })
}

func (x *tape) read(tid uint32, enter, exit int64, open event.OpenID, n int64) int {
	return x.add(tid, enter, exit, event.OpRead,
		func(e *event.Event) { e.Ret, e.Files = n, []event.File{{Open: open}} })
}

// edges lists what comes before each event, but for the thread's own order.
func (x *tape) edges() string {
	b := NewBuilder()
	for _, e := range x.events {
		b.Add(e)
	}
	var list []string
	for i, before := range b.Before() {
		for _, e := range before {
			if e.Why != Program {
				list = append(list, fmt.Sprintf("%d>%d %v", e.From, i, e.Why))
			}
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func (x *tape) want(edges string) {
	x.t.Helper()
	if got := x.edges(); got != edges {
		x.t.Errorf("got %q, want %q", got, edges)
	}
}

func TestProcesses(t *testing.T) {
	x := &tape{t: t}
	fork := x.add(1, 1, 1, 0, func(e *event.Event) { e.Kind, e.Child, e.Ret = event.Forked, 2, 2 })
	first := x.add(2, 3, 4, event.OpGetpid, nil)
	x.add(1, 1, 5, event.OpFork, func(e *event.Event) { e.Ret = 2 })
	end := x.add(2, 6, 6, 0, func(e *event.Event) { e.Kind, e.PPID = event.Exited, 1 })
	wait := x.add(1, 5, 7, event.OpWait4, func(e *event.Event) { e.Ret = 2 })
	woken := x.add(3, 8, 8, 0, func(e *event.Event) { e.Kind, e.Child = event.Woken, 1 })
	x.want(fmt.Sprintf("%d>%d fork, %d>%d wait, %d>%d wake", fork, first, end, wait, wait, woken))
}

func TestProgramOrderComesFirst(t *testing.T) {
	x := &tape{t: t}
	x.pipe(1, 1, 10, 11)
	w := x.write(2, 2, 3, 11, 5)
	r := x.read(1, 4, 5, 10, 5)
	b := NewBuilder()
	for _, e := range x.events {
		b.Add(e)
	}
	if got, want := b.Before()[r], []Edge{{0, Program}, {w, Bytes}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPipes(t *testing.T) {
	t.Run("bytes of several writes, in parts", func(t *testing.T) {
		x := &tape{t: t}
		x.pipe(1, 1, 10, 11)
		x.write(1, 2, 3, 11, 5)
		x.write(1, 4, 5, 11, 5)
		x.read(2, 6, 7, 10, 4)
		x.read(2, 8, 9, 10, 4)
		x.read(2, 10, 11, 10, 2)
		x.want("1>3 bytes, 1>4 bytes, 2>4 bytes, 2>5 bytes")
	})
	t.Run("a reader returns before its writer", func(t *testing.T) {
		x := &tape{t: t}
		x.pipe(1, 1, 10, 11)
		x.read(2, 2, 6, 10, 5)
		x.write(1, 3, 7, 11, 5)
		x.want("2>1 bytes")
	})
	t.Run("writers that overlap are proved together", func(t *testing.T) {
		x := &tape{t: t}
		x.pipe(1, 1, 10, 11)
		x.write(1, 2, 5, 11, 5)
		x.write(3, 3, 6, 11, 5)
		x.read(2, 7, 8, 10, 5)
		x.read(2, 9, 10, 10, 5)
		x.want("1>4 bytes, 2>4 bytes")
	})
	t.Run("readers that overlap prove nothing", func(t *testing.T) {
		x := &tape{t: t}
		x.pipe(1, 1, 10, 11)
		x.write(1, 2, 3, 11, 2)
		x.read(2, 4, 8, 10, 1)
		x.read(3, 5, 9, 10, 1)
		x.write(1, 10, 11, 11, 1)
		x.read(3, 12, 13, 10, 1)
		x.want("4>5 bytes")
	})
	t.Run("a pipe whose beginning is not seen", func(t *testing.T) {
		x := &tape{t: t}
		x.write(1, 2, 3, 11, 2)
		x.read(2, 4, 8, 10, 2)
		x.want("")
	})
	t.Run("after a loss", func(t *testing.T) {
		x := &tape{t: t}
		x.pipe(1, 1, 10, 11)
		x.write(1, 2, 3, 11, 2)
		x.read(2, 4, 5, 10, 2)
		x.add(0, 6, 6, 0, func(e *event.Event) { e.Kind = event.LossMark })
		x.write(1, 7, 8, 11, 2)
		x.read(2, 9, 10, 10, 2)
		x.want("1>2 bytes")
	})
}

func TestSocketpair(t *testing.T) {
	pair := func(kind uint64) *tape {
		x := &tape{t: t}
		x.add(1, 1, 1, event.OpSocketpair, func(e *event.Event) {
			e.Args[1] = kind
			e.Files = []event.File{{Arg: event.MemoryArg, Open: 10}, {Arg: event.MemoryArg, Open: 11}}
		})
		x.write(1, 2, 3, 10, 8)
		x.write(2, 2, 3, 11, 8)
		x.read(1, 4, 5, 10, 4)
		x.read(2, 6, 7, 11, 4)
		x.read(2, 8, 9, 11, 4)
		return x
	}
	pair(1).want("1>4 bytes, 1>5 bytes, 2>3 bytes")
	pair(2).want("1>4 bytes, 2>3 bytes") // datagrams: what a read leaves is gone
}

// TestConnection is of two hosts, whose sockets' names say both ends.
func TestConnection(t *testing.T) {
	x := &tape{t: t}
	client := []event.File{{Open: 5, Path: "TCP:[10.0.0.1:4000->10.0.0.2:80]"}}
	server := []event.File{{Open: 5, Path: "TCP:[10.0.0.2:80->10.0.0.1:4000]"}}
	on := func(host uint32, n int64, f []event.File) func(*event.Event) {
		return func(e *event.Event) { e.Host, e.Ret, e.Files = host, n, f }
	}
	x.add(1, 1, 2, event.OpConnect, on(0, 0, client))
	x.add(1, 3, 4, event.OpSendto, on(0, 9, client))
	x.add(1, 5, 6, event.OpRecvfrom, on(1, 4, server))
	x.add(1, 7, 8, event.OpRecvfrom, on(1, 5, server))
	x.add(1, 9, 10, event.OpSendto, on(1, 3, server))
	x.add(1, 11, 12, event.OpRecvfrom, on(0, 3, client))
	x.want("1>2 bytes, 1>3 bytes, 4>5 bytes")
}
