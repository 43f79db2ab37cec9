// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// directories are how many names a record of a process's start begins with: working and root directory.
const directories = 2

// Arguments' bytes of further pieces in the state that a part of a recording begins with.
const (
	mountsPiece = 2 // of a start: the text of event.SetMounts
	namesPiece  = 3 // of a start, one for each of its names: given, absolute, and without links, with a NUL in between
	realPiece   = 2 // of a file: its name without links
)

// mountPieces appends to the record of a process's start what its event says of mounts.
func mountPieces(r *trace.Record, ev *event.Event) {
	if ev.Mounts() == nil {
		return
	}
	put := func(arg uint8, b []byte) {
		r.Pieces = append(r.Pieces, trace.Piece{Arg: arg, Len: uint32(len(b)), Data: b})
	}
	put(mountsPiece, ev.Bufs[0].Inline)
	for i := range ev.Paths {
		p := &ev.Paths[i]
		put(namesPiece, []byte(p.Raw+"\x00"+p.Abs+"\x00"+p.Real))
	}
}

// takeMounts is the inverse of mountPieces.
func takeMounts(ev *event.Event, r *trace.Record) {
	for i := directories; i < len(r.Pieces); i++ {
		p := &r.Pieces[i]
		switch names := bytes.Split(p.Data, []byte{0}); {
		case p.Arg == mountsPiece && i == directories:
			ev.Paths = ev.Paths[:0]
			ev.Bufs = append(ev.Bufs, event.Buf{Kind: event.KindText, Len: int64(len(p.Data)), Inline: bytes.Clone(p.Data)})
		case p.Arg == namesPiece && len(ev.Bufs) > 0 && len(names) == 3:
			ev.Paths = append(ev.Paths, event.Path{Arg: int8(min(len(ev.Paths), directories)),
				Raw: string(names[0]), Abs: string(names[1]), Real: string(names[2])})
		}
	}
}
