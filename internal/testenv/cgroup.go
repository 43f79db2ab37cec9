// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Cgroup makes a control group of version 2 for the test, and returns its directory. It is
// removed after the test, unless it was before.
func Cgroup(t testing.TB) string {
	t.Helper()
	NeedRoot(t)
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	root := ""
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			root = f[1]
		}
	}
	dir := t.TempDir()
	if root == "" {
		root = dir
		if out, err := exec.Command("mount", "-t", "cgroup2", "none", root).CombinedOutput(); err != nil {
			t.Fatalf("mount control groups of version 2: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("umount", root).Run() })
	}
	group := filepath.Join(root, "iotape-"+filepath.Base(filepath.Dir(dir))+"-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	return group
}
