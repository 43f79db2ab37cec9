// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"maps"
	"slices"

	"github.com/iotape/iotape/store"
)

// weaker makes conditions of rows weaker: into conditions of files that hold for each file
// with a row for which the condition of rows holds. nil is the condition that always holds.
type weaker struct {
	p       *pruner
	d       *definition
	use     *use
	exact   bool                    // a file has one day and host
	columns map[string]store.Column // whose least and largest values are asked for
}

// condition makes a condition weaker.
func (w *weaker) condition(n node) node {
	switch word(n, classKey) {
	case conjunctionClass:
		var list []node
		for _, c := range children(n) {
			list = append(list, w.condition(c))
		}
		if how := word(n, typeKey); how == conjunctionAnd || how == conjunctionOr {
			return join(how, list)
		}
	case comparisonClass:
		if weak := w.comparison(word(n, typeKey), child(n, leftKey), child(n, rightKey)); weak != nil {
			return weak
		}
	case betweenClass:
		if word(n, typeKey) == "COMPARE_BETWEEN" {
			input := child(n, "input")
			weak := join(conjunctionAnd, []node{w.comparison(greaterOrEqual, input, child(n, "lower")),
				w.comparison(lessOrEqual, input, child(n, "upper"))})
			if weak != nil {
				return weak
			}
		}
	case operator:
		if list := children(n); word(n, typeKey) == "COMPARE_IN" && len(list) > 1 {
			var any []node
			for _, value := range list[1:] {
				any = append(any, w.comparison(equal, list[0], value))
			}
			if weak := join(conjunctionOr, any); weak != nil {
				return weak
			}
		}
	case functionClass:
		if weak := w.prefix(n); weak != nil {
			return weak
		}
	}
	// NULL of an outer join is no value that a file has.
	if w.exact && !w.use.outer {
		if same, ok := w.same(n).(node); ok {
			return same
		}
	}
	return nil
}

// flipped are comparisons with the sides exchanged.
var flipped = map[string]string{equal: equal, less: greater, lessOrEqual: greaterOrEqual, greater: less,
	greaterOrEqual: lessOrEqual}

// comparison makes a comparison of a column with a value weaker.
func (w *weaker) comparison(how string, left, right node) node {
	if flipped[how] == "" {
		return nil
	}
	of, kind := w.column(left)
	if of == nil {
		if of, kind = w.column(right); of == nil {
			return nil
		}
		how, right = flipped[how], left
	}
	var list []node
	// A time that passes until the statement runs moves a lower limit up, which excludes more
	// rows; it may be asked for there, and nowhere else.
	if how == equal || how == greater || how == greaterOrEqual {
		if w.value(right, kind, true) {
			above := greaterOrEqual
			if how == greater {
				above = greater
			}
			list = append(list, newComparison(above, of(mostSuffix), right))
		}
	}
	if how == equal || how == less || how == lessOrEqual {
		if w.value(right, kind, false) {
			below := lessOrEqual
			if how == less {
				below = less
			}
			list = append(list, newComparison(below, of(leastSuffix), right))
		}
	}
	return join(conjunctionAnd, list)
}

// kind is what values of columns are compared as.
type kind int

const (
	texts kind = iota
	numbers
	times
)

var kinds = map[string]kind{varcharType: texts, "INTEGER": numbers, "BIGINT": numbers, "DATE": times,
	"TIMESTAMP": times}

// column returns, for a column of the table or a function of one that never decreases, the
// same of the least or largest value.
func (w *weaker) column(n node) (of func(suffix string) node, k kind) {
	if name := w.use.column(n); name != "" {
		for _, c := range w.d.all() {
			if k, ok := kinds[c.Type]; ok && c.Name == name {
				w.columns[name] = c
				return func(suffix string) node { return newColumn(name + suffix) }, k
			}
		}
		return nil, 0
	}
	within := func(key string, inner node, as kind) (func(string) node, kind) {
		of, k := w.column(inner)
		if of == nil || k != times {
			return nil, 0
		}
		return func(suffix string) node {
			c := maps.Clone(n)
			if key == childKey {
				c[key] = of(suffix)
				return c
			}
			list := slices.Clone(n[key].([]any))
			list[len(list)-1] = of(suffix)
			c[key] = list
			return c
		}, as
	}
	list := children(n)
	switch {
	case word(n, classKey) == castClass:
		if typ := word(child(n, "cast_type"), "id"); typ == "DATE" || typ == "TIMESTAMP" {
			return within(childKey, child(n, childKey), times)
		}
	case function(n) == "date_trunc" && len(list) == 2:
		if _, ok := textConstant(list[0]); ok {
			return within(childrenKey, list[1], times)
		}
	case function(n) == "year" && len(list) == 1:
		return within(childrenKey, list[0], numbers)
	}
	return nil, 0
}

// value reports whether an expression is a value that a column of a kind can be compared
// with in the order of the column's own values. passing allows values that grow with time.
func (w *weaker) value(n node, k kind, passing bool) bool {
	typ := constantType(n)
	switch k {
	case texts:
		return typ == varcharType
	case numbers:
		if list := children(n); function(n) == "-" && len(list) == 1 {
			typ = constantType(list[0])
		}
		return typ != "" && typ != booleanType
	}
	return w.moment(n, passing)
}

// now are the functions that return the time.
var now = map[string]bool{"now": true, "current_date": true, "today": true, "get_current_timestamp": true,
	"transaction_timestamp": true}

// moment reports whether an expression is a time or a span that no column is in.
func (w *weaker) moment(n node, passing bool) bool {
	switch word(n, classKey) {
	case constantClass:
		return true
	case castClass:
		return w.moment(child(n, childKey), passing)
	case columnClass:
		names, _ := n["column_names"].([]any)
		return passing && w.use.alone && len(names) == 1 && names[0] == "current_date"
	case functionClass:
		name, list := function(n), children(n)
		switch {
		case now[name] && len(list) == 0:
			return passing
		case (name == "+" || name == "-") && len(list) == 2:
			return w.moment(list[0], passing) && w.moment(list[1], false)
		case name == "date_trunc" && len(list) == 2:
			return constantType(list[0]) != "" && w.moment(list[1], passing)
		}
		return w.p.pure[name] && !slices.ContainsFunc(list, func(c node) bool { return !w.moment(c, false) })
	}
	return false
}

// prefix makes the condition weaker that a text begins with another.
func (w *weaker) prefix(n node) node {
	list := children(n)
	if len(list) != 2 {
		return nil
	}
	of, k := w.column(list[0])
	s, ok := textConstant(list[1])
	if of == nil || k != texts || !ok {
		return nil
	}
	switch function(n) {
	case "~~": // LIKE
		whole := true
		for i, c := range s {
			if c == '%' || c == '_' {
				s, whole = s[:i], false
				break
			}
		}
		if whole {
			return w.comparison(equal, list[0], list[1])
		}
	case "^@", "starts_with", "prefix":
	default:
		return nil
	}
	if s == "" {
		return nil
	}
	all := []node{newComparison(greaterOrEqual, of(mostSuffix), newConstant(varcharType, s))}
	if behind := after(s); behind != "" {
		all = append(all, newComparison(less, of(leastSuffix), newConstant(varcharType, behind)))
	}
	return join(conjunctionAnd, all)
}

// plain are the classes of expressions that say the same of a file as of its rows, if their
// parts do.
var plain = map[string]bool{constantClass: true, castClass: true, comparisonClass: true, conjunctionClass: true,
	operator: true, betweenClass: true, caseClass: true, functionClass: true}

// same returns an expression of the day and the host alone as an expression of the file; nil if
// it asks for something else.
func (w *weaker) same(v any) any {
	switch v := v.(type) {
	case []any:
		list := []any{} // nil would be null
		for _, c := range v {
			same := w.same(c)
			if same == nil && c != nil {
				return nil
			}
			list = append(list, same)
		}
		return list
	case node:
		class := word(v, classKey)
		if class == columnClass {
			if name := w.use.column(v); name == dayColumn || name == hostColumn {
				return newColumn(name)
			}
			return nil
		}
		if class != "" && !plain[class] || class == functionClass && !w.p.pure[function(v)] {
			return nil
		}
		c := node{}
		for key, part := range v {
			if c[key] = w.same(part); c[key] == nil && part != nil {
				return nil
			}
		}
		return c
	}
	return v
}
