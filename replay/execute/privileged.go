// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"encoding/binary"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
)

// A program with a set-id bit or capabilities, or a device node, gives rights to whoever can reach
// it, also after the replay. What a tape says is no reason to make one.

// leftOff counts the calls that were made without what gives rights.
type leftOff struct{ setID, capabilities, devices, owners, attributes, accessLists atomic.Uint64 }

func (l *leftOff) result() result.LeftOff {
	return result.LeftOff{
		SetID: l.setID.Load(), Capabilities: l.capabilities.Load(), Devices: l.devices.Load(),
		Owners: l.owners.Load(), Attributes: l.attributes.Load(), AccessLists: l.accessLists.Load(),
	}
}

// withoutPrivileges changes the arguments of a call so that what it makes gives no rights. It
// returns the number of the call that takes them, a descriptor that is to be closed after the
// call, or -1, and what to count if the call succeeds.
func (w *worker) withoutPrivileges(
	t *plan.Task, nr int, args *[event.MaxArgs]uintptr,
) (number, fd int, left *atomic.Uint64) {
	ev, off := &t.Event, &w.env.leftOff
	mode := ev.Spec().Arg("mode")
	switch ev.Effect() {
	case event.EffectChmod:
		if ev.Op != event.OpFchmod {
			return w.chmod(t, nr, args)
		}
		var st unix.Stat_t
		if unix.Fstat(int(args[0]), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			mode = -1
		}
	case event.EffectMknod:
		if effect.IsDevice(uint32(args[mode])) && ev.Named("dev") != 0 {
			left = &off.devices
		}
	case event.EffectOpen:
	default:
		mode = -1
	}
	if mode >= 0 && args[mode]&effect.SetID != 0 {
		args[mode] &^= effect.SetID
		if ev.Spec().Result != event.KindFD || effect.OpenFlags(ev)&unix.O_CREAT != 0 {
			left = &off.setID
		}
	}
	return nr, -1, left
}

// openHow changes the structure of an openat2 likewise.
func (w *worker) openHow(ev *event.Event, how []byte) {
	const at = 8 // of the mode
	if w.env.privileged || ev.Op != event.OpOpenat2 || len(how) < at+8 {
		return
	}
	mode := binary.LittleEndian.Uint64(how[at:])
	if mode&effect.SetID == 0 {
		return
	}
	binary.LittleEndian.PutUint64(how[at:], mode&^effect.SetID)
	if ev.OK() {
		w.env.leftOff.setID.Add(1)
	}
}

// anyCache makes an openat2 look up what is not in the kernel's caches, too: they are others here.
func anyCache(ev *event.Event, how []byte) {
	const at, cached = 16, 0x20 // where the resolve flags are, RESOLVE_CACHED
	if ev.Op == event.OpOpenat2 && len(how) > at {
		how[at] &^= cached
	}
}

// chmod changes the arguments of a call that gives a name a mode. The bits are kept if the name is that
// of a directory; then the call is made on a descriptor of it, because another thread may give
// its name to a file.
func (w *worker) chmod(
	t *plan.Task, nr int, args *[event.MaxArgs]uintptr,
) (number, fd int, left *atomic.Uint64) {
	at := event.AtFDCWD
	dir, name, mode, flags := uintptr(at), args[0], 1, uintptr(0)
	switch t.Event.Op {
	case event.OpFchmodat2:
		flags = args[3]
		fallthrough
	case event.OpFchmodat:
		dir, name, mode = args[0], args[1], 2
	}
	bits := args[mode]
	if bits&effect.SetID == 0 {
		return nr, -1, nil
	}
	how := uintptr(unix.O_PATH | unix.O_CLOEXEC)
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how |= unix.O_NOFOLLOW
	}
	var st unix.Stat_t
	opened, _, errno := unix.Syscall6(unix.SYS_OPENAT, dir, name, how, 0, 0, 0)
	fd = int(opened)
	if errno == 0 && unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		w.strings[mode-1] = append(strconv.AppendInt(w.strings[mode-1][:0], int64(fd), 10), 0)
		args[0], args[1], args[2] = uintptr(w.env.procFD), address(w.strings[mode-1]), bits
		return unix.SYS_FCHMODAT, fd, nil
	}
	if errno != 0 {
		fd = -1
	}
	args[mode] = bits &^ effect.SetID
	return nr, fd, &w.env.leftOff.setID
}

// skipsRoots reports whether a call is not made because it needs root's rights and is another user's
// here, and counts it.
func (w *worker) skipsRoots(t *plan.Task) bool {
	if w.env.root || !t.Event.OK() {
		return false
	}
	switch ev := &t.Event; {
	case t.Reduced:
		w.env.leftOff.accessLists.Add(1)
		return false
	case effect.ChangesOwner(ev, uint32(os.Geteuid()), uint32(os.Getegid())):
		w.env.leftOff.owners.Add(1)
	case effect.HandlesRootsAttribute(ev):
		w.env.leftOff.attributes.Add(1)
	default:
		return false
	}
	if w.env.log.Skips() {
		w.env.log.Skipped(t.Event.Seq, t.TID, t.Op, t.Event.Name(), "only root may do this")
	}
	return true
}

// skipsCapabilities reports whether a call is not made because it is about capabilities that are
// left off, and counts it.
func (w *worker) skipsCapabilities(t *plan.Task) bool {
	if w.env.privileged || !effect.HandlesCapabilities(&t.Event) {
		return false
	}
	if effect.SetsCapabilities(&t.Event) {
		w.env.leftOff.capabilities.Add(1)
	}
	if w.env.log.Skips() {
		w.env.log.Skipped(t.Event.Seq, t.TID, t.Op, t.Event.Name(), "capabilities are left off")
	}
	return true
}

// countLeftOff counts what a successful call left off.
func countLeftOff(left *atomic.Uint64, errno syscall.Errno) {
	if left != nil && errno == 0 {
		left.Add(1)
	}
}
