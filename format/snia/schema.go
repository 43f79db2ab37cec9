// SPDX-License-Identifier: Apache-2.0

package snia

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/iotape/iotape/format/dataseries"
)

// schemaText has a line for each call: its name and its own fields, each as
// name:kind, with ? where it may be null. The line "common" is of all calls.
//
//go:embed schema.txt
var schemaText string

const typePrefix = "IOTTAFSL::Trace::Syscall::"

var kindNames = map[string]string{"i32": "int32", "i64": "int64", "var": "variable32", "bool": "bool", "byte": "byte"}

// schema is the types of all calls, in the order of the schema's own table.
type schema struct {
	types  []*dataseries.Type
	byCall map[string]*dataseries.Type
}

// theSchema builds the types. Their XML is byte for byte what Re-Animator's library
// writes, since its readers compare it.
var theSchema = sync.OnceValue(func() *schema {
	type call struct {
		name   string
		fields []string
	}
	var calls []call
	var names []string
	for line := range strings.Lines(schemaText) {
		words := strings.Fields(line)
		calls = append(calls, call{words[0], words[1:]})
		for _, f := range words[1:] {
			name, _, _ := strings.Cut(f, ":")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names) // a field's id is its place among all names
	field := func(b *strings.Builder, f string) {
		name, kind, _ := strings.Cut(f, ":")
		nullable := "no"
		if k, ok := strings.CutSuffix(kind, "?"); ok {
			kind, nullable = k, "yes"
		}
		id, _ := slices.BinarySearch(names, name)
		fmt.Fprintf(b, "  <field field_id=\"%d\" name=\"%s\" type=\"%s\" opt_nullable=\"%s\"/>\n", id, name,
			kindNames[kind], nullable)
	}
	s := &schema{byCall: map[string]*dataseries.Type{}}
	for _, c := range calls[1:] {
		var b strings.Builder
		fmt.Fprintf(&b, "<ExtentType name=\"%s%s\" namespace=\"iotta.snia.org\" version=\"1.00\">\n", typePrefix,
			c.name)
		for _, f := range slices.Concat(calls[0].fields, c.fields) {
			field(&b, f)
		}
		b.WriteString("</ExtentType>\n")
		t, err := dataseries.ParseType(b.String())
		if err != nil {
			panic(err) // schema.txt is part of the program
		}
		s.types = append(s.types, t)
		s.byCall[c.name] = t
	}
	return s
})
