// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestUpgrade takes over what version 0.1 left: a collector that was killed, with finished and unfinished streams, a
// tape that could not be stored, batches in its broker, and agents with full spools (testdata/v0.1/make.sh). Every
// event that the agents were ever handed is stored once or declared lost, and all becomes tapes.
func TestUpgrade(t *testing.T) {
	testenv.Short(t, "it runs a collector and agents")
	t.Parallel()
	w := newWorld(t, 0, 0, "")
	archived, err := filepath.Abs("testdata/v0.1/fleet.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xzf", archived, "-C", w.dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	for _, host := range []string{"h0", "h1"} {
		secret := filepath.Join(w.dir, host+".nk")
		if err := os.Chmod(secret, 0o600); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("host = %q\ncollectors = [\"nats://%s\"]\nkey = %q\nspool = %q\n[stream]\nsize = \"64K\"\n"+
			"[record]\nsynthetic = \"rate=100,size=50\"\n", host, address, secret, w.spool(host))
		if err := os.WriteFile(filepath.Join(w.agents, host+".toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.hosts = append(w.hosts, host)
	}
	before := map[string]uint64{}
	for _, host := range w.hosts {
		if before[host] = w.handed(host); before[host] == 0 || spoolBytes(t, w.spool(host)) == 0 {
			t.Fatalf("the agent of %s of 0.1 was handed %d events, with nothing in its spool", host, before[host])
		}
	}

	c := w.collect()
	agents := w.simulate()
	w.heard()
	for _, host := range w.hosts {
		w.hands(host, before[host]+1)
	}
	w.finish(agents, c)
	w.balance("upgraded from 0.1", w.hosts)
	for _, host := range w.hosts {
		if n := spoolBytes(t, w.spool(host)); n > 0 {
			t.Errorf("%s: %d bytes are left in its spool", host, n)
		}
	}
	if fi, err := os.Stat(w.data); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the collector's data has mode %v, %v; want 0700", fi.Mode(), err)
	}
	damaged, err := filepath.Glob(filepath.Join(w.data, "*", "*.damaged"))
	aside, err2 := filepath.Glob(filepath.Join(w.data, "aside", "*"))
	if err != nil || err2 != nil || len(damaged)+len(aside) > 0 {
		t.Errorf("quarantined: %v %v; want nothing", damaged, aside)
	}

	recordings := w.recordings()
	out, err := exec.Command(testenv.Iotape(t), "archive", "--data", w.data, "--to", filepath.Join(w.dir, "tapes"),
		"--settle", "-1s").CombinedOutput()
	if err != nil {
		t.Fatalf("archive: %v: %s", err, out)
	}
	tapes, err := filepath.Glob(filepath.Join(w.dir, "tapes", "*", "*", "*.tape"))
	if err != nil || len(tapes) != recordings {
		t.Errorf("%d recordings became %d tapes, %v: %s", recordings, len(tapes), err, out)
	}
	for _, tape := range tapes {
		if out, err := exec.Command(testenv.Iotape(t), "check", tape).CombinedOutput(); err != nil {
			t.Errorf("check: %v: %s", err, out)
		}
	}
	t.Logf("%d tapes", len(tapes))
}
