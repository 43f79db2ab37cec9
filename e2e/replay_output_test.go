// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayOutput records commands whose output goes to a file that the shell opened, by one or two
// descriptors of one open file, and holds the replayed file against what they wrote.
func TestReplayOutput(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records programs on two file systems")
	testenv.NeedBPF(t)
	iotape := testenv.Iotape(t)
	for _, fs := range []string{"ext4", "btrfs"} {
		dir := testenv.MountImage(t, fs, 256)
		for _, backend := range []string{"ebpf", "ptrace", "interpose"} {
			for _, c := range []struct{ name, to, want string }{
				{"one descriptor", ">>out 2>err", "before\na\nc\nd\n"},
				{"two of one open file", ">out 2>&1", "a\nbbbb\nc\nd\n"},
			} {
				t.Run(fs+"/"+backend+"/"+c.name, func(t *testing.T) {
					e := &env{iotape: iotape, dir: into(t, filepath.Join(dir, "work"))}
					if err := os.Mkdir(e.dir, 0o755); err != nil {
						t.Fatal(err)
					}
					tape := filepath.Join(t.TempDir(), "x.tape")
					e.run(t, "sh", "-c", "echo before >out; "+iotape+" record --backend "+backend+" -o "+tape+
						" -- sh -c 'echo a; echo bbbb >&2; echo c; test -s out && /bin/echo d' "+c.to)
					v, stderr := e.replay(t, tape, "--into", "again", "--verify")
					if v == nil {
						t.Fatal(stderr)
					}
					v.report(t)
					got, err := os.ReadFile(filepath.Join(e.dir, "again", e.dir, "out"))
					if err != nil {
						t.Fatal(err)
					}
					recorded, _ := os.ReadFile(filepath.Join(e.dir, "out"))
					if string(got) != c.want || !strings.HasPrefix(string(recorded), c.want) {
						t.Errorf("replayed output is %q, recorded %q, want %q", got, recorded, c.want)
					}
				})
			}
		}
	}
}
