// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sqlite is a workload after the pattern of SQLite's speedtest1, which Debian does
// not ship: the same kinds of statements in the same proportions, as a script for
// the shell. What speedtest1 has not are the transactions of one statement at the
// end, which are how many programs use SQLite.
func sqlite(name, journal string) *Workload {
	return &Workload{
		Name: name, Title: "sqlite3 after speedtest1, %s rows, journal_mode=" + journal,
		Class: Program, size: 60_000, slowSize: 5_000,
		absent: needs("sqlite3"),
		prepare: func(_ context.Context, _ *tools, dir string, size int) error {
			return os.WriteFile(filepath.Join(dir, "script.sql"), []byte(speedtest(journal, size)), 0o644)
		},
		job: func(_ *tools, dir string, _ int) *job {
			return &job{argv: []string{"sqlite3", "-batch", "-bail", "-init", filepath.Join(dir, "script.sql"),
				filepath.Join(dir, "test.db"), ".quit"}}
		},
	}
}

func speedtest(journal string, n int) string {
	r := newRandom()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+";\n", args...) }
	transaction := func(body func()) { line("BEGIN"); body(); line("COMMIT") }
	insert := func(table string, rows int, key func(i int) int) {
		transaction(func() {
			for i := range rows {
				line("INSERT INTO %s VALUES(%d,%d,'%s')", table, key(i), r.IntN(n), r.text(6))
			}
		})
	}
	shuffled := r.Perm(n)
	ordered := func(i int) int { return i }

	line("PRAGMA journal_mode=%s", journal)
	line("CREATE TABLE t1(a INTEGER, b INTEGER, c TEXT)")
	insert("t1", n, func(int) int { return r.IntN(n) })
	line("CREATE TABLE t2(a INTEGER PRIMARY KEY, b INTEGER, c TEXT)")
	insert("t2", n, ordered)
	line("CREATE TABLE t3(a INTEGER UNIQUE, b INTEGER, c TEXT)")
	insert("t3", n, func(i int) int { return shuffled[i] })
	transaction(func() {
		for range 10 {
			low := r.IntN(n)
			line("SELECT count(*), avg(b), sum(length(c)) FROM t1 WHERE b BETWEEN %d AND %d", low, low+n/100)
			line("SELECT count(*), avg(b) FROM t1 WHERE c LIKE '%%%s%%'", r.text(1))
		}
	})
	transaction(func() {
		line("CREATE INDEX t1b ON t1(b)")
		line("CREATE INDEX t1c ON t1(c)")
		line("CREATE INDEX t2b ON t2(b)")
		line("CREATE INDEX t3c ON t3(c)")
	})
	transaction(func() {
		for range n / 10 {
			low := r.IntN(n)
			line("SELECT count(*), avg(a) FROM t1 WHERE b BETWEEN %d AND %d", low, low+10)
			line("SELECT c FROM t2 WHERE a=%d", low)
		}
	})
	transaction(func() {
		for range n / 50 {
			low := r.IntN(n)
			line("UPDATE t1 SET a=b*2 WHERE b BETWEEN %d AND %d", low, low+10)
			line("UPDATE t2 SET b=b+1, c='%s' WHERE a=%d", r.text(6), low)
		}
	})
	transaction(func() {
		line("DELETE FROM t3 WHERE a%%3=0")
		line("INSERT INTO t3 SELECT a+%d, b, c FROM t2 WHERE a%%5=0", n)
	})
	line("VACUUM")
	for range n / 200 {
		k := r.IntN(n)
		line("UPDATE t2 SET b=b+1 WHERE a=%d", k)
		line("INSERT INTO t1 VALUES(%d,%d,'%s')", k, k, r.text(6))
	}
	line("PRAGMA integrity_check")
	return b.String()
}
