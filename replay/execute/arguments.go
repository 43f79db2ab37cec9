// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"encoding/binary"
	"math"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/plan"
)

// maxScratch bounds the room for what a call may return beyond what it returned
// in the recording.
const maxScratch = 1 << 20

// What the kernel takes at most (linux/uio.h, and MAX_RW_COUNT of linux/fs.h).
const (
	maxVector = 1024
	maxMoved  = 0x7ffff000
)

// argument returns the value of one argument. Memory that the call fills is put
// into outs.
func (w *worker) argument(t *plan.Task, spec *event.Spec, i int, outs *[event.MaxArgs][]byte) uintptr {
	ev, a := &t.Event, &spec.Args[i]
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
		return w.path(t, i)
	case event.KindDev:
		if !w.env.privileged {
			return 0
		}
	case event.KindText:
		return w.text(t, i)
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
		return w.structArgument(t, i, a, outs)
	case event.KindInt:
		return vectorCount(t, spec, i)
	case event.KindSize:
		return w.size(t, spec, i)
	}
	return raw
}

// path returns a path, which starts from the replay's descriptor if the recorded one went
// through a descriptor of its process.
func (w *worker) path(t *plan.Task, i int) uintptr {
	p := t.Event.PathArg(i)
	if p == nil {
		return 0
	}
	name := p.Raw
	if h := t.Files.Through[i]; h != nil {
		_, rest, _ := posix.DescriptorPath(name, t.Event.PID)
		name = strconv.Itoa(h.FD)
		if rest != "" {
			name += "/" + rest
		}
	}
	w.strings[i] = append(append(w.strings[i][:0], name...), 0)
	return address(w.strings[i])
}

// text returns a string that is no path.
func (w *worker) text(t *plan.Task, i int) uintptr {
	b := t.Event.BufArg(i)
	if b == nil {
		return 0
	}
	w.strings[i] = append(append(w.strings[i][:0], effect.CString(b.Inline)...), 0)
	return address(w.strings[i])
}

// structArgument returns a structure: with its recorded content if the call reads it.
func (w *worker) structArgument(t *plan.Task, i int, a *event.Arg, outs *[event.MaxArgs][]byte) uintptr {
	ev, m := &t.Event, w.structure(t, i, a)
	if b := ev.BufArg(i); b != nil && (a.Dir == event.In || a.Layout == event.LayoutOffset) {
		copy(m, b.Inline)
		if flags := effect.OpenFlags(ev); ev.Op == event.OpOpenat2 && w.env.fifos.Load() && flags&unix.O_PATH == 0 {
			binary.LittleEndian.PutUint64(m, flags|unix.O_NONBLOCK)
		}
		w.openHow(ev, m)
		anyCache(ev, m)
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
}

// vectorCount returns an integer argument. If it is the number of parts of a vector, it is at
// most the number of those that the tape has.
func vectorCount(t *plan.Task, spec *event.Spec, i int) uintptr {
	raw := uintptr(t.Event.Args[i])
	n := uint64(uint32(raw))
	if n > maxVector || i == 0 || spec.Args[i-1].Kind != event.KindVec || int(spec.Args[i-1].LenArg) != i {
		return raw
	}
	if b := t.Event.BufArg(i - 1); b != nil && len(b.Parts) > 0 {
		return uintptr(min(n, uint64(len(b.Parts))))
	}
	return raw
}

// size returns the size of a buffer: of the memory that there is for it.
func (w *worker) size(t *plan.Task, spec *event.Spec, i int) uintptr {
	ev, raw := &t.Event, uintptr(t.Event.Args[i])
	for j := range spec.Args {
		o := &spec.Args[j]
		if o.Kind != event.KindBuf || int(o.LenArg) != i || ev.Args[j] == 0 && !spec.NoCall {
			continue
		}
		if o.Dir == event.Out {
			return uintptr(w.room(t, o))
		}
		if int64(raw) >= 0 || ev.OK() { // else the kernel refuses it unread
			return uintptr(len(w.given(t, o)))
		}
	}
	return raw
}

// given returns what a call is given to write. Of one that failed, the recording may
// have less than the program passed; the kernel sees as much as it saw then.
func (w *worker) given(t *plan.Task, a *event.Arg) []byte {
	if t.Event.OK() || a.LenArg == event.NoArg {
		return t.Content.Data
	}
	n := int(min(t.Event.Args[a.LenArg], maxScratch))
	if n <= len(t.Content.Data) {
		return t.Content.Data
	}
	b := w.buffer(n)
	clear(b[copy(b, t.Content.Data):])
	return b
}

// structure returns zeroed room for a structure, as much as the call passes.
func (w *worker) structure(t *plan.Task, i int, a *event.Arg) []byte {
	if a.Len == event.LenArg && t.Event.Args[a.LenArg] > uint64(len(w.small[i])) {
		return make([]byte, min(t.Event.Args[a.LenArg], maxScratch)) // the kernel takes at most a page
	}
	clear(w.small[i][:])
	return w.small[i][:]
}

// target makes a structure point to what the recorded one pointed to: the value of an
// extended attribute, or room for one.
func (w *worker) target(t *plan.Task, i int, a *event.Arg, m []byte) {
	b := t.Event.BufArg(i)
	if b == nil {
		return
	}
	copy(m, b.Inline)
	data := t.Content.Data
	if a.Dir == event.Out {
		data = w.buffer(int(min(max(t.Event.Ret, int64(len(t.Content.Want))), maxScratch)))
	}
	binary.LittleEndian.PutUint32(m[a.Tail.Off:], uint32(len(data)))
	binary.LittleEndian.PutUint64(m[a.Tail.Ptr:], uint64(address(data)))
}

// room returns how many bytes to offer to a call for its result.
func (w *worker) room(t *plan.Task, a *event.Arg) int {
	n := int64(maxScratch)
	if a.LenArg != event.NoArg {
		n = int64(t.Event.Args[a.LenArg])
		if n < 0 && t.Event.OK() {
			n = math.MaxInt64 // a size_t
		}
	}
	return int(max(0, min(n, w.most(t))))
}

// most returns how many bytes a call may return.
func (w *worker) most(t *plan.Task) int64 {
	return min(max(t.Event.Ret, 0), maxMoved) + maxScratch
}

func (w *worker) descriptor(t *plan.Task, i int) uintptr {
	if h := t.Files.FDs[i]; h != nil && h.FD >= 0 {
		return uintptr(h.FD)
	}
	return closedFD
}

// aligned returns the data where the kernel can take it from: O_DIRECT wants
// whole pages.
func (w *worker) aligned(t *plan.Task, data []byte) []byte {
	if f := t.Event.FileArg(0); f != nil && f.Flags&unix.O_DIRECT != 0 && len(data) > 0 {
		b := w.buffer(len(data))
		copy(b, data)
		return b
	}
	return data
}

// vector builds an iovec array of the recorded shape.
func (w *worker) vector(t *plan.Task, i int, a *event.Arg, outs *[event.MaxArgs][]byte) uintptr {
	b := t.Event.BufArg(i)
	if b == nil || len(b.Parts) == 0 {
		return 0
	}
	total := int64(0)
	for _, n := range b.Parts {
		total += n
	}
	var mem []byte
	if a.Dir == event.In {
		mem = w.aligned(t, t.Content.Data)
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
