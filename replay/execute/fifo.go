// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/plan"
)

// An open of a FIFO waits for its other end to be opened, which may never happen: a hostile
// tape can say that a FIFO is a file. Where there may be FIFOs, no open waits.

// makesFIFO reports whether a call makes a FIFO.
func makesFIFO(ev *event.Event) bool {
	switch ev.Op {
	case event.OpMknod:
		return ev.Args[1]&unix.S_IFMT == unix.S_IFIFO
	case event.OpMknodat:
		return ev.Args[2]&unix.S_IFMT == unix.S_IFIFO
	}
	return false
}

// withoutWaiting changes the arguments of a call that opens a file so that it does not wait,
// and those of one that clears the flag. It returns the number of the call that takes them.
// The flags of openat2 are in memory: structArgument changes them.
func withoutWaiting(t *plan.Task, nr int, args *[event.MaxArgs]uintptr) int {
	ev := &t.Event
	if h := t.Files.FDs[0]; ev.Op == event.OpFcntl && ev.Args[1] == plan.SetFL && h != nil && h.FIFO {
		args[2] |= unix.O_NONBLOCK
		return nr
	}
	if ev.Spec().Result != event.KindFD || effect.OpenFlags(ev)&unix.O_PATH != 0 {
		return nr
	}
	switch ev.Op {
	case event.OpOpen:
		args[1] |= unix.O_NONBLOCK
	case event.OpOpenat:
		args[2] |= unix.O_NONBLOCK
	case event.OpCreat:
		const flags = unix.O_CREAT | unix.O_TRUNC | unix.O_WRONLY | unix.O_NONBLOCK
		at := event.AtFDCWD
		args[0], args[1], args[2], args[3] = uintptr(at), args[0], flags, args[1]
		return plan.NativeNumber(event.OpOpenat)
	}
	return nr
}

// isFIFO reports whether what was just opened is a FIFO. On all else, it clears O_NONBLOCK,
// unless that was asked for.
func isFIFO(fd int, flags uint64) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
		return true
	}
	if flags&(unix.O_NONBLOCK|unix.O_PATH) == 0 {
		if now, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, now&^unix.O_NONBLOCK)
		}
	}
	return false
}
