// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/internal/testenv"
)

// TestTopFiles counts the writes of a program by file and by directory: live, and of a tape.
func TestTopFiles(t *testing.T) {
	testenv.Short(t, "it records with every back end")
	t.Parallel()
	testenv.NeedBPF(t)
	dir := t.TempDir()
	const program = "mkdir d; for i in 1 2 3; do echo $i >> hot; done; echo long line > d/cold; echo x > /dev/full"
	want := map[string][2]uint64{ // calls and bytes, by file and by directory
		dir + "/hot": {3, 6}, dir + "/d/cold": {1, 10}, "/dev/full": {1, 0},
		dir: {3, 6}, dir + "/d": {1, 10}, "/dev": {1, 0},
	}
	tape := filepath.Join(dir, "x.tape")
	iotape := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(testenv.Iotape(t), args...)
		cmd.Dir = dir
		out, _ := cmd.Output() // of a command that fails at /dev/full
		return string(out)
	}
	for _, way := range []string{"live", "tape"} {
		var args []string
		if way == "tape" {
			iotape("record", "-o", tape, "--", "sh", "-c", "rm -r d hot; "+program)
			args = []string{"--tape", tape}
		}
		got := map[string][2]uint64{}
		for _, by := range []string{"file", "dir"} {
			flags := []string{"top", "--json", "--by", by, "--filter",
				"op = write and path under {" + dir + ", /dev/full}"}
			if way == "live" {
				if args = []string{"--", "sh", "-c", program}; by == "dir" {
					args = []string{"--", "sh", "-c", "rm -r d hot; " + program}
				}
			}
			for line := range strings.Lines(iotape(append(flags, args...)...)) {
				var o struct {
					Rows []struct {
						File, Dir string
						Calls     uint64
						Failed    uint64
						Written   uint64 `json:"written_bytes"`
					}
				}
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatalf("%s: %v in %q", way, err, line)
				}
				for _, r := range o.Rows {
					name := r.File + r.Dir
					got[name] = [2]uint64{got[name][0] + r.Calls, got[name][1] + r.Written}
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: calls and bytes (-want +got):\n%s", way, d)
		}
	}
	out := iotape("top", "--plain", "--by", "path", "--sort", "bytes", "--tape", tape, "--filter", "op = write")
	if !strings.Contains(out, dir+"/d/cold") {
		t.Errorf("the table lacks the file:\n%s", out)
	}
}
