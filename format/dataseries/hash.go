// SPDX-License-Identifier: Apache-2.0

package dataseries

import (
	"encoding/binary"
)

// mix is one round of Bob Jenkins' 1996 hash ("lookup", Dr. Dobb's, 1997).
func mix(a, b, c uint32) (uint32, uint32, uint32) {
	a -= b + c
	a ^= c >> 13
	b -= c + a
	b ^= a << 8
	c -= a + b
	c ^= b >> 13
	a -= b + c
	a ^= c >> 12
	b -= c + a
	b ^= a << 16
	c -= a + b
	c ^= b >> 5
	a -= b + c
	a ^= c >> 3
	b -= c + a
	b ^= a << 10
	c -= a + b
	c ^= b >> 15
	return a, b, c
}

// hash continues that hash from a seed.
func hash(seed uint32, p []byte) uint32 {
	const golden = 0x9e3779b9
	a, b, c := uint32(golden), uint32(golden), seed
	n := uint32(len(p))
	le := binary.LittleEndian
	for ; len(p) >= 12; p = p[12:] {
		a += le.Uint32(p)
		b += le.Uint32(p[4:])
		c += le.Uint32(p[8:])
		a, b, c = mix(a, b, c)
	}
	var tail [12]byte
	// The lowest byte of c is the length's.
	copy(tail[:8], p)
	if len(p) > 8 {
		copy(tail[9:], p[8:])
	}
	a += le.Uint32(tail[:])
	b += le.Uint32(tail[4:])
	c += n + le.Uint32(tail[8:])
	_, _, c = mix(a, b, c)
	return c
}

const (
	extentSeed = 1972
	tailSeed   = 1776
	sizeBatch  = 1024 // string sizes that are hashed at once
)

// hashExtent is the checksum of an unpacked extent: of its records, its strings,
// and once more of the strings' size words.
func hashExtent(fixed, vars []byte, order binary.ByteOrder) uint32 {
	h := hash(extentSeed, fixed)
	h = hash(h, vars)
	words := make([]byte, 0, 4*sizeBatch)
	for at := 4; at+4 <= len(vars); {
		words = append(words, vars[at:at+4]...)
		if len(words) == cap(words) {
			h = hash(h, words)
			words = words[:0]
		}
		n := order.Uint32(vars[at:])
		if n > uint32(len(vars)) {
			break // the caller finds out
		}
		at += int(n+4+7) &^ 7
	}
	return hash(h, words)
}

// adler continues zlib's Adler-32 (RFC 1950) over more bytes.
func adler(sum uint32, p []byte) uint32 {
	const mod, block = 65521, 5552
	a, b := sum&0xffff, sum>>16
	for len(p) > 0 {
		n := min(len(p), block)
		for _, c := range p[:n] {
			a += uint32(c)
			b += a
		}
		a, b, p = a%mod, b%mod, p[n:]
	}
	return b<<16 | a
}

// chain adds an extent to the checksum over all extents.
func chain(sum, extentHash, extentAdler uint32) uint32 {
	_, _, c := mix(extentHash^extentAdler, sum, extentSeed)
	return c
}
