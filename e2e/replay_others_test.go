// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayOthers records a program that reads files which a process outside the recording changes
// meanwhile: that is said, and is no difference.
func TestReplayOthers(t *testing.T) {
	testenv.Short(t, "records a program")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3", "mkfifo")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	for name, change := range map[string]string{
		"in place": "echo two two >outside", "by another file": "echo two two >new; mv new outside",
	} {
		for _, file := range []string{"outside", "new", "go", "done"} {
			if err := os.RemoveAll(filepath.Join(e.dir, file)); err != nil {
				t.Fatal(err)
			}
		}
		r := row{snapshot: true, prep: `
cd ..; echo one >outside; mkfifo go done
{ read -r _ <go; ` + change + `; echo >done; } </dev/null >/dev/null 2>&1 &
`, run: python(`
def look():
    os.stat('../outside')
    return open('../outside').read()
assert look() == 'one\n'
put('../go', '\n'); open('../done').read()
assert look() == 'two two\n'
put('own', 'x')
`)}
		tape := filepath.Join(t.TempDir(), "x.tape")
		want := r.record(t, e, tape)
		again := filepath.Join(t.TempDir(), "again")
		r.replay(t, t, e, tape, again, "overlap", want)
		stdout, _ := e.run(t, e.iotape, "replay", tape, "--into", again+"2", "--verify")
		once(t, name, strings.Split(stdout, "\n"),
			[]string{`^not compared: \d+ results about files that others .*/outside`})
	}
}
