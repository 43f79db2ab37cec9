// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayHosts replays on several hosts what two processes did in turn, each reading
// what the other has written: a read that comes too early finds nothing, or something else.
func TestReplayHosts(t *testing.T) {
	testenv.Short(t, "it records and replays on several hosts")
	t.Parallel()
	e := nodes(t)
	e.discovers(t, 0, "-o", "a.tape", "--", "./nodes", "read")
	e.team(t, "local", "--hosts", "a,b")
	e.team(t, "one", "--hosts", "a") // a team of one makes all calls
	t.Run("namespaces", func(t *testing.T) {
		testenv.NeedRoot(t)
		testenv.NeedProgram(t, "ip")
		hub := namespaces(t, "iotape-t1", "iotape-t2")
		e.team(t, "apart", "--hosts", "iotape-t1,iotape-t2", "--launch", "ip netns exec {host} {command}", "--listen",
			hub+":0")
	})
	t.Run("mpirun", func(t *testing.T) {
		testenv.NeedProgram(t, "mpirun")
		e.team(t, "mpi", "--hosts", "a,b", "--launch", "mpirun --allow-run-as-root --oversubscribe -n {n} {command}")
	})
	out := e.fails(t, "replay", "a.tape", "--into", "none", "--order", "causal", "--hosts", "a,b", "--launch",
		"no-such-ssh {host} {command}")
	if !strings.Contains(out, "iotape: --hosts: launch \"no-such-ssh {host} {command}\": no-such-ssh: executable "+
		"file not found in $PATH\n") {
		t.Errorf("%s", out)
	}
	out = e.fails(t, "replay", "a.tape", "--into", "none", "--order", "causal", "--hosts", "a,b", "--launch",
		"false {host} {command}")
	if !strings.Contains(out, ": its replayer ended: exit status 1\n") {
		t.Errorf("%s", out)
	}
}

// team replays with these flags and looks whether all agreed, and who did what.
func (e *env) team(t *testing.T, into string, flags ...string) {
	t.Helper()
	cmd := exec.Command(e.iotape, append([]string{"replay", "a.tape", "--into", into, "--order", "causal", "--pace",
		"think", "--verify", "--json"}, flags...)...)
	cmd.Dir = e.dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", flags, err, out)
	}
	var r struct {
		OK               bool
		Events, Replayed uint64
		Members          []struct{ Replayed uint64 }
		Timing           struct {
			Replayed int64 `json:"replayed_ns"`
		}
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	sum := uint64(0)
	for _, m := range r.Members {
		if m.Replayed == 0 {
			t.Errorf("%v: a member had nothing to do", flags)
		}
		sum += m.Replayed
	}
	if want := 1 + strings.Count(flags[1], ","); !r.OK || len(r.Members) != want || sum != r.Replayed ||
		r.Replayed < 24 || r.Timing.Replayed <= 0 {
		t.Errorf("%v: %s", flags, out)
	}
}

// fails runs iotape, which is to fail, and returns what it said.
func (e *env) fails(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(e.iotape, args...)
	cmd.Dir = e.dir
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != 2 {
		t.Errorf("%v: status %d\n%s", args, got, out)
	}
	return string(out)
}

// netnsLock is held by the test that has network namespaces.
var netnsLock sync.Mutex

// namespaces makes network namespaces that reach this one, and nobody else, over a bridge,
// and returns its address on it. Their names are the machine's: one test at a time has any.
func namespaces(t *testing.T, names ...string) (here string) {
	t.Helper()
	ip := func(args ...string) {
		t.Helper()
		if b, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, b)
		}
	}
	const bridge = "iotape-tbr"
	netnsLock.Lock()
	t.Cleanup(netnsLock.Unlock)
	veth := func(i int) string { return fmt.Sprintf("iotape-tv%d", i) }
	remove := func() {
		for i, name := range names {
			_ = exec.Command("ip", "link", "del", veth(i)).Run() // with the namespace it goes later
			_ = exec.Command("ip", "netns", "del", name).Run()
		}
		_ = exec.Command("ip", "link", "del", bridge).Run()
	}
	remove() // what a test that was killed left
	t.Cleanup(remove)
	ip("link", "add", bridge, "type", "bridge")
	ip("addr", "add", "10.213.77.1/24", "dev", bridge)
	ip("link", "set", bridge, "up")
	for i, name := range names {
		ip("netns", "add", name)
		ip("link", "add", veth(i), "type", "veth", "peer", "name", "eth0", "netns", name)
		ip("link", "set", veth(i), "master", bridge, "up")
		ip("-n", name, "addr", "add", fmt.Sprintf("10.213.77.%d/24", i+2), "dev", "eth0")
		ip("-n", name, "link", "set", "eth0", "up")
	}
	return "10.213.77.1"
}
