// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"encoding/binary"
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
	return e.w.Record(rec)
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
			if err := e.call(s.Op, nr, 0); err != nil {
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

// TestEveryCall: calls of every operation, of every size of arguments, memory and results, are the same in what their
// script is compiled to.
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
		}
	}
}
