// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestUnits asks systemd what the units of the collector and the archive leave open: an exposure of 2.0 or less.
func TestUnits(t *testing.T) {
	testenv.NeedProgram(t, "systemd-analyze")
	units, err := filepath.Glob("../../packaging/*.service")
	if err != nil || len(units) < 2 {
		t.Fatalf("%v, %v; want two units", units, err)
	}
	for _, unit := range units {
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager",
			unit).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}
