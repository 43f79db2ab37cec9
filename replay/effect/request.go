// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"encoding/binary"
	"slices"

	"github.com/iotape/iotape/event"
)

// asOpen turns an open by a file handle into one by the name that the file had then, if that is
// known: handles belong to their file system.
func asOpen(ev *event.Event) {
	f := ev.FileArg(event.ResultArg)
	if f == nil || !ev.OK() || f.Path == "" || f.Path[0] != '/' {
		return
	}
	name := f.Path
	if f.Real != "" {
		name = f.Real
	}
	at, opened := event.AtFDCWD, *f
	ev.Op, ev.Args = event.OpOpenat, [event.MaxArgs]uint64{uint64(at), 1, ev.Args[2]}
	ev.Files, ev.Bufs = append(ev.Files[:0], opened), ev.Bufs[:0]
	ev.Paths = append(ev.Paths[:0], event.Path{Arg: 1, Raw: name, Abs: name})
}

// asPathOpen turns an open_tree, whose descriptor is one to begin names at (open_tree(2)), into such an
// open.
func asPathOpen(ev *event.Event) {
	const path = 0o10000000 // O_PATH
	if len(ev.Paths) == 0 || ev.Paths[0].Raw == "" {
		return
	}
	flags := uint64(path)
	if ev.Args[2]&AtNoFollow != 0 {
		flags |= ONoFollow
	}
	ev.Op, ev.Args[2], ev.Args[3] = event.OpOpenat, flags, 0
}

// AsCall turns a request, or a call that stands for another, into the system call that does the
// same, after the model has applied it. Requests that no call does stay as they are.
func AsCall(ev *event.Event) {
	switch {
	case ev.Kind != event.Call:
	case ev.Op == event.OpIoctl:
		asFallocate(ev)
		return
	case ev.Op == event.OpOpenByHandleAt:
		asOpen(ev)
		return
	case ev.Op == event.OpOpenTree:
		asPathOpen(ev)
		return
	}
	like := ev.Op.Like()
	if ev.Kind != event.Call || like == ev.Op || like == event.OpUnknown {
		return
	}
	op, args := ev.Op, ev.Args
	ev.Op = like
	switch like {
	case event.OpPread64, event.OpPwrite64:
		asPlainIO(ev, int(args[4]))
	case event.OpFsync:
		const datasync = 1
		if op == event.OpUringFsync && args[1]&datasync != 0 {
			ev.Op = event.OpFdatasync
		}
	case event.OpSplice:
		offsetArg(ev, 1)
		offsetArg(ev, 3)
	}
	n := len(ev.Spec().Args)
	clear(ev.Args[n:])
	ev.Files = slices.DeleteFunc(ev.Files, func(f event.File) bool { return int(f.Arg) >= n })
	ev.Bufs = slices.DeleteFunc(ev.Bufs, func(b event.Buf) bool { return int(b.Arg) >= n })
}

// asPlainIO chooses among the calls that read or write one buffer.
func asPlainIO(ev *event.Event, flags int) {
	const matter = 2 | 4 | 16 // RWF_DSYNC, RWF_SYNC, RWF_APPEND
	read := ev.Op == event.OpPread64
	switch {
	case !read && flags&matter != 0:
		ev.Op = event.OpPwritev2
		if b := ev.BufArg(1); b != nil {
			b.Kind, b.Parts = event.KindVec, []int64{int64(ev.Args[2])}
		}
		ev.Args[2], ev.Args[4], ev.Args[5] = 1, 0, uint64(flags&matter)
	case int64(ev.Args[3]) != -1:
	case read:
		ev.Op = event.OpRead
	default:
		ev.Op = event.OpWrite
	}
}

// offsetArg makes an offset that a request has as a number into one in memory, as it is
// after the call; -1 stands for the file's position.
func offsetArg(ev *event.Event, i int) {
	off := int64(ev.Args[i])
	if off == -1 {
		ev.Args[i] = 0
		return
	}
	ev.Args[i] = 1 // there is one
	if ev.OK() {
		off += ev.Ret
	}
	ev.Bufs = append(ev.Bufs, event.Buf{
		Arg: int8(i), Dir: event.Out, Kind: event.KindStruct, Len: 8,
		Inline: binary.LittleEndian.AppendUint64(nil, uint64(off)),
	})
}
