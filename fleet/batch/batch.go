// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	magic = 0x70746f69 // "iotp"
	// Version is the protocol's: of batches, subjects and words.
	Version = 1

	headBytes = 48
	maxName   = 128

	// MaxData bounds a batch's data, in bytes.
	MaxData = 512 << 10
	// MaxBytes bounds an encoded batch.
	MaxBytes = headBytes + maxName + MaxData + 4
)

// Kind says what a batch's data is.
type Kind uint8

// The kinds.
const (
	Data  Kind = 1
	About Kind = 2 // staging.About: the first of a stream
	End   Kind = 3 // staging.End: the last of a stream
)

// Flags.
const (
	Within uint8 = 1 // the data begins inside a frame
	More   uint8 = 2 // the data ends inside a frame
)

// Errors that Decode wraps.
var (
	ErrDamaged = errors.New("not a batch, or a damaged one")
	ErrVersion = errors.New("a protocol that this program does not speak")
)

// Batch is a piece of a stream.
type Batch struct {
	Kind   Kind
	Flags  uint8
	Stream string // its name; not checked here
	Number uint64 // from 1, without gaps
	Before uint64 // events in the stream's earlier batches
	Events uint64 // in this one
	Lost   uint64 // events that the agent declared lost so far, this batch's included
	Data   []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append encodes the batch. Stream and Data have to be within their limits.
func (p *Batch) Append(b []byte) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = le.AppendUint32(b, magic)
	b = le.AppendUint16(b, Version)
	b = append(b, byte(p.Kind), p.Flags)
	b = le.AppendUint64(b, p.Number)
	b = le.AppendUint64(b, p.Before)
	b = le.AppendUint64(b, p.Events)
	b = le.AppendUint64(b, p.Lost)
	b = le.AppendUint32(b, uint32(len(p.Data)))
	b = le.AppendUint32(b, uint32(len(p.Stream)))
	b = append(b, p.Stream...)
	b = append(b, p.Data...)
	return le.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// Decode reads a batch. Its Data is part of b.
func Decode(b []byte) (Batch, error) {
	le := binary.LittleEndian
	if len(b) < headBytes+4 || le.Uint32(b) != magic {
		return Batch{}, fmt.Errorf("%d bytes without a head: %w", len(b), ErrDamaged)
	}
	if v := le.Uint16(b[4:]); v != Version {
		return Batch{}, fmt.Errorf("version %d, and this is %d: %w", v, Version, ErrVersion)
	}
	data, name := uint64(le.Uint32(b[40:])), uint64(le.Uint32(b[44:]))
	if data > MaxData || name > maxName || headBytes+name+data+4 != uint64(len(b)) {
		return Batch{}, fmt.Errorf("lengths %d and %d in %d bytes: %w", name, data, len(b), ErrDamaged)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != le.Uint32(b[len(body):]) {
		return Batch{}, fmt.Errorf("checksum differs: %w", ErrDamaged)
	}
	p := Batch{
		Kind: Kind(b[6]), Flags: b[7], Number: le.Uint64(b[8:]), Before: le.Uint64(b[16:]), Events: le.Uint64(b[24:]),
		Lost:   le.Uint64(b[32:]),
		Stream: string(body[headBytes : headBytes+name]), Data: body[headBytes+name:],
	}
	first := p.Number == 1
	switch {
	case p.Kind < Data || p.Kind > End, p.Number == 0, first != (p.Kind == About), p.Flags&^(Within|More) != 0:
		return Batch{}, fmt.Errorf("kind %d with number %d: %w", p.Kind, p.Number, ErrDamaged)
	case p.Kind != Data && p.Events != 0, p.Before+p.Events < p.Before:
		return Batch{}, fmt.Errorf("kind %d with %d and %d events: %w", p.Kind, p.Before, p.Events, ErrDamaged)
	}
	return p, nil
}
