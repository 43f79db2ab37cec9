// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/trace"
)

// fcntl commands that return a descriptor (linux/fcntl.h).
const (
	fDupFD        = unix.F_DUPFD
	fDupFDCloexec = unix.F_DUPFD_CLOEXEC
)

// objects adds to r.rec what the kernel knows, after the call, of the files that
// it used or made.
func (r *Recorder) objects(th *thread, ret int64) {
	c := &th.call
	for _, i := range c.spec.Objects() {
		r.addObject(th, int32(c.args[i]), i)
	}
	if !failed(ret) {
		r.madeObjects(th, ret)
	}
	r.rec.Pieces = running.AppendEnds(r.rec.Pieces, th.t.PID, r.rec.Objects, c.spec.Op.TellsEnds())
}

// madeObjects adds those that a call which succeeded made, took or passed.
func (r *Recorder) madeObjects(th *thread, ret int64) {
	c := &th.call
	for i := range c.spec.Args {
		r.innerObjects(th, i, ret)
	}
	made := c.spec.Result == event.KindFD
	if c.spec.Op == event.OpFcntl {
		made = c.args[1] == fDupFD || c.args[1] == fDupFDCloexec
	}
	if made {
		r.addObject(th, int32(ret), event.ResultArg)
	}
}

// innerObjects adds those of descriptors in the memory of an argument, and those that
// a command takes or makes.
func (r *Recorder) innerObjects(th *thread, i int, ret int64) {
	c := &th.call
	a := &c.spec.Args[i]
	addr := c.args[i]
	switch a.Len {
	case event.LenMsg, event.LenMsgs:
		if addr != 0 {
			for _, fd := range r.messages(th, i, a, ret).Passed(th.read) {
				r.addObject(th, fd, event.MemoryArg)
			}
		}
		return
	case event.LenCommand:
		cmd, made, ok := event.CommandArg(c.spec.Op, c.args[a.LenArg])
		if made {
			r.addObject(th, int32(ret), event.ResultArg)
		}
		if !ok {
			return
		}
		if cmd.Kind == event.KindFD {
			r.addObject(th, int32(addr), i)
		}
		a = &cmd
	}
	if addr == 0 {
		return
	}
	switch a.Layout {
	case event.LayoutFDPair:
		r.addObjectsAt(th, addr, 2, 4)
	case event.LayoutCloneRange:
		r.addObjectsAt(th, addr, 1, 8)
	case event.LayoutDedupeRange:
		r.addObjectsAt(th, addr+uint64(a.Bytes(r.arch)), r.tailCount(th, a, addr), uint64(a.Tail.Elem))
	}
}

// addObjectsAt adds those of descriptors that stand in memory, step bytes apart.
func (r *Recorder) addObjectsAt(th *thread, addr, count, step uint64) {
	for ; count > 0 && len(r.rec.Objects) <= event.MaxPassed; count-- {
		var b [4]byte
		if th.read(addr, b[:]) != len(b) {
			return
		}
		r.addObject(th, int32(binary.LittleEndian.Uint32(b[:])), event.MemoryArg)
		addr += step
	}
}

func (r *Recorder) addObject(th *thread, fd int32, arg int) {
	if fd < 0 {
		return
	}
	if o, ok := r.proc.object(th.t.TID, int(fd), arg); ok {
		r.rec.Objects = append(r.rec.Objects, o)
	}
}

// object looks up a descriptor; false if it is not open, or not shown to us.
func (p *procReader) object(tid, fd, arg int) (trace.Object, bool) {
	o := trace.Object{FD: int32(fd), Arg: int8(arg)}
	n := strconv.Itoa(fd)
	info := p.read(tid, "fdinfo/"+n)
	if info == nil {
		return o, false
	}
	for line := range bytes.Lines(info) {
		if rest, ok := bytes.CutPrefix(line, []byte("pos:")); ok {
			o.Pos, _ = strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
		} else if rest, ok := bytes.CutPrefix(line, []byte("flags:")); ok {
			flags, _ := strconv.ParseUint(string(bytes.TrimSpace(rest)), 8, 32)
			o.Flags = uint32(flags)
			break
		}
	}
	// What the kernel has cached: asking a network or FUSE file system could wait
	// for a server that is itself stopped.
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, p.name(tid, "fd/"+n), unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st) != nil {
		return o, false
	}
	o.Ino, o.Size, o.Mode, o.Nlink, o.UID, o.GID = st.Ino, int64(st.Size), uint32(st.Mode), st.Nlink, st.Uid, st.Gid
	o.Dev, o.Rdev = st.Dev_major<<20|st.Dev_minor, st.Rdev_major<<20|st.Rdev_minor
	return o, true
}

// open opens the file of a descriptor for reading; -1 if it cannot.
func (p *procReader) open(tid, fd int) (int, error) {
	name := p.name(tid, "fd/"+strconv.Itoa(fd))
	own, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOATIME, 0)
	if err != nil { // O_NOATIME is for the owner alone
		own, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	return own, err
}
