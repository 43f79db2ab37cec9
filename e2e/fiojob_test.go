// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/fiolog"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// TestFioJob writes a job file of a recording, records fio running it, and compares both.
func TestFioJob(t *testing.T) {
	testenv.Short(t, "it runs fio many times")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "fio", "dd", "/usr/bin/python3")
	iotape := testenv.Iotape(t)
	for _, c := range []struct{ name, second, program string }{
		{"copies", "file2", "dd if=/dev/zero of=f bs=64k count=64 conv=fsync; dd if=f of=/dev/null bs=4k"},
		{"a random mix", "file1", `/usr/bin/python3 -c '
import os, random
random.seed(1)
f = os.open("g", os.O_RDWR | os.O_CREAT)
os.ftruncate(f, 1 << 22)
for i in range(600):
    at = random.randrange(1000) * 4096
    if i % 3 == 0:
        os.pwrite(f, b"x" * random.choice([512, 4096]), at)
        if i % 30 == 0:
            os.fdatasync(f)
    else:
        os.pread(f, random.choice([4096, 4096, 8192]), at)
'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t, iotape, "", nil)
			tape, job, again := filepath.Join(e.dir, "x.tape"), filepath.Join(e.dir, "x.fiojob"),
				filepath.Join(e.dir, "again.tape")
			e.run(t, iotape, "record", "--no-index", "-o", tape, "--", "sh", "-c", "cd "+e.dir+"; "+c.program)
			_ = exec.CommandContext(t.Context(), iotape, "convert", "--to", "fio-job", tape, job).Run() // 1: left out
			e.run(t, "fio", "--directory="+e.dir, "--create_only=1", job)
			e.run(t, iotape, "record", "--no-index", "-o", again, "--", "fio", "--directory="+e.dir, job)
			// The program's own files moved most, so they are the first jobs.
			want := shapeOf(t, tape, filepath.Join(e.dir, "f"), filepath.Join(e.dir, "g"))
			got := shapeOf(t, again, filepath.Join(e.dir, "file1"), filepath.Join(e.dir, c.second))
			for i := range want {
				w, g := want[i], got[i]
				t.Logf("%-20s %12.0f of the tape, %12.0f of fio", w.what, w.n, g.n)
				if d := g.n - w.n; d < -w.within*w.n-w.least || d > w.within*w.n+w.least {
					t.Errorf("%s: %.0f of fio, want %.0f ± %.0f %%", w.what, g.n, w.n, 100*w.within)
				}
			}
			if t.Failed() {
				text, _ := exec.CommandContext(t.Context(), "cat", job).Output()
				t.Logf("%s", text)
			}
		})
	}
}

// quantity is what a job is to resemble, and by how much it may differ.
type quantity struct {
	what          string
	n             float64
	within, least float64
}

// shapeOf sums what threads of a tape did to files.
func shapeOf(t *testing.T, name string, files ...string) []quantity {
	t.Helper()
	tape, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	shapes, err := fiolog.Shapes(tape, &format.Done{})
	if err != nil {
		t.Fatal(err)
	}
	var sum fiolog.Shape
	sizes := map[int64]uint64{}
	for _, s := range shapes {
		if !slices.Contains(files, s.File) {
			continue
		}
		for _, p := range [...][2]*fiolog.Side{{&sum.Reads, &s.Reads}, {&sum.Writes, &s.Writes}} {
			p[0].Calls += p[1].Calls
			p[0].Bytes += p[1].Bytes
			p[0].Sequential += p[1].Sequential
		}
		for n, k := range s.Reads.Sizes {
			sizes[n] += k
		}
		sum.Syncs += s.Syncs
		sum.DataSyncs += s.DataSyncs
	}
	all := []quantity{
		{"reads", float64(sum.Reads.Calls), 0.1, 2}, {"bytes read", float64(sum.Reads.Bytes), 0.1, 8192},
		{"writes", float64(sum.Writes.Calls), 0.1, 2}, {"bytes written", float64(sum.Writes.Bytes), 0.1, 8192},
		{"sequential reads", float64(sum.Reads.Sequential), 0.15, 20},
		{"sequential writes", float64(sum.Writes.Sequential), 0.15, 20},
		{"fsync", float64(sum.Syncs), 0.2, 0}, {"fdatasync", float64(sum.DataSyncs), 0.2, 4},
	}
	for _, n := range []int64{512, 4096, 8192, 65536} {
		all = append(all, quantity{fmt.Sprintf("reads of %d bytes", n), float64(sizes[n]), 0.15, 20})
	}
	return all
}
