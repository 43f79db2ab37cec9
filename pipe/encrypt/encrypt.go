// SPDX-License-Identifier: Apache-2.0

package encrypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/iotape/iotape/pipe"
)

const (
	keyBytes  = 32
	layerName = "encrypt:aes256gcm"
)

// key is one of the chain, or a block's.
type key [keyBytes]byte

const ( // of keyBytes each
	nextLabel  = "iotape pipe 1: next chain key  \x00"
	blockLabel = "iotape pipe 1: key of a block  \x00"
)

func derive(label string, k *key) key {
	var in [2 * keyBytes]byte
	copy(in[:keyBytes], label)
	copy(in[keyBytes:], k[:])
	out := key(sha256.Sum256(in[:]))
	clear(in[:])
	return out
}

// Layer returns a layer that encrypts for recipients, of whom each alone can read.
func Layer(recipients ...age.Recipient) (pipe.Layer, error) {
	if len(recipients) == 0 {
		return nil, errors.New("encrypt: for whom? name a recipient, age1…")
	}
	return layer(recipients), nil
}

type layer []age.Recipient

func (layer) Name() string { return layerName }

func (l layer) Begin() (pipe.Encoder, []byte, error) {
	e := &encoder{}
	rand.Read(e.chain[:])
	var wrapped bytes.Buffer
	w, err := age.Encrypt(&wrapped, l...)
	if err == nil {
		_, err = w.Write(e.chain[:])
	}
	if err == nil {
		err = w.Close()
	}
	return e, wrapped.Bytes(), err
}

// encoder holds the key of the chain for the block that comes next, and no other.
type encoder struct {
	chain key
	next  uint64
	aad   []byte
}

// Encode implements pipe.Encoder.
func (e *encoder) Encode(dst, src []byte, at *pipe.Place) ([]byte, error) {
	if at.Number != e.next {
		return dst, fmt.Errorf("block %d comes after block %d", at.Number, e.next)
	}
	k := derive(blockLabel, &e.chain)
	e.chain = derive(nextLabel, &e.chain)
	e.next++
	gcm, err := newGCM(&k)
	clear(k[:])
	if err != nil {
		return dst, err
	}
	e.aad = at.Append(e.aad[:0])
	nonce := nonceOf(at)
	return gcm.Seal(dst, nonce[:], src, e.aad), nil
}

func newGCM(k *key) (cipher.AEAD, error) {
	b, err := aes.NewCipher(k[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(b)
}

func nonceOf(at *pipe.Place) (nonce [12]byte) {
	binary.LittleEndian.PutUint64(nonce[:], at.Number)
	return nonce
}

// RecipientError is returned for a stream that no identity opens.
type RecipientError struct {
	Given int // number of identities that were there
	Err   error
}

func (e *RecipientError) Error() string {
	if e.Given == 0 {
		return "it is encrypted, and no identity is given"
	}
	return "wrong recipient: it is not encrypted for any identity that is given"
}

func (e *RecipientError) Unwrap() error { return e.Err }

// Open returns a decoder by the name of its layer. It reports whether the name is one of
// this package. Where no identity fits the error is a *RecipientError.
func Open(name string, params []byte, identities []age.Identity) (d pipe.Decoder, ok bool, err error) {
	if name != layerName {
		return nil, false, nil
	}
	if len(identities) == 0 {
		return nil, true, &RecipientError{}
	}
	r, err := age.Decrypt(bytes.NewReader(params), identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, true, &RecipientError{len(identities), err}
	}
	var first []byte
	if err == nil {
		first, err = io.ReadAll(io.LimitReader(r, keyBytes+1))
	}
	if err == nil && len(first) != keyBytes {
		err = fmt.Errorf("a key of %d bytes", len(first))
	}
	if err != nil {
		return nil, true, fmt.Errorf("open the stream's key: %w", err)
	}
	return &decoder{marks: []key{key(first)}, at: key(first)}, true, nil
}

// decoder makes the key of any block. Of the chain it keeps every markEvery-th key.
type decoder struct {
	marks []key
	at    key // of the chain, for block n
	n     uint64
	good  uint64 // highest number of a good block
	aad   []byte
}

const (
	markEvery = 1024
	// maxAhead bounds how far a block may be ahead of all that are good: making keys
	// takes time, and a number in clear may be anything.
	maxAhead = 1 << 22
)

// Decode implements pipe.Decoder.
func (d *decoder) Decode(dst, src []byte, at *pipe.Place) ([]byte, error) {
	if at.Number > d.good+maxAhead {
		return dst, &pipe.Refusal{Kind: pipe.Changed, Detail: "its number is far too high"}
	}
	k := d.key(at.Number)
	gcm, err := newGCM(&k)
	if err != nil {
		return dst, err
	}
	d.aad = at.Append(d.aad[:0])
	nonce := nonceOf(at)
	out, err := gcm.Open(dst, nonce[:], src, d.aad)
	if err != nil {
		return dst, &pipe.Refusal{Kind: pipe.Changed,
			Detail: "it is not what was encrypted as this block of this stream"}
	}
	d.good = max(d.good, at.Number)
	return out, nil
}

// key returns the key of a block.
func (d *decoder) key(number uint64) key {
	mark := min(number/markEvery, uint64(len(d.marks)-1))
	if number < d.n || mark*markEvery > d.n {
		d.at, d.n = d.marks[mark], mark*markEvery
	}
	for d.n < number {
		d.at = derive(nextLabel, &d.at)
		if d.n++; d.n%markEvery == 0 && d.n/markEvery == uint64(len(d.marks)) {
			d.marks = append(d.marks, d.at)
		}
	}
	return derive(blockLabel, &d.at)
}
