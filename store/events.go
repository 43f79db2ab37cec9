package store

import (
	"github.com/duckdb/duckdb-go/v2"

	"iotape/event"
)

// row is an event with what several columns need of it.
type row struct {
	*event.Event
	spec *event.Spec
	file *event.File // the first descriptor, for a call that makes one the new one; may be nil
	io   event.Traffic
	host string
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
		if r.spec.Args[i].Kind == event.KindFD && r.Kind == event.Call {
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

func notNegative(v int64) (int64, bool) { return v, v >= 0 }

// eventColumns is the table events.
func eventColumns(hosts []string) []column[row] {
	const (
		u16, u32, u64 = duckdb.TYPE_USMALLINT, duckdb.TYPE_UINTEGER, duckdb.TYPE_UBIGINT
		i32, i64      = duckdb.TYPE_INTEGER, duckdb.TYPE_BIGINT
		boolean       = duckdb.TYPE_BOOLEAN
	)
	return []column[row]{
		numberColumn("seq", u64, func(r *row) uint64 { return r.Seq }),
		enumColumn("host", hosts, func(r *row) string { return r.host }),
		enumColumn("kind", kindNames, func(r *row) string { return kindName(r.Kind) }),
		enumColumn("op", opNames(), func(r *row) string { return r.spec.Name }),
		enumColumn("class", classNames(), func(r *row) string { return r.spec.Class.String() }),
		numberColumn("nr", u32, func(r *row) uint32 { return r.NR }),
		numberColumn("pid", u32, func(r *row) uint32 { return r.PID }),
		numberColumn("tid", u32, func(r *row) uint32 { return r.TID }),
		numberColumn("ppid", u32, func(r *row) uint32 { return r.PPID }),
		numberColumn("pgid", u32, func(r *row) uint32 { return r.PGID }),
		numberColumn("sid", u32, func(r *row) uint32 { return r.SID }),
		numberColumn("uid", u32, func(r *row) uint32 { return r.UID }),
		numberColumn("gid", u32, func(r *row) uint32 { return r.GID }),
		maybeColumn("ns_pid", u32, func(r *row) (uint32, bool) { return r.NSPID, r.NSPID != 0 }),
		maybeColumn("ns_tid", u32, func(r *row) (uint32, bool) { return r.NSTID, r.NSTID != 0 }),
		textColumn("comm", func(r *row) string { return r.Comm }),
		numberColumn("enter_ns", i64, func(r *row) int64 { return r.Enter }),
		numberColumn("exit_ns", i64, func(r *row) int64 { return r.Exit }),
		numberColumn("duration_ns", i64, func(r *row) int64 { return r.Exit - r.Enter }),
		numberColumn("wall_ns", i64, func(r *row) int64 { return r.wall }),
		numberColumn("cpu_ns", i64, func(r *row) int64 { return r.CPU }),
		numberColumn("ret", i64, func(r *row) int64 { return r.Ret }),
		enumColumn("errno", errnoNames[1:], func(r *row) string {
			if r.Errno == 0 || int(r.Errno) >= maxErrno {
				return ""
			}
			return errnoName(r.Event)
		}),
		maybeColumn("fd", i32, (*row).fd),
		maybeColumn("fd2", i32, func(r *row) (int32, bool) {
			for i := range r.Files {
				if f := &r.Files[i]; f != r.file {
					return f.FD, true
				}
			}
			return 0, false
		}),
		maybeColumn("open_id", u64, func(r *row) (uint64, bool) {
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
		maybeColumn("offset", i64, func(r *row) (int64, bool) { return notNegative(r.Offset) }),
		maybeColumn("count", i64, func(r *row) (int64, bool) { return notNegative(r.Count) }),
		numberColumn("bytes", i64, func(r *row) int64 { return r.io.Bytes() }),
		numberColumn("bytes_read", i64, func(r *row) int64 { return r.io.Read }),
		numberColumn("bytes_written", i64, func(r *row) int64 { return r.io.Written }),
		maybeColumn("dev", u64, ofFile(func(f *event.File) uint64 { return f.Dev })),
		maybeColumn("ino", u64, ofFile(func(f *event.File) uint64 { return f.Ino })),
		maybeColumn("mode", u32, ofFile(func(f *event.File) uint32 { return f.Mode })),
		maybeColumn("size", i64, ofFile(func(f *event.File) int64 { return f.Size })),
		maybeColumn("pos", i64, ofFile(func(f *event.File) int64 { return f.Pos })),
		maybeColumn("nlink", u32, ofFile(func(f *event.File) uint32 { return f.Nlink })),
		maybeColumn("open_flags", u32, ofFile(func(f *event.File) uint32 { return f.Flags })),
		maybeColumn("child", u32, func(r *row) (uint32, bool) { return r.Child, r.Child != 0 }),
		numberColumn("arg0", u64, func(r *row) uint64 { return r.Args[0] }),
		numberColumn("arg1", u64, func(r *row) uint64 { return r.Args[1] }),
		numberColumn("arg2", u64, func(r *row) uint64 { return r.Args[2] }),
		numberColumn("arg3", u64, func(r *row) uint64 { return r.Args[3] }),
		numberColumn("arg4", u64, func(r *row) uint64 { return r.Args[4] }),
		numberColumn("arg5", u64, func(r *row) uint64 { return r.Args[5] }),
		numberColumn("interrupted", boolean, func(r *row) bool { return r.Flags&event.Interrupted != 0 }),
		numberColumn("incomplete", boolean, func(r *row) bool { return r.Flags&event.Incomplete != 0 }),
		numberColumn("late", boolean, func(r *row) bool { return r.Flags&event.Late != 0 }),
		numberColumn("flags", u16, func(r *row) uint16 { return uint16(r.Flags) }),
	}
}
