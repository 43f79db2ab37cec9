// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// minMiB is the size below which a file system cannot be made.
var minMiB = map[string]int{"tmpfs": 1, "ramfs": 1, "ext4": 4, "xfs": 300, "btrfs": 128}

// MountImage mounts a new file system of its own for the test and returns where:
// tmpfs, or ext4, xfs or btrfs in a sparse image, or ramfs, which has neither a size
// nor extended attributes nor O_DIRECT. It has sizeMiB, or the least
// that the file system can have if that is more, and goes when the test ends.
func MountImage(t testing.TB, fstype string, sizeMiB int) string {
	t.Helper()
	least, ok := minMiB[fstype]
	if !ok {
		t.Fatalf("mount image: unknown file system %q", fstype)
	}
	sizeMiB = max(sizeMiB, least)
	NeedRoot(t)

	around := t.TempDir()
	dir := filepath.Join(around, "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-t", fstype}
	switch fstype {
	case "tmpfs":
		args = append(args, "-o", fmt.Sprintf("size=%dm", sizeMiB), "tmpfs", dir)
	case "ramfs":
		args = append(args, "ramfs", dir)
	default:
		NeedLoop(t)
		NeedProgram(t, "mkfs."+fstype)
		image := filepath.Join(around, "image")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, int64(sizeMiB)<<20); err != nil {
			t.Fatal(err)
		}
		command(t, "mkfs."+fstype, "-q", image)
		args = append(args, "-o", "loop", image, dir)
	}
	command(t, "mount", args...)
	t.Cleanup(func() { unmount(t, dir) })
	return dir
}

// unmount takes the file system away even from a process that still uses it, but
// does not call that a success.
func unmount(t testing.TB, dir string) {
	out, err := exec.Command("umount", dir).CombinedOutput()
	if err == nil {
		return
	}
	t.Errorf("unmount: %v: %s", err, strings.TrimSpace(string(out)))
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		t.Errorf("detach %s: %v", dir, err)
	}
}

func command(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
}

// UserDir returns a new directory that belongs to the user of cred and that this
// user can reach, which t.TempDir's are not.
func UserDir(t testing.TB, cred *syscall.Credential) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "iotape-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the user's directory: %v", err)
		}
	})
	if cred != nil {
		if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
