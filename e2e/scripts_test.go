// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayOfScript writes the recording of each program as a script, which replays to
// the same verdict as the tape does.
func TestReplayOfScript(t *testing.T) {
	t.Parallel()
	iotape := testenv.Iotape(t)
	testenv.NeedBPF(t)
	install := filepath.Join(t.TempDir(), "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, p := range workload.Programs() {
		if p.Name == "contend" {
			continue // see TestReplay
		}
		t.Run(p.Name, func(t *testing.T) {
			if p.Name != "failures" && p.Name != "pipeline" {
				testenv.Short(t, "records and replays a program")
			}
			t.Parallel()
			testenv.NeedProgram(t, p.Needs...)
			e := newEnv(t, iotape, install, nil)
			work, tape, text := filepath.Join(e.dir, "work"), filepath.Join(e.dir, "x.tape"), filepath.Join(e.dir,
				"x.script")
			e.run(t, "mkdir", work)
			e.run(t, p.Command(e.install, work, workload.Prep)...)
			e.run(t, append([]string{iotape, "record", "-o", tape, "--backend", "ebpf", "--"},
				p.Command(e.install, work, workload.Run)...)...)
			e.run(t, iotape, "script", tape, "-o", text)
			ofTape := e.replayed(t, filepath.Join(e.dir, "a"), tape)
			ofText := e.replayed(t, filepath.Join(e.dir, "b"), "--script", text)
			if ofTape != ofText {
				t.Errorf("the tape: %+v\nthe script: %+v", ofTape, ofText)
			}
			if ofTape.Events == 0 || ofTape.Replayed == 0 {
				t.Errorf("%+v", ofTape)
			}
		})
	}
}

// outcome is what a replay has in common with that of the same events.
type outcome struct {
	OK                                             bool
	Events, Replayed, Emulated, Skipped, Different uint64
	Uncompared                                     uint64
	Paths                                          int `json:"tree_paths"`
}

func (e *env) replayed(t *testing.T, into string, what ...string) (o outcome) {
	t.Helper()
	stdout, stderr, _ := e.try(t, append([]string{e.iotape, "replay", "--into", into, "--verify", "--json"},
		what...)...)
	if err := json.Unmarshal([]byte(stdout), &o); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !o.OK {
		t.Errorf("%v: differs\n%.3000s", what, stdout)
	}
	return o
}
