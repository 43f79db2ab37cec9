// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/trace"
)

// special are numbers that are likely to be written in a way that does not read back.
var special = []uint64{0, 1, 2, 3, 7, 0o644, 4096, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1,
	1 << 63, 1<<64 - 1, 1<<64 - 100, 1<<32 - 100}

var results = []int64{0, 0, 1, 3, 5, 1 << 20, 1 << 40, -1, -2, -11, -58, -133, -512, -4095, -4096,
	-1 << 40, 1<<63 - 1, -1 << 63}

// everyCall makes records of each operation, with arguments, memory and results of all sizes.
type everyCall struct {
	r    *rand.Rand
	w    *format.Writer
	arch event.Arch
	time uint64
}

func (e *everyCall) bytes() []byte {
	b := make([]byte, []int{0, 1, 4, 8, 16, 28, 64, 100, 144, 300}[e.r.IntN(10)])
	for i := range b {
		if b[i] = byte(e.r.Uint32()); e.r.IntN(3) == 0 {
			b[i] = []byte{0, ' ', '"', '\\', '\n', '#', '<', '>', ',', '\''}[e.r.IntN(10)]
		}
	}
	return b
}

// memory adds what an argument points to.
func (e *everyCall) memory(rec *trace.Record, i int, kind event.Kind) {
	piece := trace.Piece{Arg: uint8(i), Data: e.bytes()}
	switch e.r.IntN(8) {
	case 0:
		return
	case 1:
		if kind != event.KindPath && kind != event.KindText {
			piece.Data, piece.Flags = nil, trace.PieceMissing
		}
	case 2:
		if kind != event.KindPath && kind != event.KindText {
			piece.Data, piece.Flags = nil, trace.PieceOmitted
		}
	}
	switch kind {
	case event.KindPath, event.KindText: // they have no NULs
		for j := range piece.Data {
			piece.Data[j] |= 1
		}
	case event.KindVec:
		shape := make([]byte, 32)
		binary.LittleEndian.PutUint64(shape[8:], uint64(len(piece.Data)))
		rec.Pieces = append(rec.Pieces, trace.Piece{Arg: uint8(i), Flags: trace.PieceShape, Len: 32, Data: shape})
	}
	if piece.Len = uint32(len(piece.Data)); piece.Flags != 0 {
		piece.Len = 1 + uint32(e.r.IntN(300))
	}
	rec.Pieces = append(rec.Pieces, piece)
}

// call writes one call of an operation. A 32-bit program has other numbers.
func (e *everyCall) call(op event.Op, nr uint32, flags uint32) error {
	e.time += 100
	flags |= e.special()
	rec := &trace.Record{Type: trace.RecCall, Op: uint16(op), NR: nr, Flags: flags, PID: 7, TID: 7, Enter: e.time,
		Exit: e.time + uint64(e.r.IntN(90)), Ret: results[e.r.IntN(len(results))]}
	if e.r.IntN(8) == 0 {
		rec.Flags, rec.Ret = rec.Flags|trace.CallInterrupted, 0
	}
	if e.r.IntN(8) == 0 {
		rec.Flags |= trace.CallUntimed
	}
	spec := event.Lookup(op)
	if flags&trace.CallCompat != 0 {
		spec = event.Spec32(e.arch, nr)
	}
	for i := range rec.Args {
		if rec.Args[i] = special[e.r.IntN(len(special))]; e.r.IntN(2) == 0 {
			rec.Args[i] = uint64(e.r.IntN(64))
		}
		if flags&trace.CallCompat != 0 {
			rec.Args[i] &= 1<<32 - 1
		}
		if i < len(spec.Args) && (spec.Args[i].Kind == event.KindFD || spec.Args[i].Kind == event.KindDirFD) {
			rec.Args[i] &= 0x3f // what is no descriptor is of no open file
		}
	}
	for i := range spec.Args {
		a, told := spec.Argument(i, &rec.Args), false
		switch {
		case a.Kind.IsMemory():
			if n := len(rec.Pieces); rec.Args[i] != 0 {
				e.memory(rec, i, a.Kind)
				told = len(rec.Pieces) > n
			}
		case (a.Kind == event.KindFD || a.Kind == event.KindDirFD) && int32(rec.Args[i]) >= 0 && e.r.IntN(2) == 0:
			rec.Objects = append(rec.Objects, trace.Object{Arg: int8(i), FD: int32(rec.Args[i]),
				Ino: uint64(e.r.IntN(3)), Mode: 0o100644, Size: int64(special[e.r.IntN(12)]),
				Pos: int64(special[e.r.IntN(12)]), Nlink: 1, Flags: uint32(special[e.r.IntN(8)])})
		}
		if !told && e.r.IntN(20) == 0 {
			rec.Flags |= trace.CallUnknownArg << i
		}
	}
	if e.r.IntN(8) == 0 {
		rec.Flags |= trace.CallStandIn
	}
	if e.r.IntN(4) == 0 {
		s := trace.NamedStackRecord(7, 7, rec.Enter, e.stack())
		if err := e.w.Record(&s); err != nil {
			return err
		}
	}
	return e.w.Record(rec)
}

// special returns what is special about a record. What comes out of order returned before the record before.
func (e *everyCall) special() uint32 {
	switch e.r.IntN(8) {
	case 0:
		e.time -= 150
		return trace.RecordBehind
	case 1:
		e.time -= 150
		return trace.RecordBehind | trace.RecordLate
	}
	return 0
}

// stack returns one of a few stacks.
func (e *everyCall) stack() *event.Stack {
	s := &event.Stack{End: event.StackEnd(e.r.IntN(6))}
	for range e.r.IntN(3) {
		s.Frames = append(s.Frames, []event.Frame{
			{Offset: 1 << 63},
			{Module: "/lib/libc.so.6", BuildID: "5f3c", Offset: 0xfec20, Function: "fsync", Delta: 16, File: "../a b.c",
				Line: 27},
			{Module: "/a \"b\" ,]", Offset: 3, Exact: true, Function: "db::Log<int, long>::commit()", Delta: 1 << 40},
		}[e.r.IntN(3)])
	}
	return s
}

// mark writes an event that is no call.
func (e *everyCall) mark() error {
	e.time += 100
	file := event.Event{Kind: event.Inherited, Files: []event.File{{FD: 5, Path: "/home/a b", Real: "/data/a b"}}}
	mapped := event.Event{Kind: event.Inherited, Files: []event.File{{FD: event.MappedFD, Path: "/lib/x"}}}
	mapped.SetMapping(0x7f0000000000, 0x7f0000003000)
	siginfo := make([]byte, event.SiginfoBytes)
	siginfo[0] = 17
	text := []trace.Piece{{Len: 3, Data: []byte("a\"b")}}
	object := func(fd int32) []trace.Object {
		return []trace.Object{{FD: fd, Ino: 4, Dev: 8 << 20, Mode: 0o100644, Size: 9, Nlink: 1,
			Open: uint32(e.r.IntN(3))}}
	}
	r := []trace.Record{
		{Type: trace.RecNote, Pieces: text},
		{Type: trace.RecLoss, Count: 12, Reason: trace.LossRing},
		{Type: trace.RecFork, Child: 8, ChildTID: 8, Share: trace.ShareFS},
		{Type: trace.RecWake, Child: 8, ChildTID: 8, Op: uint16(event.OpRead)},
		{Type: trace.RecSignal, Flags: uint32(event.SignalHandled), Pieces: []trace.Piece{{Len: 48, Data: siginfo}}},
		{Type: trace.RecStart, Umask: 0o27, Pieces: []trace.Piece{{Len: 2, Data: []byte("/a")}}},
		{Type: trace.RecFile, Flags: trace.FileOwn | 3<<trace.FileOverShift, Objects: object(5),
			Pieces: trace.FilePieces(&file)},
		{Type: trace.RecFile, Objects: object(event.MappedFD), Pieces: trace.FilePieces(&mapped)},
		{Type: trace.RecExit, Ret: 256},
	}[e.r.IntN(9)]
	r.PID, r.TID, r.Exit = 7, 7, e.time
	if r.Type == trace.RecExit || r.Type == trace.RecLoss && e.r.IntN(2) == 0 {
		r.PID, r.TID = 8, 8
	}
	r.Flags |= e.special()
	r.Exit = e.time
	return e.w.Record(&r)
}

// all writes what a stream can have.
func (e *everyCall) all(times int) error {
	for range times {
		for i := range event.Specs() {
			s := &event.Specs()[i]
			nr := uint32(event.Number(e.arch, s.Op))
			if s.Op == event.OpUnknown {
				nr = 400 + uint32(e.r.IntN(100))
			}
			if err := errors.Join(e.call(s.Op, nr, 0), e.mark()); err != nil {
				return err
			}
		}
		for nr := range uint32(470) {
			if e.arch != event.AMD64 || event.Name32(e.arch, nr) == "" {
				continue
			}
			if err := e.call(event.Spec32(e.arch, nr).Op, nr, trace.CallCompat); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestEveryCall: calls of every operation, of every size of arguments, memory and results, with stacks, out of order
// and not, and all other events are the same in what their script is compiled to.
func TestEveryCall(t *testing.T) {
	for _, arch := range []event.Arch{event.AMD64, event.ARM64} {
		for seed := range uint64(6) {
			tape, _ := formattest.Tape(t, func(im *format.Import) error {
				w, err := im.Host("mill")
				if err != nil {
					return err
				}
				w.Head.Arch = arch.String()
				e := &everyCall{r: rand.New(rand.NewPCG(seed, 1)), w: w, arch: arch, time: 1000}
				if err := w.Task(&format.Task{PID: 7, TID: 7, PPID: 1, Comm: "sh"}, 1000); err != nil {
					return err
				}
				return e.all(2)
			})
			formattest.SameEvents(t, tape, writtenAgain(t, tape), false)
			ofAll(t, tape)
		}
	}
}

// ofAll checks that a tape has what is special about events.
func ofAll(t *testing.T, tape *trace.Tape) {
	t.Helper()
	found := map[string]int{}
	last := int64(0)
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		_, _, mapped := ev.Mapping()
		for what, is := range map[string]bool{"late": ev.Flags&event.Late != 0, "behind": ev.Exit < last,
			"stand-in": ev.Flags&event.Synthetic != 0, "stack": ev.Stack != nil && len(ev.Stack.Frames) > 0,
			"late mark": ev.Flags&event.Late != 0 && ev.Kind != event.Call, "mapped": ev.Kind == event.Inherited && mapped,
			"over": ev.Kind == event.Inherited && ev.OpenedOver() != 0} {
			if is {
				found[what]++
			}
		}
		last = ev.Exit
	}
	for _, what := range []string{"late", "behind", "stand-in", "stack", "late mark", "mapped", "over"} {
		if found[what] < 5 {
			t.Errorf("%d events are %s, want 5 or more: the test tries nothing", found[what], what)
		}
	}
}
