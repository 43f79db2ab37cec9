// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// btf is where a kernel describes its types, without which no eBPF object of ours
// can be loaded.
const btf = "/sys/kernel/btf/vmlinux"

// NeedRoot skips the test unless it runs as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Lacks(t, "needs root")
	}
}

// NeedBPF skips the test unless eBPF programs can be loaded: root, and a kernel
// with type information.
func NeedBPF(t testing.TB) {
	t.Helper()
	if why := noBPF(os.Geteuid(), btf); why != "" {
		Lacks(t, why)
	}
}

func noBPF(uid int, btf string) string {
	if uid != 0 {
		return "needs root to load eBPF programs"
	}
	if _, err := os.Stat(btf); err != nil {
		return "needs a kernel with type information: no " + btf
	}
	return ""
}

// NeedProgram skips the test unless each program is on the PATH, or, for one with
// a slash in its name, is there.
func NeedProgram(t testing.TB, names ...string) {
	t.Helper()
	var missing []string
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		Lacks(t, "needs "+strings.Join(missing, ", ")+" (scripts/setup.sh --test installs what tests need)")
	}
}

// NeedLoop skips the test unless loop devices can be had and mounted.
func NeedLoop(t testing.TB) {
	t.Helper()
	NeedRoot(t)
	NeedProgram(t, "losetup", "mount", "umount")
	if err := exec.Command("losetup", "--find").Run(); err != nil {
		Lacks(t, "needs a loop device: losetup --find: "+err.Error())
	}
}

// NeedFUSE skips the test unless its user can serve file systems: may open /dev/fuse and,
// if it is not root, has fusermount3.
func NeedFUSE(t testing.TB) {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		Lacks(t, "needs FUSE: "+err.Error())
	}
	f.Close()
	if os.Geteuid() != 0 {
		NeedProgram(t, "fusermount3")
	}
}

// NeedUser returns the credential, for syscall.SysProcAttr, with which a command
// runs as the unprivileged user nobody. Where the test itself runs as an ordinary
// user that is nil, the test's own. See UserDir for a directory of that user's.
func NeedUser(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		Lacks(t, "needs the user nobody: "+err.Error())
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		t.Fatalf("user nobody: %v", err)
	}
	cred := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if err := cmd.Run(); err != nil {
		Lacks(t, "needs to run a command as nobody: "+err.Error())
	}
	return cred
}

// Short skips the test under -short; why says what takes its time.
func Short(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped with -short: " + why)
	}
}

// CI reports whether the machine has to have all that the tests need.
func CI() bool { return os.Getenv("IOTAPE_CI") == "1" }

// Lacks ends the test of a machine that lacks something: it is skipped or, where everything has to be
// present, fails. why says what is missing, and what to do.
func Lacks(t testing.TB, why string) {
	t.Helper()
	if CI() {
		t.Fatal("not skipped, because IOTAPE_CI=1: " + why)
	}
	t.Skip(why)
}

// NeedFile skips the test unless a file is there that scripts/setup.sh --test makes.
func NeedFile(t testing.TB, name string) {
	t.Helper()
	if _, err := os.Stat(name); err != nil {
		Lacks(t, "needs "+name+" (scripts/setup.sh --test makes what tests need)")
	}
}
