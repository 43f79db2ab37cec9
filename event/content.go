// SPDX-License-Identifier: Apache-2.0

package event

// HashBytes is the size of the parts that content is hashed in: part i of an
// argument's bytes begins at i*HashBytes. It is part of the formats.
const HashBytes = 64 << 10

// Digest is the BLAKE3-256 of a part of a buffer. All zeros stand for a part that
// could not be read.
type Digest [32]byte

// Missing reports whether the part could not be read.
func (d *Digest) Missing() bool { return *d == Digest{} }

// IsContent reports whether argument i, or part of an argument (Part.Of), holds
// bytes that the call moves for the program: file content, messages. Names,
// structures, addresses and argument vectors are not content; they say what the
// call is.
func (s *Spec) IsContent(i int) bool {
	part, i := SplitPart(i)
	if i >= len(s.Args) || s.Class != Data && s.Class != Socket || part > PartData || part == PartName ||
		part == PartBefore {
		return false
	}
	return part == PartData || s.Args[i].Kind == KindVec || s.Args[i].Kind == KindBuf
}

// MovedFrom returns the argument of the descriptor whose content a Hold operation
// moves.
func (s *Spec) MovedFrom() int {
	if s.Op == OpSendfile {
		return 1
	}
	return 0
}

// Kept returns how many bytes of the buffer's content the tape has.
func (b *Buf) Kept() int64 {
	n := int64(len(b.Inline))
	for _, r := range b.Refs {
		if r.Chunk != 0 {
			n += int64(r.Len)
		}
	}
	return n
}
