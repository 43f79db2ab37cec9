// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// JSON is appended to bytes: an event has too many fields for reflection.

// key begins a field of an object, or an element of an array where the name is "".
// Names are the operation table's and need no escapes.
func key(dst []byte, name string) []byte {
	if last := dst[len(dst)-1]; last != '{' && last != '[' {
		dst = append(dst, ',')
	}
	if name == "" {
		return dst
	}
	dst = append(append(dst, '"'), name...)
	return append(dst, '"', ':')
}

func putInt(dst []byte, name string, v int64) []byte {
	return strconv.AppendInt(key(dst, name), v, 10)
}
func putUint(dst []byte, name string, v uint64) []byte {
	return strconv.AppendUint(key(dst, name), v, 10)
}
func putTrue(dst []byte, name string) []byte { return append(key(dst, name), "true"...) }
func putNull(dst []byte, name string) []byte { return append(key(dst, name), "null"...) }

// putWord writes a string that needs no escapes.
func putWord(dst []byte, name, s string) []byte {
	dst = append(append(key(dst, name), '"'), s...)
	return append(dst, '"')
}

// putText writes a string; one that is not UTF-8 under the name with 64 appended,
// as base64. As an element of an array it has no name: what is no UTF-8 becomes
// U+FFFD.
func putText[T string | []byte](dst []byte, name string, s T) []byte {
	if name != "" && !valid(s) {
		dst = append(key(dst, name), '"')
		dst = dst[:len(dst)-len(`":"`)]
		dst = append(dst, `64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(s))
		return append(dst, '"')
	}
	return appendString(key(dst, name), s)
}

func valid[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return utf8.ValidString(string(s[i:]))
		}
	}
	return true
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string as encoding/json does without escapes for HTML.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[done:i]...)
			dst = appendEscape(dst, c)
			i++
			done = i
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, s[done:i]...), `\ufffd`...)
		case r == '\u2028' || r == '\u2029': // no line ends in JavaScript
			dst = append(append(dst, s[done:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&15])
		default:
			i += n
			continue
		}
		i += n
		done = i
	}
	return append(append(dst, s[done:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
