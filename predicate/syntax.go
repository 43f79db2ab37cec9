// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Expr is a filter as it was written.
type Expr struct {
	src  string
	root node
}

// Source returns the text that was parsed.
func (x *Expr) Source() string { return x.src }

// String returns the filter in one line, with the parentheses that it needs. Parsing it
// gives the same filter.
func (x *Expr) String() string {
	var b strings.Builder
	x.root.write(&b, 0)
	return b.String()
}

// And returns the filter that accepts what both accept. One may be nil, which accepts all.
func And(a, b *Expr) *Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return combine(a, b, true)
}

// Or returns the filter that accepts what one of them accepts. One may be nil, which accepts
// all.
func Or(a, b *Expr) *Expr {
	if a == nil || b == nil {
		return nil
	}
	return combine(a, b, false)
}

func combine(a, b *Expr, and bool) *Expr {
	joined := &Expr{root: &logic{and: and, kids: []node{a.root, b.root}}}
	text := joined.String()
	x, err := Parse(text)
	if err != nil {
		return joined // too long: it has no text to point into
	}
	return x
}

// node is a part of an expression.
type node interface {
	// write writes the node; strength is that of the operator around it.
	write(b *strings.Builder, strength int)
}

type (
	// logic is two or more nodes joined by "and" or "or".
	logic struct {
		and  bool
		kids []node
	}
	negation struct{ x node }
	constant struct{ value bool }
	// comparison is a test of a field.
	comparison struct {
		name     string // of the field, as written
		pos, end int
		rel      relation
		negated  bool // "not in", "not has", …
		braces   bool // values stand in { }
		values   []value
	}
	// descent is "descendant of PID".
	descent struct {
		value value
	}
)

// relation is how a comparison compares.
type relation uint8

const (
	relHolds relation = iota // the field alone
	relEqual
	relNotEqual
	relLess
	relLessEqual
	relGreater
	relGreaterEqual
	relIn
	relHas
	relStartsWith
	relEndsWith
	relContains
	relGlob
	relMatches
	relUnder
)

var relationText = [...]string{
	relHolds: "", relEqual: "=", relNotEqual: "!=", relLess: "<", relLessEqual: "<=", relGreater: ">", relGreaterEqual: ">=", relIn: "in",
	relHas: "has", relStartsWith: "startsWith", relEndsWith: "endsWith", relContains: "contains", relGlob: "glob", relMatches: "matches", relUnder: "under",
}

// wordRelations are the relations that are words, in lower case.
var wordRelations = map[string]relation{
	"in": relIn, "has": relHas, "startswith": relStartsWith, "endswith": relEndsWith, "contains": relContains,
	"glob": relGlob, "matches": relMatches, "under": relUnder,
}

// value is what a field is compared with.
type value struct {
	text     string
	form     form
	pos, end int
}

type form uint8

const (
	bare   form = iota // a word or a number
	quoted             // a string
	regex              // /…/
)

func (l *logic) write(b *strings.Builder, strength int) {
	mine, word := 1, " or "
	if l.and {
		mine, word = 2, " and "
	}
	if mine <= strength {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	for i, k := range l.kids {
		if i > 0 {
			b.WriteString(word)
		}
		k.write(b, mine)
	}
}

func (n *negation) write(b *strings.Builder, _ int) {
	b.WriteString("not ")
	n.x.write(b, 2)
}

func (c *constant) write(b *strings.Builder, _ int) { b.WriteString(strconv.FormatBool(c.value)) }

func (d *descent) write(b *strings.Builder, _ int) { b.WriteString("descendant of " + d.value.text) }

func (c *comparison) write(b *strings.Builder, _ int) {
	b.WriteString(c.name)
	if c.rel == relHolds {
		return
	}
	b.WriteByte(' ')
	if c.negated {
		b.WriteString("not ")
	}
	b.WriteString(relationText[c.rel])
	b.WriteByte(' ')
	if c.braces {
		b.WriteByte('{')
	}
	for i := range c.values {
		if i > 0 {
			b.WriteString(", ")
		}
		c.values[i].write(b)
	}
	if c.braces {
		b.WriteByte('}')
	}
}

func (v *value) write(b *strings.Builder) {
	switch v.form {
	case bare:
		if !utf8.ValidString(v.text) { // what stores the filter as JSON would lose it
			b.WriteString(Quote(v.text))
			return
		}
		b.WriteString(v.text)
	case regex:
		b.WriteString("/" + strings.ReplaceAll(v.text, "/", `\/`) + "/")
	case quoted:
		b.WriteString(Quote(v.text))
	}
}

// Quote writes a string as filters read it, in UTF-8 whatever bytes it has.
func Quote(s string) string {
	const digits = "0123456789abcdef"
	b := []byte{'"'}
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		c := s[i]
		switch r, size = utf8.DecodeRuneInString(s[i:]); {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ' || c == 0x7f || r == utf8.RuneError && size == 1:
			b = append(b, '\\', 'x', digits[c>>4], digits[c&15])
		default:
			b = append(b, s[i:i+size]...)
		}
	}
	return string(append(b, '"'))
}
