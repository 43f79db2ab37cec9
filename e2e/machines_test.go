// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayMachines replays what ran on two machines that share one directory: in it they
// write in turn, and read what the other has written; all else has the same names, and the
// processes have the same numbers, on both.
func TestReplayMachines(t *testing.T) {
	testenv.Short(t, "it records clusters")
	t.Parallel()
	testenv.NeedRoot(t)
	for _, p := range []string{"gcc", "ip", "unshare"} {
		testenv.NeedProgram(t, p)
	}
	e := &env{dir: t.TempDir(), iotape: testenv.Iotape(t)}
	if b, err := exec.Command("gcc", "-O1", "-static", "-o", filepath.Join(e.dir, "apart"),
		"testdata/apart.c").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, b)
	}
	script, err := filepath.Abs("testdata/machine.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"own", "shared"} {
		if err := os.Mkdir(filepath.Join(e.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A device that nothing else is on, as that of a network's file system.
	shared := filepath.Join(e.dir, "shared")
	if b, err := exec.Command("mount", "-t", "tmpfs", "none", shared).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, b)
	}
	t.Cleanup(func() { _ = exec.Command("umount", shared).Run() })
	address := strings.TrimSuffix(namespaces(t, "iotape-t1", "iotape-t2"), "1") + "2"
	ended := make(chan error, 2)
	for _, n := range []string{"1", "2"} {
		cmd := exec.Command("ip", "netns", "exec", "iotape-t"+n, "unshare", "-m", "-u", "-p", "-f", "--mount-proc",
			"sh", script, "node"+n, "0000000"+n+"-0000-4000-8000-000000000000", e.dir, address, e.iotape)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("node%s: %w: %s", n, err, out)
			}
			ended <- err
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	e.says(t, "merge", "-o", "all.tape", "node1.tape", "node2.tape")
	e.says(t, "annotate", "all.tape")
	notes := e.says(t, "annotate", "all.tape", "--text")
	for _, name := range []string{"node1", "node2"} {
		if !regexp.MustCompile(`WAIT\([^)]*\)\n[0-9]+ ` + name + `:[0-9]+ recvfrom`).MatchString(notes) {
			t.Errorf("%s never waits for what the other sends", name)
		}
	}
	for _, flags := range []string{"--order recorded", "--order overlap", "--order resource",
		"--order causal --pace think", "--order causal --pace think --hosts node2,node1", "--order resource --hosts x,node1,y"} {
		into := filepath.Join(e.dir, "into")
		out := e.says(t, append([]string{"replay", "all.tape", "--into", "into", "--verify", "--shared", shared},
			strings.Fields(flags)...)...)
		if !strings.Contains(out, "all results agree, and so do all ") || strings.Contains(out, "not compared") {
			t.Errorf("%s: %s", flags, out)
		}
		for name, want := range map[string]string{
			"node1" + e.dir + "/own/begun": "begins node1\n", "node2" + e.dir + "/own/begun": "begins node2\n",
			"node1" + e.dir + "/own/size": "12288\n", "node2" + e.dir + "/own/size": "16384\n",
			shared[1:] + "/node.1": strings.Repeat("a", 4096) + strings.Repeat("b", 4096) + strings.Repeat("c", 4096) + strings.Repeat("d", 4096),
		} {
			if b, err := os.ReadFile(filepath.Join(into, name)); string(b) != want {
				t.Errorf("%s: %s has %.20q, %v", flags, name, b, err)
			}
		}
		if err := os.RemoveAll(into); err != nil {
			t.Fatal(err)
		}
	}
	// What one made is not there for the other if nobody says that they share it.
	out, _, err := e.try(t, e.iotape, "replay", "all.tape", "--into", "apart.into", "--verify")
	if err == nil || !strings.Contains(out,
		"each of 2 machines has files of its own here; if they share some, --shared says where\n") {
		t.Errorf("%v: %s", err, out)
	}
	if out := e.says(t, "replay", "all.tape", "--dry-run", "--shared", shared); !strings.Contains(out,
		" calls would be made") {
		t.Errorf("%s", out)
	}
	e.says(t, "skeleton", "all.tape", "before", "--shared", shared)
	if _, err := os.Stat(filepath.Join(e.dir, "before/node2", e.dir, "own")); err != nil {
		t.Error(err)
	}
	if out := e.fails(t, "replay", "all.tape", "--into", "none", "--shared", "shared"); !strings.Contains(out,
		`iotape: "shared" cannot be shared: it is no absolute name`) {
		t.Errorf("%s", out)
	}
}

// says runs iotape, which is to succeed, and returns what it printed.
func (e *env) says(t *testing.T, args ...string) string {
	t.Helper()
	stdout, _ := e.run(t, append([]string{e.iotape}, args...)...)
	return stdout
}
