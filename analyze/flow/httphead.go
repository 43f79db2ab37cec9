// SPDX-License-Identifier: Apache-2.0

package flow

import "bytes"

// Limits of what is looked at of HTTP messages.
const (
	mostFieldName = 64   // bytes
	mostHead      = 8192 // bytes of a message before its body
)

// fieldNames reports whether content b, laid under a, differs in the part only in the case of letters in
// the names of fields of HTTP messages. The case says nothing there, and proxies change it.
func fieldNames(a, b []byte, shift int64, part span) bool {
	some := false
	for i := part[0]; i < part[1]; i++ {
		x, y := a[i], b[i+shift]
		if x == y {
			continue
		}
		if x^y != 0x20 || !isLetter(x) || !inFieldName(a, int(i)) {
			return false
		}
		some = true
	}
	return some
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isToken(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '-' || c == '_' }

// inFieldName reports whether byte i is of the name of a field in the head of an HTTP message.
func inFieldName(a []byte, i int) bool {
	from, to := i, i
	for from > 0 && i-from <= mostFieldName && isToken(a[from-1]) {
		from--
	}
	for to < len(a) && to-i <= mostFieldName && isToken(a[to]) {
		to++
	}
	if to == len(a) || a[to] != ':' || from < 2 || a[from-1] != '\n' {
		return false
	}
	head := a[max(0, from-mostHead):from]
	if k := bytes.LastIndex(head, []byte("\r\n\r\n")); k >= 0 {
		head = head[k+4:]
	}
	return isStart(head)
}

// isStart reports whether the first line of an HTTP message is at the beginning of b.
func isStart(b []byte) bool {
	line, _, _ := bytes.Cut(b[:min(len(b), mostHead)], []byte("\n"))
	return bytes.HasPrefix(line, []byte("HTTP/1.")) || bytes.Contains(line, []byte(" HTTP/1."))
}

// rewrittenHead returns how long the head of the HTTP message is with which a begins, if b begins with a
// head that has other fields, or the same with names in another case: a proxy has written it anew, and what
// differs in it tells nothing. Else it is 0.
func rewrittenHead(a, b []byte) int64 {
	x, y := head(a), head(b)
	if x == nil || y == nil {
		return 0
	}
	if bytes.Count(x, []byte("\n")) == bytes.Count(y, []byte("\n")) && !otherCase(x, y) {
		return 0
	}
	return int64(len(x))
}

// head returns the head of the HTTP message at the beginning of b, nil if there is none.
func head(b []byte) []byte {
	end := bytes.Index(b[:min(len(b), mostHead)], []byte("\r\n\r\n"))
	if end < 0 || !isStart(b) {
		return nil
	}
	return b[:end+4]
}

// otherCase reports whether a field has the same name in two heads, but for the case of letters.
func otherCase(x, y []byte) bool {
	names := map[string]string{}
	each := func(head []byte, f func(name []byte)) {
		for line := range bytes.Lines(head) {
			if name, _, ok := bytes.Cut(line, []byte(":")); ok && len(name) <= mostFieldName {
				f(name)
			}
		}
	}
	each(x, func(name []byte) { names[string(bytes.ToLower(name))] = string(name) })
	found := false
	each(y, func(name []byte) {
		other, ok := names[string(bytes.ToLower(name))]
		found = found || ok && other != string(name)
	})
	return found
}
