// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// job copies and indexes testdata/job.tape: seq, cat, cp, cmp, sort and dd on the
// numbers from 1 to 2000.
func job(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "job.tape")
	if err := os.CopyFS(dir, os.DirFS("testdata/job.tape")); err != nil {
		t.Fatal(err)
	}
	index(t, dir)
	return dir
}

func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func TestOpens(t *testing.T) {
	got := query(t, `SELECT parse_filename(path) AS file, comm, access, opened_by, closed_by, size_opened AS size, size_closed, reads, writes, closes, bytes_read AS r, bytes_written AS w,
		sequential, max_offset AS max, shared, duration_ns = closed_ns - opened_ns AND closed_seq > opened_seq AS timed FROM opens WHERE path LIKE '%.txt' ORDER BY opened_seq`, CSV, job(t))
	want := `file,comm,access,opened_by,closed_by,size,size_closed,reads,writes,closes,r,w,sequential,max,shared,timed
data.txt,sh,write-only,openat,dup2,0,8893,0,2,2,0,8893,true,8893,2,true
count.txt,sh,write-only,openat,close,0,5,0,1,2,0,5,true,5,2,true
data.txt,cat,read-only,openat,close,8893,8893,2,0,1,8893,0,true,8893,1,true
data.txt,cp,read-only,openat,close,8893,8893,2,0,1,8893,0,,,1,true
copy.txt,cp,write-only,openat,close,0,8893,0,2,1,0,8893,,,1,true
data.txt,cmp,read-only,openat,close,8893,8893,4,0,1,8893,0,true,8893,1,true
copy.txt,cmp,read-only,openat,close,8893,8893,4,0,1,8893,0,true,8893,1,true
data.txt,sort,read-only,openat,close,8893,8893,3,0,1,8893,0,true,8893,1,true
copy.txt,dd,read-only,openat,close,8893,8893,2,0,2,2000,0,true,3000,2,true
copy.txt,dd,read-write,openat,close,8893,8893,0,2,2,0,2000,true,5000,2,true
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// All content is there with its place, and what is the same has one hash and one chunk.
func TestContent(t *testing.T) {
	dir := job(t)
	got := query(t, `SELECT string_agg(decode(data), '' ORDER BY file_offset) AS text FROM content JOIN events USING (tape, seq)
		WHERE comm = 'cat' AND file LIKE '%/data.txt' AND direction = 'read'`, JSON, dir)
	if want := fmt.Sprintf("{\"text\":%q}\n", numbers(1, 2000)); got != want {
		t.Errorf("cat read %.100s…", got)
	}
	got = query(t, `SELECT direction, count(DISTINCT seq) > 5 AS many, count(DISTINCT hash) AS hashes, count(DISTINCT coalesce(chunk, 0)) AS chunks, count(DISTINCT data) AS data
		FROM content JOIN events USING (tape, seq) WHERE file LIKE '%/data.txt' AND file_offset = 4096 AND length = 4096 GROUP BY direction ORDER BY direction`, CSV, dir)
	if want := "direction,many,hashes,chunks,data\nread,false,1,1,1\nwrite,false,1,1,1\n"; got != want {
		t.Error(got)
	}
	// A query that does not want the bytes does not need them.
	if err := os.Truncate(filepath.Join(dir, trace.ContentName), 200); err != nil {
		t.Fatal(err)
	}
	query(t, "SELECT hash, sum(length) FROM content GROUP BY hash", CSV, dir)
	rows, err := Query(t.Context(), opened(t, dir), "SELECT max(data) FROM content", nil)
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
		rows.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "chunk") {
		t.Errorf("content that is gone is read: %v", err)
	}
}

func TestExport(t *testing.T) {
	dir, out := makeTape(t, "a.tape", 3), filepath.Join(t.TempDir(), "it's.parquet")
	index(t, dir)
	n, err := Export(t.Context(), opened(t, dir), "SELECT op, time, bytes, file FROM events; -- all", out, nil)
	if err != nil || n != 27 {
		t.Fatalf("%d rows, %v", n, err)
	}
	db, err := open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows, bytes int
	if err := db.QueryRow("SELECT count(*), sum(bytes) FROM read_parquet("+quote(out)+")").Scan(&rows,
		&bytes); err != nil || rows != 27 || bytes != 3*200 {
		t.Errorf("%d rows, %d bytes, %v", rows, bytes, err)
	}
	before, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	evil := filepath.Join(filepath.Dir(out), "evil")
	for _, sql := range []string{
		"SELECT 1) TO '" + evil + "'; --",
		"SELECT '') TO '" + evil + "' (FORMAT parquet); COPY (SELECT ''",
		"SELECT * FROM query('COPY (SELECT 1) TO ''" + evil + "''')",
		"COPY (SELECT 1) TO '" + evil + "'",
		"SELECT * FROM '" + out + "'",
		"SELECT error('no') FROM events",
		"SELECT 1; SELECT 2",
	} {
		if _, err := Export(t.Context(), opened(t, dir), sql, out, nil); err == nil {
			t.Errorf("%q works", sql)
		}
	}
	if _, err := Export(t.Context(), opened(t, dir), "SELECT 1", filepath.Dir(out), nil); err == nil {
		t.Error("a directory was replaced")
	}
	after, err := os.ReadFile(out)
	if err != nil || string(after) != string(before) {
		t.Errorf("the file changed after an error: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(out)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// Hosts of one name in one tape are told apart, and so are tapes.
func TestSeveralHostsAndTapes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "two.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	for host := range uint32(3) {
		evs := sample()
		for i := range evs {
			evs[i].Host = host
			if err := w.Write(&evs[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	head := func(name string, wall int64) trace.Host {
		return trace.Host{Head: trace.Head{Host: name, WallNS: wall}}
	}
	if err := w.Close(&trace.Manifest{Hosts: []trace.Host{head("node", 0), head("node", 1e18),
		head("", 2e18)}}); err != nil {
		t.Fatal(err)
	}
	index(t, dir)
	one := makeTape(t, "one.tape", 1)
	index(t, one)
	for sql, want := range map[string]string{
		"SELECT tape, host, count(*) AS n, year(min(time)) AS y FROM events GROUP BY ALL ORDER BY ALL":        "tape,host,n,y\none.tape,h-one.tape,9,2001\ntwo.tape,#2,9,2033\ntwo.tape,node,9,1970\ntwo.tape,node#1,9,2001\n",
		"SELECT tape, host, count(*) AS n FROM opens GROUP BY ALL ORDER BY ALL":                               "tape,host,n\none.tape,h-one.tape,2\ntwo.tape,#2,2\ntwo.tape,node,2\ntwo.tape,node#1,2\n",
		"SELECT tape, count(*) AS n, octet_length(min(data)) AS bytes FROM content GROUP BY ALL ORDER BY ALL": "tape,n,bytes\none.tape,1,100\ntwo.tape,3,100\n",
		"SELECT count(*) AS n FROM files": "n\n16\n",
	} {
		if d := cmp.Diff(want, query(t, sql, CSV, dir, one)); d != "" {
			t.Errorf("%s: %s", sql, d)
		}
	}
}

// Tapes of one name are told apart by where they are.
func TestTapesOfOneName(t *testing.T) {
	a, b := makeTape(t, "a.tape", 1), makeTape(t, "a.tape", 2)
	index(t, a)
	index(t, b)
	want := fmt.Sprintf("tape,n\n%s,9\n%s,18\n", a, b)
	if got := query(t, "SELECT tape, count(*) AS n FROM events GROUP BY tape ORDER BY n", CSV, a, b); got != want {
		t.Error(got)
	}
}

// What was only hashed has its hashes.
func TestContentThatWasHashed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	ev := event.Event{Op: event.OpRead, PID: 1, TID: 1, Ret: 70000, Offset: 100, Bufs: []event.Buf{{
		Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: 70000, Omitted: true, Hashes: []event.Digest{{1}, {2}},
	}}}
	if err := w.Write(&ev); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(&trace.Manifest{Hosts: []trace.Host{{}}}); err != nil {
		t.Fatal(err)
	}
	index(t, dir)
	got := query(t, "SELECT pos, file_offset, length, chunk, left(hash, 4) AS h, data FROM content ORDER BY pos",
		CSV, dir)
	if want := "pos,file_offset,length,chunk,h,data\n0,100,65536,,0100,\n65536,65636,4464,,0200,\n"; got != want {
		t.Error(got)
	}
}

// The examples of the manual work, and find something.
func TestExamplesOfTheManual(t *testing.T) {
	b, err := os.ReadFile("../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := job(t)
	examples := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	if len(examples) < 10 {
		t.Errorf("%d examples", len(examples))
	}
	for _, e := range examples {
		if got := query(t, e[1], CSV, dir); strings.Count(got, "\n") < 2 {
			t.Errorf("%s: %q", e[1], got)
		}
	}
	// Each column is described.
	for _, table := range tableNames {
		for _, line := range strings.Split(strings.TrimSpace(query(t, "SELECT column_name FROM (DESCRIBE "+table+")",
			CSV, dir)), "\n")[1:] {
			if !strings.Contains(string(b), "`"+line+"`") && !strings.HasPrefix(line, "arg") {
				t.Errorf("column %s of %s is not described", line, table)
			}
		}
	}
}
