// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"fmt"

	"github.com/zeebo/blake3"
)

// magicBytes is the length of the magic of an envelope.
const magicBytes = 8

// setEnvelope writes a file of a payload that was derived from what id describes:
//
//	file = magic(8) BLAKE3 of id(32) payload BLAKE3 of all before(32)
func setEnvelope(dir, name, magic, id string, payload ...[]byte) error {
	sum := blake3.Sum256([]byte(id))
	b := append([]byte(magic), sum[:]...)
	for _, p := range payload {
		b = append(b, p...)
	}
	sum = blake3.Sum256(b)
	return replace(dir, name, append(b, sum[:]...))
}

// envelope returns the payload of a file of setEnvelope. The error wraps fs.ErrNotExist if there is none, and
// ErrCorrupt if it is damaged, longer than limit, or derived from something else.
func envelope(dir, name, magic, id string, limit int64) ([]byte, error) {
	of, payload, err := readEnvelope(dir, name, magic, limit)
	if sum := blake3.Sum256([]byte(id)); err == nil && !bytes.Equal(sum[:], of) {
		return nil, fmt.Errorf("%s belongs to another state of the tape: %w", name, ErrCorrupt)
	}
	return payload, err
}

// readEnvelope returns the payload of a file, and the hash of what it was derived from.
func readEnvelope(dir, name, magic string, limit int64) (of, payload []byte, err error) {
	const head = magicBytes + 32
	b, err := readLimited(dir, name, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	end := len(b) - 32
	if end < head || string(b[:magicBytes]) != magic {
		return nil, nil, fmt.Errorf("%s: %w", name, ErrCorrupt)
	}
	if sum := blake3.Sum256(b[:end]); !bytes.Equal(sum[:], b[end:]) {
		return nil, nil, fmt.Errorf("%s: hash differs: %w", name, ErrCorrupt)
	}
	return b[magicBytes:head], b[head:end], nil
}

// Magics of what a replay derives.
const (
	initialMagic = "iotape I"
	orderMagic   = "iotape O"
)

// derivedMagics are the files that a replay derives.
var derivedMagics = map[string]string{InitialName: initialMagic, OrderName: orderMagic}

// MaxDerivation bounds what a replay stores, in bytes.
const MaxDerivation = 256 << 20

// SetDerivation stores a payload that a replay derived, InitialName or OrderName, in place of the one before. key
// says from what it was derived beside the tape.
func (t *Tape) SetDerivation(name, key string, payload ...[]byte) error {
	return setEnvelope(t.DerivedDir(), name, derivedMagics[name], t.Identity()+key, payload...)
}

// Derivation returns the payload of SetDerivation. The error wraps fs.ErrNotExist if there is none, and ErrCorrupt if
// it is damaged, has more than limit bytes or was derived from another state of the tape or with another key. Whoever
// wrote the tape may have written the payload.
func (t *Tape) Derivation(name, key string, limit int64) ([]byte, error) {
	return envelope(t.DerivedDir(), name, derivedMagics[name], t.Identity()+key, limit)
}
