// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/internal/testenv"
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

// made makes a tape of a host that writes a file n times, and reads another, with 100 ms
// between the calls.
func made(t testing.TB, host string, start time.Time, n int) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	file := func(path string) []event.File {
		return []event.File{{FD: 3, Open: 1, Path: path, Known: true, Dev: 8, Ino: 1<<63 + 5, Mode: 0o100644, Size: 10}}
	}
	for i := range n {
		for _, ev := range []event.Event{
			{Op: event.OpWrite, Ret: 4096, Count: 4096, Offset: int64(i) * 4096, Files: file("/data/" + host + "/log")},
			{Op: event.OpRead, Ret: 10, Count: 100, Offset: 0, Files: file("/etc/config"), Args: [6]uint64{3, 1<<64 - 1, 100}},
		} {
			ev.Kind, ev.PID, ev.TID, ev.UID, ev.Comm = event.Call, 7, 7, 1000, "writer"
			ev.Enter, ev.Exit = at, at+1000
			at += int64(100 * time.Millisecond)
			if err := w.Write(&ev); err != nil {
				t.Fatal(err)
			}
		}
	}
	hosts := []trace.Host{{Head: trace.Head{Host: host, WallNS: start.UnixNano()}}}
	if err := w.Close(&trace.Manifest{Hosts: hosts}); err != nil {
		t.Fatal(err)
	}
	return opened(t, dir)
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

// A range gives the rows that a condition on the whole gives, and reads fewer files.
func TestRanges(t *testing.T) {
	testenv.Short(t, "it adds many tapes")
	l := lakeAt(t, filepath.Join(t.TempDir(), "lake"), nil)
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for day := range 3 {
		for _, host := range []string{"db1", "db2"} {
			tape := made(t, host, noon.Add(time.Duration(day)*24*time.Hour), 10)
			if _, err := l.Add(t.Context(), tape, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	const count = "SELECT count(*), sum(bytes) FROM events"
	for _, c := range []struct {
		r     Range
		where string
		files int
	}{
		{Range{}, "true", 6},
		{Range{Hosts: []string{"db2"}}, "host = 'db2'", 3},
		{Range{From: noon.Add(24 * time.Hour)}, "time >= '2026-05-02 12:00:00'", 4},
		{Range{From: noon.Add(500 * time.Millisecond), To: noon.Add(time.Second)},
			"time >= '2026-05-01 12:00:00.5' AND time < '2026-05-01 12:00:01'", 2},
		{Range{From: noon.Add(time.Hour), To: noon.Add(2 * time.Hour)}, "false", 0},
		{Range{Path: "/data/db1/log"}, "file = '/data/db1/log'", 3},
		{Range{Path: "/etc/*"}, "file LIKE '/etc/%'", 6},
		{Range{Path: "/var/*"}, "false", 0},
		{Range{Hosts: []string{"db1", "no"}, Path: "/data/db2*"}, "false", 3}, // between /data/db1 and /etc
	} {
		rows, err := l.Select(t.Context(), count, &c.r)
		if err != nil {
			t.Fatal(err)
		}
		got := lines(t, rows.Rows)
		rows.Close()
		if want := answer(t, l, count+" WHERE "+c.where, &Range{}); got != want {
			t.Errorf("%+v: %s, want %s", c.r, got, want)
		}
		if rows.Files != c.files || rows.AllFiles != 6 {
			t.Errorf("%+v: reads %d of %d files, want %d of 6", c.r, rows.Files, rows.AllFiles, c.files)
		}
	}
}

// A statement can read the tables and nothing else.
func TestSelectIsConfined(t *testing.T) {
	where := filepath.Join(t.TempDir(), "lake")
	l := lakeAt(t, where, nil)
	if _, err := l.Add(t.Context(), tapeOf(t), ""); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"SELECT * FROM read_text('/etc/passwd')",
		"SELECT * FROM read_text('" + where + "/catalogue/latest')",
		"COPY (SELECT 1) TO '" + where + "/x'",
		"COPY (SELECT 1) TO '" + where + "/x'; SELECT 2",
	} {
		if rows, err := l.Select(t.Context(), query, &Range{}); err == nil {
			if rows.Next(); rows.Err() == nil {
				t.Errorf("%s was run", query)
			}
			rows.Close()
		}
	}
}

// Two programs add the same tapes at the same time: each is there once.
func TestTwoAddAtOnce(t *testing.T) {
	testenv.Short(t, "it adds tapes many times")
	where := filepath.Join(t.TempDir(), "lake")
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	tapes := []*trace.Tape{tapeOf(t), made(t, "a", noon, 10), made(t, "b", noon, 10)}
	var all sync.WaitGroup
	var added atomic.Int32
	for range 3 {
		l := lakeAt(t, where, nil)
		all.Go(func() {
			for _, tape := range tapes {
				switch isNew, err := l.Add(t.Context(), tape, ""); {
				case err != nil:
					t.Error(err)
				case isNew:
					added.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := added.Load(); n != 3 {
		t.Errorf("%d tapes were said to be new, want 3", n)
	}
	if got, want := has(t, lakeAt(t, where, nil)), counted(t, tapes...); got != want {
		t.Errorf("the lake has %s, want %s", got, want)
	}
}

// counts is the rows of all tables that tapes and a lake have in common.
const counts = `SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM opens), (SELECT count(*) FROM processes),
	(SELECT count(*) FROM files), (SELECT count(*) FROM content)`

// counted returns the counts of tapes, and how many they are.
func counted(t testing.TB, tapes ...*trace.Tape) string {
	t.Helper()
	rows, err := store.Query(t.Context(), tapes, counts, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	return strings.TrimSpace(lines(t, rows)) + fmt.Sprintln("", len(tapes), len(tapes))
}

// has returns the counts of a lake, and how many tapes it has, by rows and by identity.
func has(t testing.TB, l *Lake) string {
	t.Helper()
	return answer(t, l, counts+", (SELECT count(*) FROM summaries), (SELECT count(DISTINCT tape_id) FROM summaries)",
		&Range{})
}

// errKilled stands for the end of the program at a step.
var errKilled = errors.New("killed")

// steps returns the steps that do something.
func steps(t *testing.T, do func(after func(string) error) error) (list []string) {
	t.Helper()
	if err := do(func(step string) error { list = append(list, step); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

// A program that is killed after any step, and runs again, has added the tape once; in
// between it is in all tables or in none, and other programs read the same.
func TestKilledAdd(t *testing.T) {
	testenv.Short(t, "it kills a program many times")
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	first, second := made(t, "a", noon, 5), tapeOf(t)
	begin := func(t *testing.T) string {
		where := filepath.Join(t.TempDir(), "lake")
		if _, err := lakeAt(t, where, nil).Add(t.Context(), first, ""); err != nil {
			t.Fatal(err)
		}
		return where
	}
	add := func(where string) func(func(string) error) error {
		return func(after func(string) error) error {
			_, err := lakeAt(t, where, func(o *Options) { o.After = after }).Add(t.Context(), second, "")
			return err
		}
	}
	none, both := counted(t, first), counted(t, first, second)
	all := steps(t, add(begin(t)))
	if len(all) < 10 {
		t.Fatalf("steps %q", all)
	}
	for i, step := range all {
		t.Run(strings.ReplaceAll(step, " ", "_"), func(t *testing.T) {
			where, n := begin(t), 0
			err := add(where)(func(string) error {
				if n++; n > i {
					return errKilled
				}
				return nil
			})
			if !errors.Is(err, errKilled) {
				t.Fatalf("killed: %v", err)
			}
			l := lakeAt(t, where, nil)
			between := has(t, l)
			if between != none && between != both {
				t.Errorf("killed: the lake has %s, want %s or %s", between, none, both)
			}
			if _, err := l.Add(t.Context(), second, ""); err != nil {
				t.Fatal(err)
			}
			if got := has(t, l); got != both {
				t.Errorf("run again: the lake has %s, want %s", got, both)
			}
			if _, err := l.Expire(t.Context(), &Expiry{}); err != nil {
				t.Fatal(err)
			}
			if got := has(t, l); got != both {
				t.Errorf("expired: the lake has %s, want %s", got, both)
			}
			if step != "commit" { // after which others might see the state before
				return
			}
			for _, r := range fromIcebird(t, where, summariesTable) {
				if r.Rows != 2 {
					t.Errorf("icebird reads %d summaries, want 2", r.Rows)
				}
			}
		})
	}
}
