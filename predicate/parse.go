// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a filter's text.
const (
	MaxSource  = 64 << 10 // bytes
	maxNesting = 200      // of parentheses and "not"
)

// Parse reads a filter. The error, if any, is an *Error. Text that begins with "strace:"
// is what strace(1) takes (see Strace).
//
//	filter  = and { ("or" | "||") and }
//	and     = not { ("and" | "&&") not }
//	not     = ("not" | "!") not | "(" filter ")" | test
//	test    = "true" | "false" | "descendant" "of" NUMBER
//	        | FIELD | FIELD compare value | FIELD ["not"] word value | FIELD "." word "(" value ")"
//	FIELD   = NAME ["." NAME]
//	compare = "=" | "==" | "!=" | "<" | "<=" | ">" | ">="
//	word    = "in" | "has" | "startsWith" | "endsWith" | "contains" | "glob" | "matches" | "under"
//	value   = WORD | NUMBER [UNIT] | STRING | "/" REGEXP "/" | value ".." value | "{" value { "," value } "}"
//
// A "#" begins a comment that goes to the end of its line.
func Parse(src string) (*Expr, error) {
	if len(src) > MaxSource {
		return nil, &Error{Source: src[:64],
			Message: fmt.Sprintf("the filter has %d bytes, at most %d", len(src), MaxSource)}
	}
	if rest, ok := strings.CutPrefix(src, stracePrefix); ok {
		text, err := Strace(rest)
		if err != nil {
			return nil, err
		}
		src = text
	}
	p := parser{src: src}
	root, err := p.filter(0)
	if err == nil && !p.atEnd() {
		err = p.unexpected(`"and" or "or"`)
	}
	if err != nil {
		return nil, err
	}
	return &Expr{src: src, root: root}, nil
}

type parser struct {
	what string // is read; "" is a filter
	src  string
	pos  int
}

func (p *parser) fail(pos, end int, hint, format string, args ...any) error {
	return &Error{What: p.what, Source: p.src, Pos: pos, End: end, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// unexpected says that something else should stand here.
func (p *parser) unexpected(wanted string) error {
	p.space()
	if p.pos >= len(p.src) {
		return p.fail(p.pos, p.pos, "", "the %s ends where %s should be", cmp.Or(p.what, "filter"), wanted)
	}
	end := p.pos + 1
	for end < len(p.src) && isBare(p.src, end) {
		end++
	}
	return p.fail(p.pos, end, "", "%s is not %s", Quote(p.src[p.pos:min(end, p.pos+40)]), wanted)
}

// space skips spaces and comments.
func (p *parser) space() {
	for ; p.pos < len(p.src); p.pos++ {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
		case '#':
			if i := strings.IndexByte(p.src[p.pos:], '\n'); i >= 0 {
				p.pos += i
			} else {
				p.pos = len(p.src)
				return
			}
		default:
			return
		}
	}
}

func (p *parser) atEnd() bool {
	p.space()
	return p.pos >= len(p.src)
}

// take skips a mark if it stands here.
func (p *parser) take(mark string) bool {
	p.space()
	if !strings.HasPrefix(p.src[p.pos:], mark) {
		return false
	}
	p.pos += len(mark)
	return true
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// peek returns the word that stands here, "" if there is none.
func (p *parser) peek() string {
	p.space()
	end := p.pos
	for end < len(p.src) && (isLetter(p.src[end]) || end > p.pos && isDigit(p.src[end])) {
		end++
	}
	return p.src[p.pos:end]
}

// takeWord skips a word, in whatever case, if it stands here.
func (p *parser) takeWord(word string) bool {
	if w := p.peek(); strings.EqualFold(w, word) {
		p.pos += len(w)
		return true
	}
	return false
}

func (p *parser) filter(depth int) (node, error) {
	return p.joined(depth, false, "or", "||", func(depth int) (node, error) {
		return p.joined(depth, true, "and", "&&", p.not)
	})
}

func (p *parser) joined(depth int, and bool, word, mark string, operand func(depth int) (node, error)) (node, error) {
	first, err := operand(depth)
	if err != nil {
		return nil, err
	}
	kids := []node{first}
	for p.takeWord(word) || p.take(mark) {
		k, err := operand(depth)
		if err != nil {
			return nil, err
		}
		kids = append(kids, k)
	}
	if len(kids) == 1 {
		return first, nil
	}
	return &logic{and, kids}, nil
}

func (p *parser) not(depth int) (node, error) {
	if depth > maxNesting {
		return nil, p.fail(p.pos, p.pos, "", "more than %d parentheses and negations in one another", maxNesting)
	}
	p.space()
	start := p.pos
	switch {
	case p.takeWord("not") || p.take("!"):
		x, err := p.not(depth + 1)
		if err != nil {
			return nil, err
		}
		return &negation{x}, nil
	case p.take("("):
		x, err := p.filter(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.take(")") {
			if p.atEnd() {
				return nil, p.fail(start, start+1, "", "this parenthesis is not closed")
			}
			return nil, p.unexpected(`"and", "or" or ")"`)
		}
		return x, nil
	}
	return p.test()
}

func (p *parser) test() (node, error) {
	name := p.peek()
	start := p.pos
	if name == "" {
		return nil, p.unexpected("a test (such as uid = 0)")
	}
	switch strings.ToLower(name) {
	case "and", "or", "in", "has":
		return nil, p.unexpected("a test (such as uid = 0)")
	}
	p.pos += len(name)
	switch strings.ToLower(name) {
	case "true", "false":
		return &constant{strings.EqualFold(name, "true")}, nil
	case "descendant":
		if !p.takeWord("of") {
			return nil, p.unexpected(`"of"`)
		}
		v, err := p.value(false)
		if err != nil {
			return nil, err
		}
		return &descent{v}, nil
	}
	c := &comparison{name: name, pos: start, end: p.pos}
	return c, p.relation(c)
}

// relation reads what follows a field's name.
func (p *parser) relation(c *comparison) (err error) {
	if p.pos < len(p.src) && p.src[p.pos] == '.' {
		p.pos++
		if !p.takeKey(c) {
			return p.method(c)
		}
	}
	switch {
	case p.take("==") || p.take("="):
		c.rel = relEqual
	case p.take("!="):
		c.rel = relNotEqual
	case p.take("<="):
		c.rel = relLessEqual
	case p.take(">="):
		c.rel = relGreaterEqual
	case p.take("<"):
		c.rel = relLess
	case p.take(">"):
		c.rel = relGreater
	default:
		before := p.pos
		c.negated = p.takeWord("not")
		word := p.peek()
		rel, ok := wordRelations[strings.ToLower(word)]
		switch {
		case ok:
			c.rel = rel
			p.pos += len(word)
		case c.negated:
			return p.unexpected("in, has, startsWith, endsWith, contains, glob, matches or under")
		default:
			p.pos = before
			return p.alone(word)
		}
	}
	return p.values(c)
}

// takeKey reads the second part of a name that has two, as ops.fsync. The name of a
// relation is a method, and so is what parentheses stand behind: a misspelt one.
func (p *parser) takeKey(c *comparison) bool {
	start, word := p.pos, p.peek()
	if _, ok := wordRelations[strings.ToLower(word)]; ok || word == "" || p.pos != start {
		return false
	}
	p.pos += len(word)
	end := p.pos
	if p.take("(") {
		p.pos = start
		return false
	}
	p.pos = end
	c.name, c.end = c.name+"."+word, p.pos
	return true
}

// alone checks what follows a field that stands alone.
func (p *parser) alone(word string) error {
	switch {
	case p.atEnd(), p.src[p.pos] == ')', strings.HasPrefix(p.src[p.pos:], "&&"), strings.HasPrefix(p.src[p.pos:], "||"),
		strings.EqualFold(word, "and"), strings.EqualFold(word, "or"):
		return nil
	}
	hint := ""
	if word != "" {
		hint = suggest(word, relationText[relIn:])
	}
	err := p.unexpected("a comparison (such as = or in)").(*Error)
	err.Hint = hint
	return err
}

// method reads .startsWith("…") and the like.
func (p *parser) method(c *comparison) error {
	word := p.peek()
	rel, ok := wordRelations[strings.ToLower(word)]
	if !ok {
		err := p.unexpected("startsWith, endsWith, contains, glob, matches or under").(*Error)
		err.Hint = suggest(word, relationText[relIn:])
		return err
	}
	c.rel = rel
	p.pos += len(word)
	if !p.take("(") {
		return p.unexpected(`"("`)
	}
	if err := p.values(c); err != nil {
		return err
	}
	if !p.take(")") {
		return p.unexpected(`")"`)
	}
	return nil
}

// values reads a value, or several in braces or, as in SQL, in parentheses.
func (p *parser) values(c *comparison) error {
	p.space()
	open, end := p.pos, "}"
	switch {
	case p.take("{"):
	case c.rel != relMatches && p.take("("):
		end = ")"
	default:
		v, err := p.value(c.rel == relMatches)
		c.values = []value{v}
		return err
	}
	c.braces = true
	if c.rel >= relLess && c.rel <= relGreaterEqual {
		return p.fail(open, open+1, "", "%s compares with one value, not with a set", relationText[c.rel])
	}
	for {
		if p.atEnd() {
			return p.fail(open, open+1, "", "this list is not closed")
		}
		if p.take(end) {
			if len(c.values) == 0 {
				return p.fail(open, p.pos, "", "the set is empty")
			}
			return nil
		}
		if len(c.values) > 0 && !p.take(",") {
			return p.unexpected(`"," or "` + end + `"`)
		}
		v, err := p.value(c.rel == relMatches)
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
	}
}

// isBare reports whether a byte can be within a word that is a value.
func isBare(s string, i int) bool {
	switch c := s[i]; c {
	case ' ', '\t', '\n', '\r', '(', ')', '{', '}', ',', '"', '\'', '=', '!', '<', '>', '&', '#', 0x7f:
		return false
	case '|': // O_RDWR|O_DIRECT, but not ||
		return i > 0 && s[i-1] != '|' && i+1 < len(s) && isLetter(s[i+1])
	default:
		return c > ' '
	}
}

func (p *parser) value(regexps bool) (value, error) {
	p.space()
	start := p.pos
	if start >= len(p.src) {
		return value{}, p.unexpected("a value")
	}
	switch c := p.src[start]; {
	case c == '"' || c == '\'':
		text, err := p.quotedText(c)
		return value{text, quoted, start, p.pos}, err
	case c == '/' && regexps:
		text, err := p.regexpText()
		return value{text, regex, start, p.pos}, err
	}
	for p.pos < len(p.src) && isBare(p.src, p.pos) {
		p.pos++
	}
	if p.pos == start {
		return value{}, p.unexpected("a value")
	}
	return value{p.src[start:p.pos], bare, start, p.pos}, nil
}

func (p *parser) quotedText(mark byte) (string, error) {
	start := p.pos
	var b []byte
	for p.pos++; p.pos < len(p.src); p.pos++ {
		c := p.src[p.pos]
		if c == mark {
			p.pos++
			return string(b), nil
		}
		if c != '\\' {
			b = append(b, c)
			continue
		}
		if p.pos++; p.pos >= len(p.src) {
			break
		}
		switch c := p.src[p.pos]; c {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'x':
			v, err := strconv.ParseUint(p.src[p.pos+1:min(p.pos+3, len(p.src))], 16, 8)
			if err != nil || p.pos+3 > len(p.src) {
				return "", p.fail(p.pos-1, p.pos+1, "", `after \x stand two hexadecimal digits`)
			}
			b = append(b, byte(v))
			p.pos += 2
		case '\\', '"', '\'':
			b = append(b, c)
		default:
			return "", p.fail(p.pos-1, p.pos+1, "", `\%s is not \n, \t, \x41, \\, \" or \'`,
				strings.Trim(Quote(string(c)), `"`))
		}
	}
	return "", p.fail(start, start+1, "", "this string is not closed")
}

// regexpText reads /…/, in which \/ is a slash.
func (p *parser) regexpText() (string, error) {
	start := p.pos
	var b []byte
	for p.pos++; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; {
		case c == '/':
			p.pos++
			return string(b), nil
		case c == '\\' && p.pos+1 < len(p.src):
			p.pos++
			if p.src[p.pos] != '/' {
				b = append(b, '\\')
			}
			b = append(b, p.src[p.pos])
		default:
			b = append(b, c)
		}
	}
	return "", p.fail(start, start+1, "", "this regular expression is not closed")
}
