// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/iotape/iotape/event/layout"
)

// notation reads the values in a line.
type notation struct {
	s     string
	i     int
	depth int
	count int // of values
	why   string
}

// ParseValue reads one value of strace's notation at the start of s, and returns how many
// bytes of s it has; with an error, how many there are before what is wrong.
func ParseValue(s string) (v layout.Told, n int, err error) {
	p := notation{s: s}
	if v, err = p.value(); err != nil {
		return layout.Told{}, p.i, errors.New(p.why)
	}
	return v, p.i, nil
}

// maxDepth is how deep structures may stand in one another.
const maxDepth = 32

// maxCount is how many values a line may have.
const maxCount = 1 << 19

var errNotation = errors.New("not strace's notation")

func (p *notation) fail(what string) error {
	p.why = what
	return fmt.Errorf("column %d: %s: %w", p.i+1, what, errNotation)
}

func (p *notation) has(prefix string) bool {
	if !strings.HasPrefix(p.s[p.i:], prefix) {
		return false
	}
	p.i += len(prefix)
	return true
}

// space skips blanks and comments, and returns the last comment.
func (p *notation) space() (comment string) {
	for p.i < len(p.s) {
		if rest, ok := strings.CutPrefix(p.s[p.i:], "/*"); ok {
			end := strings.Index(rest, "*/")
			if end < 0 {
				return comment
			}
			comment = strings.TrimSpace(rest[:end])
			p.i += end + len("/**/")
			continue
		}
		if p.s[p.i] != ' ' && p.s[p.i] != '\t' {
			break
		}
		p.i++
	}
	return comment
}

// items reads values up to a closing bracket.
func (p *notation) items(end byte) (list []layout.Told, cut bool, err error) {
	if p.depth++; p.depth > maxDepth {
		return nil, false, p.fail("too deep")
	}
	defer func() { p.depth-- }()
	for between := true; ; {
		comment := p.space()
		if comment != "" && !between {
			if err := p.commented(&list[len(list)-1], comment); err != nil {
				return nil, false, err
			}
		}
		if p.i >= len(p.s) {
			return nil, false, p.fail("no " + string(end))
		}
		switch c := p.s[p.i]; {
		case c == end:
			p.i++
			return list, cut, nil
		case c == ',':
			p.i++
			if blank, ok := blankValue(comment, end); between && ok && p.count < maxCount {
				p.count++
				list = append(list, blank)
			}
			between = true
			continue
		case strings.IndexByte(")]}", c) >= 0:
			return nil, false, p.fail("no " + string(end))
		}
		if p.has("...") {
			cut = true
			continue
		}
		if len(list) > 0 {
			amended, err := p.amend(&list[len(list)-1], between)
			if err != nil {
				return nil, false, err
			}
			if amended {
				continue
			}
		}
		name, elements := p.label()
		v, err := p.value()
		if err != nil {
			return nil, false, err
		}
		v.Name, between = name, false
		if list = append(list, v); elements != "" {
			list = append(list, layout.Told{Name: name + "len", Text: elements})
		}
	}
}

// blankValue returns what stands for a value that is not there: of a comment, or of statx's flags without a name
// (-X raw).
func blankValue(comment string, end byte) (v layout.Told, ok bool) {
	if comment == "" && end == ')' {
		v.Text = "0"
	}
	v.Comment = comment
	return v, comment != "" || v.Text != ""
}

// commented notes the comment behind a value, and reads the name that -y writes behind that: -100 /* AT_FDCWD */</tmp>.
func (p *notation) commented(last *layout.Told, comment string) (err error) {
	if last.Comment == "" {
		last.Comment = comment
	}
	if last.Kind == layout.ToldWord && last.Note == "" && strings.HasPrefix(p.s[p.i:], "<") {
		last.Note, err = p.note()
	}
	return err
}

// amend reads what belongs to the value before it: "=> " and what the call made of it, or
// the rest of a status: {WIFSTOPPED(s) …} | 1<<8. between is set behind a comma.
func (p *notation) amend(last *layout.Told, between bool) (amended bool, err error) {
	if p.has("=> ") {
		now, err := p.value()
		if err != nil {
			return false, err
		}
		*last = became(*last, now)
		return true, nil
	}
	if p.s[p.i] == '|' && !between {
		p.i++
		p.space()
		more, err := p.value()
		if last.Kind == layout.ToldWord && more.Kind == layout.ToldWord && !strings.HasPrefix(last.Text, "WIF") {
			last.Text += "|" + more.Text // -X verbose: 0 /* A */|0x900 /* B */
		}
		return true, err
	}
	return false, nil
}

// became returns a value that a call changed. Of a structure, strace shows only those
// fields again that the call wrote.
func became(was, now layout.Told) layout.Told {
	now.Name = was.Name
	if was.Kind != layout.ToldFields || now.Kind != layout.ToldFields {
		now.Was = &was
		return now
	}
	for i := range now.Parts {
		p := &now.Parts[i]
		at := slices.IndexFunc(was.Parts, func(w layout.Told) bool { return w.Name == p.Name })
		switch {
		case at < 0:
			was.Parts = append(was.Parts, *p)
		case was.Parts[at].Kind == p.Kind: // else it is what a pointer points to
			was.Parts[at] = *p
		}
	}
	return was
}

// label reads the name in front of "=", "" if there is none. Before strace 4.12, the
// number of elements stood behind some: msg_iov(1)=.
func (p *notation) label() (name, elements string) {
	n := p.i
	for n < len(p.s) && letter(p.s[n]) {
		n++
	}
	name = p.s[p.i:n]
	if name == "" || digit(name[0]) {
		return "", ""
	}
	if rest := p.s[n:]; strings.HasPrefix(name, "msg_") && strings.HasPrefix(rest, "(") {
		end := strings.Index(rest, ")=")
		if end < 0 {
			return "", ""
		}
		elements = rest[1:end]
		n += end + 1
	}
	if n+1 >= len(p.s) || p.s[n] != '=' || p.s[n+1] == '=' || p.s[n+1] == '>' {
		return "", ""
	}
	p.i = n + 1
	return name, elements
}

func digit(c byte) bool  { return c >= '0' && c <= '9' }
func letter(c byte) bool { return c == '_' || c|32 >= 'a' && c|32 <= 'z' || digit(c) }

// value reads one value.
func (p *notation) value() (v layout.Told, err error) {
	p.space()
	if p.i >= len(p.s) {
		return v, p.fail("no value")
	}
	if p.count++; p.count > maxCount {
		return v, p.fail("too many values")
	}
	switch c := p.s[p.i]; {
	case c == '"', c == '@' && strings.HasPrefix(p.s[p.i:], `@"`):
		v.Kind = layout.ToldText
		if c == '@' {
			p.i++
			v.Data = append(v.Data, 0)
		}
		v.Data, err = p.quoted(v.Data)
		v.Cut = p.has("...")
		return v, err
	case c == '{' && strings.HasPrefix(p.s[p.i:], "{WIF"):
		end := strings.IndexByte(p.s[p.i:], '}')
		if end < 0 {
			return v, p.fail("no }")
		}
		v.Text = p.s[p.i+1 : p.i+end]
		p.i += end + 1
		return v, nil
	case c == '{':
		p.i++
		v.Kind = layout.ToldFields
		v.Parts, v.Cut, err = p.items('}')
		return v, err
	case c == '[':
		p.i++
		v.Kind = layout.ToldItems
		v.Parts, v.Cut, err = p.items(']')
		return v, err
	case c == '~' && strings.HasPrefix(p.s[p.i:], "~["):
		p.i += 2
		v.Kind, v.Not = layout.ToldItems, true
		v.Parts, v.Cut, err = p.items(']')
		return v, err
	}
	return p.word()
}

// word reads a number or names, with what stands behind a descriptor.
func (p *notation) word() (v layout.Told, err error) {
	start := p.i
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ',', ')', ']', '}':
			v.Text = p.s[start:p.i]
			return v, p.wordEnd(start)
		case ' ':
			if p.has(" or ") {
				continue
			}
			v.Text = p.s[start:p.i]
			return v, p.wordEnd(start)
		case '"':
			return v, p.fail("a quote within a word")
		case '<':
			if p.has("<<") {
				continue
			}
			v.Text = p.s[start:p.i]
			v.Note, err = p.note()
			return v, err
		case '(':
			p.i++
			if v.Parts, _, err = p.items(')'); err != nil {
				return v, err
			}
			continue
		}
		p.i++
	}
	v.Text = p.s[start:]
	return v, nil
}

func (p *notation) wordEnd(start int) error {
	if p.i == start {
		return p.fail("no value")
	}
	return nil
}

// note reads what -y writes behind a descriptor. In names, > is escaped; the ends of
// connections are not names, and stand in brackets.
func (p *notation) note() (string, error) {
	p.i++
	start := p.i
	if n := strings.Index(p.s[p.i:], ":["); n > 0 && protocol(p.s[p.i:][:n]) {
		quoted, open := false, 0
		for ; p.i < len(p.s); p.i++ {
			switch c := p.s[p.i]; {
			case c == '\\' && quoted:
				p.i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '[':
				open++
			case c == ']':
				open--
			case c == '>' && (open <= 0 || p.s[p.i-1] == ']'): // a script has words behind the ends
				return p.noteEnd(start)
			}
		}
		return "", p.fail("no >")
	}
	depth := 0
	for ; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '\\':
			p.i++
		case '<':
			depth++
		case '>':
			if depth == 0 {
				return p.noteEnd(start)
			}
			depth--
		}
	}
	return "", p.fail("no >")
}

func (p *notation) noteEnd(start int) (string, error) {
	note := p.s[start:p.i]
	p.i++
	p.has("(deleted)")
	return note, nil
}

// protocol reports whether a name is one of what strace -yy writes for sockets.
func protocol(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '-' && c != 'v' && (c < 'A' || c > 'Z') && !digit(c) {
			return false
		}
	}
	return s != ""
}

// unescape returns a name of -y, whose bytes may be escaped.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	q := notation{s: `"` + s + `"`}
	b, err := q.quoted(nil)
	if err != nil {
		return s
	}
	return string(b)
}

// quoted reads a C string behind dst.
func (p *notation) quoted(dst []byte) ([]byte, error) {
	p.i++
	if dst == nil {
		n := strings.IndexByte(p.s[p.i:], '"')
		if n < 0 {
			return nil, p.fail("the string does not end")
		}
		if x := strings.HasPrefix(p.s[p.i:], `\x`); x {
			n /= 4
		}
		dst = make([]byte, 0, n)
	}
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return dst, nil
		case c != '\\':
			dst = append(dst, c)
			continue
		case p.i >= len(p.s):
			return nil, p.fail("the string does not end")
		}
		c = p.s[p.i]
		p.i++
		switch {
		case c == 'x' && p.i+2 <= len(p.s) && hex(p.s[p.i]) >= 0 && hex(p.s[p.i+1]) >= 0:
			dst = append(dst, byte(hex(p.s[p.i])<<4|hex(p.s[p.i+1])))
			p.i += 2
		case c >= '0' && c <= '7':
			v := int(c - '0')
			for n := 0; n < 2 && p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '7'; n++ {
				v = v*8 + int(p.s[p.i]-'0')
				p.i++
			}
			dst = append(dst, byte(v))
		default:
			if i := strings.IndexByte("tnvfr", c); i >= 0 {
				c = "\t\n\v\f\r"[i]
			}
			dst = append(dst, c)
		}
	}
	return nil, p.fail("the string does not end")
}

func hex(c byte) int {
	switch {
	case digit(c):
		return int(c - '0')
	case c|32 >= 'a' && c|32 <= 'f':
		return int(c|32-'a') + 10
	}
	return -1
}
