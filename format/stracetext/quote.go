// SPDX-License-Identifier: Apache-2.0

package stracetext

import "strings"

// appendQuoted writes bytes as a C string the way strace does: letters as they
// are, the usual escapes, everything else in octal, as short as the next byte
// allows.
func appendQuoted(dst, b []byte) []byte {
	dst = append(dst, '"')
	for i, c := range b {
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\v':
			dst = append(dst, `\v`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\r':
			dst = append(dst, `\r`...)
		default:
			if c >= ' ' && c < 0x7f {
				dst = append(dst, c)
				continue
			}
			long := i+1 < len(b) && b[i+1] >= '0' && b[i+1] <= '9'
			dst = append(dst, '\\')
			if c>>6 > 0 || long {
				dst = append(dst, '0'+c>>6)
			}
			if c>>3 > 0 || long {
				dst = append(dst, '0'+c>>3&7)
			}
			dst = append(dst, '0'+c&7)
		}
	}
	return append(dst, '"')
}

// appendName writes the name of a descriptor's object inside <>: control
// characters, backslashes and > are escaped, so that a line stays one line. The arrow between the
// ends of a socket stays, as strace has it.
func appendName(dst []byte, s string) []byte {
	isSocket := !strings.HasPrefix(s, "/") && strings.Contains(s, ":[")
	for i := 0; i < len(s); i++ {
		c := s[i]
		arrow := isSocket && c == '>' && i > 0 && s[i-1] == '-'
		if c >= ' ' && c < 0x7f && c != '\\' && (c != '>' || arrow) && c != '<' {
			dst = append(dst, c)
			continue
		}
		const hex = "0123456789abcdef"
		dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
	}
	return dst
}
