// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// A plan says of every call whether it is made, and why not.
func TestDryRun(t *testing.T) {
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2|event.OpenDirect)
	s.Move(event.OpPwrite64, 3, 0, "hello")
	s.Call(event.OpClose, 0, 0, [6]uint64{3})
	s.Call(event.OpMkdir, -1, syscall.ENOSPC, [6]uint64{}, "d")
	s.Call(event.OpAccess, 0, 0, [6]uint64{}, "/proc/self/status")
	s.Call(event.OpUnknown, 0, 0, [6]uint64{})
	into := t.TempDir()
	p, err := DryRun(t.Context(), s.Close(), &Options{Into: into})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, op := range p.Ops {
		if got[op.Op] = op.Reason; op.Made {
			got[op.Op] = "made"
		}
	}
	for op, want := range map[string]string{"openat": "made", "pwrite64": "made", "close": "itself", "mkdir": "machine",
		"access": "/proc", "syscall": "operation table"} {
		if !strings.Contains(got[op], want) {
			t.Errorf("%s: %q, want %q", op, got[op], want)
		}
	}
	needs := map[string]uint64{}
	for _, n := range p.Needs {
		needs[n.What] = n.Count
	}
	if needs[needDirect] != 1 || needs[needNames] < 1 || needs[needSpace] < 5 {
		t.Errorf("needs %v", p.Needs)
	}
	if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
		t.Errorf("the target has %v in it now: %v", left, err)
	}
}
