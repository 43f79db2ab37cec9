// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/iotape/iotape/event/layout"
)

// strace prints to the standard error, unless -o says otherwise. It prints the beginning of a call, a program
// writes to the same terminal or file, and then strace prints the rest of the line. Most often the call is the one
// that writes:
//
//	write(2, "a: no such file\n", 16a: no such file
//	)       = 16

// maxOutput bounds how much of a program's output is taken for a part of a call, in bytes.
const maxOutput = 1 << 20

// writes reports whether a line's body begins a call whose output may stand in the middle of it.
func writes(body string) bool {
	return strings.HasPrefix(body, "write(") || strings.HasPrefix(body, "writev(")
}

// opensOutput reports whether a line begins a call and a program's output follows it.
func opensOutput(body string) bool {
	name, _, ok := strings.Cut(body, "(")
	return ok && !hasResult(body) && !strings.HasSuffix(body, ">") && isCall(name)
}

// withoutOutput takes a program's output out of the text of a call.
func withoutOutput(text string) string {
	if !writes(text) {
		if i := strings.LastIndexByte(text, '\n'); i >= 0 { // strace itself writes \n
			return spliced(text[:i], text[i+1:])
		}
		return text
	}
	end := resultAt(text)
	if end < 0 {
		return text
	}
	size := strings.LastIndex(text[:end], ", ") + len(", ")
	_, result, _ := strings.Cut(text[end:], "= ")
	result, _, _ = strings.Cut(result, " ")
	if text[size:end] == result { // as nearly always
		return text
	}
	p := notation{s: text, i: strings.IndexByte(text, '(') + 1}
	if _, err := p.value(); err != nil || !p.has(", ") {
		return text
	}
	data, err := p.value()
	if err != nil || !p.has(", ") {
		return text
	}
	from := p.i
	for p.i < end && digit(text[p.i]) {
		p.i++
	}
	if p.i == end || p.i == from {
		return text
	}
	return text[:from+digitsOf(text[from:p.i], text[p.i:end], &data, result)] + text[end:]
}

// plain is a number or names of flags, perhaps with the name of the argument.
var plain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z_]+=)?(0x[0-9a-f]+|-?[0-9]+|[A-Z][A-Z0-9_|]*)`)
})

// spliced joins the halves of a call that does not write. Output of another process follows the first one: it is
// behind the last argument whose end is plain, or behind the comma.
func spliced(first, second string) string {
	p := notation{s: first, i: strings.IndexByte(first, '(') + 1}
	from := p.i
	for {
		_, err := p.value()
		whole := delimited(first[from:]) || plain().FindString(first[from:]) == first[from:p.i]
		if err != nil || !whole || !p.has(", ") {
			break
		}
		from = p.i
	}
	if rest := strings.TrimLeft(second, " "); rest != "" && rest[0] != ')' && rest[0] != ',' {
		return first[:from] + second // the argument is in the second half
	}
	if delimited(first[from:]) {
		return first[:max(p.i, from)] + second
	}
	return first[:from] + plain().FindString(first[from:]) + second
}

// delimited reports whether a text begins with a value that says itself where it ends.
func delimited(s string) bool { return s != "" && strings.IndexByte("\"{[~", s[0]) >= 0 }

// digitsOf returns how many of the digits behind a call's data are its size; the output, which follows, may
// begin with digits too.
func digitsOf(digits, rest string, data *layout.Told, result string) int {
	begin := string(data.Data)
	if data.Kind == layout.ToldItems && len(data.Parts) > 0 {
		return max(1, strings.Index(digits+" ", strconv.Itoa(len(data.Parts)))+len(strconv.Itoa(len(data.Parts))))
	}
	for n := len(digits); n > 0; n-- {
		output := digits[n:] + rest
		size, err := strconv.Atoi(digits[:n])
		if err == nil && size >= len(begin) && strings.HasPrefix(output, begin[:min(len(begin), 8)]) &&
			(data.Cut || size == len(begin)) {
			return n
		}
	}
	if strings.HasPrefix(digits, result) {
		return len(result)
	}
	return len(digits)
}

// resultAt returns where the closing parenthesis before a call's result is, -1 if there is none.
func resultAt(text string) int {
	for end := len(text); ; {
		i := strings.LastIndex(text[:end], "= ")
		if i < 0 {
			return -1
		}
		if head := strings.TrimRight(text[:i], " "); strings.HasSuffix(head, ")") && len(head) < i {
			return len(head) - 1
		}
		end = i
	}
}

// continuedOutput takes a line that follows the beginning of a call whose output is printed. It returns the
// whole call once its rest has come.
func (x *importer) continuedOutput(s string) (whole string, ok bool) {
	if len(x.output)+len(s) > maxOutput {
		x.output = nil
		x.done.LeftOut(notUnderstood, 1)
		return s, true
	}
	x.output = append(append(x.output, '\n'), s...)
	if !hasResult(s) && !strings.HasSuffix(s, "<unfinished ...>") {
		return "", false
	}
	whole = string(x.output)
	x.output = nil
	return whole, true
}
