// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"

	"github.com/iotape/iotape/analyze/report/flame"
	"github.com/iotape/iotape/event"
)

// row is an event with what several columns need of it.
type row struct {
	*event.Event
	spec *event.Spec
	file *event.File // the first descriptor, for a call that makes one the new one; may be nil
	io   event.Traffic
	host int   // position of its name
	wall int64 // ns since 1970, of entry
}

// set fills the row for an event.
func (r *row) set(ev *event.Event) {
	r.Event, r.spec, r.file = ev, ev.Spec(), ev.Subject()
	r.io = ev.Traffic()
}

// fd returns the descriptor, or what was passed as one when it was not open.
func (r *row) fd() (int32, bool) {
	if r.file != nil {
		return r.file.FD, true
	}
	for i := range r.spec.Args {
		if r.spec.Args[i].Kind == event.KindFD && r.Kind == event.Call && r.ArgKnown(i) {
			return int32(r.Args[i]), true
		}
	}
	return 0, false
}

func (r *row) path(i int) string {
	if i < len(r.Paths) {
		return r.Paths[i].Raw
	}
	return ""
}

func (r *row) abs(i int) string {
	if i < len(r.Paths) {
		return r.Paths[i].Abs
	}
	return ""
}

// ofFile makes a value of the file, NULL without one that is known.
func ofFile[V any](f func(*event.File) V) func(*row) (V, bool) {
	return func(r *row) (v V, ok bool) {
		if r.file == nil || !r.file.Known {
			return v, false
		}
		return f(r.file), true
	}
}

// ofInode is ofFile for what is known of files with an inode number alone.
func ofInode[V any](f func(*event.File) V) func(*row) (V, bool) {
	return func(r *row) (v V, ok bool) {
		if r.file == nil || !r.file.Identified() {
			return v, false
		}
		return f(r.file), true
	}
}

// size returns the size of the event's file.
func (r *row) size() (int64, bool) {
	if r.file == nil || !r.file.Identified() {
		return 0, false
	}
	return notNegative(r.file.Size)
}

// position returns where the event's file is.
func (r *row) position() (int64, bool) {
	if r.file == nil || !r.file.Known {
		return 0, false
	}
	return notNegative(r.file.Pos)
}

func notNegative(v int64) (int64, bool) { return v, v >= 0 }

// ofCall makes a value of a call, NULL for other events.
func ofCall(f func(*row) int) func(*row) int {
	return func(r *row) int {
		if r.Kind != event.Call {
			return -1
		}
		return f(r)
	}
}

// eventColumns is the table events.
func eventColumns(hosts []string) []column[row] {
	return []column[row]{
		numberColumn("seq", func(r *row) uint64 { return r.Seq }),
		timeColumn("time", func(r *row) (int64, bool) { return r.wall, true }),
		enumColumn("host", hosts, func(r *row) int { return r.host }),
		enumColumn("kind", kindNames, func(r *row) int { return kindOf(r.Kind) }),
		enumColumn("op", opNames, ofCall(func(r *row) int { return opOf(r.spec.Op) })),
		enumColumn("class", classNames, ofCall(func(r *row) int { return int(r.spec.Class) })),
		numberColumn("nr", func(r *row) uint32 { return r.NR }),
		numberColumn("pid", func(r *row) uint32 { return r.PID }),
		numberColumn("tid", func(r *row) uint32 { return r.TID }),
		numberColumn("ppid", func(r *row) uint32 { return r.PPID }),
		numberColumn("pgid", func(r *row) uint32 { return r.PGID }),
		numberColumn("sid", func(r *row) uint32 { return r.SID }),
		numberColumn("uid", func(r *row) uint32 { return r.UID }),
		numberColumn("gid", func(r *row) uint32 { return r.GID }),
		maybeColumn("ns_pid", func(r *row) (uint32, bool) { return r.NSPID, r.NSPID != 0 }),
		maybeColumn("ns_tid", func(r *row) (uint32, bool) { return r.NSTID, r.NSTID != 0 }),
		textColumn("comm", func(r *row) string { return r.Comm }),
		numberColumn("enter_ns", func(r *row) int64 { return r.Enter }),
		maybeColumn("exit_ns", func(r *row) (int64, bool) { return r.Exit, r.Flags&event.Untimed == 0 }),
		maybeColumn("duration_ns", func(r *row) (int64, bool) { return r.Exit - r.Enter, r.Flags&event.Untimed == 0 }),
		numberColumn("cpu_ns", func(r *row) int64 { return r.CPU }),
		maybeColumn("delay_before_ns", func(r *row) (uint32, bool) { return r.DelayBefore, r.Flags&event.Delays != 0 }),
		maybeColumn("delay_within_ns", func(r *row) (uint32, bool) { return r.DelayWithin, r.Flags&event.Delays != 0 }),
		maybeColumn("ret", func(r *row) (int64, bool) { return r.Ret, r.Flags&event.Interrupted == 0 }),
		enumColumn("errno", errnoNames, func(r *row) int { return int(r.Errno) - 1 }),
		maybeColumn("fd", (*row).fd),
		maybeColumn("fd2", func(r *row) (int32, bool) {
			for i := range r.Files {
				if f := &r.Files[i]; f != r.file {
					return f.FD, true
				}
			}
			return 0, false
		}),
		maybeColumn("open_id", func(r *row) (uint64, bool) {
			if r.file == nil || r.file.Open == 0 {
				return 0, false
			}
			return uint64(r.file.Open), true
		}),
		textColumn("file", (*row).Name),
		textColumn("path", func(r *row) string { return r.path(0) }),
		textColumn("abs", func(r *row) string { return r.abs(0) }),
		textColumn("path2", func(r *row) string { return r.path(1) }),
		textColumn("abs2", func(r *row) string { return r.abs(1) }),
		maybeColumn("offset", func(r *row) (int64, bool) { return notNegative(r.Offset) }),
		maybeColumn("count", func(r *row) (int64, bool) { return notNegative(r.Count) }),
		numberColumn("bytes", func(r *row) int64 { return r.io.Bytes() }),
		numberColumn("bytes_read", func(r *row) int64 { return r.io.Read }),
		numberColumn("bytes_written", func(r *row) int64 { return r.io.Written }),
		maybeColumn("dev", ofInode(func(f *event.File) uint64 { return f.Dev })),
		maybeColumn("ino", ofInode(func(f *event.File) uint64 { return f.Ino })),
		maybeColumn("mode", ofFile(func(f *event.File) uint32 { return f.Mode })),
		maybeColumn("size", (*row).size),
		maybeColumn("pos", (*row).position),
		maybeColumn("nlink", ofInode(func(f *event.File) uint32 { return f.Nlink })),
		maybeColumn("open_flags", ofFile(func(f *event.File) uint32 { return f.Flags })),
		enumColumn("signal", signalNames, func(r *row) int {
			sig, _ := r.AboutSignal()
			return sig - 1
		}),
		enumColumn("signal_action", signalActions, func(r *row) int {
			if r.Kind != event.Signalled {
				return -1
			}
			_, action := r.Signal()
			return int(action)
		}),
		textColumn("note", func(r *row) string { return r.Note() }),
		textColumn("stack", (*row).stack),
		maybeColumn("child", func(r *row) (uint32, bool) { return r.Child, r.Child != 0 }),
		maybeColumn("arg0", func(r *row) (uint64, bool) { return r.Args[0], r.ArgKnown(0) }),
		maybeColumn("arg1", func(r *row) (uint64, bool) { return r.Args[1], r.ArgKnown(1) }),
		maybeColumn("arg2", func(r *row) (uint64, bool) { return r.Args[2], r.ArgKnown(2) }),
		maybeColumn("arg3", func(r *row) (uint64, bool) { return r.Args[3], r.ArgKnown(3) }),
		maybeColumn("arg4", func(r *row) (uint64, bool) { return r.Args[4], r.ArgKnown(4) }),
		maybeColumn("arg5", func(r *row) (uint64, bool) { return r.Args[5], r.ArgKnown(5) }),
		numberColumn("interrupted", func(r *row) bool { return r.Flags&event.Interrupted != 0 }),
		numberColumn("incomplete", func(r *row) bool { return r.Flags&event.Incomplete != 0 }),
		numberColumn("late", func(r *row) bool { return r.Flags&event.Late != 0 }),
		numberColumn("flags", func(r *row) uint16 { return uint16(r.Flags) }),
	}
}

// stack returns the names of the functions that were active, the outermost first, with ";" between them, "" if
// that was not recorded.
func (r *row) stack() string {
	if r.Stack == nil {
		return ""
	}
	var names []string
	for i := len(r.Stack.Frames) - 1; i >= 0; i-- {
		names = append(names, strings.ReplaceAll(flame.FrameName(&r.Stack.Frames[i]), ";", ","))
	}
	return strings.Join(names, ";")
}
