// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"syscall"
)

// NotePrefix begins the name by which a recorded program writes a note into its recording:
// access(2) with such a name fails, and costs a system call if nobody records.
const NotePrefix = "iotape:note "

// CarriesNote reports whether programs write notes with an operation.
func CarriesNote(op Op) bool {
	return op == OpAccess || op == OpFaccessat || op == OpFaccessat2
}

// WrittenNote returns the text of a note that a call wrote. A call that found a file of such
// a name is no note.
func (e *Event) WrittenNote() (text string, ok bool) {
	if e.Kind != Call || !CarriesNote(e.Op) || len(e.Paths) == 0 ||
		e.Errno != syscall.ENOENT && e.Errno != syscall.ENAMETOOLONG {
		return "", false
	}
	return strings.CutPrefix(e.Paths[0].Raw, NotePrefix)
}

// Note returns the text of a NoteMark, "" of other events, or if it is stored elsewhere.
func (e *Event) Note() string {
	if e.Kind != NoteMark || len(e.Bufs) == 0 {
		return ""
	}
	return string(e.Bufs[0].Inline)
}

// SetNote makes the event a NoteMark with a text. What a call has besides is gone.
func (e *Event) SetNote(text string) {
	e.Kind, e.Op, e.NR, e.Flags = NoteMark, OpUnknown, 0, 0
	e.Args, e.Ret, e.Errno, e.CPU = [6]uint64{}, 0, 0, 0
	e.Enter, e.DelayBefore, e.DelayWithin = e.Exit, 0, 0
	e.Paths, e.Files = nil, nil
	e.Offset, e.Count = -1, -1
	e.Bufs = []Buf{{Kind: KindText, Len: int64(len(text)), Inline: []byte(text)}}
}
