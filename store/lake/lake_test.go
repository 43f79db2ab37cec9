// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/trace"
)

// tapeOf copies and indexes the tape of store/testdata.
func tapeOf(t testing.TB) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "job.tape")
	if err := os.CopyFS(dir, os.DirFS("../testdata/job.tape")); err != nil {
		t.Fatal(err)
	}
	return opened(t, dir)
}

func opened(t testing.TB, dir string) *trace.Tape {
	t.Helper()
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	if err := store.Index(t.Context(), tape, nil); err != nil {
		t.Fatal(err)
	}
	return tape
}

func lakeAt(t testing.TB, where string, change func(*Options)) *Lake {
	t.Helper()
	o := &Options{}
	o.Suite.CallName = stracetext.CallName
	if change != nil {
		change(o)
	}
	l, err := Open(t.Context(), where, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// answer is the rows of a query, one a line.
func answer(t testing.TB, l *Lake, query string, r *Range) string {
	t.Helper()
	rows, err := l.Select(context.Background(), query, r)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	return lines(t, rows.Rows)
}

func lines(t testing.TB, rows *store.Rows) string {
	t.Helper()
	var b strings.Builder
	for rows.Next() {
		fmt.Fprintln(&b, rows.Values()...)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sums are the questions whose answers a lake and its tapes have in common.
var sums = map[string]string{
	"events":    "SELECT count(*), sum(seq), sum(bytes), sum(ret), min(enter_ns), count(DISTINCT file), sum(arg0) FROM events",
	"opens":     "SELECT count(*), sum(bytes_read), count(DISTINCT path), sum(opened_seq) FROM opens",
	"processes": "SELECT count(*), sum(pid), sum(duration_ns), string_agg(comm ORDER BY pid, start_ns) FROM processes",
	"files":     "SELECT count(*), sum(bytes_written), sum(ino), string_agg(path ORDER BY path) FROM files",
	"content":   "SELECT count(*), sum(length), count(DISTINCT hash), sum(seq) FROM content",
}

func TestAddAndSelect(t *testing.T) {
	tape, l := tapeOf(t), lakeAt(t, filepath.Join(t.TempDir(), "lake"), nil)
	for i, want := range []bool{true, false} {
		if added, err := l.Add(t.Context(), tape, ""); err != nil || added != want {
			t.Fatalf("add number %d: %v, %v, want %v", i+1, added, err, want)
		}
	}
	for table, query := range sums {
		rows, err := store.Query(t.Context(), []*trace.Tape{tape}, query, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := lines(t, rows)
		rows.Close()
		if got := answer(t, l, query, &Range{}); got != want || got == "" {
			t.Errorf("%s: the lake has\n%swant\n%s", table, got, want)
		}
	}
}
