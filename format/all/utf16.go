// SPDX-License-Identifier: Apache-2.0

package all

import (
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Reader makes UTF-8 of UTF-16 with a byte order mark. What is no character becomes U+FFFD.
type utf16Reader struct {
	r     io.Reader
	order binary.ByteOrder
	begun bool
	ready []byte // of the last characters
}

func (u *utf16Reader) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(u.ready) == 0 {
			c, err := u.char()
			if err != nil {
				return n, err
			}
			u.ready = utf8.AppendRune(u.ready, c)
		}
		k := copy(b[n:], u.ready)
		u.ready = u.ready[:copy(u.ready, u.ready[k:])]
		n += k
	}
	return n, nil
}

// char reads one character.
func (u *utf16Reader) char() (rune, error) {
	const mark = 0xfeff
	c, err := u.unit()
	if !u.begun && err == nil && c == mark {
		c, err = u.unit()
	}
	u.begun = true
	if err != nil || !utf16.IsSurrogate(c) {
		return c, err
	}
	low, err := u.unit()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return utf16.DecodeRune(c, low), err
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	_, err := io.ReadFull(u.r, b[:])
	return rune(u.order.Uint16(b[:])), err
}
