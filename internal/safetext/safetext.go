// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unsafe reports whether a character changes what a terminal shows, or shows nothing. The end of a line and the tab are
// of them.
func Unsafe(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point)
}

// String returns text on one line with all that is unsafe escaped. Other text is returned as it is.
func String(s string) string {
	for i, r := range s {
		if Unsafe(r) {
			return string(appendText([]byte(s[:i]), s[i:]))
		}
	}
	return s
}

func appendText(dst []byte, s string) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case !Unsafe(r) || r == utf8.RuneError && n > 1: // U+FFFD itself
			dst = append(dst, s[:n]...)
		default:
			dst = appendEscape(dst, r, s[0])
		}
		s = s[n:]
	}
	return dst
}

const hex = "0123456789abcdef"

// appendEscape writes the escape of a character; of a byte b, if r is utf8.RuneError.
func appendEscape(dst []byte, r rune, b byte) []byte {
	switch {
	case r == utf8.RuneError:
		return append(dst, '\\', 'x', hex[b>>4], hex[b&15])
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return appendUnit(appendUnit(dst, high), low)
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}
