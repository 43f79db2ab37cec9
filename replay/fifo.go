package replay

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// A FIFO waits for somebody at its other end, who need not come: a tape can say of one
// that it is a file. Where there may be FIFOs, nothing is opened so that it waits.

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

// withoutWaiting changes the arguments of an open so that it does not wait, and returns
// the number of the call that takes them. Those of openat2 are in memory: argument
// changes them.
func withoutWaiting(ev *event.Event, nr int, args *[event.MaxArgs]uintptr) int {
	if effect.OpenFlags(ev)&unix.O_PATH != 0 {
		return nr
	}
	switch ev.Op {
	case event.OpOpen:
		args[1] |= unix.O_NONBLOCK
	case event.OpOpenat:
		args[2] |= unix.O_NONBLOCK
	case event.OpCreat:
		at := event.AtFDCWD
		args[0], args[1], args[2], args[3] = uintptr(at), args[0], unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_NONBLOCK, args[1]
		return nativeNumber(event.OpOpenat)
	}
	return nr
}

// waits reports whether what was just opened is a FIFO. Of all else, it takes back that
// it must not wait, unless that was asked for.
func waits(fd int, flags uint64) bool {
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
