// SPDX-License-Identifier: Apache-2.0

package content

import (
	"math/rand/v2"

	"github.com/iotape/iotape/replay/options"
)

// fillerBytes is how much made-up content there is before it repeats.
const fillerBytes = 4 << 20

// Filler is made-up content, of which writes take parts.
type Filler struct {
	data  options.Data
	bytes []byte
}

// NewFiller returns what writes take in place of recorded bytes.
func NewFiller(d options.Data) *Filler {
	f := &Filler{data: d}
	switch {
	case d.Random:
		f.bytes = make([]byte, fillerBytes)
		var seed [32]byte
		copy(seed[:], "iotape")
		_, _ = rand.NewChaCha8(seed).Read(f.bytes)
	case len(d.Pattern) > 0:
		for len(f.bytes) < fillerBytes {
			f.bytes = append(f.bytes, d.Pattern...)
		}
	}
	return f
}

// Fill makes up what is written at an offset of a file, or nowhere in particular: a
// pattern begins at the file's start. Random bytes differ from write to write.
func (f *Filler) Fill(b []byte, off int64, seq uint64) {
	if len(f.bytes) == 0 {
		clear(b)
		return
	}
	at := f.offset(off, seq)
	for len(b) > 0 {
		n := copy(b, f.bytes[at:])
		b, at = b[n:], 0
		if !f.data.Random {
			at = (len(f.bytes) % len(f.data.Pattern))
		}
	}
}

// Part returns what Fill would, without copying: n bytes that must not be changed, nil if
// they are zeros. It reports whether there is such a part.
func (f *Filler) Part(n int, off int64, seq uint64) ([]byte, bool) {
	if len(f.bytes) == 0 {
		return nil, true
	}
	at := f.offset(off, seq)
	if at+n > len(f.bytes) {
		return nil, false
	}
	return f.bytes[at : at+n : at+n], true
}

// offset is where in the made-up content a write begins.
func (f *Filler) offset(off int64, seq uint64) int {
	if f.data.Random {
		return int(seq * 0x9e3779b97f4a7c15 >> 42 & (fillerBytes - 1))
	}
	return int(max(off, 0) % int64(len(f.data.Pattern)))
}

// Made reports whether recorded bytes are not written.
func (f *Filler) Made() bool { return f.data.Made }
