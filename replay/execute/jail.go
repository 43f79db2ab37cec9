// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/result"
)

// The process that makes the calls is confined by several means, each of which holds if another one
// fails. Where the kernel or a container refuses some, the replay goes on without, and its report
// says so. Without mounts of its own, it must have the filter of calls beside another root directory.

// extraSpaces are namespaces that a replay needs nothing of.
var extraSpaces = []struct {
	flag uintptr
	name string
}{
	{unix.CLONE_NEWPID, "pid namespace"}, {unix.CLONE_NEWIPC, "ipc namespace"}, {unix.CLONE_NEWUTS, "uts namespace"},
	{unix.CLONE_NEWNET, "network namespace"},
}

// startConfined starts the command that start makes for namespaces. If they are refused, it does
// without them.
func startConfined(start func(spaces uintptr) (*exec.Cmd, error)) (*exec.Cmd, result.Confinement, error) {
	var in result.Confinement
	var all uintptr
	for _, s := range extraSpaces {
		all |= s.flag
	}
	cmd, err := start(unix.CLONE_NEWNS | all)
	if err == nil {
		for _, s := range extraSpaces {
			in.InForce = append(in.InForce, s.name)
		}
		return cmd, in, nil
	}
	for _, s := range extraSpaces {
		in.Missing = append(in.Missing, fmt.Sprintf("%s (%v)", s.name, err))
	}
	if cmd, err = start(unix.CLONE_NEWNS); err == nil || os.Geteuid() != 0 {
		return cmd, in, err
	}
	cmd, second := start(0) // root in a container
	in.Missing = append(in.Missing, fmt.Sprintf("mount namespace (%v)", err))
	return cmd, in, second
}

// ownMounts reports whether this process has mounts of its own: the one that started it, its parent,
// has others then.
func ownMounts() (bool, error) {
	mine, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return false, err
	}
	return mine != os.Getenv(mountsEnv), nil
}

// enterWithoutMounts makes dir the root directory of a process that has no mounts of its own. The
// capability to do that again, which leads out, is dropped; the filter has no call for it, either.
func enterWithoutMounts(dir string, in *result.Confinement) error {
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("enter the target: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("make the target the root: %w", err)
	}
	in.InForce = append(in.InForce, "chroot")
	return unix.Chdir("/")
}

// enterTarget makes dir, a mount, the root directory. The old one is unmounted if it can be: then there is
// nothing to come back to, whatever rights a call has.
func enterTarget(dir string, in *result.Confinement) error {
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("enter the target: %w", err)
	}
	const name = "pivot_root"
	err := unix.PivotRoot(".", ".") // the old root is above the new one then
	if err == nil {
		if err = unix.Unmount(".", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount the old root: %w", err)
		}
		in.InForce = append(in.InForce, name)
		return unix.Chdir("/")
	}
	in.Missing = append(in.Missing, fmt.Sprintf("%s (%v)", name, err)) // on a root that is an initramfs
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("make the target the root: %w", err)
	}
	return unix.Chdir("/")
}
