// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"runtime"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestKilledInCalls records processes that end while their threads make, write and rename files: what the calls did
// that never returned to the program is in the tape, so a replay leaves the same files. (Where ptrace stops calls at
// their end, it does not stop those of threads that are killed.)
func TestKilledInCalls(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it kills a program many times")
	testenv.NeedRoot(t)
	midcall := compiled(t, "midcall")
	var except []string
	if runtime.GOARCH != "amd64" {
		except = []string{"ptrace"} // which cannot know there whether a call came to its end (docs/limits.md)
	}
	forBackends(t, func(t *testing.T, backend string) {
		t.Parallel()
		e := runEnv(t)
		for i := range 4 {
			command := []string{midcall}
			if i%2 > 0 {
				command = append(command, "killed")
			}
			if _, said, status := e.records(t, []string{"--backend", backend}, command...); status != i%2*(128+9) {
				t.Fatalf("the exit status is %d, want %d\n%s", status, i%2*(128+9), said)
			}
			v, said := e.replay(t, "a.tape", "--into", "again", "--verify")
			if v == nil || v.Different > 0 || len(v.Tree) > 0 {
				t.Errorf("run %d: the replay differs: %+v\n%s", i, v, said)
			}
			e.run(t, "rm", "-r", "again")
		}
	}, except...)
}
