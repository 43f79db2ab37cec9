// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayCopies replays a recording several times at once.
func TestReplayCopies(t *testing.T) {
	testenv.Short(t, "records a program")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "dd")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	tape, again := filepath.Join(e.dir, "x.tape"), filepath.Join(e.dir, "again")
	r := row{run: `for i in 1 2 3; do dd if=/dev/zero of=f$i bs=4k count=5 conv=fsync status=none; done`}
	want := r.record(t, e, tape)
	stdout, _ := e.run(t, e.iotape, "replay", tape, "--into", again, "--verify", "--copies", "3", "--json", "--pace",
		"recorded", "--speed", "2")
	var v struct {
		OK     bool
		Copies []verdict
		Ops    []struct {
			Op                 string
			Recorded, Replayed struct{ Count uint64 }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatal(err)
	}
	if !v.OK || len(v.Copies) != 3 {
		t.Errorf("ok %v, %d copies", v.OK, len(v.Copies))
	}
	for _, o := range v.Ops {
		if o.Op == "fsync" && (o.Recorded.Count != 3 || o.Replayed.Count != 9) {
			t.Errorf("%d calls of fsync as recorded, %d here; want 3 and 9", o.Recorded.Count, o.Replayed.Count)
		}
	}
	for _, copied := range []string{"1", "2", "3"} {
		r.compare(t, want, take(t, filepath.Join(again, copied, e.dir, "work")))
	}
	stdout, _ = e.run(t, e.iotape, "replay", tape, "--into", again+"2", "--verify", "--copies", "2")
	once(t, "lines", strings.Split(stdout, "\n"), []string{`^fsync +3 .* 6 `, `^all copies agree`})
	stdout, stderr, err := e.try(t, e.iotape, "replay", tape, "--into", again+"3", "--copies", "-1")
	if err == nil || !strings.Contains(stderr, "copies") {
		t.Errorf("-1 copies: %v\n%s%s", err, stdout, stderr)
	}
}
