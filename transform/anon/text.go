// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"slices"
)

// An alphabet is a set of bytes, numbered.
type alphabet struct {
	id    uint8
	bytes []byte
	index [256]int16 // -1: not in it
}

func newAlphabet(id uint8, has func(b byte) bool) *alphabet {
	a := &alphabet{id: id}
	for b := range 256 {
		a.index[b] = -1
		if has(byte(b)) {
			a.index[b] = int16(len(a.bytes))
			a.bytes = append(a.bytes, byte(b))
		}
	}
	return a
}

func (a *alphabet) holds(s []byte) bool {
	for _, b := range s {
		if a.index[b] < 0 {
			return false
		}
	}
	return true
}

// The alphabets, part of the format. A string is encrypted in the first of its kind's
// that holds it, and stays in that.
var (
	digits = newAlphabet(1, isDigit)
	plain  = newAlphabet(2, isPlain)
	shown  = newAlphabet(3, isShown)
	names  = newAlphabet(4, func(b byte) bool { return b != 0 && b != '/' })
	print8 = newAlphabet(5, func(b byte) bool { return isShown(b) || b == '/' })
	noNUL  = newAlphabet(6, func(b byte) bool { return b != 0 })
	octets = newAlphabet(7, func(byte) bool { return true })
	others = newAlphabet(8, func(b byte) bool { return b != '/' })

	inNames = []*alphabet{digits, plain, shown, names, others}  // a name in a directory; with a NUL only in a forged tape
	inTexts = []*alphabet{digits, plain, print8, noNUL, octets} // a string of C; likewise
)

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
func isPlain(b byte) bool {
	return isDigit(b) || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_' || b == '-' || b == '.'
}
func isShown(b byte) bool { return ' ' <= b && b <= '~' && b != '/' }

// tierOf returns the first alphabet that holds s; the last holds everything that is asked
// for.
func tierOf(tiers []*alphabet, s []byte) int {
	for i, a := range tiers[:len(tiers)-1] {
		if a.holds(s) {
			return i
		}
	}
	return len(tiers) - 1
}

// feistel encrypts strings over an alphabet: a Feistel network whose halves are added
// symbol by symbol, modulo the alphabet's size (the FFX mode of operation, method 2 with
// alternating halves; Bellare, Rogaway and Spies, 2010), with a pseudorandom function of AES-CBC-MAC and
// AES in counter mode, as in FF1 (NIST SP 800-38G). Strings of one symbol are permuted by
// the order of their pseudorandom values (prefix cipher, Black and Rogaway, 2002).
//
// It is not safe for concurrent use: its buffers are its own.
type feistel struct {
	block  cipher.Block
	single map[uint8]*[2][]byte // one symbol: there and back, by alphabet

	mac, in, out [aes.BlockSize]byte
	sym          []int16
}

func newFeistel(key Key) *feistel {
	b, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the size is a constant
	}
	return &feistel{block: b, single: map[uint8]*[2][]byte{}}
}

// rounds of a string. Short ones have few values, and more rounds: attacks on small
// domains need as many known pairs as there are values, and grow with the rounds
// (Hoang, Tessaro and Trieu, 2018).
func rounds(n int) int {
	if n < 8 {
		return 24
	}
	return 10
}

// crypt encrypts s, which is over the alphabet, in place; back decrypts.
func (c *feistel) crypt(s []byte, a *alphabet, back bool) {
	switch len(s) {
	case 0:
		return
	case 1:
		t := c.one(a)
		if back {
			s[0] = t[1][a.index[s[0]]]
		} else {
			s[0] = t[0][a.index[s[0]]]
		}
		return
	}
	c.sym = slices.Grow(c.sym[:0], len(s))
	for _, b := range s {
		c.sym = append(c.sym, a.index[b])
	}
	half := len(s) / 2
	left, right := c.sym[:half], c.sym[half:]
	n := rounds(len(s))
	for i := range n {
		if back {
			i = n - 1 - i
		}
		to, from := left, right
		if i&1 == 1 {
			to, from = right, left
		}
		c.round(to, from, a, i, len(s), back)
	}
	for i, v := range c.sym {
		s[i] = a.bytes[v]
	}
}

// round adds a pseudorandom function of one half to the other.
func (c *feistel) round(to, from []int16, a *alphabet, i, n int, back bool) {
	c.in = [16]byte{a.id, byte(i)}
	binary.LittleEndian.PutUint64(c.in[8:], uint64(n))
	c.block.Encrypt(c.mac[:], c.in[:])
	for k := 0; k < len(from); k += 16 {
		for j, v := range from[k:min(k+16, len(from))] {
			c.mac[j] ^= byte(v)
		}
		c.block.Encrypt(c.mac[:], c.mac[:])
	}
	radix := uint32(len(a.bytes))
	for k := range to {
		if k%4 == 0 { // 32 bits a symbol: its bias is below 2^-24
			c.in = c.mac
			binary.LittleEndian.PutUint64(c.in[:], binary.LittleEndian.Uint64(c.mac[:])^uint64(k/4+1))
			c.block.Encrypt(c.out[:], c.in[:])
		}
		add := binary.LittleEndian.Uint32(c.out[k%4*4:]) % radix
		if back {
			add = radix - add
		}
		to[k] = int16((uint32(to[k]) + add) % radix)
	}
}

// one returns the permutation of single symbols.
func (c *feistel) one(a *alphabet) *[2][]byte {
	if t := c.single[a.id]; t != nil {
		return t
	}
	type weighed struct {
		weight [16]byte
		symbol int
	}
	list := make([]weighed, len(a.bytes))
	for i := range list {
		c.in = [16]byte{a.id, 0xff, byte(i)}
		c.block.Encrypt(c.out[:], c.in[:])
		list[i] = weighed{c.out, i}
	}
	slices.SortFunc(list, func(x, y weighed) int { return slices.Compare(x.weight[:], y.weight[:]) })
	t := &[2][]byte{make([]byte, len(list)), make([]byte, len(list))}
	for i, w := range list {
		t[0][i], t[1][w.symbol] = a.bytes[w.symbol], a.bytes[i]
	}
	c.single[a.id] = t
	return t
}

// walk encrypts s within those strings that are of the same sort: a permutation of all
// strings of an alphabet, repeated until it comes to one of them, is a permutation of
// them (cycle walking, Black and Rogaway, 2002). same must hold for s itself.
func (c *feistel) walk(s []byte, tiers []*alphabet, back bool, same func(s []byte) bool) {
	tier := tierOf(tiers, s)
	for {
		c.crypt(s, tiers[tier], back)
		if tierOf(tiers, s) == tier && (same == nil || same(s)) {
			return
		}
	}
}
