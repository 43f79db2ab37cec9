// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
)

// refused reports whether a call failed for a reason that the files of a replay do not have: a
// limit (EFBIG), space (ENOSPC), memory (EFAULT), an argument (EINVAL), what another process did
// (EBUSY), or a capability, a security module or a mount option (EACCES, EPERM). Such a call is
// not made: it might succeed here, and leave what the program did not.
func refused(t *Task) bool {
	ev := &t.Event
	if ev.OK() {
		return false
	}
	if (ev.Errno == syscall.EAGAIN || ev.Errno == syscall.EACCES) && (ev.Op == event.OpFlock || isLock(ev)) {
		return false // another owner has the lock
	}
	switch ev.Errno {
	case syscall.ENOENT, syscall.EEXIST, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOTEMPTY, syscall.ELOOP,
		syscall.ENAMETOOLONG, syscall.ENODATA, syscall.ENXIO, syscall.ERANGE, syscall.ESPIPE:
		return false
	case syscall.EBADF:
		return t.IsRequest() // io_uring has it for fields that the equal call does not look at
	case syscall.EINVAL:
		return t.IsRequest() || !invalidByFiles(ev)
	}
	return true
}

// invalidByFiles reports whether it is the files that make a call invalid: readlink of what is no
// link, or rename of a directory into itself.
func invalidByFiles(ev *event.Event) bool {
	switch ev.Effect() {
	case event.EffectReadlink:
		return true
	case event.EffectRename:
		return len(ev.Paths) == 2 && strings.HasPrefix(ev.Paths[1].Abs, ev.Paths[0].Abs+"/") && ev.Named("flags") == 0
	}
	return false
}
