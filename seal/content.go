// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"math"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// store takes content that does not stand in its event.
type store interface {
	// spill moves the bytes that stand in the event out of it: more of the buffer is to
	// come, or is missing. base is the file offset of the buffer.
	spill(b *event.Buf, base int64) error
	// add appends bytes to a buffer that is too large for the event.
	add(b *event.Buf, base int64, p *trace.Piece) error
}

// maxInline is the largest content that stands in the event itself: below it, a
// reference costs more than it saves.
const maxInline = 64

// pieces adds memory to an event.
func (a *assembler) pieces(it *item, pieces []trace.Piece) error {
	for i := range pieces {
		if err := a.piece(it, &pieces[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembler) piece(it *item, p *trace.Piece) error {
	ev := &it.ev
	if p.Arg == socketPiece || p.Arg > math.MaxInt8 {
		return nil // nameSockets has it; no recorder writes others
	}
	kind, dir := meaning(ev, int(p.Arg))
	if kind == event.KindPath {
		if p.Flags&trace.PieceMissing != 0 && len(p.Data) == 0 && !ev.OK() {
			return nil // what cannot be read (EFAULT) is its address, not ""
		}
		ev.Paths = append(ev.Paths, event.Path{Arg: int8(p.Arg), Raw: strings.TrimRight(string(p.Data), "\x00")})
		return nil
	}
	b := ev.BufArg(int(p.Arg))
	if b == nil {
		ev.Bufs = append(ev.Bufs, event.Buf{Arg: int8(p.Arg), Dir: dir, Kind: kind})
		b = &ev.Bufs[len(ev.Bufs)-1]
	}
	switch {
	case p.Flags&trace.PieceHash != 0:
		a.digest(it, b, p)
	case p.Flags&trace.PieceSketch != 0:
		if len(b.Sketch)+len(p.Data) <= maxSketch {
			b.Sketch = append(b.Sketch, p.Data...)
		}
	case p.Flags&trace.PieceOmitted != 0:
		b.Omitted = true
		it.before = it.before || p.Flags&trace.PieceBefore != 0
		b.Len += int64(p.Len)
	case p.Flags&trace.PieceShape != 0:
		for v := p.Data; len(v) >= 16; v = v[16:] {
			b.Parts = append(b.Parts, int64(le64(v[8:])))
		}
	case p.Flags&trace.PieceMissing != 0:
		b.Len += int64(p.Len)
		b.Missing += int64(p.Len)
		ev.Flags |= event.Incomplete
		if len(b.Inline) > 0 {
			if err := a.store.spill(b, it.base); err != nil {
				return err
			}
		}
		b.Refs = append(b.Refs, event.Ref{Len: p.Len})
	default:
		b.Len += int64(len(p.Data))
		return a.content(b, it.base, p)
	}
	return nil
}

// meaning returns what the memory of an argument, or of one of its parts, is.
func meaning(ev *event.Event, index int) (event.Kind, event.Dir) {
	part, i := event.SplitPart(index)
	spec := ev.Spec()
	if index == event.RequestArg {
		return event.KindStruct, event.In
	}
	if i >= len(spec.Args) {
		return event.KindBuf, event.In
	}
	a := spec.Argument(i, &ev.Args)
	switch part {
	case event.PartWhole:
		if a.Kind.IsMemory() {
			return a.Kind, a.Dir
		}
		return event.KindBuf, a.Dir
	case event.PartBefore:
		return event.KindStruct, event.In
	case event.PartData:
		return event.KindVec, a.Dir
	case event.PartTarget:
		if spec.Class == event.Meta {
			return event.KindBuf, a.Dir // the value of an extended attribute
		}
	}
	return event.KindStruct, a.Dir
}

// maxSketch bounds the sketches of a buffer: what is behind has signatures only.
const maxSketch = 2 << 20

// maxStruct is the largest structure or array of them that stands in the event itself.
const maxStruct = 4096

// content appends bytes to a buffer, in the event while they are few.
func (a *assembler) content(b *event.Buf, base int64, p *trace.Piece) error {
	if len(b.Refs) == 0 && (isInline(b, p) || len(b.Inline)+len(p.Data) <= maxInline) {
		b.Inline = append(b.Inline, p.Data...)
		return nil
	}
	return a.store.add(b, base, p)
}

// isInline reports whether a buffer of this kind stands in the event with one more piece.
func isInline(b *event.Buf, p *trace.Piece) bool {
	switch b.Kind {
	case event.KindText, event.KindStrings:
		return true
	case event.KindStruct:
		return len(b.Inline)+len(p.Data) <= maxStruct
	}
	return false
}

// digest appends the hash of a part that is not in the tape.
func (a *assembler) digest(it *item, b *event.Buf, p *trace.Piece) {
	var d event.Digest
	copy(d[:], p.Data)
	if p.Flags&trace.PieceMissing != 0 {
		b.Missing += int64(p.Len)
		it.ev.Flags |= event.Incomplete
	}
	b.Omitted = true
	b.Len += int64(p.Len)
	b.Hashes = append(b.Hashes, d)
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
