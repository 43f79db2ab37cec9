// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// View is a table of rows in Parquet files.
type View struct {
	Name    string
	Columns []Column // what the view has; files may lack some, which are NULL then
	Fields  []Field  // of the files, if their columns are found by number; else by name
	Files   []string
	Where   string // a condition that the rows fulfil, "" if all are in the view
}

// Field is a column's number in Parquet files, and the numbers of its parts: of the
// elements of a list, or of the keys and the values of a map. 0 is of a column that no file
// has.
type Field struct {
	ID    int
	Parts []int
}

// TableColumns returns the columns of a table of tapes (events, processes, files, opens or
// content) as its Parquet file has them, or nil if there is no such table.
func TableColumns(table string) []Column {
	host := []string{"host"}
	switch table {
	case "events":
		return describe(eventColumns(host))
	case "processes":
		return describe(processColumns(host))
	case "files":
		return describe(fileColumns(host))
	case "opens":
		return describe(openColumns(host))
	case "content":
		return describe(contentColumns())
	}
	return nil
}

// ParquetName returns the name of a table's Parquet file in the directory of a tape.
func ParquetName(table string) string { return parquetName(table) }

// typeWords are the engine's names of types that columns of tapes have.
var typeWords = map[mapping.Type]string{
	mapping.TypeTinyInt: "TINYINT", mapping.TypeInteger: "INTEGER", mapping.TypeBigInt: "BIGINT",
	mapping.TypeUTinyInt: "UTINYINT", mapping.TypeUSmallInt: "USMALLINT", mapping.TypeUInteger: "UINTEGER",
	mapping.TypeUBigInt: "UBIGINT", mapping.TypeBoolean: "BOOLEAN", mapping.TypeTimestampNS: "TIMESTAMP_NS",
	mapping.TypeVarchar: "VARCHAR", mapping.TypeBlob: "BLOB",
	mapping.TypeEnum: "VARCHAR", // as a Parquet file has it
}

func describe[R any](columns []column[R]) (list []Column) {
	for i := range columns {
		t := columns[i].typ()
		list = append(list, Column{Name: columns[i].name, Type: typeWords[mapping.GetTypeId(t)]})
		mapping.DestroyLogicalType(&t)
	}
	return list
}

// Tables is an engine with views, which reads their files and writes into one directory. It
// is for statements of the program itself; those of users are run by QueryTables.
type Tables struct{ s *session }

// OpenTables starts an engine with views that may write into the directory out, unless that
// is "". The caller closes it.
func OpenTables(ctx context.Context, views []View, out string, o *QueryOptions) (_ *Tables, err error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	var allowed []string
	statements := []string{"SET preserve_insertion_order = true", "SET temp_directory = " + quote(s.spill.Temp)}
	for i := range views {
		for _, f := range views[i].Files {
			allowed = append(allowed, quote(f))
		}
		statements = append(statements, "CREATE VIEW "+identifier(views[i].Name)+" AS "+views[i].source())
	}
	if out != "" {
		statements = append(statements, "SET allowed_directories = ["+quote(out)+"]")
	}
	statements = append(statements, "SET allowed_paths = ["+strings.Join(allowed, ", ")+"]",
		"SET enable_external_access = false", "SET lock_configuration = true")
	for _, st := range statements {
		if err := s.exec(ctx, st); err != nil {
			return nil, err
		}
	}
	return &Tables{s}, nil
}

// source is the SELECT of a view.
func (v *View) source() string {
	if v.Where == "" {
		return v.all()
	}
	return "SELECT * FROM (" + v.all() + ") WHERE " + v.Where
}

func (v *View) all() string {
	if len(v.Files) == 0 {
		return emptySource(v.Columns)
	}
	var files, schema, names []string
	for _, f := range v.Files {
		files = append(files, quote(glob(f)))
	}
	list := "[" + strings.Join(files, ", ") + "]"
	for i, c := range v.Columns {
		value := identifier(c.Name)
		switch {
		case v.Fields == nil:
		case v.Fields[i].ID == 0:
			value = "NULL" // no file has it
		default:
			schema = append(schema, fmt.Sprintf("%d: {name: %s, type: %s, default_value: NULL}", v.Fields[i].ID,
				quote(c.Name), quote(c.Type)))
		}
		names = append(names, value+"::"+c.Type+" AS "+identifier(c.Name))
	}
	if v.Fields != nil {
		return "SELECT " + strings.Join(names, ", ") + " FROM read_parquet(" + list +
			", hive_partitioning = false, schema = MAP {" + strings.Join(schema, ", ") + "})"
	}
	return emptySource(v.Columns) + " UNION ALL BY NAME SELECT * FROM read_parquet(" + list +
		", union_by_name = true, hive_partitioning = false)"
}

// Close ends the engine.
func (t *Tables) Close() error { return t.s.close() }

// Each calls f with each row of a SELECT; the values are valid during the call.
func (t *Tables) Each(ctx context.Context, query string, args []any, f func(values []any) error) error {
	rows, err := t.s.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	defer rows.Close()
	return each(rows, f)
}

func each(rows *sql.Rows, f func(values []any) error) error {
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, scan := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		scan[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(scan...); err != nil {
			return err
		}
		if err := f(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ColumnChunk is what a Parquet file says of one column in one row group.
type ColumnChunk struct {
	Path          string // the column's name; of a part of a column: NAME, then more with ", " between
	Bytes, Values int64
	Nulls         int64
	Min, Max      *string // in the engine's words; nil if they are not known
}

// WriteFile writes the rows of a SELECT, whose columns are columns with the numbers of fields,
// into a new Parquet file, and returns how many they are and what the file says of its columns.
func (t *Tables) WriteFile(ctx context.Context, file, query string, args []any, columns []Column,
	fields []Field) (rows int64, chunks []ColumnChunk, err error) {
	var ids []string
	for i, c := range columns {
		ids = append(ids, identifier(c.Name)+": "+fields[i].literal())
	}
	done, err := t.s.conn.ExecContext(ctx, fmt.Sprintf("COPY (%s) TO %s (FORMAT parquet, COMPRESSION zstd, "+
		"ROW_GROUP_SIZE %d, USE_TMP_FILE false, FIELD_IDS {%s})", query, quote(file), rowGroup,
		strings.Join(ids, ", ")),
		args...)
	if err != nil {
		return 0, nil, fmt.Errorf("write %s: %w", file, err)
	}
	if rows, err = done.RowsAffected(); err != nil {
		return 0, nil, err
	}
	if err := syncFile(file); err != nil {
		return 0, nil, err
	}
	err = t.Each(ctx, "SELECT path_in_schema, total_compressed_size, num_values, stats_null_count, stats_min_value, "+
		"stats_max_value FROM parquet_metadata("+quote(glob(file))+")", nil, func(v []any) error {
		c := ColumnChunk{Path: fmt.Sprint(v[0]), Min: textOf(v[4]), Max: textOf(v[5])}
		c.Bytes, _ = v[1].(int64)
		c.Values, _ = v[2].(int64)
		c.Nulls, _ = v[3].(int64)
		chunks = append(chunks, c)
		return nil
	})
	return rows, chunks, err
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func textOf(v any) *string {
	if s, ok := v.(string); ok {
		return &s
	}
	return nil
}

// literal is a field's number as COPY takes it.
func (f *Field) literal() string {
	switch {
	case len(f.Parts) == 1:
		return fmt.Sprintf("{__duckdb_field_id: %d, element: %d}", f.ID, f.Parts[0])
	case len(f.Parts) == 2:
		return fmt.Sprintf("{__duckdb_field_id: %d, key: %d, value: %d}", f.ID, f.Parts[0], f.Parts[1])
	}
	return fmt.Sprint(f.ID)
}

// QueryTables runs one SELECT over views. The statement can read nothing else. What is not in it
// stands in args, for its ?.
func QueryTables(ctx context.Context, views []View, query string, o *QueryOptions, args ...any) (*Rows, error) {
	t, err := OpenTables(ctx, views, "", o)
	if err != nil {
		return nil, err
	}
	return t.s.query(ctx, query, args...)
}

// TablesOf returns the names of tables that a SELECT mentions.
func TablesOf(ctx context.Context, query string) (map[string]bool, error) {
	s, err := newSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	names, err := duckdb.GetTableNames(s.conn, query, false)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	used := map[string]bool{}
	for _, n := range names {
		used[strings.ToLower(n)] = true
	}
	return used, nil
}
