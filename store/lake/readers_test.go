// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/trace"
)

// reading is what a reader found in a table: for each column how many values, and their sum,
// as testdata/read.mjs describes it.
type reading struct {
	Table   string             `json:"table"`
	Rows    int64              `json:"rows"`
	Columns map[string]tallied `json:"columns"`
}

type tallied struct {
	Values int64  `json:"values"`
	Sum    string `json:"sum"`
}

// fromTapes asks the tapes what the lake's table is to have.
func fromTapes(t *testing.T, d *definition, tapes ...*trace.Tape) reading {
	t.Helper()
	r := reading{Table: d.name, Columns: map[string]tallied{}}
	list, columns := []string{"count(*)"}, []store.Column{{Name: hostColumn, Type: "VARCHAR"}}
	columns = append(columns, d.columns...)
	for _, c := range columns {
		value := convert(c)
		switch lakeType(c.Type) {
		case "VARCHAR":
			value = "strlen(" + value + ")"
		case "TIMESTAMP":
			value = "epoch_ms(" + value + ")"
		case "BOOLEAN":
			value += "::INTEGER"
		}
		list = append(list, "count("+name(c.Name)+")", "coalesce(sum("+value+"), 0)::VARCHAR")
	}
	from := d.name
	if d.name == "content" {
		from = "(SELECT c.*, e.host FROM content c JOIN events e USING (tape, seq))"
	}
	rows, err := store.Query(t.Context(), tapes, "SELECT "+strings.Join(list, ", ")+" FROM "+from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatal("no rows", rows.Err())
	}
	v := rows.Values()
	r.Rows = v[0].(int64)
	for i, c := range columns {
		if n := v[1+2*i].(int64); n > 0 {
			r.Columns[c.Name] = tallied{n, v[2+2*i].(string)}
		}
	}
	return r
}

// fromIcebird reads tables with icebird.
func fromIcebird(t *testing.T, where string, tables ...string) (list []reading) {
	t.Helper()
	module := filepath.Join(testenv.ModuleRoot(t), "bin", "icebird", "node_modules", "icebird", "src", "index.js")
	testenv.NeedFile(t, module)
	testenv.NeedProgram(t, "node")
	args := []string{"testdata/read.mjs", module}
	for _, name := range tables {
		args = append(args, "file://"+filepath.Join(where, name))
	}
	cmd := exec.Command("node", args...)
	var wrong strings.Builder
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("icebird: %v: %s", err, wrong.String())
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var r reading
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// fromModule reads a table with the scan of iceberg-go.
func fromModule(t *testing.T, l *Lake, name string) reading {
	t.Helper()
	list, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := reading{Table: name, Columns: map[string]tallied{}}
	for _, of := range list {
		if of.Name != name {
			continue
		}
		tbl, err := table.NewFromLocation(t.Context(), []string{"iotape", name}, of.Metadata,
			icebergio.LoadFSFunc(nil, of.Metadata), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, batches, err := tbl.Scan().ToArrowRecords(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range batches {
			if err != nil {
				t.Fatal(err)
			}
			r.Rows += b.NumRows()
			for i, c := range b.Columns() {
				r.tally(t, b.ColumnName(i), c)
			}
		}
	}
	return r
}

func (r *reading) tally(t *testing.T, name string, c arrow.Array) {
	sum, ok := new(big.Int).SetString(r.Columns[name].Sum, 10)
	if !ok {
		sum = new(big.Int)
	}
	n := r.Columns[name].Values
	for i := range c.Len() {
		if c.IsNull(i) {
			continue
		}
		n++
		var v int64
		switch c := c.(type) {
		case *array.Int32:
			v = int64(c.Value(i))
		case *array.Int64:
			v = c.Value(i)
		case *array.String:
			v = int64(len(c.Value(i)))
		case *array.LargeString:
			v = int64(len(c.Value(i)))
		case *array.Timestamp:
			v = int64(c.Value(i)) / 1000
		case *array.Date32:
			v = int64(c.Value(i)) * secondsOfDay * 1000
		case *array.Boolean:
			if c.Value(i) {
				v = 1
			}
		case *array.List, *array.Map:
		default:
			t.Fatalf("column %s is of type %T", name, c)
		}
		sum.Add(sum, big.NewInt(v))
	}
	if n > 0 {
		r.Columns[name] = tallied{n, sum.String()}
	}
}

// alone leaves out the columns that tapes do not have.
func (r reading) alone() reading {
	for _, c := range leadColumns[:3] {
		delete(r.Columns, c.Name)
	}
	return r
}

// Other programs find the same rows and sums in the tables as iotape query finds in the tapes,
// also after small files were joined.
func TestOtherReaders(t *testing.T) {
	testenv.Short(t, "it starts other programs")
	where := filepath.Join(t.TempDir(), "lake")
	l := lakeAt(t, where, nil)
	midnight := time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	tapes := []*trace.Tape{tapeOf(t), made(t, "one", midnight.Add(-time.Second), 50), made(t, "zwö/lf", midnight, 20),
		made(t, "one", midnight.Add(time.Hour), 30)}
	for _, tape := range tapes {
		if _, err := l.Add(t.Context(), tape, ""); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"events", "opens", "processes", "files", "content"}
	compare := func(when string) {
		t.Helper()
		for _, r := range fromIcebird(t, where, append(names, summariesTable)...) {
			if r.Table == summariesTable {
				if r.Rows != int64(len(tapes)) || r.Columns["ops"].Values != r.Rows {
					t.Errorf("%s: icebird reads %+v of summaries, want %d rows", when, r, len(tapes))
				}
				continue
			}
			if d := cmp.Diff(fromTapes(t, definitionOf(r.Table), tapes...), r.alone()); d != "" {
				t.Errorf("%s: icebird, table %s (- want, + got):\n%s", when, r.Table, d)
			}
		}
		for _, name := range names {
			want := fromTapes(t, definitionOf(name), tapes...)
			if d := cmp.Diff(want, fromModule(t, l, name).alone()); d != "" {
				t.Errorf("%s: iceberg-go, table %s (- want, + got):\n%s", when, name, d)
			}
			if got := answer(t, l, "SELECT count(*) FROM "+name, &Range{}); got != fmt.Sprintln(want.Rows) {
				t.Errorf("%s: DuckDB finds %s rows in %s, want %d", when, got, name, want.Rows)
			}
		}
	}
	compare("as added")
	if done, err := l.Compact(t.Context()); err != nil || done.After == 0 {
		t.Fatalf("compact: %+v, %v", done, err)
	}
	compare("compacted")
}
