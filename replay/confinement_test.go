// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// The process that makes the calls is confined by all means that root has, and the report says so.
func TestConfinement(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	s := tapescript.New(t)
	s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "first")
	rep, err := Run(t.Context(), s.Close(), &Options{Into: filepath.Join(t.TempDir(), "out")})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	for _, means := range []string{"pid namespace", "ipc namespace", "uts namespace", "network namespace", "pivot_root",
		"capabilities dropped", "no_new_privs", "seccomp", "private target"} {
		if !slices.Contains(rep.Confinement.InForce, means) {
			t.Errorf("without %s: %+v", means, rep.Confinement)
		}
	}
}

// Where means are refused, a replay goes on without them, and says so.
func TestConfinementRefused(t *testing.T) {
	t.Parallel()
	const into = "IOTAPE_TEST_REFUSED_INTO"
	const missing = "IOTAPE_TEST_REFUSED_MISSING"
	if dir := os.Getenv(into); dir != "" {
		replayRefused(t, dir, os.Getenv(missing))
		return
	}
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "sh", "setpriv")
	ids := []syscall.SysProcIDMap{{Size: 1 << 16}}
	for means, attr := range map[string]*syscall.SysProcAttr{
		"pid namespace": { // a user namespace that allows none
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: ids, GidMappings: ids,
			GidMappingsEnableSetgroups: true,
		},
		"mount namespace": {}, // root of a container, with the capabilities that Docker gives
	} {
		out := filepath.Join(t.TempDir(), "out")
		script := `echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"`
		if attr.Cloneflags == 0 {
			script = `exec setpriv --bounding-set=-sys_admin,-sys_ptrace,-linux_immutable,-sys_resource "$@"`
		}
		cmd := exec.Command("sh", "-c", script, "sh", os.Args[0], "-test.run=^TestConfinementRefused$", "-test.v")
		cmd.Env = append(os.Environ(), into+"="+out, missing+"="+means)
		cmd.SysProcAttr = attr
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", means, err, b)
			continue
		}
		if _, err := os.Stat(filepath.Join(out, "work/first")); err != nil {
			t.Errorf("%s: %v", means, err)
		}
	}
}

// replayRefused replays where one of the means is refused.
func replayRefused(t *testing.T, dir, means string) {
	s := tapescript.New(t)
	s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "first")
	s.Open(3, "f", event.OpenCreat|2)
	s.On(event.OpPwrite64, 3, 5, 0, [6]uint64{0, 0x1000, 5, 0}, event.Buf{
		Arg: 1, Kind: event.KindBuf, Len: 5, Inline: []byte("hello"),
	})
	s.Call(event.OpRename, 0, 0, [6]uint64{}, "f", "first/f")
	s.Call(event.OpMkdir, -1, syscall.ENOENT, [6]uint64{0, 0o755}, "../../../../../../../../../tmp/none/x")
	rep, err := Run(t.Context(), s.Close(), &Options{Into: dir, Checks: CheckAll})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	if !slices.ContainsFunc(rep.Confinement.Missing, func(m string) bool { return strings.HasPrefix(m, means+" (") }) {
		t.Errorf("%+v", rep.Confinement)
	}
	if means != "mount namespace" {
		return
	}
	for _, other := range []string{"chroot", "seccomp", "landlock", "capabilities dropped"} {
		if !slices.Contains(rep.Confinement.InForce, other) {
			t.Errorf("without %s: %+v", other, rep.Confinement)
		}
	}
}
