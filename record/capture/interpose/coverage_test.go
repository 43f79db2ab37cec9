// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"os"
	"os/exec"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
)

// TestCoverage records real programs: of 1000 calls, 999 are made at places that are patched, but for the first call at
// each (docs/performance.md has the shares).
func TestCoverage(t *testing.T) {
	testenv.Short(t, "it records real programs")
	for _, c := range []struct {
		name   string
		needs  string // the program
		script string
	}{
		{"sqlite3", "sqlite3", `sqlite3 a.db "CREATE TABLE t(a, b); CREATE INDEX i ON t(b);"
			for i in 1 2 3 4 5 6 7 8 9 10; do for k in 1 2 3 4 5 6 7 8 9 10; do for l in 1 2 3 4 5; do
			echo "INSERT INTO t VALUES($i$k$l, hex(randomblob(100)));"; done; done; done | sqlite3 a.db
			sqlite3 a.db "SELECT count(*) FROM t"`},
		{"git", "git", `export HOME=$PWD; git init -q r; cd r; git config user.email a@b; git config user.name a
			for i in $(seq 300); do echo $i > f$i; done; git add .; git commit -qm one
			for i in $(seq 300); do echo $i$i > f$i; done; git commit -qam two; git gc -q; git status --short`},
		{"python", "python3", `python3 -c "
import os
for i in range(3000):
    with open('f', 'w') as f: f.write('x' * i)
    with open('f') as f: f.read()
    os.stat('f'); os.listdir('.')"`},
		{"make", "make", `for i in 1 2 3 4 5 6 7 8; do echo "int f$i(void) { return $i; }" > f$i.c; done
			echo 'all: f1.o f2.o f3.o f4.o f5.o f6.o f7.o f8.o' > Makefile; make -s -j2`},
		{"perl", "perl", `perl -e 'for (1..3000) {
			open F, ">f"; print F "x" x $_; close F; open F, "f"; my @a = <F>; close F; }'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				testenv.Lacks(t, err.Error())
			}
			dir := t.TempDir()
			if err := os.WriteFile(dir+"/script", []byte("cd "+dir+"\n"+c.script), 0o600); err != nil {
				t.Fatal(err)
			}
			rec := record(t, &capture.Options{Command: []string{"sh", dir + "/script"}}).succeeded(t)
			events, unpatched := rec.result.Events, rec.result.Unpatched
			t.Logf("%d calls, %d at places that were not patched, %d stops", events, unpatched, rec.result.Stops)
			const places = 150 // calls that are the first at their place
			if events < 3000 || unpatched > events/1000+places {
				t.Errorf("%d of %d calls were made at places that were not patched, want at most 1 of 1000 and %d; "+
					"notes %q", unpatched, events, places, rec.notes)
			}
		})
	}
}
