// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/binary"
	"math"
)

// Commands of ioctl with which files share content (ioctl_ficlonerange(2),
// ioctl_fideduperange(2)).
const (
	FiClone       = 0x40049409
	FiCloneRange  = 0x4020940d
	FiDedupeRange = 0xc0189436
)

// Clones reports whether files share content after an ioctl of a command.
func Clones(command uint64) bool {
	return uint32(command) == FiClone || uint32(command) == FiCloneRange || uint32(command) == FiDedupeRange
}

// Cloned is a part of one file that another one took over, without a call having read it.
type Cloned struct {
	FD   int32 // of the file that it was taken from
	From *File // the same, nil if the recording does not say
	To   *File
	Off  int64 // in From
	Len  int64 // 0 is up to its end
	At   int64 // in To
}

// Cloned returns what an ioctl cloned.
func (e *Event) Cloned() (c Cloned, ok bool) {
	if e.Kind != Call || e.Op != OpIoctl || !e.OK() {
		return c, false
	}
	c.To = e.FileArg(0)
	switch e.Args[1] {
	case FiClone:
		c.FD, c.From = int32(e.Args[2]), e.FileArg(2)
	case FiCloneRange:
		b := e.BufArg(2)
		if b == nil || len(b.Inline) < 32 {
			return c, false
		}
		field := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b.Inline[8*i:])) }
		c.FD, c.From = int32(field(0)), e.FileArg(MemoryArg)
		c.Off, c.Len, c.At = field(1), field(2), field(3)
	default:
		return c, false
	}
	inFile := func(off int64) bool { return off >= 0 && off <= math.MaxInt64-max(c.Len, c.Bytes()) }
	return c, c.To != nil && c.Len >= 0 && c.Off >= 0 && inFile(c.Off) && inFile(c.At)
}

// Bytes returns how long the part is, -1 if that is not known.
func (c *Cloned) Bytes() int64 {
	switch {
	case c.Len > 0:
		return c.Len
	case c.From != nil && c.From.Known && c.From.Size >= c.Off:
		return c.From.Size - c.Off
	}
	return -1
}

// Place is an offset in the file of a descriptor.
type Place struct {
	FD  int32
	Off int64
}

// Deduped returns the part of its file that an ioctl compared with others of that length,
// to have equal ones share blocks, and where these are.
func (e *Event) Deduped() (off, length int64, with []Place) {
	const head, each = 24, 32
	b := e.BufArg(2)
	if e.Kind != Call || e.Op != OpIoctl || !e.OK() || e.Args[1] != FiDedupeRange || b == nil || len(b.Inline) < head {
		return 0, 0, nil
	}
	m := b.Inline
	off, length = int64(binary.LittleEndian.Uint64(m)), int64(binary.LittleEndian.Uint64(m[8:]))
	n := binary.LittleEndian.Uint16(m[16:])
	for m = m[head:]; n > 0 && len(m) >= each; n-- {
		with = append(with, Place{int32(binary.LittleEndian.Uint64(m)), int64(binary.LittleEndian.Uint64(m[8:]))})
		m = m[each:]
	}
	return off, length, with
}
