// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// What is not asked for is not compared, and the first difference can be the last.
func TestChecks(t *testing.T) {
	make := func(t *testing.T) *tapescript.Script {
		s := tapescript.New(t)
		s.Open(3, "f", event.OpenCreat|2)
		s.Move(event.OpWrite, 3, 0, "hello")
		s.Move(event.OpPread64, 3, 0, "help!") // differs in its bytes
		s.Move(event.OpPread64, 3, 0, "hello there")
		return s
	}
	for _, tt := range []struct {
		checks string
		abort  bool
		fields []string
	}{
		{"all", false, []string{"content", "result"}},
		{"all", true, []string{"content"}},
		{"returns", false, []string{"result"}},
		{"data", false, []string{"content", "content"}},
		{"stat,dirs,tree", false, nil},
		{"none", true, nil},
	} {
		checks, err := ParseChecks(tt.checks)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := Run(t.Context(), make(t).Close(), &Options{Into: t.TempDir(), Checks: checks, Abort: tt.abort})
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, m := range rep.Mismatches {
			fields = append(fields, m.Field)
		}
		if len(fields) != len(tt.fields) {
			t.Errorf("%s, abort %v: %+v, want %q", tt.checks, tt.abort, rep.Mismatches, tt.fields)
			continue
		}
		for i := range fields {
			if fields[i] != tt.fields[i] {
				t.Errorf("%s: difference %d in %s, want %s", tt.checks, i, fields[i], tt.fields[i])
			}
		}
		if rep.Aborted != (tt.abort && len(fields) > 0) {
			t.Errorf("%s: aborted %v", tt.checks, rep.Aborted)
		}
	}
	if _, err := ParseChecks("returns,sizes"); err == nil {
		t.Error("sizes can be verified")
	}
}
