// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/store"
)

// Options for Find. Nil and zero values are the defaults.
type Options struct {
	Columns []string // nil is all
	Sort    string   // a column; "" is start
	Reverse bool
	Limit   int // 0 is all
}

// Find returns the rows that fit a filter (nil: all), whose fields are Fields. The rows
// must be closed.
func (c *Catalogue) Find(ctx context.Context, filter *predicate.Expr, o *Options) (*store.Rows, error) {
	q, err := Statement(filter, o)
	if err != nil {
		return nil, err
	}
	files, unlock, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return store.QueryParquet(ctx, tapesName, StoreColumns(), files, q.SQL, q.Args...)
}

// Question is a SELECT over a table tapes with the columns Columns, and the values for its ?.
type Question struct {
	SQL  string
	Args []any
}

// Statement returns the SELECT of Find.
func Statement(filter *predicate.Expr, o *Options) (q Question, err error) {
	if o == nil {
		o = &Options{}
	}
	where := "true"
	var args []any
	if filter != nil {
		cond, err := filter.Condition(Fields())
		if err != nil {
			return q, err
		}
		var s statement
		s.condition(cond)
		where, args = s.text.String(), s.args
	}
	list := o.Columns
	if list == nil {
		list = Columns()
	}
	sort := o.Sort
	if sort == "" {
		sort = "start"
	}
	for _, name := range append(slices.Clone(list), sort) {
		if !slices.Contains(Columns(), name) {
			return q, fmt.Errorf("there is no column %q: they are %s", name, strings.Join(Columns(), ", "))
		}
	}
	query := "SELECT " + quoted(list) + " FROM " + tapesName + " WHERE " + where + " ORDER BY " + quoted([]string{sort})
	if o.Reverse {
		query += " DESC"
	}
	query += ", id"
	if o.Limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", o.Limit)
	}
	return Question{query, args}, nil
}

// Columns returns the names of the columns, as files have them.
func Columns() (names []string) {
	for i := range columns {
		names = append(names, columns[i].name)
	}
	return names
}

func quoted(names []string) string {
	var list []string
	for _, n := range names {
		list = append(list, `"`+n+`"`)
	}
	return strings.Join(list, ", ")
}

// statement is a condition in SQL. Nothing of the filter's own text is in it but as a
// parameter.
type statement struct {
	text strings.Builder
	args []any
	// within is set below a "not": there a comparison must not be NULL, as it is with a
	// row that lacks the value. Elsewhere NULL is as good as false, and engines use plain
	// comparisons to pass over what they need not read.
	within bool
}

func (s *statement) param(v any) string {
	s.args = append(s.args, v)
	return "?"
}

func (s *statement) condition(c *predicate.Condition) {
	switch c.Join {
	case predicate.AllOf, predicate.AnyOf:
		word := " OR "
		if c.Join == predicate.AllOf {
			word = " AND "
		}
		s.text.WriteByte('(')
		for i, k := range c.Kids {
			if i > 0 {
				s.text.WriteString(word)
			}
			s.condition(k)
		}
		s.text.WriteByte(')')
	case predicate.NoneOf:
		before := s.within
		s.within = true
		s.text.WriteString("(NOT ")
		s.condition(c.Kids[0])
		s.text.WriteByte(')')
		s.within = before
	case predicate.Always:
		fmt.Fprintf(&s.text, "%t", c.Constant)
	default:
		s.test(c)
	}
}

// test writes a comparison: a row without the value fits nothing.
func (s *statement) test(c *predicate.Condition) {
	col := columnOf(c.Column)
	name := `"` + col.name + `"`
	value := func(*statement) string { return name }
	negation := ""
	if c.Negated {
		negation = "NOT "
	}
	switch {
	case c.Column.Keyed && c.Column.Kind == predicate.ColumnSpan:
		// Of what was not called there is no time.
		value = func(s *statement) string { return name + "[" + s.param(c.Key) + "]" }
	case c.Column.Keyed:
		value = func(s *statement) string { return "coalesce(" + name + "[" + s.param(c.Key) + "], 0)" }
	case c.Column.Several:
		// One of a list: are there some that fit?
		s.text.WriteString("(" + negation + "coalesce(len(list_filter(" + name + ", lambda x: ")
		s.fits(c, func(*statement) string { return "x" })
		s.text.WriteString(")) > 0, false))")
		return
	}
	open, end := "(", ")"
	if s.within {
		open, end = "coalesce(", ", false)"
	}
	s.text.WriteString(open + negation)
	if c.Column.Kind == predicate.ColumnFlag {
		s.text.WriteString(name)
	} else {
		s.fits(c, value)
	}
	s.text.WriteString(end)
}

// fits writes that a value is one of those of a test.
func (s *statement) fits(c *predicate.Condition, value func(*statement) string) {
	var any []string
	for _, r := range c.Ranges {
		var ends []string
		if r.Lo != math.MinInt64 {
			ends = append(ends, value(s)+" >= "+s.number(c, r.Lo, time.Microsecond-1))
		}
		if r.Hi != math.MaxInt64 {
			ends = append(ends, value(s)+" <= "+s.number(c, r.Hi, 0))
		}
		if len(ends) == 0 {
			ends = []string{value(s) + " IS NOT NULL"}
		}
		any = append(any, "("+strings.Join(ends, " AND ")+")")
	}
	for _, text := range c.Texts {
		any = append(any, s.match(c.Match, value, store.Text(text)))
	}
	s.text.WriteString("(" + strings.Join(any, " OR ") + ")")
}

func (s *statement) match(how predicate.Match, value func(*statement) string, text string) string {
	call := func(function, text string) string { return function + "(" + value(s) + ", " + s.param(text) + ")" }
	switch how {
	case predicate.StartsWith:
		return call("starts_with", text)
	case predicate.EndsWith:
		return call("ends_with", text)
	case predicate.Contains:
		return call("contains", text)
	case predicate.Matches:
		return call("regexp_matches", text)
	case predicate.Glob:
		return value(s) + " GLOB " + s.param(text)
	case predicate.Under:
		return "(" + value(s) + " = " + s.param(text) + " OR " + call("starts_with",
			strings.TrimSuffix(text, "/")+"/") + ")"
	}
	return value(s) + " = " + s.param(text)
}

// number is a parameter in the type of its column. Times in files are in µs: up is what
// is added before the rest is cut off.
func (s *statement) number(c *predicate.Condition, n int64, up time.Duration) string {
	if c.Column.Kind == predicate.ColumnTime {
		return s.param(time.Unix(0, n).Add(up).UTC().Truncate(time.Microsecond))
	}
	return s.param(n)
}

func columnOf(f *predicate.Column) *column {
	for i := range columns {
		if columns[i].field.Name == f.Name {
			return &columns[i]
		}
	}
	return &columns[0]
}
