// SPDX-License-Identifier: Apache-2.0

package dataseries

import "encoding/binary"

// liblzf's block format (lzf_d.c): a control byte below 32 copies that many bytes
// and one more; above, its upper 3 bits are a length, 7 meaning that a byte more
// follows, its lower 5 with the next byte a distance.
const (
	lzfLiterals = 32
	lzfDistance = 1 << 13
	lzfMatch    = 264
)

func decodeLZF(src []byte, size int) ([]byte, error) {
	out := make([]byte, 0, size)
	for len(src) > 0 {
		c := int(src[0])
		src = src[1:]
		if c < lzfLiterals {
			if len(src) < c+1 || len(out)+c+1 > size {
				return nil, errShort
			}
			out, src = append(out, src[:c+1]...), src[c+1:]
			continue
		}
		n := c >> 5
		if n == 7 {
			if len(src) < 1 {
				return nil, errShort
			}
			n += int(src[0])
			src = src[1:]
		}
		if len(src) < 1 {
			return nil, errShort
		}
		dist := (c&31)<<8 | int(src[0])
		src = src[1:]
		var ok bool
		if out, ok = repeat(out, dist+1, n+2, size); !ok {
			return nil, errShort
		}
	}
	return out, nil
}

// repeat appends n bytes that were appended dist bytes ago.
func repeat(out []byte, dist, n, size int) ([]byte, bool) {
	at := len(out) - dist
	if at < 0 || len(out)+n > size {
		return nil, false
	}
	for range n {
		out = append(out, out[at])
		at++
	}
	return out, true
}

func encodeLZF(src []byte) []byte {
	const tableBits = 14
	var table [1 << tableBits]int32 // position + 1
	out := make([]byte, 0, len(src)+len(src)/lzfLiterals+1)
	literals := 0 // from here on nothing is written yet
	flush := func(end int) {
		for literals < end {
			n := min(end-literals, lzfLiterals)
			out = append(out, byte(n-1))
			out = append(out, src[literals:literals+n]...)
			literals += n
		}
	}
	for i := 0; i+4 <= len(src); {
		word := binary.LittleEndian.Uint32(src[i:]) & 0xffffff
		slot := word * 0x9e3779b1 >> (32 - tableBits)
		at := int(table[slot]) - 1
		table[slot] = int32(i + 1)
		if at < 0 || i-at > lzfDistance || src[at] != src[i] || src[at+1] != src[i+1] || src[at+2] != src[i+2] {
			i++
			continue
		}
		n, limit := 3, min(len(src)-i, lzfMatch)
		for n < limit && src[at+n] == src[i+n] {
			n++
		}
		flush(i)
		dist, code := i-at-1, n-2
		if code < 7 {
			out = append(out, byte(code<<5|dist>>8))
		} else {
			out = append(out, byte(7<<5|dist>>8), byte(code-7))
		}
		out = append(out, byte(dist))
		i += n
		literals = i
	}
	flush(len(src))
	return out
}
