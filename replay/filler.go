package replay

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Data is what a replay writes: the recorded bytes, with zeros for those that the tape
// does not have, or something else in place of all of them.
type Data struct {
	// Made says that recorded bytes are not used.
	Made bool
	// Random bytes, or else Pattern over and over; an empty one is zeros.
	Random  bool
	Pattern []byte
}

// ParseData reads recorded, zero, random or pattern:HEX.
func ParseData(s string) (Data, error) {
	switch p, pattern := strings.CutPrefix(s, "pattern:"); {
	case s == "recorded":
		return Data{}, nil
	case s == "zero":
		return Data{Made: true}, nil
	case s == "random":
		return Data{Made: true, Random: true}, nil
	case pattern:
		b, err := hex.DecodeString(p)
		if err == nil && (len(b) == 0 || len(b) > 4096) {
			err = errors.New("a pattern has 1 to 4,096 bytes")
		}
		if err != nil {
			return Data{}, fmt.Errorf("%s: %w", s, err)
		}
		return Data{Made: true, Pattern: b}, nil
	}
	return Data{}, fmt.Errorf("data %q is neither recorded, zero, random nor pattern:HEX", s)
}

// fillerBytes is how much made-up content there is before it repeats.
const fillerBytes = 4 << 20

// filler is made-up content, of which writes take parts.
type filler struct {
	data  Data
	bytes []byte
}

func newFiller(d Data) *filler {
	f := &filler{data: d}
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

// fill makes up what is written at an offset of a file, or nowhere in particular: a
// pattern begins at the file's start. Random bytes differ from write to write.
func (f *filler) fill(b []byte, off int64, seq uint64) {
	if len(f.bytes) == 0 {
		clear(b)
		return
	}
	at := f.at(off, seq)
	for len(b) > 0 {
		n := copy(b, f.bytes[at:])
		b, at = b[n:], 0
		if !f.data.Random {
			at = (len(f.bytes) % len(f.data.Pattern))
		}
	}
}

// part is fill without copying, of n bytes that nobody may change: nil if they are zeros. It
// reports whether there is such a part.
func (f *filler) part(n int, off int64, seq uint64) ([]byte, bool) {
	if len(f.bytes) == 0 {
		return nil, true
	}
	at := f.at(off, seq)
	if at+n > len(f.bytes) {
		return nil, false
	}
	return f.bytes[at : at+n : at+n], true
}

// at is where in the made-up content a write begins.
func (f *filler) at(off int64, seq uint64) int {
	if f.data.Random {
		return int(seq * 0x9e3779b97f4a7c15 >> 42 & (fillerBytes - 1))
	}
	return int(max(off, 0) % int64(len(f.data.Pattern)))
}
