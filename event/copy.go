// SPDX-License-Identifier: Apache-2.0

package event

import "encoding/binary"

// CopySide says which arguments are one side of a copy between two descriptors (copy_file_range(2), sendfile(2),
// splice(2)).
type CopySide struct {
	FD     int // the argument
	Offset int // the argument that points to the offset; -1: there is none, the position of the descriptor counts
}

// CopySides returns the source and the target of an event with EffectCopy.
func (e *Event) CopySides() (from, to CopySide) {
	if e.Op.Like() == OpSendfile {
		return CopySide{1, 2}, CopySide{0, -1}
	}
	return CopySide{0, 1}, CopySide{2, 3}
}

// AtPosition reports whether the copy was made at the position of the side's descriptor, and moved it.
func (s CopySide) AtPosition(e *Event) bool { return s.Offset < 0 || e.Args[s.Offset] == 0 }

// Start returns where in the side's file the copy began, -1 if that is not known. The offset that the kernel left
// is that after the copy; so is the position.
func (s CopySide) Start(e *Event) int64 {
	if !s.AtPosition(e) {
		if b := e.BufArg(s.Offset); b != nil && len(b.Inline) >= 8 {
			return int64(binary.LittleEndian.Uint64(b.Inline)) - e.Ret
		}
		return -1
	}
	if f := e.FileArg(s.FD); f != nil && f.Known {
		return f.Pos - e.Ret
	}
	return -1
}
