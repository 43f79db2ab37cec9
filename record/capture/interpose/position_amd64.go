// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// The code in a process counts the positions of files that nothing else moves
// (inproc/position.h). What follows tells it of the calls that the tracer sees.

// mayMove reports whether a call may move a file's position.
func mayMove(nr uint64) bool {
	switch nr {
	case unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE:
		return true
	}
	check := checks[int(nr)]
	return check == checkPosition || check == checkMove
}

// mayShare reports whether a call may make more descriptors stand for an open file, or one
// stand for another.
// clone is the flags of one that makes a thread or process.
func mayShare(nr, clone uint64) bool {
	switch nr {
	case unix.SYS_CLOSE_RANGE, unix.SYS_UNSHARE, unix.SYS_FORK, unix.SYS_VFORK:
		return true
	case unix.SYS_CLONE, unix.SYS_CLONE3:
		return clone&unix.CLONE_FILES == 0
	}
	switch checks[int(nr)] {
	case checkClose, checkControl, checkShare, checkShare1:
		return true
	}
	return false
}

// begins is told of a call that a thread makes where the tracer sees it: not under the lock of
// the file's position.
func (th *thread) begins() {
	if th.files == nil {
		return
	}
	f := th.files.of()
	switch {
	case mayMove(th.nr):
		th.moving = true
		atomic.AddUint64(&f.Asks, 1)
	case mayShare(th.nr, th.clone):
		atomic.AddUint64(&f.Epoch, 1)
	case checks[int(th.nr)] == checkRing:
		atomic.AddUint64(&f.Asks, 1) // for ever
	}
}

// ended is told that the call is over, or the thread.
func (th *thread) ended() {
	if th.moving && th.files != nil {
		f := th.files.of()
		atomic.AddUint64(&f.Moves, 1)
		atomic.AddUint64(&f.Asks, ^uint64(0))
	}
	th.moving = false
}

// forget makes the code in a process look at its descriptors anew: the call that the tracer
// saw may have changed any.
func (th *thread) forget(nr uint64) {
	if th.files == nil {
		return
	}
	f := th.files.of()
	atomic.AddUint64(&f.Generation, 1)
	atomic.AddUint64(&f.Moves, 1)
	if mayShare(nr, th.clone) {
		atomic.AddUint64(&f.Epoch, 1)
	}
}
