// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/iotape/iotape/pipe/wholefile"
)

// Column describes a column of a Parquet file that is no table of a tape.
type Column struct {
	Name string
	Type string // of DuckDB, as VARCHAR, UBIGINT[] or MAP(VARCHAR, UBIGINT)
}

// Map makes a value of a column of type MAP(VARCHAR, UBIGINT).
func Map(m map[string]uint64) any {
	out := make(duckdb.Map, len(m))
	for k, v := range m {
		out[text(k)] = v
	}
	return out
}

// Text is a value of a column of text: invalid UTF-8 becomes \xNN.
func Text(s string) string { return text(s) }

// WriteParquet writes rows into a file, in the order that the columns in orderBy give
// ("" is that of the rows). A value is what a column's type is in Go; see Map and Text.
// The file appears whole or not at all.
func WriteParquet(ctx context.Context, file string, columns []Column, orderBy string,
	rows iter.Seq2[[]any, error]) (err error) {
	s, err := newSession(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.exec(ctx, "CREATE TABLE rows ("+declare(columns)+")"); err != nil {
		return err
	}
	err = s.conn.Raw(func(c any) error {
		a, err := duckdb.NewAppenderFromConn(c.(driver.Conn), "", "rows")
		if err != nil {
			return err
		}
		values := make([]driver.Value, len(columns))
		for row, err := range rows {
			if err == nil {
				for i, v := range row {
					values[i] = v
				}
				err = a.AppendRow(values...)
			}
			if err != nil {
				return errors.Join(err, a.Close())
			}
		}
		return a.Close()
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return s.copyTo(ctx, file, "SELECT * FROM rows"+order(orderBy))
}

// JoinParquet writes the rows of several files with the same columns into one. Columns
// that a file does not have are NULL.
func JoinParquet(ctx context.Context, file string, columns []Column, orderBy, where string,
	args []any, from []string) (err error) {
	s, err := parquetSession(ctx, "rows", columns, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if where != "" {
		where = " WHERE " + where
	}
	return s.copyTo(ctx, file, "SELECT * FROM rows"+where+order(orderBy), args...)
}

// QueryParquet runs one SELECT over a view of the rows of some files, which may lack
// columns. What is not in the statement stands in args, for its ?.
func QueryParquet(ctx context.Context, view string, columns []Column, from []string, query string,
	args ...any) (*Rows, error) {
	s, err := parquetSession(ctx, view, columns, from)
	if err != nil {
		return nil, err
	}
	return s.query(ctx, query, args...)
}

// parquetSession has the rows of files as a view, and may open nothing else.
func parquetSession(ctx context.Context, view string, columns []Column, from []string) (*session, error) {
	s, err := newSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	source, statements := emptySource(columns), []string{}
	if len(from) > 0 {
		var list []string
		for _, f := range from {
			path, err := filepath.Abs(f)
			if err != nil {
				return nil, errors.Join(err, s.close())
			}
			list = append(list, quote(glob(path)))
		}
		statements = append(statements, "SET parquet_metadata_cache = true")
		source = emptySource(columns) + " UNION ALL BY NAME SELECT * FROM read_parquet([" + strings.Join(list, ", ") +
			"], union_by_name = true, hive_partitioning = false)"
	}
	statements = append(statements, "CREATE VIEW "+identifier(view)+" AS "+source)
	for _, st := range statements {
		if err := s.exec(ctx, st); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// emptySource is a SELECT without rows that has the columns with their types.
func emptySource(columns []Column) string {
	var list []string
	for _, c := range columns {
		list = append(list, "CAST(NULL AS "+c.Type+") AS "+identifier(c.Name))
	}
	return "SELECT " + strings.Join(list, ", ") + " WHERE false"
}

func declare(columns []Column) string {
	var list []string
	for _, c := range columns {
		list = append(list, identifier(c.Name)+" "+c.Type)
	}
	return strings.Join(list, ", ")
}

func order(by string) string {
	if by == "" {
		return ""
	}
	return " ORDER BY " + by
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// parquetRows is how many rows a row group has: few, so that a search by a sorted column
// reads few.
const parquetRows = 4096

// copyTo writes what a SELECT gives into a Parquet file.
func (s *session) copyTo(ctx context.Context, file, query string, args ...any) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	wholefile.RemoveLeft(path)
	work, err := wholefile.CreateDir(path, 0o700)
	if err != nil {
		return err
	}
	defer work.Close()
	tmp := filepath.Join(work.Temp, filepath.Base(path))
	st := fmt.Sprintf("COPY (%s) TO %s (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE %d, USE_TMP_FILE false)",
		query, quote(tmp), parquetRows)
	if _, err := s.conn.ExecContext(ctx, st, args...); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	f, err := os.Open(tmp)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
