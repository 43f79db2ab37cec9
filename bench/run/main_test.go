// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestMain lets the test binary be the program, for a run as another user.
func TestMain(m *testing.M) {
	if os.Getenv("IOTAPE_BENCH") == "1" {
		main()
	}
	os.Exit(m.Run())
}

// TestOrdinaryUser: without root the eBPF ways are left out, with a reason, and the
// others are measured.
func TestOrdinaryUser(t *testing.T) {
	testenv.Short(t, "it measures ways to record")
	testenv.NeedProgram(t, "gcc")
	cred := testenv.NeedUser(t)
	dir := testenv.UserDir(t, cred)
	self := filepath.Join(dir, "bench")
	if b, err := os.ReadFile(os.Args[0]); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(self, b, 0o755); err != nil {
		t.Fatal(err)
	}
	doc := filepath.Join(dir, "doc.md")
	if err := os.WriteFile(doc, []byte("<!-- begin: written by make bench -->\n<!-- end: written by make bench -->\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	if cred != nil {
		if err := os.Chown(doc, int(cred.Uid), int(cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(self, "--iotape", testenv.IotapeFor(t, cred), "--dir", dir, "--memory",
		dir, "--workloads", "writeloop",
		"--ways", "full,ptrace", "--scale", "0.001", "--no-sync", "--slow-rounds", "1", "--json",
		filepath.Join(dir, "json"), "--markdown", doc)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "IOTAPE_BENCH=1", "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &stdout, &stderr)
	}
	md, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{stdout.String(), string(md)} {
		if !strings.Contains(out, "Left out: full: ") || !strings.Contains(out, "ptrace") {
			t.Errorf("no word of what was left out and what was measured:\n%s", out)
		}
	}

	// The same again, from the file.
	var again, said strings.Builder
	if status := run([]string{"--from", filepath.Join(dir, "json")}, &again, &said); status != 0 ||
		again.String() != stdout.String() {
		t.Errorf("--from ends with %d %s and prints\n%s\nwant\n%s", status, &said, &again, &stdout)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		stdout string
		stderr string
	}{
		{[]string{"--list"}, 0, "pwriteloop", ""},
		{[]string{"--help"}, 0, "", "-rounds"},
		{[]string{"extra"}, 2, "", `"extra"`},
		{[]string{"--ways", "magic"}, 2, "", `no way is called "magic"`},
		{[]string{"--workloads", "magic"}, 2, "", `no workload is called "magic"`},
		{[]string{"--from", "/no/such/file"}, 2, "", "/no/such/file"},
	} {
		var stdout, stderr strings.Builder
		if status := run(c.args, &stdout, &stderr); status != c.status {
			t.Errorf("%q: status %d, want %d", c.args, status, c.status)
		}
		if !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%q: prints %q and %q", c.args, &stdout, &stderr)
		}
	}
}
