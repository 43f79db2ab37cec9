// SPDX-License-Identifier: Apache-2.0

package babeltrace

import (
	"strconv"
	"strings"
	"time"
)

// line is an event as it is printed.
type line struct {
	time    int64  // ns, of whichever clock was asked for
	daytime bool   // time counts from midnight
	host    string // "" if not printed
	name    string
	context []value // of all scopes but the last
	payload []value
}

// value is a field: a text, a number, or a list of others.
type value struct {
	name, text string
	isText     bool
	num        int64 // of an enumeration its container, of a structure all of its members' together
	list       []value
}

func find(list []value, name string) *value {
	for i := range list {
		if list[i].name == name {
			return &list[i]
		}
	}
	return nil
}

// number returns the first of some fields that is there.
func number(list []value, names ...string) (int64, bool) {
	for _, n := range names {
		if v := find(list, n); v != nil && !v.isText {
			return v.num, true
		}
	}
	return 0, false
}

// maxDepth limits how deep structures are.
const maxDepth = 16

// parseLine parses an event. It returns what is wrong, "" if nothing is.
func parseLine(s string) (l line, wrong string) {
	stamp := ""
	p := parser{s: s} // --names=all
	if strings.HasPrefix(s, "[") {
		if stamp, p.s, wrong = l.head(s); wrong != "" {
			return l, wrong
		}
	}
	scopes := p.members("")
	if p.wrong != "" {
		return l, p.wrong
	}
	for i := range scopes {
		v := &scopes[i]
		switch {
		case v.list != nil || v.text == "" && !v.isText:
			l.context = append(l.context, l.payload...)
			l.payload = v.list
		case v.name == "timestamp":
			stamp = v.text
		case v.name == "name":
			l.name = v.text
		case v.name == "trace:hostname" || v.name == "trace" && l.host == "":
			l.host, _, _ = strings.Cut(v.text, ":")
		}
	}
	if l.name == "" {
		return l, "no name of an event"
	}
	ok := false
	if l.time, l.daytime, ok = parseTime(stamp); !ok {
		return l, "the time is not understood"
	}
	return l, ""
}

// head parses what stands before the fields of an event and has no names: its time, its
// host and its own name.
func (l *line) head(s string) (stamp, fields, wrong string) {
	stamp, rest, ok := strings.Cut(s[1:], "] ")
	if !ok {
		return "", "", "no end of the time"
	}
	if strings.HasPrefix(rest, "(") {
		if _, rest, ok = strings.Cut(rest, ") "); !ok {
			return "", "", "no end of the delta"
		}
	}
	head, fields, ok := cutFields(rest)
	if !ok {
		return "", "", "no fields"
	}
	words := strings.Fields(head)
	if len(words) == 0 || len(words) > 8 {
		return "", "", "no name of an event"
	}
	l.name = words[len(words)-1]
	if len(words) > 1 {
		l.host, _, _ = strings.Cut(words[0], ":")
	}
	return stamp, fields, ""
}

// cutFields divides a line into who and what, and the fields.
func cutFields(s string) (head, fields string, ok bool) {
	i := strings.Index(s, "{")
	if i < 0 {
		return "", "", false
	}
	// With --names=scope the first structure has a name before it.
	c := strings.LastIndex(s[:i], ": ")
	if c < 0 {
		return "", "", false
	}
	return s[:c], s[c+2:], true
}

// parseTime understands --clock-seconds, --clock-date, --clock-cycles and the time of
// day. A date without a time zone is taken for one of UTC.
func parseTime(s string) (ns int64, daytime, ok bool) {
	if date, clock, both := strings.Cut(s, " "); both {
		t, err := time.Parse("2006-01-02 15:04:05", date+" "+clock) // a fraction may follow
		return t.UnixNano(), false, err == nil && t.Year() >= 1970 && t.Year() < 2262
	}
	if strings.Count(s, ":") == 2 {
		t, err := time.Parse("15:04:05", s)
		return int64(t.Sub(t.Truncate(24 * time.Hour))), true, err == nil
	}
	seconds, fraction, hasFraction := strings.Cut(s, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 {
		return 0, false, false
	}
	if !hasFraction {
		return n, false, true // cycles; LTTng's clock counts ns
	}
	f, err := strconv.ParseUint((fraction + "000000000")[:9], 10, 32)
	if err != nil || n > 1<<33 {
		return 0, false, false
	}
	return n*1e9 + int64(f), false, true
}

// parser reads fields.
type parser struct {
	s     string
	depth int
	wrong string
}

func (p *parser) fail(what string) { p.wrong = what }

func (p *parser) space() { p.s = strings.TrimLeft(p.s, " ") }

// members reads fields up to an end, or to the end of the line.
func (p *parser) members(end string) []value {
	list := []value{}
	if p.depth++; p.depth > maxDepth {
		p.fail("structures within structures are too deep")
	}
	for p.wrong == "" {
		p.space()
		switch {
		case end != "" && strings.HasPrefix(p.s, end):
			p.s = p.s[len(end):]
			p.depth--
			return list
		case p.s == "":
			if end != "" {
				p.fail("it ends within a structure")
			}
			p.depth--
			return list
		case strings.HasPrefix(p.s, ","):
			p.s = p.s[1:]
			continue
		}
		v := value{}
		// A name ends in " = " before anything that a value could begin with.
		if i := strings.Index(p.s, " = "); i > 0 && !strings.ContainsAny(p.s[:i], "{\"(,}") {
			v.name = p.s[:i]
			p.s = p.s[i+3:]
		}
		p.value(&v)
		list = append(list, v)
	}
	return list
}

func (p *parser) value(v *value) {
	p.space()
	switch {
	case strings.HasPrefix(p.s, "{"):
		p.s = p.s[1:]
		v.list = p.members("}")
	case strings.HasPrefix(p.s, "["):
		p.s = p.s[1:]
		v.list = p.members("]")
	case strings.HasPrefix(p.s, "\""):
		p.quoted(v)
	case strings.HasPrefix(p.s, "("):
		p.enumeration(v)
	default:
		i := strings.IndexAny(p.s, ",}] ")
		if i < 0 {
			i = len(p.s)
		}
		if i == 0 {
			p.fail("a value is missing")
			return
		}
		v.text, p.s = p.s[:i], p.s[i:]
		if strings.HasPrefix(p.s, " ") && !strings.HasPrefix(p.s, " }") && !strings.HasPrefix(p.s, " ]") { // a date
			if i = strings.IndexByte(p.s, ','); i > 0 {
				v.text, p.s = v.text+p.s[:i], p.s[i:]
			}
		}
		v.num, v.isText = integer(v.text)
	}
	for i := range v.list {
		v.num |= v.list[i].num
	}
}

// integer parses a number in any base; anything else is text.
func integer(s string) (n int64, isText bool) {
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return n, false
	}
	u, err := strconv.ParseUint(s, 0, 64)
	return int64(u), err != nil
}

// enumeration reads the names of a value and, at its end, the value itself.
func (p *parser) enumeration(v *value) {
	const mark = "container = "
	for i := 1; i < len(p.s); i++ {
		switch {
		case p.s[i] == '"': // a label
			n := strings.IndexByte(p.s[i+1:], '"')
			if n < 0 {
				p.fail("it ends within a name")
				return
			}
			i += n + 1
		case strings.HasPrefix(p.s[i:], mark):
			rest := p.s[i+len(mark):]
			end := strings.IndexByte(rest, ')')
			if end < 0 {
				p.fail("it ends within an enumeration")
				return
			}
			v.text = strings.TrimSpace(rest[:end])
			v.num, v.isText = integer(v.text)
			p.s = rest[end+1:]
			return
		}
	}
	p.fail("an enumeration without its value")
}

// quoted reads a string with C's escapes.
func (p *parser) quoted(v *value) {
	v.isText = true
	var b []byte
	for i := 1; i < len(p.s); i++ {
		c := p.s[i]
		if c == '"' {
			v.text, p.s = string(b), p.s[i+1:]
			return
		}
		if c != '\\' {
			b = append(b, c)
			continue
		}
		if i++; i == len(p.s) {
			break
		}
		switch c = p.s[i]; c {
		case 'x':
			n, err := strconv.ParseUint(p.s[i+1:min(i+3, len(p.s))], 16, 8)
			if err != nil {
				p.fail("a string with an escape that is none")
				return
			}
			b = append(b, byte(n))
			i += 2
		default:
			const names, bytes = "abefnrtv", "\a\b\x1b\f\n\r\t\v"
			if n := strings.IndexByte(names, c); n >= 0 {
				c = bytes[n]
			}
			b = append(b, c)
		}
	}
	p.fail("it ends within a string")
}
