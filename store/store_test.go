// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// sample is two programs: a shell that runs a copy.
func sample() []event.Event {
	file := func(arg int8, fd int32, ino uint64, path string) event.File {
		return event.File{Arg: arg, FD: fd, Open: event.OpenID(ino), Known: true, Dev: 2049, Ino: ino,
			Mode: 0o100644, Size: 100, Path: path}
	}
	evs := []event.Event{
		{Op: event.OpExecve, Paths: []event.Path{{Arg: 0, Raw: "cp", Abs: "/bin/cp"}}, Bufs: []event.Buf{{Arg: 1, Kind: event.KindStrings, Len: 8, Inline: []byte("cp\x00a\x00b\xff\x00")}}},
		{Op: event.OpStat, Paths: []event.Path{{Raw: "a", Abs: "/w/a"}}},
		{Op: event.OpOpenat, Ret: 3, Paths: []event.Path{{Arg: 1, Raw: "a", Abs: "/w/a"}}, Files: []event.File{file(-1, 3, 11, "/w/a")}},
		{Op: event.OpRead, Ret: 100, Count: 4096, Files: []event.File{file(0, 3, 11, "/w/a")}, Bufs: []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: 100, Inline: make([]byte, 100)}}},
		{Op: event.OpOpenat, Ret: -1, Errno: syscall.ENOENT, Paths: []event.Path{{Arg: 1, Raw: "c\x1b", Abs: "/w/c\x1b"}}},
		{Op: event.OpWrite, Ret: 60, Count: 100, Files: []event.File{file(0, 4, 12, "/w/b\xff")}},
		{Op: event.OpCopyFileRange, Ret: 40, Count: 40, Files: []event.File{file(0, 3, 11, "/w/a"), file(2, 4, 12, "/w/b\xff")}},
		{Op: event.OpFsync, Files: []event.File{file(0, 4, 12, "/w/b\xff")}},
		{Kind: event.Exited, Ret: 3 << 8},
	}
	for i := range evs {
		e := &evs[i]
		e.PID, e.TID, e.PPID, e.Comm = 20, 20, 10, "cp"
		e.Enter, e.Exit, e.Offset = int64(i)*1000, int64(i)*1000+300, -1
		if e.Count == 0 {
			e.Count = -1
		}
	}
	return evs
}

// makeTape writes the events n times as different processes.
func makeTape(t testing.TB, name string, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	evs := sample()
	for range n {
		for i := range evs {
			if err := w.Write(&evs[i]); err != nil {
				t.Fatal(err)
			}
			evs[i].Enter += 10000
			evs[i].Exit += 10000
		}
	}
	if err := w.Close(&trace.Manifest{Hosts: []trace.Host{{Head: trace.Head{Host: "h-" + name,
		WallNS: 1e18}}}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func index(t testing.TB, dir string) {
	t.Helper()
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if err := Index(t.Context(), tape, nil); err != nil {
		t.Fatal(err)
	}
	if err := Indexed(tape); err != nil {
		t.Fatal(err)
	}
}

func opened(t testing.TB, dirs ...string) (tapes []*trace.Tape) {
	t.Helper()
	for _, dir := range dirs {
		tape, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tape.Close() })
		tapes = append(tapes, tape)
	}
	return tapes
}

func query(t testing.TB, sql string, f Format, tapes ...string) string {
	t.Helper()
	rows, err := Query(t.Context(), opened(t, tapes...), sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	if _, err := Render(&b, rows, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestIndexAndQuery(t *testing.T) {
	a, b := makeTape(t, "a.tape", 1), makeTape(t, "it's b*.tape", 2)
	index(t, a)
	index(t, b)
	for _, c := range []struct {
		name, sql string
		format    Format
		tapes     []string
		want      string
	}{
		{"events", "SELECT seq, time, op, class, fd, file, bytes, errno, exit_ns FROM events WHERE seq IN (2, 4, 5) ORDER BY seq", CSV, []string{a},
			`seq,time,op,class,fd,file,bytes,errno,exit_ns
2,2001-09-09 01:46:40.000002000,openat,descriptor,3,/w/a,0,,2300
4,2001-09-09 01:46:40.000004000,openat,descriptor,,/w/c` + "\x1b" + `,0,ENOENT,4300
5,2001-09-09 01:46:40.000005000,write,data,4,/w/b\xff,60,,5300
`},
		{"processes", "SELECT tape, host, pid, ppid, comm, exe, argv, exit_status, signal, events, errors, bytes_read, bytes_written, threads, end_ns FROM processes ORDER BY tape, start_ns", JSON, []string{a, b},
			`{"tape":"a.tape","host":"h-a.tape","pid":20,"ppid":10,"comm":"cp","exe":"/bin/cp","argv":"cp a b\\xff","exit_status":3,"signal":null,"events":9,"errors":1,"bytes_read":140,"bytes_written":100,"threads":1,"end_ns":8300}
{"tape":"it's b*.tape","host":"h-it's b*.tape","pid":20,"ppid":10,"comm":"cp","exe":"/bin/cp","argv":"cp a b\\xff","exit_status":3,"signal":null,"events":9,"errors":1,"bytes_read":140,"bytes_written":100,"threads":1,"end_ns":8300}
{"tape":"it's b*.tape","host":"h-it's b*.tape","pid":20,"ppid":10,"comm":"cp","exe":"/bin/cp","argv":"cp a b\\xff","exit_status":3,"signal":null,"events":9,"errors":1,"bytes_read":140,"bytes_written":100,"threads":1,"end_ns":18300}
`},
		{"files", "SELECT path, type, ino, opens, reads, writes, syncs, bytes_read, bytes_written, errors FROM files ORDER BY path", Table, []string{a},
			`path      type   ino  opens  reads  writes  syncs  bytes_read  bytes_written  errors
--------  ----  ----  -----  -----  ------  -----  ----------  -------------  ------
/bin/cp   NULL  NULL      0      0       0      0           0              0       0
/w/a      file    11      1      2       0      0         140              0       0
/w/b\xff  file    12      0      0       2      1           0            100       0
/w/c\x1b  NULL  NULL      1      0       0      0           0              0       1
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, query(t, c.sql, c.format, c.tapes...)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestIndexIsRebuilt(t *testing.T) {
	dir := makeTape(t, "a.tape", 3)
	index(t, dir)
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if r, err := tape.Check(t.Context(), nil); err != nil || !r.OK() || len(r.Notes) > 0 {
		t.Fatalf("check: %+v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "files.parquet"), []byte("rubbish"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Indexed(tape); !errors.Is(err, trace.ErrCorrupt) {
		t.Errorf("damaged index: %v", err)
	}
	r, err := tape.Check(t.Context(), nil)
	if err != nil || r.OK() || !r.Damage[0].Derived {
		t.Fatalf("check of a damaged index: %+v, %v", r, err)
	}
	if _, err := Query(t.Context(), opened(t, dir), "SELECT 1", nil); !errors.Is(err, trace.ErrCorrupt) {
		t.Errorf("query on a damaged index: %v", err)
	}
	index(t, dir)
	if got := query(t, "SELECT count(*) AS n FROM files", CSV, dir); got != "n\n4\n" {
		t.Error(got)
	}
}

func TestIndexOfDamagedTapeFails(t *testing.T) {
	dir := makeTape(t, "a.tape", 1000)
	path := filepath.Join(dir, trace.EventsName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[200] ^= 1
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if err := Index(t.Context(), tape, nil); !errors.Is(err, trace.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 3 {
		t.Errorf("left behind: %v", entries)
	}
}

// Names of any length fit the engine's memory, and rows stay in order.
func TestIndexOfLongNames(t *testing.T) {
	testenv.Short(t, "it makes a large index")
	dir := filepath.Join(t.TempDir(), "a.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	const n = 60_000
	long := strings.Repeat("long/", 700)
	for i := range n {
		name := fmt.Sprint("/", i, long)
		if err := w.Write(&event.Event{Op: event.OpStat, PID: 1, TID: 1,
			Paths: []event.Path{{Raw: name, Abs: name}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(&trace.Manifest{Hosts: []trace.Host{{}}}); err != nil {
		t.Fatal(err)
	}
	index(t, dir)
	got := query(t, "SELECT count(*), max(length(file)), count(*) FILTER (seq <> before + 1) FROM (SELECT seq, file, "+
		"lag(seq) OVER () AS before FROM events)", CSV, dir)
	if want := fmt.Sprintf("%d,%d,0\n", n, len(long)+len("/59999")); !strings.HasSuffix(got, want) {
		t.Error(got, want)
	}
}

func TestIndexCanBeStopped(t *testing.T) {
	dir := makeTape(t, "a.tape", 5000)
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = Index(ctx, tape, func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled index ends with %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("left behind: %v", entries)
	}
	// What cannot be written fails, and does not wait for the rest.
	w, err := openWriter(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	missing := filepath.Join(t.TempDir(), "missing")
	err = writeEvents(t.Context(), w, tape, hostNames(tape), newSummary(tape), missing, nil)
	if err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("an index that cannot be written: %v; want an error that names %s", err, missing)
	}
}

// TestQueryIsConfined tries what a hostile statement may try.
func TestQueryIsConfined(t *testing.T) {
	dir := makeTape(t, "a.tape", 1)
	index(t, dir)
	out := filepath.Join(t.TempDir(), "out")
	events := filepath.Join(dir, "events.parquet")
	for _, sql := range []string{
		"SELECT * FROM read_csv('/etc/passwd')",
		"SELECT * FROM read_text('/etc/passwd')",
		"SELECT * FROM read_blob('/etc/passwd')",
		"SELECT * FROM '/etc/passwd'",
		"SELECT * FROM glob('/etc/*')",
		"SELECT * FROM read_parquet('https://example.com/x.parquet')",
		"SELECT * FROM read_csv('" + dir + "/manifest.json')",
		"SELECT * FROM read_text('" + dir + "/../../../../../../etc/passwd')",
		"SELECT * FROM query('COPY events TO ''" + out + "''')",
		"COPY events TO '" + out + "'",
		"COPY (SELECT 1) TO '" + events + "' (FORMAT parquet)",
		"ATTACH '" + out + "' AS x",
		"INSTALL httpfs", "LOAD httpfs",
		"SET enable_external_access = true",
		"RESET lock_configuration",
		"SELECT 1; COPY (SELECT 1) TO '" + events + "'",
		"COPY (SELECT 1) TO '" + events + "'; SELECT 1",
		"EXPLAIN ANALYZE COPY (SELECT 1) TO '" + events + "'",
		"EXPORT DATABASE '" + out + "'",
		"CREATE TABLE x AS SELECT 1", "DROP VIEW events", "CALL pragma_version()",
		"SELECT iotape_chunk(7, 1, 0, 1)", "SELECT iotape_chunk(0, 99, 0, 1)",
		"", ";",
	} {
		rows, err := Query(t.Context(), opened(t, dir), sql, nil)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			rows.Close()
		}
		if err == nil {
			t.Errorf("%q works", sql)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written")
	}
	if err := func() error { tp, _ := trace.Open(dir); defer tp.Close(); return Indexed(tp) }(); err != nil {
		t.Error(err)
	}
	for _, sql := range []string{"DESCRIBE events", "FROM events SELECT count(*)",
		"WITH x AS (SELECT * FROM files) SELECT count(*) FROM x", "SUMMARIZE processes"} {
		if s := query(t, sql, CSV, dir); strings.Count(s, "\n") < 2 {
			t.Errorf("%q: %q", sql, s)
		}
	}
}

func TestQueryLimitsMemory(t *testing.T) {
	dir := makeTape(t, "a.tape", 1)
	index(t, dir)
	rows, err := Query(t.Context(), opened(t, dir), "SELECT list(i) FROM range(50000000) t(i)",
		&QueryOptions{MemoryBytes: 64 << 20})
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
		rows.Close()
	}
	if err == nil {
		t.Error("a list of 400 MB fits 64 MB")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Query(ctx, opened(t, dir), "SELECT count(*) FROM range(100000000000)", nil); err == nil {
		t.Error("a cancelled query runs")
	}
}
