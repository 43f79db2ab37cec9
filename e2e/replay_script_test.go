// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayScript replays recordings of threads that race as tapes and as text: all that
// the order of calls is found by is in the text, so that the same comes out.
func TestReplayScript(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records and replays programs")
	testenv.NeedProgram(t, "gcc")
	testenv.NeedBPF(t)
	iotape := testenv.Iotape(t)
	install := filepath.Join(t.TempDir(), "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"contend", "threads8-shared"} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, iotape, install, nil)
			p := workload.Program{Name: name}
			work, tape, script := filepath.Join(e.dir, "work"), filepath.Join(e.dir, "x.tape"), filepath.Join(e.dir,
				"x.script")
			e.run(t, "mkdir", work)
			e.run(t, p.Command(e.install, work, workload.Prep)...)
			e.run(t, append([]string{e.iotape, "record", "--backend", "ebpf", "-o", tape, "--"},
				p.Command(e.install, work, workload.Run)...)...)
			e.run(t, e.iotape, "script", tape, "-o", script)
			of := func(what ...string) string {
				// One thread, so that nothing depends on how calls overlap here.
				stdout, _, _ := e.try(t,
					append([]string{e.iotape, "replay", "--json", "--verify", "--order", "recorded", "--into",
						into(t, filepath.Join(e.dir, "again"))}, what...)...)
				var v struct {
					Events, Replayed, Emulated, Skipped, Different, Unexplained, Uncompared uint64
					Kinds                                                                   []any
				}
				if err := json.Unmarshal([]byte(stdout), &v); err != nil {
					t.Fatalf("%v: %s", err, stdout)
				}
				said, _ := json.Marshal(v)
				e.run(t, "rm", "-rf", filepath.Join(e.dir, "again"))
				return string(said)
			}
			if want, got := of(tape), of("--script", script); got != want {
				t.Errorf("the script gives %s\nthe tape %s", got, want)
			}
		})
	}
}
