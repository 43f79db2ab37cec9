// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A node is a part of a line in strace's notation.
type node struct {
	kind  byte // 's' string, '{' structure, '[' list, '(' call, 'a' other
	text  string
	names []string // of a structure's fields, "" where one has none
	parts []node
	cut   bool // "..." stands at the end
	was   *node
}

// A straceCall is one line.
type straceCall struct {
	text string
	name string
	args []node
	ret  string
	note []node // what stands in parentheses behind the result
}

// notation reads what strace and print write.
type notation struct {
	s string
	i int
}

func (p *notation) space() {
	for p.i < len(p.s) {
		if strings.HasPrefix(p.s[p.i:], "/*") {
			if end := strings.Index(p.s[p.i:], "*/"); end >= 0 {
				p.i += end + 2
				continue
			}
		}
		if p.s[p.i] != ' ' {
			return
		}
		p.i++
	}
}

func (p *notation) has(prefix string) bool {
	if !strings.HasPrefix(p.s[p.i:], prefix) {
		return false
	}
	p.i += len(prefix)
	return true
}

// call reads a line without its thread.
func (p *notation) call() (*straceCall, error) {
	c := &straceCall{text: p.s}
	open := strings.IndexByte(p.s, '(')
	if open < 0 {
		return nil, fmt.Errorf("no call")
	}
	c.name, p.i = p.s[:open], open+1
	_, c.args = p.items(')')
	p.space()
	if !p.has("=") {
		return nil, fmt.Errorf("no result behind %q", p.s[:p.i])
	}
	p.space()
	rest := p.s[p.i:]
	if n := strings.LastIndex(rest, " <"); n >= 0 && strings.HasSuffix(rest, ">") {
		rest = rest[:n]
	}
	c.ret, rest, _ = strings.Cut(rest, " ")
	c.ret, _, _ = strings.Cut(c.ret, "<")
	if c.ret == "-1" || c.ret == "?" {
		name, _, _ := strings.Cut(rest, " ")
		c.ret += " " + name
		return c, nil
	}
	if strings.HasPrefix(rest, "(") {
		q := notation{s: rest, i: 1}
		_, c.note = q.items(')')
	}
	return c, nil
}

// items reads up to a closing bracket.
func (p *notation) items(end byte) (names []string, list []node) {
	for {
		p.space()
		if p.i >= len(p.s) {
			return names, list
		}
		if p.s[p.i] == end {
			p.i++
			return names, list
		}
		if p.s[p.i] == ',' {
			p.i++
			continue
		}
		name := ""
		if n := p.label(); n > 0 {
			name = p.s[p.i : p.i+n]
			p.i += n + 1
		}
		names, list = append(names, name), append(list, p.node(end))
	}
}

// label returns the length of a field's name in front of "=", 0 if there is none.
func (p *notation) label() int {
	n := 0
	for p.i+n < len(p.s) && (p.s[p.i+n] == '_' || p.s[p.i+n]|32 >= 'a' && p.s[p.i+n]|32 <= 'z' ||
		n > 0 && p.s[p.i+n] >= '0' && p.s[p.i+n] <= '9') {
		n++
	}
	if rest := p.s[p.i+n:]; n == 0 || !strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, "==") ||
		strings.HasPrefix(rest, "=>") {
		return 0
	}
	return n
}

// node reads one part and what it became.
func (p *notation) node(end byte) node {
	n := p.part(end)
	p.space()
	if p.has("=> ") {
		was := n
		n = p.part(end)
		n.was = &was
	}
	return n
}

func (p *notation) part(end byte) node {
	n := node{kind: 'a'}
	switch c := p.s[p.i]; {
	case c == '@' || c == '"':
		n.kind = 's'
		if p.has("@") {
			n.text = "\x00"
		}
		n.text += p.quoted()
		n.cut = p.has("...")
		return n
	case c == '{' && strings.HasPrefix(p.s[p.i:], "{WIF"):
		end := strings.IndexByte(p.s[p.i:], '}') + 1
		n.text = p.s[p.i:][:end]
		p.i += end
		return n
	case c == '{':
		p.i++
		n.kind = '{'
		n.names, n.parts = p.items('}')
		return n
	case c == '[':
		p.i++
		n.kind = '['
		n.names, n.parts = p.items(']')
		return n
	case c == '~':
		p.i++
		n = p.part(end)
		n.text = "~"
		return n
	}
	start := p.i
	for p.i < len(p.s) {
		switch c := p.s[p.i]; c {
		case ',', ' ', ')', ']', '}':
			if strings.HasPrefix(p.s[p.i:], " or ") { // requests that have one number
				p.i += len(" or ")
				continue
			}
			n.text = p.s[start:p.i]
			return n
		case '<': // what a descriptor stands for, or a shift
			if strings.HasPrefix(p.s[p.i:], "<<") {
				p.i += 2
				continue
			}
			n.text = p.s[start:p.i]
			for p.i < len(p.s) && (p.s[p.i] != '>' || p.s[p.i-1] == '-') { // the ends of a socket have ->
				p.i++
			}
			p.i++
			return n
		case '(':
			n.kind, n.text = '(', p.s[start:p.i]
			p.i++
			n.names, n.parts = p.items(')')
			return n
		}
		p.i++
	}
	n.text = p.s[start:]
	return n
}

// quoted reads a C string.
func (p *notation) quoted() string {
	var b []byte
	p.i++
	for p.i < len(p.s) && p.s[p.i] != '"' {
		c := p.s[p.i]
		p.i++
		if c != '\\' || p.i >= len(p.s) {
			b = append(b, c)
			continue
		}
		c = p.s[p.i]
		p.i++
		switch {
		case c == 'x' && p.i+2 <= len(p.s):
			v, _ := strconv.ParseUint(p.s[p.i:p.i+2], 16, 8)
			b = append(b, byte(v))
			p.i += 2
		case c >= '0' && c <= '7':
			v := int(c - '0')
			for n := 0; n < 2 && p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '7'; n++ {
				v = v*8 + int(p.s[p.i]-'0')
				p.i++
			}
			b = append(b, byte(v))
		default:
			if i := strings.IndexByte("tnvfr", c); i >= 0 {
				c = "\t\n\v\f\r"[i]
			}
			b = append(b, c)
		}
	}
	p.i++
	return string(b)
}

// number returns the value of a number in any of its forms: 10, 0x10, 010, NULL,
// 8192*1024.
func number(s string) (int64, bool) {
	if s == "NULL" {
		return 0, true
	}
	if a, b, ok := strings.Cut(s, "*"); ok {
		x, ok1 := number(a)
		y, ok2 := number(b)
		return x * y, ok1 && ok2
	}
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return v, true
	}
	v, err := strconv.ParseUint(s, 0, 64)
	return int64(v), err == nil
}

// field returns the part of a structure with a name; of one without, the call of
// that name.
func (n *node) field(name, call string) *node {
	for i := range n.parts {
		if n.names[i] == name && (name != "" || n.parts[i].text == call) {
			return &n.parts[i]
		}
	}
	return nil
}

// changing are fields whose values depend on what else happens on the machine.
var changing = []string{
	"st_ino", "st_nlink", "fe_physical", "st_atime", "st_atime_nsec", "st_mtime", "st_mtime_nsec", "st_ctime", "st_ctime_nsec", "stx_ino", "stx_atime", "stx_mtime", "stx_ctime", "d_ino",
	"tms_utime", "tms_stime", "ru_utime", "ru_stime", "ru_maxrss", "ru_minflt", "ru_majflt", "ru_nvcsw", "ru_nivcsw", "ru_inblock", "ru_oublock", "f_bfree", "f_bavail", "f_ffree", "uptime", "loads", "freeram", "sharedram", "bufferram", "procs",
}

// renamed are names that newer kernels' headers have changed.
var renamed = map[string]string{"FUTEX_32": "FUTEX2_SIZE_U32"}

// lacks says what of strace's part is not in print's, "" if all is there. again is
// the same part of another run of strace: where the two differ, only the kind of
// thing has to be the same.
func lacks(want, again, got *node) string {
	if got.was != nil && want.was == nil {
		if before := lacks(want, again, got.was); before == "" {
			return ""
		}
	}
	if want.kind == '(' && (want.text == "htonl" || want.text == "htons") && len(want.parts) == 1 && got.kind != '(' {
		return lacks(&want.parts[0], sub(again, 0), got)
	}
	if want.anonymous() && got.anonymous() {
		return "" // a file system that each run mounts gets a number that is free then
	}
	switch want.kind {
	case 's':
		return want.lacksText(again, got)
	case '{':
		return want.lacksFields(again, got)
	case '[', '(':
		return want.lacksItems(again, got)
	}
	if want.text == "..." {
		return ""
	}
	if v, ok := number(want.text); ok {
		if got.kind != 'a' {
			return "" // what an address points to, or a value's name in form of a call
		}
		g, isNumber := number(got.text)
		switch {
		case !isNumber: // a name is more than a number
			return ""
		case v > 1e9 && g > 1e9 && max(v-g, g-v) < 1000: // times of day
			return ""
		case v == g || int32(v) == int32(g) && (v == int64(int32(v)) || g == int64(int32(g))):
			return ""
		case again == nil || again.kind != 'a' || again.text != want.text:
			return ""
		}
		return "is " + got.text + ", not " + want.text
	}
	if got.kind != 'a' {
		return "is no " + want.text
	}
	if now := renamed[want.text]; now != "" {
		want = &node{kind: 'a', text: now}
	}
	if slices.Contains(strings.Split(want.text, " or "), got.text) {
		return ""
	}
	if !sameNames(strings.Split(want.text, "|"), strings.Split(got.text, "|")) &&
		(again == nil || again.text == want.text) {
		return "is " + got.text + ", not " + want.text
	}
	return ""
}

// anonymous reports whether a value is the number of a device that there is not, as those
// of file systems in memory: makedev(0, n).
func (n *node) anonymous() bool {
	return n.kind == '(' && n.text == "makedev" && len(n.parts) == 2 && n.parts[0].text == "0"
}

// sameNames reports whether print has the names that strace has, and no others but
// for bits that strace does not know.
func sameNames(want, got []string) bool {
	unknown := false
	for _, name := range want {
		i := slices.Index(got, name)
		if i >= 0 {
			got = slices.Delete(slices.Clone(got), i, i+1)
			continue
		}
		if _, ok := number(name); !ok {
			return false
		}
		unknown = true
	}
	return len(got) == 0 || unknown
}

func sub(n *node, i int) *node {
	if n == nil || i >= len(n.parts) {
		return nil
	}
	return &n.parts[i]
}

func (want *node) lacksText(again, got *node) string {
	if got.kind == '[' { // strings, one after the other
		all := node{kind: 's'}
		for i := range got.parts {
			all.text += got.parts[i].text + "\x00"
		}
		got = &all
	}
	switch {
	case got.kind != 's':
		return fmt.Sprintf("is no string %.40q", want.text)
	case again != nil && (again.kind != 's' || again.text != want.text):
		return ""
	case want.cut && strings.HasPrefix(got.text, want.text), !want.cut && !got.cut && got.text == want.text:
		return ""
	}
	return fmt.Sprintf("is %.60q (cut: %t), not %.60q", got.text, got.cut, want.text)
}

func (want *node) lacksFields(again, got *node) string {
	if got.kind != '{' {
		return "is no structure"
	}
	for i, name := range want.names {
		if want.parts[i].text == "..." {
			continue
		}
		g := got.field(name, want.parts[i].text)
		if g == nil {
			return fmt.Sprintf("has no %s", cmp.Or(name, want.parts[i].text))
		}
		var a *node
		if again != nil && again.kind == '{' {
			a = again.field(name, want.parts[i].text)
		}
		if what := lacks(&want.parts[i], a, g); what != "" && !slices.Contains(changing, name) {
			return name + " " + what
		}
	}
	return ""
}

func (want *node) lacksItems(again, got *node) string {
	if got.kind != want.kind || got.text != want.text {
		return fmt.Sprintf("is no %s%c", want.text, want.kind)
	}
	same := again != nil && len(again.parts) == len(want.parts)
	for i := range want.parts {
		if want.parts[i].text == "..." {
			return ""
		}
		if i >= len(got.parts) {
			if !same {
				return ""
			}
			return fmt.Sprintf("has %d items of %d", len(got.parts), len(want.parts))
		}
		if what := lacks(&want.parts[i], sub(again, i), &got.parts[i]); what != "" {
			return fmt.Sprintf("[%d] %s", i, what)
		}
	}
	return ""
}
