// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"

	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/store/catalogue"
)

// definition is what a table of the lake is made of.
type definition struct {
	name string
	// columns are those of the rows that the table is made of, without host, which all
	// tables have.
	columns []store.Column
	from    string   // the clause of those rows
	day     string   // the expression of a row's day
	host    string   // of its host
	sort    []string // the order of rows in a file
	time    string   // the column with a row's time, "" if there is none
	path    string   // the column with the name of a file, "" if there is none
}

// The columns that all tables have first. Rows are partitioned by day and host.
const (
	tapeIDColumn = "tape_id"
	tapeColumn   = "tape"
	dayColumn    = "day"
	hostColumn   = "host"
)

var leadColumns = []store.Column{
	{Name: tapeIDColumn, Type: "VARCHAR"}, {Name: tapeColumn, Type: "VARCHAR"}, {Name: dayColumn, Type: "DATE"},
	{Name: hostColumn, Type: "VARCHAR"},
}

// summariesTable has a row for each tape. It is also the ledger: a tape is in the lake if
// its row is.
const (
	summariesTable = "summaries"
	findingsTable  = "findings"
	// findingsCount is how many findings a tape has. unknownCount takes its place if they were
	// not looked for.
	findingsCount = "(SELECT count(*) FROM findings)"
	unknownCount  = "NULL::BIGINT"
)

// definitions returns the tables of a lake, in the order in which they are written. They are
// made when they are asked for: most runs of the program need none.
var definitions = sync.OnceValue(func() []*definition {
	return []*definition{
		{name: "events", columns: without(store.TableColumns("events"), hostColumn), from: "events", day: "time",
			host: hostColumn, sort: []string{"file", "time"}, time: "time", path: "file"},
		{name: "opens", columns: without(store.TableColumns("opens"), hostColumn),
			from: "(SELECT o.*, coalesce(o.opened_time, (SELECT min(time) FROM events)) AS opened FROM opens o)",
			day:  "opened", host: hostColumn, sort: []string{"path", "opened_time"}, time: "opened_time", path: "path"},
		{name: "processes", columns: without(store.TableColumns("processes"), hostColumn), from: "processes",
			day: "start_time", host: hostColumn, sort: []string{"start_time"}, time: "start_time"},
		{name: "files", columns: without(store.TableColumns("files"), hostColumn), from: "files", day: "first_time",
			host: hostColumn, sort: []string{"path"}, time: "first_time", path: "path"},
		{name: "content", columns: without(store.TableColumns("content"), "bytes"),
			from: "(SELECT c.*, e.host, e.time FROM content c JOIN events e USING (seq))", day: "time", host: hostColumn,
			sort: []string{"hash", "seq"}},
		{name: findingsTable, columns: findingColumns, from: findingsTable, day: dayColumn, host: hostColumn,
			sort: []string{"problem"}},
		{name: summariesTable, columns: append(without(catalogue.StoreColumns(), "id", tapeColumn, dayColumn, hostColumn),
			store.Column{Name: findingsTable, Type: "BIGINT"}),
			from: "(SELECT *, " + findingsCount + " AS findings FROM summaries)", day: dayColumn, host: "coalesce(host, '')", sort: []string{"start"}, time: "start"},
	}
})

// Tables returns the names of the tables of a lake.
func Tables() (names []string) {
	for _, d := range definitions() {
		names = append(names, d.name)
	}
	return names
}

func without(columns []store.Column, names ...string) []store.Column {
	return slices.DeleteFunc(columns, func(c store.Column) bool { return slices.Contains(names, c.Name) })
}

// all returns the columns of the table as the lake's files have them.
func (d *definition) all() []store.Column {
	list := slices.Clone(leadColumns)
	for _, c := range d.columns {
		list = append(list, store.Column{Name: c.Name, Type: lakeType(c.Type)})
	}
	return list
}

// lakeType returns the engine's type of a column in the lake. Iceberg has no numbers without
// a sign, and in the version of its format that all engines read no times in nanoseconds.
func lakeType(t string) string {
	switch t {
	case "TINYINT", "UTINYINT", "USMALLINT":
		return "INTEGER"
	case "UINTEGER", "UBIGINT":
		return "BIGINT"
	case "TIMESTAMP_NS":
		return "TIMESTAMP"
	case "UBIGINT[]", "UINTEGER[]":
		return "BIGINT[]"
	case "MAP(VARCHAR, UBIGINT)":
		return "MAP(VARCHAR, BIGINT)"
	}
	return t
}

// selection returns the SELECT that makes the table's rows of a tape: of the day and the host
// that are its parameters, or of all if parts is false.
func (d *definition) selection(tapeID, tape string) string {
	list := []string{text(tapeID) + " AS " + tapeIDColumn, text(tape) + " AS " + tapeColumn,
		"CAST(" + d.day + " AS DATE) AS " + dayColumn, d.host + " AS " + hostColumn}
	for _, c := range d.columns {
		list = append(list, convert(c)+" AS "+name(c.Name))
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE CAST(%s AS DATE) = ?::DATE AND %s = ? ORDER BY %s",
		strings.Join(list, ", "), d.from, d.day, d.host, d.order())
}

// partitions returns the SELECT of the days and hosts that the table's rows of a tape have.
func (d *definition) partitions() string {
	return fmt.Sprintf("SELECT DISTINCT CAST(%s AS DATE), %s FROM %s ORDER BY ALL", d.day, d.host, d.from)
}

func (d *definition) order() string {
	var list []string
	for _, s := range d.sort {
		list = append(list, name(s))
	}
	return strings.Join(list, ", ")
}

// convert returns the expression of a column's value in the lake. Numbers of 64 bits without
// a sign keep their bits.
func convert(c store.Column) string {
	column := name(c.Name)
	if c.Type == "UBIGINT" {
		return fmt.Sprintf("CASE WHEN %[1]s > 9223372036854775807 "+
			"THEN (%[1]s::HUGEINT - 18446744073709551616)::BIGINT ELSE %[1]s::BIGINT END", column)
	}
	if t := lakeType(c.Type); t != c.Type {
		return "TRY_CAST(" + column + " AS " + t + ")"
	}
	return column
}

// name makes an identifier of SQL, and text a literal.
func name(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// icebergType returns the type of a column, whose parts get numbers of next.
func icebergType(t string, next func() int) iceberg.Type {
	switch t {
	case "INTEGER":
		return iceberg.PrimitiveTypes.Int32
	case "BIGINT":
		return iceberg.PrimitiveTypes.Int64
	case "BOOLEAN":
		return iceberg.PrimitiveTypes.Bool
	case "DATE":
		return iceberg.PrimitiveTypes.Date
	case "TIMESTAMP":
		return iceberg.PrimitiveTypes.Timestamp
	case "VARCHAR[]":
		return &iceberg.ListType{ElementID: next(), Element: iceberg.PrimitiveTypes.String}
	case "BIGINT[]":
		return &iceberg.ListType{ElementID: next(), Element: iceberg.PrimitiveTypes.Int64}
	case "MAP(VARCHAR, BIGINT)":
		return &iceberg.MapType{KeyID: next(), KeyType: iceberg.PrimitiveTypes.String, ValueID: next(),
			ValueType: iceberg.PrimitiveTypes.Int64}
	}
	return iceberg.PrimitiveTypes.String
}

// schemaOf returns the schema of the table with the columns that old has, if it is not nil,
// and those that are new, and the largest number in it. Columns keep their numbers.
func (d *definition) schemaOf(old *iceberg.Schema, last int) (*iceberg.Schema, int, bool) {
	var fields []iceberg.NestedField
	known, id := map[string]bool{}, 0
	if old != nil {
		id = old.ID + 1
		for _, f := range old.Fields() {
			fields, known[f.Name] = append(fields, f), true
		}
	}
	next := func() int { last++; return last }
	changed := old == nil
	for _, c := range d.all() {
		if !known[c.Name] {
			f := iceberg.NestedField{ID: next(), Name: c.Name}
			f.Type = icebergType(c.Type, next)
			fields, changed = append(fields, f), true
		}
	}
	if !changed {
		return old, last, false
	}
	return iceberg.NewSchema(id, fields...), last, true
}

// fieldsOf returns the numbers of columns in a schema. A column that it does not have gets 0.
func fieldsOf(s *iceberg.Schema, columns []store.Column) (list []store.Field) {
	for _, c := range columns {
		var f store.Field
		if nf, ok := s.FindFieldByName(c.Name); ok {
			f.ID = nf.ID
			switch t := nf.Type.(type) {
			case *iceberg.ListType:
				f.Parts = []int{t.ElementID}
			case *iceberg.MapType:
				f.Parts = []int{t.KeyID, t.ValueID}
			}
		}
		list = append(list, f)
	}
	return list
}

func sameFields(a, b []store.Field) bool { return reflect.DeepEqual(a, b) }

// errColumns is of files whose columns have other numbers than those of the table now.
func errColumns(d *definition) error {
	return fmt.Errorf("another version of iotape has changed the columns of %s meanwhile; run this again", d.name)
}
