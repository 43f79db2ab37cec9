// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Column is what a filter over rows of a table, instead of events, can ask for.
type Column struct {
	Name    string
	Aliases []string
	Kind    ColumnKind
	Keyed   bool   // it has values by name: NAME.KEY
	Several bool   // a row has several values: one that fits is enough
	About   string // for people
}

// ColumnKind says what a column is compared with.
type ColumnKind uint8

// The kinds.
const (
	ColumnText   ColumnKind = iota
	ColumnNumber            // int64
	ColumnBytes             // with units of bytes
	ColumnSpan              // ns, with units of time
	ColumnTime              // ns since 1970, as a date or a date and time in UTC
	ColumnFlag              // true or false: it stands alone
)

var columnTypes = [...]fieldType{
	ColumnText: typeText, ColumnNumber: typeNumber, ColumnBytes: typeBytes, ColumnSpan: typeSpan, ColumnTime: typeTime, ColumnFlag: typeBool,
}

// Condition is a filter over columns: its names are known, its values checked and in the
// columns' units. It is for whoever makes a statement of another language of it.
type Condition struct {
	Join     Join
	Kids     []*Condition // of AllOf and AnyOf; one of NoneOf
	Constant bool         // of Always: its value

	// The rest is of Test.
	Column  *Column
	Key     string // if the column has values by name
	Negated bool   // none of the values fits; a value has to be there all the same
	// Ranges are the numbers of which one has to be in: both ends belong to it.
	Ranges []Range
	// Match says how a text is compared, with one of Texts.
	Match Match
	Texts []string
}

// Join says what a Condition is.
type Join uint8

// The joins.
const (
	Test Join = iota
	AllOf
	AnyOf
	NoneOf
	Always
)

// Range is from Lo to Hi.
type Range struct{ Lo, Hi int64 }

// Match is how texts are compared.
type Match uint8

// The matches.
const (
	Equal Match = iota
	StartsWith
	EndsWith
	Contains
	Glob    // of the whole text: *, ?, [a-z]
	Matches // a regular expression (RE2) anywhere
	Under   // a directory, or what is in it
)

var textMatches = map[relation]Match{
	relEqual: Equal, relNotEqual: Equal, relIn: Equal, relStartsWith: StartsWith, relEndsWith: EndsWith,
	relContains: Contains, relGlob: Glob, relMatches: Matches, relUnder: Under,
}

// Condition checks a filter over columns. The error, if any, is an *Error.
func (x *Expr) Condition(columns []Column) (*Condition, error) {
	c := &columnChecker{checker: checker{x: x, o: &Options{}}, columns: columns}
	return c.condition(x.root)
}

type columnChecker struct {
	checker
	columns []Column
}

func (c *columnChecker) condition(n node) (*Condition, error) {
	switch n := n.(type) {
	case *constant:
		return &Condition{Join: Always, Constant: n.value}, nil
	case *negation:
		return c.joined(NoneOf, n.x)
	case *logic:
		if n.and {
			return c.joined(AllOf, n.kids...)
		}
		return c.joined(AnyOf, n.kids...)
	case *descent:
		return nil, c.wrong(&n.value, "", "descendant of asks for processes of a tape; here is asked for tapes")
	}
	return c.test(n.(*comparison))
}

func (c *columnChecker) joined(j Join, kids ...node) (*Condition, error) {
	all := &Condition{Join: j}
	for _, k := range kids {
		one, err := c.condition(k)
		if err != nil {
			return nil, err
		}
		all.Kids = append(all.Kids, one)
	}
	return all, nil
}

// column finds the column that a name stands for, and its key.
func (c *columnChecker) column(n *comparison) (col *Column, key string, err error) {
	name, key, keyed := strings.Cut(n.name, ".")
	var names []string
	for i := range c.columns {
		col := &c.columns[i]
		if col.Name != name && !slices.Contains(col.Aliases, name) {
			names = append(append(names, col.Name), col.Aliases...)
			continue
		}
		switch {
		case col.Keyed && !keyed:
			return nil, "", c.fail(n.pos, n.end, "write "+name+".NAME", "%s has values by name", name)
		case keyed && !col.Keyed:
			return nil, "", c.fail(n.pos, n.end, "", "%s has no values by name", name)
		}
		return col, key, nil
	}
	return nil, "", c.fail(n.pos, n.end, suggest(name, names), "there is no field %s", name)
}

func (c *columnChecker) test(n *comparison) (*Condition, error) {
	col, key, err := c.column(n)
	if err != nil {
		return nil, err
	}
	t := &Condition{Column: col, Key: key, Negated: n.negated || n.rel == relNotEqual}
	f := &field{name: n.name, typ: columnTypes[col.Kind], lo: minI64, hi: maxI64}
	switch alone := n.rel == relHolds; {
	case alone && f.typ != typeBool:
		return nil, c.fail(n.pos, n.end, "", "%s has to be compared with something", n.name)
	case !alone && f.typ == typeBool:
		return nil, c.fail(n.pos, n.end, "write "+n.name+" or not "+n.name,
			"%s is true or false and stands alone", n.name)
	case alone:
		return t, nil
	}
	if err := c.fitting(f, n); err != nil {
		return nil, err
	}
	if f.typ == typeText {
		t.Match = textMatches[n.rel]
		return t, c.texts(t, n)
	}
	for i := range n.values {
		v := &n.values[i]
		if _, ok := wallTime(v.text); f.typ == typeTime && !ok {
			return nil, c.wrong(v, "",
				"%s is compared with a date or a time such as 2026-05-01 or \"2026-05-01 12:00\"", n.name)
		}
		iv, err := c.interval(f, n.rel, v)
		if err != nil {
			return nil, err
		}
		t.Ranges = append(t.Ranges, Range{iv.lo, iv.hi})
	}
	return t, nil
}

func (c *columnChecker) texts(t *Condition, n *comparison) error {
	for i := range n.values {
		v := &n.values[i]
		text := v.text
		switch t.Match {
		case Matches:
			if len(text) > maxRegexp {
				return c.wrong(v, "", "a regular expression has at most %d bytes", maxRegexp)
			}
			if _, err := regexp.Compile(text); err != nil {
				return c.wrong(v, "", "%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			}
		case Glob:
			if _, err := path.Match(text, ""); err != nil {
				return c.wrong(v, "", "%s is no pattern: *, ?, [a-z]", Quote(text))
			}
		case Under:
			if text = path.Clean(text); text == "." {
				return c.wrong(v, "", "after under stands a directory")
			}
		}
		t.Texts = append(t.Texts, text)
	}
	return nil
}
