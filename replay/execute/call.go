// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/plan"
)

// closedFD is a number that is never open: what the recording passed was not, either.
const closedFD = 1 << 30

// call makes the recorded call with this replay's descriptors, names and memory,
// and checks what it gives.
func (w *worker) call(t *plan.Task) {
	ev := &t.Event
	nr := plan.NativeNumber(ev.Op)
	if nr < 0 {
		w.env.check.Mismatch(t, "call", ev.Op.String(), "this architecture has no such call")
		return
	}
	if w.skipsCapabilities(t) || w.skipsRoots(t) || !w.enterBase(t) {
		return
	}
	w.applyCredentials(t)
	if ev.Effect() == event.EffectList {
		w.env.check.Listing(t, w.buffer(64<<10))
		return
	}
	if effect.SeeksDirectory(ev) {
		w.env.check.SeekListing(t)
		return
	}
	if t.Content.Large != nil {
		w.writeLarge(t)
		return
	}
	var args [event.MaxArgs]uintptr
	var outs [event.MaxArgs][]byte
	spec := ev.Spec()
	for i := range spec.Args {
		args[i] = w.argument(t, spec, i, &outs)
	}
	moved := w.redirectPaths(t, &args)
	var left *atomic.Uint64
	target := -1
	if !w.env.privileged {
		nr, target, left = w.withoutPrivileges(t, nr, &args)
	}
	if w.env.fifos.Load() {
		nr = withoutWaiting(t, nr, &args)
	}
	var ret int64
	var errno syscall.Errno
	withAttributes(t, func() { ret, errno = w.makeCall(t, nr, &args) })
	w.pacer.EndCall()
	countLeftOff(left, errno)
	if errno == syscall.EMFILE && t.Event.Errno != errno {
		w.env.stop(errOpen())
	}
	closeFD(&target)
	if moved {
		w.restoreDirectory(ev.Op == event.OpChdir && errno == 0)
	}
	runtime.KeepAlive(t)
	runtime.KeepAlive(w)
	if w.env.log.Calls() {
		w.env.log.Call(ev.Seq, t.TID, t.Op, ev.Name(), ret, errno)
	}
	if spec.Result == event.KindFD {
		w.keepResult(t, int(ret), errno == 0)
	}
	w.env.check.Call(t, ret, errno, &outs)
}

// keepResult keeps the descriptor that a call returned, if the recorded one succeeded as well.
func (w *worker) keepResult(t *plan.Task, fd int, ok bool) {
	h := t.Files.Result
	if h == nil {
		if ok {
			unix.Close(fd) // the recording's open failed
		}
		return
	}
	if ok && w.env.fifos.Load() {
		h.FIFO = isFIFO(fd, effect.OpenFlags(&t.Event))
	}
	h.FD = fd
}

// roomFor returns how many bytes a file has from off on; no limit if that is not known.
func roomFor(fd int, off int64) int64 {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return math.MaxInt64
	}
	return st.Size - off
}

// storeWithin makes that part of a store through a mapping that lies within the file: a store never makes
// a file longer. What was recorded behind its end is of a call that returned later, and that is made, too.
func (w *worker) storeWithin(t *plan.Task, args *[event.MaxArgs]uintptr, room int64) (int64, syscall.Errno) {
	if room > 0 {
		nr := uintptr(plan.NativeNumber(t.Event.Op))
		_, _, errno := unix.Syscall6(nr, args[0], args[1], uintptr(room), args[3], 0, 0)
		if errno != 0 {
			return -1, errno
		}
	}
	return t.Event.Ret, 0
}

// makeCall makes a call, in the way that it was made if that is asked for.
func (w *worker) makeCall(t *plan.Task, nr int, args *[event.MaxArgs]uintptr) (int64, syscall.Errno) {
	switch {
	case w.env.native.Requests && t.IsRequest():
		if ret, errno, ok := w.asRequest(t, args); ok {
			return ret, errno
		}
	case w.env.native.Mmap && t.Event.Spec().NoCall:
		if ret, errno, ok := w.throughMapping(t, args); ok {
			return ret, errno
		}
	}
	if t.Event.Op == event.OpMmapPwrite {
		if again := w.reopenWithout(int(args[0]), unix.O_APPEND); again >= 0 { // pwrite would append
			defer unix.Close(again)
			args[0] = uintptr(again)
		}
		if room := roomFor(int(args[0]), int64(args[3])); room < int64(args[2]) {
			return w.storeWithin(t, args, max(room, 0))
		}
	}
	if t.Event.Effect() == event.EffectCopy {
		count := &args[t.Event.Spec().SizeArg()]
		return wholeCopy(t.Event.Ret, count, func() (int64, syscall.Errno) { return w.made(t, nr, args) })
	}
	return w.made(t, nr, args)
}

// made makes a call as it stands in a task.
func (w *worker) made(t *plan.Task, nr int, args *[event.MaxArgs]uintptr) (int64, syscall.Errno) {
	for reopened := -1; ; {
		r, _, errno := unix.Syscall6(uintptr(nr), args[0], args[1], args[2], args[3], args[4], args[5])
		switch errno {
		case 0:
			return int64(r), 0
		case syscall.EINTR:
			continue
		case syscall.EINVAL:
			if reopened < 0 && t.Event.Spec().NoCall {
				if reopened = w.reopenWithout(int(args[0]), unix.O_DIRECT); reopened >= 0 {
					defer unix.Close(reopened)
					args[0] = uintptr(reopened)
					continue
				}
			}
		}
		return -1, errno
	}
}

// reopenWithout opens the file of a descriptor again that has O_DIRECT or O_APPEND: a mapping goes through the page
// cache, to any byte. It returns -1 if the descriptor does not have it.
func (w *worker) reopenWithout(fd, flag int) int {
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&flag == 0 {
		return -1
	}
	again, err := unix.Openat(w.env.procFD, strconv.Itoa(fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return again
}

// redirectPaths lets names that went through the recorded process's descriptors start
// from this process's: its /proc/self/fd was opened before the target became the
// root, and leads nowhere but to open files.
//
// It reports whether it changed the working directory.
func (w *worker) redirectPaths(t *plan.Task, args *[event.MaxArgs]uintptr) (left bool) {
	spec := t.Event.Spec()
	for i, h := range t.Files.Through {
		switch {
		case h == nil:
		case i > 0 && spec.Args[i-1].Kind == event.KindDirFD:
			args[i-1] = uintptr(w.env.namesFD)
		default:
			if !left {
				left = w.enterProcFD()
			}
			if !left {
				args[i] = 0 // the call fails: it must not find the name elsewhere
			}
		}
	}
	if left {
		w.redirectOthers(t, args)
	}
	return left
}

// redirectOthers lets the other relative names of a call that redirectPaths took to /proc/self/fd begin where they
// did: rename and link have two names and no descriptors.
func (w *worker) redirectOthers(t *plan.Task, args *[event.MaxArgs]uintptr) {
	spec := t.Event.Spec()
	for i := range t.Event.Paths {
		p := &t.Event.Paths[i]
		a := int(p.Arg)
		if a < 0 || t.Files.Through[a] != nil || p.Raw == "" || p.Raw[0] == '/' ||
			a > 0 && spec.Args[a-1].Kind == event.KindDirFD {
			continue
		}
		w.strings[a] = append(append(w.strings[a][:0], strconv.Itoa(w.back)+"/"+p.Raw...), 0)
		args[a] = address(w.strings[a])
	}
}

// enterProcFD goes to /proc/self/fd, if there will be a way back.
func (w *worker) enterProcFD() bool {
	back, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	if unix.Fchdir(w.env.namesFD) != nil {
		unix.Close(back)
		return false
	}
	w.back = back
	return true
}

// restoreDirectory returns to the working directory before redirectPaths, unless the call went to
// another.
func (w *worker) restoreDirectory(moved bool) {
	if !moved && unix.Fchdir(w.back) != nil {
		w.cwd = 0
		_ = unix.Chdir("/")
	}
	unix.Close(w.back)
	w.back = -1
}
