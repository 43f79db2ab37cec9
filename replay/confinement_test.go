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
		"capabilities dropped", "no_new_privs"} {
		if !slices.Contains(rep.Confinement.InForce, means) {
			t.Errorf("without %s: %+v", means, rep.Confinement)
		}
	}
}

// Where means are refused, a replay goes on without them, and says so.
func TestConfinementRefused(t *testing.T) {
	t.Parallel()
	const into = "IOTAPE_TEST_REFUSED_INTO"
	if dir := os.Getenv(into); dir != "" { // in the user namespace that allows no pid namespace
		s := tapescript.New(t)
		s.Call(event.OpMkdir, 0, 0, [6]uint64{0, 0o755}, "first")
		rep, err := Run(t.Context(), s.Close(), &Options{Into: dir})
		if err != nil || !rep.OK() {
			t.Fatalf("%v, %+v", err, rep)
		}
		if !slices.ContainsFunc(rep.Confinement.Missing, func(m string) bool {
			return strings.HasPrefix(m, "pid namespace (")
		}) {
			t.Errorf("%+v", rep.Confinement)
		}
		return
	}
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "sh")
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command("sh", "-c", `echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"`, "sh", os.Args[0],
		"-test.run=^TestConfinementRefused$", "-test.v")
	cmd.Env = append(os.Environ(), into+"="+out)
	ids := []syscall.SysProcIDMap{{Size: 1 << 16}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: ids, GidMappings: ids,
		GidMappingsEnableSetgroups: true,
	}
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if _, err := os.Stat(filepath.Join(out, "work/first")); err != nil {
		t.Errorf("%v: %s", err, b)
	}
}
