// SPDX-License-Identifier: Apache-2.0

package checksum

import (
	"bytes"
	"crypto/subtle"
	"fmt"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/pipe"
)

// KeyBytes is the length of a key.
const KeyBytes = 32

// Key is the secret that makes checksums.
type Key [KeyBytes]byte

// ID names a key without telling it. It stands in the header of streams.
func (k *Key) ID() [8]byte {
	var id [8]byte
	blake3.DeriveKey("iotape pipe 1 checksum key id", k[:], id[:])
	return id
}

const (
	sumBytes = 16

	plainName = "checksum"
	keyedName = "checksum:keyed"
)

// Layer returns a layer that makes checksums with a key.
func Layer(k Key) pipe.Layer { return layer{k, true} }

// Plain returns a layer whose checksums everybody can make.
func Plain() pipe.Layer { return layer{} }

type layer struct {
	key   Key
	keyed bool
}

func (l layer) Name() string {
	if l.keyed {
		return keyedName
	}
	return plainName
}

func (l layer) Begin() (pipe.Encoder, []byte, error) {
	s, err := newSums(&l.key)
	if err != nil || !l.keyed {
		return s, nil, err
	}
	id := l.key.ID()
	return s, id[:], nil
}

// KeyError is returned for a stream whose key is not there.
type KeyError struct {
	ID    []byte // of the key
	Given int    // number of keys that were there
}

func (e *KeyError) Error() string {
	if e.Given == 0 {
		return fmt.Sprintf("its checksums need key %x, and no key is given", e.ID)
	}
	return fmt.Sprintf("wrong key: its checksums were made with key %x", e.ID)
}

// Open returns a decoder by the name of its layer. It reports whether the name is one of
// this package. Where no key fits the error is a *KeyError.
func Open(name string, params []byte, keys []Key) (d pipe.Decoder, ok bool, err error) {
	switch name {
	case plainName:
		d, err = newSums(&Key{})
		return d, true, err
	case keyedName:
	default:
		return nil, false, nil
	}
	for i := range keys {
		if id := keys[i].ID(); bytes.Equal(id[:], params) {
			d, err = newSums(&keys[i])
			return d, true, err
		}
	}
	return nil, true, &KeyError{params, len(keys)}
}

// sums makes the checksums of blocks. The keys of the two are derived, so that the one
// cannot stand for the other.
type sums struct {
	content, place *blake3.Hasher
	scratch        []byte
}

func newSums(k *Key) (*sums, error) {
	s := &sums{}
	for _, d := range []struct {
		context string
		h       **blake3.Hasher
	}{{"iotape pipe 1 checksum of content", &s.content}, {"iotape pipe 1 checksum of place", &s.place}} {
		var sub [32]byte
		blake3.DeriveKey(d.context, k[:], sub[:])
		h, err := blake3.NewKeyed(sub[:])
		if err != nil {
			return nil, err
		}
		*d.h = h
	}
	return s, nil
}

// sum appends the first bytes of a hasher's sum over b.
func sum(dst []byte, h *blake3.Hasher, b []byte) []byte {
	var out [32]byte
	h.Reset()
	_, _ = h.Write(b)
	return append(dst, h.Sum(out[:0])[:sumBytes]...)
}

// Encode implements pipe.Encoder.
func (s *sums) Encode(dst, src []byte, at *pipe.Place) ([]byte, error) {
	dst = append(dst, src...)
	return s.append(dst, src, at), nil
}

// append appends both checksums.
func (s *sums) append(dst, src []byte, at *pipe.Place) []byte {
	dst = sum(dst, s.content, src)
	s.scratch = at.Append(append(s.scratch[:0], dst[len(dst)-sumBytes:]...))
	return sum(dst, s.place, s.scratch)
}

// Decode implements pipe.Decoder.
func (s *sums) Decode(dst, src []byte, at *pipe.Place) ([]byte, error) {
	n := len(src) - 2*sumBytes
	if n < 0 {
		return dst, &pipe.Refusal{Kind: pipe.Changed, Detail: "it is too short for a checksum"}
	}
	var buf [2 * sumBytes]byte
	want, got := s.append(buf[:0], src[:n], at), src[n:]
	if subtle.ConstantTimeCompare(want[:sumBytes], got[:sumBytes]) == 0 {
		return dst, &pipe.Refusal{Kind: pipe.Changed, Detail: "the checksum of its bytes differs"}
	}
	if subtle.ConstantTimeCompare(want[sumBytes:], got[sumBytes:]) == 0 {
		return dst, &pipe.Refusal{Kind: pipe.Replaced,
			Detail: "its bytes are genuine, but of another block or stream, or its header was changed"}
	}
	return append(dst, src[:n]...), nil
}
