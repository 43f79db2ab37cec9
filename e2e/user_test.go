// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestNoPermission records as an ordinary user: without eBPF, and a line says why;
// eBPF alone is refused.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	cred := testenv.NeedUser(t)
	e := &env{iotape: testenv.IotapeFor(t, cred), dir: testenv.UserDir(t, cred), cred: cred}
	other := backendsWithoutRights()
	best := other[len(other)-1]
	stdout, stderr := e.run(t, e.iotape, "record", "-o", "a.tape", "--", "echo", "hello")
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if stdout != "hello\n" || len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "iotape: recording with "+best+": ebpf capture needs ") {
		t.Errorf("stdout %q, stderr:\n%s", stdout, stderr)
	}
	t.Log(lines[0])
	out, _ := e.run(t, e.iotape, "stat", "a.tape")
	contains(t, out, "recorded with "+best)

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

// TestForUser records as root for another user, as under sudo: the command is the
// user's, with both back ends, and so is all of the tape.
func TestForUser(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	cred := testenv.NeedUser(t)
	name, err := user.LookupId(strconv.Itoa(int(cred.Uid)))
	if err != nil {
		t.Fatal(err)
	}
	iotape, dir := testenv.IotapeFor(t, cred), testenv.UserDir(t, cred)
	e := &env{iotape: iotape, dir: dir}
	sudo := func(argv ...string) (stdout, stderr string) {
		return e.run(t, append([]string{"env", "SUDO_UID=" + name.Uid, "SUDO_GID=" + name.Gid,
			"SUDO_USER=" + name.Username, "HOME=/root", "USER=root"}, argv...)...)
	}
	for _, backend := range inTurn(t, append([]string{"ebpf"}, backendsWithoutRights()...)) {
		out, _ := sudo(iotape, "record", "--backend", backend, "--keep-stream", "-o", backend+".tape", "--", "sh", "-c",
			`id -u; id -g; echo "$HOME $USER $SUDO_UID"; echo x > `+backend+`.mine`)
		if want := name.Uid + "\n" + name.Gid + "\n" + name.HomeDir + " " + name.Username + " \n"; out != want {
			t.Errorf("%s: %q, want %q", backend, out, want)
		}
		for _, pattern := range []string{backend + ".tape", backend + ".tape/*",
			backend + ".stream", backend + ".mine"} {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(names) == 0 {
				t.Fatalf("%s: %v", pattern, err)
			}
			for _, name := range names {
				fi, err := os.Lstat(name)
				if err != nil {
					t.Fatal(err)
				}
				if st := fi.Sys().(*syscall.Stat_t); st.Uid != cred.Uid || st.Gid != cred.Gid {
					t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
				}
			}
		}
		stat, _ := e.run(t, iotape, "check", backend+".tape")
		t.Log(stat)
	}
	if out, _ := sudo(iotape, "record", "--backend", "ptrace", "--user", "root", "-o", "root.tape",
		"--", "id", "-u"); out != "0\n" {
		t.Errorf("--user root: %q", out)
	}
	if out, _ := e.run(t, iotape, "record", "--backend", "ptrace", "--user", name.Username, "-o", "named.tape", "--",
		"id", "-u"); out != name.Uid+"\n" {
		t.Errorf("--user %s: %q", name.Username, out)
	}
	_, stderr, err := e.try(t, iotape, "record", "--user", "no-such-user", "--", "id")
	if err == nil || !strings.Contains(stderr, `there is no user "no-such-user"`) {
		t.Errorf("%v: %s", err, stderr)
	}
	e.cred = cred
	_, stderr, err = e.try(t, iotape, "record", "--user", "root", "--", "id")
	if err == nil || !strings.Contains(stderr, "only root can record as root") {
		t.Errorf("%v: %s", err, stderr)
	}
}
