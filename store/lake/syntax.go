// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// node is a part of a statement's syntax, in the form that the engine's parser gives it
// (store.Tables.Syntax). What is not known here is left as it is.
type node = map[string]any

// The words of that form.
const (
	typeKey, classKey            = "type", "class"
	childrenKey, childKey        = "children", "child"
	columnClass, constantClass   = "COLUMN_REF", "CONSTANT"
	functionClass, castClass     = "FUNCTION", "CAST"
	comparisonClass              = "COMPARISON"
	conjunctionClass, operator   = "CONJUNCTION", "OPERATOR"
	betweenClass, caseClass      = "BETWEEN", "CASE"
	conjunctionAnd               = "CONJUNCTION_AND"
	conjunctionOr                = "CONJUNCTION_OR"
	equal, less, lessOrEqual     = "COMPARE_EQUAL", "COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO"
	greater, greaterOrEqual      = "COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"
	varcharType, booleanType     = "VARCHAR", "BOOLEAN"
	leftKey, rightKey, sampleKey = "left", "right", "sample"
)

func word(n node, key string) string {
	s, _ := n[key].(string)
	return s
}

func child(n node, key string) node {
	c, _ := n[key].(node)
	return c
}

func children(n node) (list []node) {
	all, _ := n[childrenKey].([]any)
	for _, c := range all {
		m, _ := c.(node)
		list = append(list, m)
	}
	return list
}

// function returns the name of a function that is called.
func function(n node) string {
	if word(n, classKey) != functionClass {
		return ""
	}
	return strings.ToLower(word(n, "function_name"))
}

// constantType returns the type of a constant, "" if it is none.
func constantType(n node) string {
	if word(n, classKey) != constantClass {
		return ""
	}
	return word(child(child(n, "value"), typeKey), "id")
}

// textConstant returns a constant text.
func textConstant(n node) (s string, ok bool) {
	if constantType(n) == varcharType {
		s, ok = child(n, "value")["value"].(string)
	}
	return s, ok
}

func newConstant(typ string, value any) node {
	return node{classKey: constantClass, typeKey: "VALUE_CONSTANT", "alias": "",
		"value": node{typeKey: node{"id": typ, "type_info": nil}, "is_null": false, "value": value}}
}

func newColumn(name string) node {
	return node{classKey: columnClass, typeKey: columnClass, "alias": "", "column_names": []any{name}}
}

// newComparison compares what a file's column has at one end with a value; a file that does
// not say what that is fits.
func newComparison(how string, bound, value node) node {
	compared := node{classKey: comparisonClass, typeKey: how, "alias": "", leftKey: bound, rightKey: value}
	return node{classKey: operator, typeKey: "OPERATOR_COALESCE", "alias": "",
		childrenKey: []any{compared, newConstant(booleanType, true)}}
}

// join joins conditions, of which nil is one that is always true.
func join(how string, list []node) node {
	var all []any
	for _, n := range list {
		switch {
		case n != nil:
			all = append(all, n)
		case how == conjunctionOr:
			return nil
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0].(node)
	}
	return node{classKey: conjunctionClass, typeKey: how, "alias": "", childrenKey: all}
}

// use is a place where a statement reads a table of the lake.
type use struct {
	alias string // what it is called there
	alone bool   // columns without a name before them are its own
	outer bool   // an outer join may have made NULL of its columns before the condition is asked
	where node   // the condition of the SELECT, nil if all rows are needed
}

// column returns the name of the table's column that an expression is, "" if it is none.
func (u *use) column(n node) string {
	if word(n, classKey) != columnClass {
		return ""
	}
	names, _ := n["column_names"].([]any)
	var list []string
	for _, name := range names {
		s, _ := name.(string)
		list = append(list, strings.ToLower(s))
	}
	switch {
	case len(list) == 1 && u.alone:
		return list[0]
	case len(list) == 2 && list[0] == u.alias:
		return list[1]
	}
	return ""
}

// reads is what a statement reads.
type reads struct {
	uses  map[string][]use // by table, in lower case
	named map[string]bool  // what its WITH clauses name: a table of that name is another
	all   bool             // it has a statement in it that only the engine can read
}

// readsOf returns what a statement reads.
func readsOf(syntax string) (*reads, error) {
	var n node
	d := json.NewDecoder(strings.NewReader(syntax))
	d.UseNumber()
	if err := d.Decode(&n); err != nil {
		return nil, err
	}
	r := &reads{uses: map[string][]use{}, named: map[string]bool{}}
	// What the engine's parser does not give is read as a whole.
	if failed, _ := n["error"].(bool); failed {
		r.all = true
	}
	r.walk(n)
	return r, nil
}

// has reports whether a table is read.
func (r *reads) has(table string) bool { return r.all || len(r.uses[table]) > 0 }

// of returns the uses of a table; nil if all its rows may be needed.
func (r *reads) of(table string) []use {
	if r.all || r.named[table] || slices.ContainsFunc(r.uses[table], func(u use) bool { return u.where == nil }) {
		return nil
	}
	return r.uses[table]
}

func (r *reads) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, c := range v {
			r.walk(c)
		}
	case node:
		switch word(v, typeKey) {
		case "SELECT_NODE":
			r.selects(v)
			return
		case "BASE_TABLE":
			r.add(v, use{})
		case "TABLE_FUNCTION":
			switch function(child(v, "function")) {
			case "query", "query_table":
				r.all = true
			}
		}
		r.with(v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.walk(v[key])
		}
	}
}

// with notes the names of a WITH clause.
func (r *reads) with(n node) {
	list, _ := child(n, "cte_map")["map"].([]any)
	for _, e := range list {
		entry, _ := e.(node)
		r.named[strings.ToLower(word(entry, "key"))] = true
	}
}

func (r *reads) add(table node, u use) {
	name := strings.ToLower(word(table, "table_name"))
	r.uses[name] = append(r.uses[name], u)
}

// selects notes what a SELECT reads: the tables that it joins are read under its condition.
func (r *reads) selects(n node) {
	var f from
	f.flatten(r, child(n, "from_table"), true)
	for _, s := range f.sources {
		u := use{alias: s.alias, alone: len(f.sources) == 1, outer: f.outer}
		renamed, _ := s.table["column_name_alias"].([]any)
		if s.plain && n[sampleKey] == nil && s.table[sampleKey] == nil && len(renamed) == 0 && f.names[s.alias] == 1 {
			u.where = child(n, "where_clause")
		}
		if s.table != nil {
			r.add(s.table, u)
		}
	}
	r.with(n)
	for _, key := range slices.Sorted(maps.Keys(n)) {
		if key != "from_table" {
			r.walk(n[key])
		}
	}
}

// from is a FROM clause.
type from struct {
	sources []source
	names   map[string]int // how often each is used
	outer   bool           // it has an outer join
}

// source is a table of a FROM clause, or something else that it joins.
type source struct {
	table node // nil if it is no table
	alias string
	// plain is set of a table whose rows can be left out before the joins if the condition
	// does not hold for them after.
	plain bool
}

func (f *from) flatten(r *reads, n node, plain bool) {
	switch word(n, typeKey) {
	case "":
		return
	case "JOIN":
		switch word(n, "join_type") {
		case "INNER":
		case "LEFT", "RIGHT", "OUTER":
			f.outer = true
		default: // of a semi join, say, the condition does not see all columns
			plain = false
		}
		switch word(n, "ref_type") {
		case "REGULAR", "CROSS", "NATURAL":
		default: // another row would be the next or the nearest one
			plain = false
		}
		f.flatten(r, child(n, leftKey), plain)
		f.flatten(r, child(n, rightKey), plain)
		r.walk(n["condition"])
		return
	case "BASE_TABLE":
		f.add(source{table: n, alias: strings.ToLower(aliasOf(n)), plain: plain})
		return
	}
	f.add(source{alias: strings.ToLower(aliasOf(n))})
	r.walk(n)
}

func (f *from) add(s source) {
	if f.names == nil {
		f.names = map[string]int{}
	}
	f.names[s.alias]++
	f.sources = append(f.sources, s)
}

func aliasOf(n node) string {
	if a := word(n, "alias"); a != "" {
		return a
	}
	return word(n, "table_name")
}
