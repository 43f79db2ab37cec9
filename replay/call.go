package replay

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/replay/effect"
)

// noFD is a number that is never open: what the recording passed was not, either.
const noFD = 1 << 30

// maxScratch bounds the room for what a call may return beyond what it returned
// in the recording.
const maxScratch = 1 << 20

// What the kernel takes at most (linux/uio.h, and MAX_RW_COUNT of linux/fs.h).
const (
	maxVector = 1024
	maxMoved  = 0x7ffff000
)

// nativeNumber returns the call's number on the machine that replays.
func nativeNumber(op event.Op) int {
	a, ok := event.ParseArch(runtime.GOARCH)
	if !ok {
		return -1
	}
	switch op { // through the file, which has the same content
	case event.OpMmapPread:
		op = event.OpPread64
	case event.OpMmapPwrite:
		op = event.OpPwrite64
	}
	return event.Number(a, op)
}

// call makes the recorded call with this replay's descriptors, names and memory,
// and checks what it gives.
func (w *worker) call(t *task) {
	ev := &t.ev
	nr := nativeNumber(ev.Op)
	if nr < 0 {
		w.mismatch(t, "call", ev.Op.String(), "this architecture has no such call")
		return
	}
	if t.dir != 0 && !w.enter(t.dir) {
		w.mismatch(t, "working directory", "reachable", "not reachable")
		return
	}
	w.become(t)
	if ev.Op == event.OpGetdents64 || ev.Op == event.OpGetdents {
		w.list(t)
		return
	}
	var args [event.MaxArgs]uintptr
	var outs [event.MaxArgs][]byte
	spec := ev.Spec()
	for i := range spec.Args {
		args[i] = w.argument(t, spec, i, &outs)
	}
	left := w.goThrough(t, &args)
	if spec.Result == event.KindFD && w.fifos.Load() {
		nr = withoutWaiting(ev, nr, &args)
	} else if h := t.fds[0]; ev.Op == event.OpFcntl && ev.Args[1] == setFL && h != nil && h.fifo {
		args[2] |= unix.O_NONBLOCK
	}
	ret, errno := w.make(t, nr, &args)
	w.pacer.finished()
	if left {
		w.goBack(ev.Op == event.OpChdir && errno == 0)
	}
	runtime.KeepAlive(t)
	runtime.KeepAlive(w)
	if w.log.calls() {
		w.log.call(ev.Seq, t.TID, t.op, ev.Name(), ret, errno)
	}
	if t.result != nil {
		if errno == 0 && w.fifos.Load() {
			t.result.fifo = waits(int(ret), effect.OpenFlags(ev))
		}
		t.result.fd = int(ret)
		t.result.broken = errno != 0
	} else if spec.Result == event.KindFD && errno == 0 {
		unix.Close(int(ret)) // the recording's open failed
	}
	w.check(t, ret, errno, &outs)
}

// make makes a call, in the way that it was made if that is asked for.
func (w *worker) make(t *task, nr int, args *[event.MaxArgs]uintptr) (int64, syscall.Errno) {
	switch {
	case w.native.Requests && t.isRequest():
		if ret, errno, ok := w.asRequest(t, args); ok {
			return ret, errno
		}
	case w.native.Mmap && t.ev.Spec().NoCall:
		if ret, errno, ok := w.throughMapping(t, args); ok {
			return ret, errno
		}
	}
	for {
		r, _, errno := unix.Syscall6(uintptr(nr), args[0], args[1], args[2], args[3], args[4], args[5])
		switch errno {
		case 0:
			return int64(r), 0
		case syscall.EINTR:
		default:
			return -1, errno
		}
	}
}

// goThrough lets names that went through the recorded process's descriptors start
// from this process's: its /proc/self/fd was opened before the target became the
// root, and leads nowhere but to open files.
//
// It reports whether it changed the working directory.
func (w *worker) goThrough(t *task, args *[event.MaxArgs]uintptr) (left bool) {
	spec := t.ev.Spec()
	for i, h := range t.through {
		switch {
		case h == nil:
		case i > 0 && spec.Args[i-1].Kind == event.KindDirFD:
			args[i-1] = uintptr(w.procFD)
		default:
			if !left {
				left = w.leave()
			}
			if !left {
				args[i] = 0 // the call fails: it must not find the name elsewhere
			}
		}
	}
	return left
}

// leave goes to /proc/self/fd, if there will be a way back.
func (w *worker) leave() bool {
	back, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	if unix.Fchdir(w.procFD) != nil {
		unix.Close(back)
		return false
	}
	w.back = back
	return true
}

// goBack returns to the working directory before goThrough, unless the call went to
// another.
func (w *worker) goBack(moved bool) {
	if !moved && unix.Fchdir(w.back) != nil {
		w.cwd = 0
		_ = unix.Chdir("/")
	}
	unix.Close(w.back)
	w.back = -1
}

// argument returns the value of one argument. Memory that the call fills is put
// into outs.
func (w *worker) argument(t *task, spec *event.Spec, i int, outs *[event.MaxArgs][]byte) uintptr {
	ev, a := &t.ev, &spec.Args[i]
	raw := uintptr(ev.Args[i])
	if a.Len == event.LenCommand {
		c := spec.Argument(i, &ev.Args) // for F_SETFL a number and no structure
		a = &c
	}
	switch a.Kind {
	case event.KindFD:
		return w.descriptor(t, i)
	case event.KindDirFD:
		if int32(ev.Args[i]) == event.AtFDCWD {
			at := event.AtFDCWD
			return uintptr(at)
		}
		return w.descriptor(t, i)
	case event.KindPath:
		p := ev.PathArg(i)
		if p == nil {
			return 0
		}
		name := p.Raw
		if h := t.through[i]; h != nil {
			_, rest, _ := posix.DescriptorPath(name, ev.PID)
			name = strconv.Itoa(h.fd)
			if rest != "" {
				name += "/" + rest
			}
		}
		w.strings[i] = append(append(w.strings[i][:0], name...), 0)
		return address(w.strings[i])
	case event.KindDev:
		if !w.devices {
			return 0
		}
	case event.KindText:
		b := ev.BufArg(i)
		if b == nil {
			return 0
		}
		w.strings[i] = append(append(w.strings[i][:0], effect.CString(b.Inline)...), 0)
		return address(w.strings[i])
	case event.KindBuf:
		if raw == 0 && !spec.NoCall {
			return 0
		}
		if a.Dir == event.In {
			return address(w.aligned(t, w.given(t, a)))
		}
		outs[i] = w.buffer(w.room(t, a))
		return address(outs[i])
	case event.KindVec:
		return w.vector(t, i, a, outs)
	case event.KindStruct:
		if raw == 0 {
			return 0
		}
		m := w.structure(t, i, a)
		if b := ev.BufArg(i); b != nil && (a.Dir == event.In || a.Layout == event.LayoutOffset) {
			copy(m, b.Inline)
			if ev.Op == event.OpOpenat2 && w.fifos.Load() && effect.OpenFlags(ev)&unix.O_PATH == 0 {
				binary.LittleEndian.PutUint64(m, effect.OpenFlags(ev)|unix.O_NONBLOCK)
			}
			if a.Layout == event.LayoutOffset && ev.OK() {
				// Recorded after the call, which had moved it.
				putOffset(m, getOffset(m)-ev.Ret)
			}
		}
		if a.Len == event.LenRef {
			w.target(t, i, a, m)
			return address(m)
		}
		outs[i] = m
		return address(m)
	case event.KindInt:
		if n := uint64(uint32(raw)); n <= maxVector && i > 0 && spec.Args[i-1].Kind == event.KindVec && int(spec.Args[i-1].LenArg) == i {
			if b := ev.BufArg(i - 1); b != nil && len(b.Parts) > 0 {
				return uintptr(min(n, uint64(len(b.Parts)))) // there are no more
			}
		}
	case event.KindSize:
		for j := range spec.Args {
			if o := &spec.Args[j]; o.Kind == event.KindBuf && int(o.LenArg) == i && (ev.Args[j] != 0 || spec.NoCall) {
				if o.Dir == event.Out {
					return uintptr(w.room(t, o))
				}
				if int64(raw) >= 0 || ev.OK() { // else the kernel refuses it unseen
					return uintptr(len(w.given(t, o)))
				}
			}
		}
	}
	return raw
}

// given returns what a call is given to write. Of one that failed, the recording may
// have less than the program passed; the kernel sees as much as it saw then.
func (w *worker) given(t *task, a *event.Arg) []byte {
	if t.ev.OK() || a.LenArg == event.NoArg {
		return t.data
	}
	n := int(min(t.ev.Args[a.LenArg], maxScratch))
	if n <= len(t.data) {
		return t.data
	}
	b := w.buffer(n)
	clear(b[copy(b, t.data):])
	return b
}

// structure returns zeroed room for a structure, as much as the kernel is told of.
func (w *worker) structure(t *task, i int, a *event.Arg) []byte {
	if a.Len == event.LenArg && t.ev.Args[a.LenArg] > uint64(len(w.small[i])) {
		return make([]byte, min(t.ev.Args[a.LenArg], maxScratch)) // the kernel takes at most a page
	}
	clear(w.small[i][:])
	return w.small[i][:]
}

// target makes a structure point to what the recorded one pointed to: the value of an
// extended attribute, or room for one.
func (w *worker) target(t *task, i int, a *event.Arg, m []byte) {
	b := t.ev.BufArg(i)
	if b == nil {
		return
	}
	copy(m, b.Inline)
	data := t.data
	if a.Dir == event.Out {
		data = w.buffer(int(min(max(t.ev.Ret, int64(len(t.want))), maxScratch)))
	}
	binary.LittleEndian.PutUint32(m[a.Tail.Off:], uint32(len(data)))
	binary.LittleEndian.PutUint64(m[a.Tail.Ptr:], uint64(address(data)))
}

// room returns how many bytes to offer to a call for its result.
func (w *worker) room(t *task, a *event.Arg) int {
	n := int64(maxScratch)
	if a.LenArg != event.NoArg {
		n = int64(t.ev.Args[a.LenArg])
	}
	return int(max(0, min(n, w.most(t))))
}

// most returns how many bytes a call may return.
func (w *worker) most(t *task) int64 {
	return min(max(t.ev.Ret, 0), maxMoved) + maxScratch
}

func (w *worker) descriptor(t *task, i int) uintptr {
	if h := t.fds[i]; h != nil && h.fd >= 0 {
		return uintptr(h.fd)
	}
	return noFD
}

// aligned returns the data where the kernel can take it from: O_DIRECT wants
// whole pages.
func (w *worker) aligned(t *task, data []byte) []byte {
	if f := t.ev.FileArg(0); f != nil && f.Flags&unix.O_DIRECT != 0 && len(data) > 0 {
		b := w.buffer(len(data))
		copy(b, data)
		return b
	}
	return data
}

// vector builds an iovec array of the recorded shape.
func (w *worker) vector(t *task, i int, a *event.Arg, outs *[event.MaxArgs][]byte) uintptr {
	b := t.ev.BufArg(i)
	if b == nil || len(b.Parts) == 0 {
		return 0
	}
	total := int64(0)
	for _, n := range b.Parts {
		total += n
	}
	var mem []byte
	if a.Dir == event.In {
		mem = w.aligned(t, t.data)
	} else {
		mem = w.buffer(int(max(0, min(total, w.most(t)))))
		outs[i] = mem
	}
	w.iov = w.iov[:0]
	for _, n := range b.Parts {
		v := unix.Iovec{}
		take := int(max(0, min(n, int64(len(mem)))))
		if take > 0 {
			v.Base = &mem[0]
		}
		v.SetLen(take)
		mem = mem[take:]
		w.iov = append(w.iov, v)
	}
	return uintptr(unsafe.Pointer(&w.iov[0]))
}

// address returns where b is; memory that the garbage collector does not move. The
// caller keeps it alive over the call.
func address(b []byte) uintptr {
	if len(b) == 0 {
		b = zeroByte[:]
	}
	return uintptr(unsafe.Pointer(&b[0]))
}

var zeroByte [1]byte

func getOffset(b []byte) int64 { return *(*int64)(unsafe.Pointer(&b[0])) }
func putOffset(b []byte, v int64) {
	*(*int64)(unsafe.Pointer(&b[0])) = v
}

// copyIn writes what the recording copied from a pipe or socket.
func (w *worker) copyIn(t *task) {
	_, dst := effect.CopySides(t.ev.Op)
	h := t.fds[dst]
	off := int64(-1)
	if explicitTarget(&t.ev) {
		off = effect.TargetOffset(&t.ev)
	}
	data := t.data
	for len(data) > 0 {
		var n int
		var err error
		if off >= 0 {
			n, err = unix.Pwrite(h.fd, data, off)
			off += int64(n)
		} else {
			n, err = unix.Write(h.fd, data)
		}
		if err != nil {
			w.mismatch(t, "errno", "0", errName(err))
			return
		}
		data = data[n:]
	}
}

// explicitTarget reports whether a copy was told where to write.
func explicitTarget(ev *event.Event) bool { return ev.Op != event.OpSendfile && ev.Args[3] != 0 }

// copyOut reads what the recording copied to a pipe or socket, and checks it.
func (w *worker) copyOut(t *task) {
	src, _ := effect.CopySides(t.ev.Op)
	h := t.fds[src]
	explicit := t.ev.Args[1] != 0 && t.ev.Op != event.OpSendfile || t.ev.Op == event.OpSendfile && t.ev.Args[2] != 0
	want := int(max(0, min(t.ev.Ret, maxMoved)))
	buf := t.ev.BufArg(effect.ContentArg(t.ev.Op))
	compare := buf != nil && w.checks&CheckData != 0
	room := min(want, maxScratch)
	if compare {
		room = want
	}
	b := w.buffer(room)
	got := 0
	for got < want && !w.halted.Load() {
		part := b[:min(room, want-got)]
		if compare {
			part = b[got:]
		}
		var n int
		var err error
		if explicit {
			n, err = unix.Pread(h.fd, part, effect.SourceOffset(&t.ev)+int64(got))
		} else {
			n, err = unix.Read(h.fd, part)
		}
		if err != nil || n == 0 {
			break
		}
		got += n
	}
	if got != want {
		w.mismatch(t, "result", fmt.Sprint(want), fmt.Sprint(got))
	} else if compare {
		w.checkContent(t, buf, b)
	}
}
