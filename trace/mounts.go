// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// startNames is how many names a record of a process's start begins with: working and root directory.
const startNames = 2

// Arguments' bytes of further pieces in the state that a part of a recording begins with.
const (
	mountsPiece = 2 // of a start: the text of event.SetMounts
	namesPiece  = 3 // of a start, one for each of its names: given, absolute, and without links, with a NUL in between
	RealPiece   = 2 // of a file: its name without links
	MappedPiece = 3 // of a file without a descriptor: two u64, the addresses that it is mapped at (event.Event.Mapping)
)

// StartPieces returns the pieces of the record of a process's start that becomes an event of kind Started.
func StartPieces(ev *event.Event) (pieces []Piece) {
	put := func(arg uint8, s string) {
		pieces = append(pieces, Piece{Arg: arg, Len: uint32(len(s)), Data: []byte(s)})
	}
	for i := range ev.Paths[:min(len(ev.Paths), startNames)] {
		put(uint8(i), ev.Paths[i].Abs)
	}
	if ev.Mounts() == nil {
		return pieces
	}
	put(mountsPiece, string(ev.Bufs[0].Inline))
	for i := range ev.Paths {
		p := &ev.Paths[i]
		put(namesPiece, p.Raw+"\x00"+p.Abs+"\x00"+p.Real)
	}
	return pieces
}

// FilePieces returns the pieces of the record of a file that was open at the start, which becomes an event of kind
// Inherited.
func FilePieces(ev *event.Event) (pieces []Piece) {
	put := func(arg uint8, b []byte) { pieces = append(pieces, Piece{Arg: arg, Len: uint32(len(b)), Data: b}) }
	f := &ev.Files[0]
	from, to, mapped := ev.Mapping()
	if f.Path != "" || f.Real != "" || mapped {
		put(0, []byte(f.Path))
	}
	if f.Real != "" {
		put(RealPiece, []byte(f.Real))
	}
	if mapped {
		put(MappedPiece, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, from), to))
	}
	return pieces
}

// TakeStart gives an event of kind Started what the pieces of a record say.
func TakeStart(ev *event.Event, pieces []Piece) {
	for i := range pieces {
		p := &pieces[i]
		switch names := bytes.Split(p.Data, []byte{0}); {
		case i < startNames:
			dir := string(p.Data)
			ev.Paths = append(ev.Paths, event.Path{Raw: dir, Abs: dir})
		case p.Arg == mountsPiece && i == startNames:
			ev.Paths = ev.Paths[:0]
			text := bytes.Clone(p.Data)
			ev.Bufs = append(ev.Bufs, event.Buf{Kind: event.KindText, Len: int64(len(text)), Inline: text})
		case p.Arg == namesPiece && len(ev.Bufs) > 0 && len(names) == 3:
			name := event.Path{Raw: string(names[0]), Abs: string(names[1]), Real: string(names[2])}
			if len(ev.Paths) >= startNames {
				name.Arg = startNames
			}
			ev.Paths = append(ev.Paths, name)
		}
	}
}
