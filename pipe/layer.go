// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"encoding/binary"
	"fmt"
)

// A Layer is one step of a chain, not yet part of a stream.
type Layer interface {
	// Name is the layer as the stream's header has it, with options and without
	// secrets.
	Name() string
	// Begin starts the layer for a new stream. params goes into the header, in clear.
	Begin() (e Encoder, params []byte, err error)
}

// An Encoder does a layer's work. Blocks come in order, each once; all calls come from
// one goroutine at a time.
type Encoder interface {
	// Encode appends the encoded form of src, which it may change, to dst. It adds at
	// most 64 bytes.
	Encode(dst, src []byte, at *Place) ([]byte, error)
}

// A Decoder undoes what an Encoder did. Blocks come in any order and may be hostile.
type Decoder interface {
	// Decode appends to dst what src, which it may change, was. Where it refuses the
	// block the error is a *Refusal.
	Decode(dst, src []byte, at *Place) ([]byte, error)
}

// Place is where in a stream a block belongs. Layers that authenticate bind the block
// to it.
type Place struct {
	Stream [32]byte // Header.Sum, once for all blocks; it covers the serial
	Number uint64
	Final  bool
	Layer  uint8 // of the chain, from 0
}

// PlaceBytes is the length of an encoded Place.
const PlaceBytes = 32 + 8 + 2

// Append encodes the place for a checksum or as associated data.
func (p *Place) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, p.Stream[:]...), p.Number)
	final := byte(0)
	if p.Final {
		final = 1
	}
	return append(b, final, p.Layer)
}

// Refusal says why a layer does not take a block.
type Refusal struct {
	Kind   Kind
	Detail string // "the checksum differs"
}

func (r *Refusal) Error() string { return r.Detail }

// Kind is what is wrong with a stream at some place.
type Kind uint8

// The kinds of faults.
const (
	Changed    Kind = iota + 1 // the block's bytes are not those that were written
	Replaced                   // bytes of a genuine block stand where another one belongs
	Removed                    // the block is not there
	Moved                      // the block comes after one with a higher number
	Replayed                   // the block was there before
	Foreign                    // the block is of another stream
	Garbage                    // bytes between blocks that are no block
	Truncated                  // the stream ends without a final block
	Trailing                   // bytes after the final block
	Unreadable                 // a layer cannot undo it, although none says that it was changed
)

var kindNames = [...]string{"", "changed", "replaced", "removed", "moved", "replayed", "foreign", "garbage",
	"truncated", "trailing", "unreadable"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Fault is one thing that is wrong with a stream. It is an error.
type Fault struct {
	Kind   Kind
	Block  uint64 // number of the block; of Garbage, Truncated and Trailing that which was to come
	Last   uint64 // of Removed: the last of the blocks
	Offset int64  // in the piped stream
	Layer  string // that refused the block, "" if none did
	Detail string
}

func (f *Fault) Error() string {
	switch f.Kind {
	case Removed:
		if f.Last > f.Block {
			return fmt.Sprintf("blocks %d to %d are missing (before offset %d)", f.Block, f.Last, f.Offset)
		}
		return fmt.Sprintf("block %d is missing (before offset %d)", f.Block, f.Offset)
	case Moved:
		return fmt.Sprintf("block %d is out of order: it comes after later ones, at offset %d", f.Block, f.Offset)
	case Replayed:
		return fmt.Sprintf("block %d is there again, at offset %d", f.Block, f.Offset)
	case Foreign:
		return fmt.Sprintf("block %d at offset %d is of another stream, %s", f.Block, f.Offset, f.Detail)
	case Garbage:
		return fmt.Sprintf("where block %d is expected, at offset %d, %s", f.Block, f.Offset, f.Detail)
	case Truncated:
		return fmt.Sprintf("the stream is cut off at offset %d, where block %d is expected", f.Offset, f.Block)
	case Trailing:
		return fmt.Sprintf("after the final block, at offset %d, %s", f.Offset, f.Detail)
	}
	return fmt.Sprintf("block %d at offset %d was %s: %s: %s", f.Block, f.Offset, f.Kind, f.Layer, f.Detail)
}
