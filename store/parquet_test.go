// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var testColumns = []Column{{"name", "VARCHAR"}, {"at", "TIMESTAMP"}, {"n", "UBIGINT"}, {"ops", "MAP(VARCHAR, UBIGINT)"},
	{"users", "UINTEGER[]"}, {"files", "VARCHAR[]"}, {"day", "DATE"}, {"ok", "BOOLEAN"}}

func testRows(names ...string) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for i, name := range names {
			at := time.Date(2026, 11, 22, 10, 0, i, 0, time.UTC)
			row := []any{Text(name), at, uint64(i), Map(map[string]uint64{"read": 7, "fsync\xff": uint64(i)}),
				[]uint32{0, 1000}, []string{"/a'b"}, at, i == 0}
			if !yield(row, nil) {
				return
			}
		}
	}
}

func TestParquet(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "a*b[c]") // names that are patterns
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	one, two, both := filepath.Join(dir, "1.parquet"), filepath.Join(dir, "2.parquet"),
		filepath.Join(dir, "both.parquet")
	if err := WriteParquet(ctx, one, testColumns, "", testRows("b", "a")); err != nil {
		t.Fatal(err)
	}
	if err := WriteParquet(ctx, two, testColumns, "", testRows("c'; DROP TABLE rows")); err != nil {
		t.Fatal(err)
	}
	if err := JoinParquet(ctx, both, testColumns, "name", "name <> ?", []any{"b"}, []string{one, two}); err != nil {
		t.Fatal(err)
	}
	// A column that files do not have yet.
	more := append(testColumns[:len(testColumns):len(testColumns)], Column{"later", "VARCHAR"})
	rows, err := QueryParquet(ctx, "tapes", more, []string{both},
		"SELECT name, n, ops, users, files, day, later FROM tapes WHERE ops['read'] > ? AND list_contains(users, ?)",
		6, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b bytes.Buffer
	if n, err := Render(&b, rows, JSON); n != 2 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}
	want := `{"name":"a","n":1,"ops":{"fsync\\xff":1,"read":7},"users":[0,1000],"files":["/a'b"],"day":"2026-11-22T00:00:00Z","later":null}
{"name":"c'; DROP TABLE rows","n":0,"ops":{"fsync\\xff":0,"read":7},"users":[0,1000],"files":["/a'b"],"day":"2026-11-22T00:00:00Z","later":null}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if left, _ := filepath.Glob(strings.ReplaceAll(dir, "a*b[c]", "*") + "/*.tmp"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestParquetOfNothing(t *testing.T) {
	rows, err := QueryParquet(context.Background(), "tapes", testColumns, nil, "SELECT count(*) FROM tapes")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() || rows.Values()[0] != int64(0) {
		t.Errorf("%v, %v", rows.Values(), rows.Err())
	}
	if _, err := QueryParquet(context.Background(), "tapes", testColumns, nil, "DROP VIEW tapes"); err == nil {
		t.Error("a statement that is no SELECT runs")
	}
}
