// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// TestDiscoverHosts finds that two processes on two hosts write in turn, which they tell
// each other in messages that neither sleeps for.
func TestDiscoverHosts(t *testing.T) {
	testenv.Short(t, "it runs experiments")
	e := nodes(t)
	e.compile(t, "apart")
	t.Run("here", func(t *testing.T) { e.apart(t, "here", "127.0.0.1", "--hosts", "h1,h2") })
	t.Run("namespaces", func(t *testing.T) {
		testenv.NeedRoot(t)
		testenv.NeedProgram(t, "ip")
		hub := namespaces(t, "iotape-t1", "iotape-t2")
		e.apart(t, "apart", beside(hub, 0), "--hosts", "iotape-t1,iotape-t2", "--launch",
			"ip netns exec {host} {command}", "--listen", hub+":0")
	})
	t.Run("mpirun", func(t *testing.T) {
		testenv.NeedProgram(t, "mpirun")
		e.apart(t, "mpi", "127.0.0.1", "--hosts", "r1,r2", "--launch",
			"mpirun --allow-run-as-root --oversubscribe -n {n} {command}")
	})
	for _, c := range []struct {
		want string
		args []string
	}{
		{"iotape: --hosts: host a is named twice: nodes are told apart by the names\n", []string{"--hosts", "a,a", "--", "true"}},
		{"no-such-ssh: executable file not found in $PATH\n", []string{"--hosts", "a,b", "--launch", "no-such-ssh {host} {command}", "--", "true"}},
		{": its tracer ended: exit status 1\n", []string{"--hosts", "a,b", "--launch", "false {command}", "--", "true"}},
		{": no-such-program: command not found\n", []string{"--hosts", "a,b", "--", "no-such-program"}},
		{": the command, recorded with nobody held, failed with status 2\n", []string{"--hosts", "a,b", "--", "./apart"}},
		{"iotape: --launch, --listen and --secret are for --hosts\n", []string{"--launch", "ssh {host} {command}", "--", "true"}},
		{"host b: the command was not at its end after 3s, and was ended: thread ", []string{"--hosts", "a,b", "--each", "3s", "--", "sh", "-c", "test {host} = a || sleep 1000"}},
	} {
		if _, said := e.discovers(t, 2, append([]string{"-o", "none.tape"}, c.args...)...); !strings.Contains(said,
			c.want) {
			t.Errorf("%v: %s", c.args, said)
		}
		e.nothingLeft(t)
	}
}

// apart discovers what testdata/apart.c does on two hosts.
func (e *env) apart(t *testing.T, name, address string, flags ...string) {
	t.Helper()
	args := append([]string{"-o", name + ".tape", "--json", "--prepare", "rm -f port"}, flags...)
	out, _ := e.discovers(t, 0, append(args, "--", "./apart", "{host}", address)...)
	var v struct {
		Found int
		Nodes []struct {
			Name         string
			Calls, Holds int
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(flags[1], ",")
	if v.Found < 8 || len(v.Nodes) != 2 || v.Nodes[0].Name != first+":1" || v.Nodes[1].Name != second+":1" ||
		v.Nodes[1].Calls != 5 || v.Nodes[1].Holds != 5 {
		t.Errorf("%s", out)
	}
	calls, notes := e.writes(t, name+".tape")
	for i := range 4 {
		mine, other := "node.0:"+string(rune('0'+i)), "node.1:"+string(rune('0'+i))
		if !e.follows(t, name+".tape", notes, calls[other], calls[mine]) {
			t.Errorf("%s, event %d, does not wait for %s, event %d", other, calls[other], mine, calls[mine])
		}
	}
	e.nothingLeft(t)
	// Hosts of one machine have one tree, and the file of one that the other waited for.
	out = e.says(t, "replay", name+".tape", "--into", name+".again", "--verify", "--order", "causal", "--pace", "think",
		"--hosts", flags[1])
	if !strings.Contains(out, "all results agree, and so do all ") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(filepath.Join(e.dir, name+".again", e.dir, "node.1")); err != nil {
		t.Error(err)
	}
}

// follows reports whether an event comes after another by what the threads of a tape did one
// after the other, and by what the annotations say they waited for: the message that says so
// may have been found, too, and then the call that received it is what waits.
func (e *env) follows(t *testing.T, name string, notes *causal.Annotations, seq, before uint64) bool {
	t.Helper()
	tape, err := trace.Open(filepath.Join(e.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	type thread struct{ host, tid uint32 }
	last, after := map[thread]bool{}, map[uint64]bool{before: true}
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		id := thread{ev.Host, ev.TID}
		after[ev.Seq] = after[ev.Seq] || last[id] ||
			slices.ContainsFunc(notes.Before(ev.Seq), func(seq uint64) bool { return after[seq] })
		last[id] = after[ev.Seq]
	}
	return after[seq]
}

// nothingLeft looks for processes of the test's directory.
func (e *env) nothingLeft(t *testing.T) {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, dir := range dirs {
		if at, err := os.Readlink(dir); err == nil && at == e.dir {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(dir), "cmdline"))
			t.Errorf("%s is left: %s", filepath.Dir(dir), strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}
