// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/internal/testenv"
)

// docs/read-a-tape.py reads a tape with what docs/format.md says, and finds in it what
// iotape query does: each call, its names, and every byte that it moved.
func TestReadATapeWithoutUs(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3" // Debian's modules are not those of another Python
	if err := exec.Command(python, "-c", "import zstandard").Run(); err != nil {
		testenv.Lacks(t, "needs python3-zstandard: scripts/setup.sh --test")
	}
	dir := filepath.Join(t.TempDir(), "job.tape")
	if err := os.CopyFS(dir, os.DirFS("../store/testdata/job.tape")); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(python, "../docs/read-a-tape.py", dir).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	query := exec.Command(testenv.Iotape(t), "query", "--csv", dir, `SELECT seq, op, pid, tid, comm, enter_ns, exit_ns, ret, errno, path, abs, path2, abs2, "offset", count, coalesce(content, '') AS content
		FROM events LEFT JOIN (SELECT seq, string_agg(lower(hex(data)), '' ORDER BY part, arg, pos) AS content FROM content GROUP BY seq) USING (seq)
		WHERE kind = 'call' ORDER BY seq`)
	want, err := query.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%.4000s", d)
	}
}
