// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/result"
)

// Landlock keeps a process that has no mounts of its own below the target. One that has them sees
// nothing else, and does without: Landlock refuses a name for a file that was opened with O_TMPFILE.

// newestRights are the rights on files that each version of Landlock added, from the first on
// (linux/landlock.h).
var newestRights = []uint64{
	1<<13 - 1, unix.LANDLOCK_ACCESS_FS_REFER, unix.LANDLOCK_ACCESS_FS_TRUNCATE, 0, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
}

// newRuleset returns a ruleset that allows everything below dir and nothing elsewhere, -1 if there is
// no Landlock.
func newRuleset(dir string, in *result.Confinement) int {
	fd, err := ruleset(dir)
	if err != nil {
		in.Missing = append(in.Missing, fmt.Sprintf("landlock (%v)", err))
		return -1
	}
	in.InForce = append(in.InForce, "landlock")
	return fd
}

func ruleset(dir string) (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return -1, errno
	}
	if version < 2 {
		return -1, fmt.Errorf("version %d cannot move files between directories", version)
	}
	rights := uint64(0)
	for _, r := range newestRights[:min(int(version), len(newestRights))] {
		rights |= r
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rights}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno != 0 {
		return -1, errno
	}
	below, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(int(fd))
		return -1, err
	}
	defer unix.Close(below)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(below)}
	_, _, errno = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		unix.Close(int(fd))
		return -1, errno
	}
	return int(fd), nil
}

// restrict holds the calling thread to a ruleset, if there is one.
func restrict(ruleset int) error {
	if ruleset < 0 {
		return nil
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
