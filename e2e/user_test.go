package e2e

import (
	"os"
	"strings"
	"testing"

	"iotape/internal/testenv"
)

// TestNoPermission records as an ordinary user: with ptrace, and a line says why;
// eBPF alone is refused.
func TestNoPermission(t *testing.T) {
	cred := testenv.NeedUser(t)
	e := &env{iotape: testenv.IotapeFor(t, cred), dir: testenv.UserDir(t, cred), cred: cred}
	stdout, stderr := e.run(t, e.iotape, "record", "-o", "a.tape", "--", "echo", "hello")
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if stdout != "hello\n" || len(lines) != 2 || !strings.HasPrefix(lines[0], "iotape: recording with ptrace: ebpf capture needs ") {
		t.Errorf("stdout %q, stderr:\n%s", stdout, stderr)
	}
	t.Log(lines[0])
	out, _ := e.run(t, e.iotape, "stat", "a.tape")
	contains(t, out, "recorded with ptrace")

	stdout, stderr, err := e.try(t, e.iotape, "record", "-o", "b.tape", "--backend", "ebpf", "--", "echo", "hello")
	if err == nil || !strings.Contains(err.Error(), "exit status 125") || stdout != "" {
		t.Errorf("%v, stdout %q", err, stdout)
	}
	contains(t, stderr, "iotape: ebpf capture needs ")
	contains(t, stderr, "hint: record with --backend ptrace\n")
	if strings.Count(stderr, "\n") != 2 {
		t.Errorf("stderr:\n%s", stderr)
	}
	for _, name := range []string{"b.tape", "b.tape.partial"} {
		if _, err := os.Stat(e.dir + "/" + name); err == nil {
			t.Errorf("%s is left behind", name)
		}
	}

	// A tape that the user may not read, and a place that may not be written.
	e.run(t, "chmod", "000", "a.tape")
	_, stderr, err = e.try(t, e.iotape, "print", "a.tape")
	if err == nil || !strings.Contains(stderr, "permission denied") {
		t.Errorf("%v: %s", err, stderr)
	}
	e.run(t, "chmod", "700", "a.tape")
	_, stderr, err = e.try(t, e.iotape, "record", "-o", "/etc/x.tape", "--", "echo", "hello")
	if err == nil || !strings.Contains(stderr, "permission denied") {
		t.Errorf("%v: %s", err, stderr)
	}
}
