package ebpf

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"iotape/trace"
)

// startRecords describes a process before its first call: working directory,
// umask, and the descriptors that its execve keeps.
func startRecords(pid int) []byte {
	at := now()
	proc := "/proc/" + strconv.Itoa(pid) + "/"
	dir, _ := os.Readlink(proc + "cwd")
	r := trace.Record{Type: trace.RecStart, PID: uint32(pid), TID: uint32(pid), Exit: at, Umask: umask(proc)}
	r.Pieces = []trace.Piece{{Len: uint32(len(dir)), Data: []byte(dir)}}
	b := trace.AppendRecord(nil, &r)
	fds, _ := os.ReadDir(proc + "fd")
	for _, e := range fds {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		o, ok := inherited(proc, fd)
		if !ok {
			continue
		}
		path, _ := os.Readlink(proc + "fd/" + e.Name())
		b = trace.AppendRecord(b, &trace.Record{
			Type: trace.RecFile, PID: uint32(pid), TID: uint32(pid), Exit: at,
			Objects: []trace.Object{o},
			Pieces:  []trace.Piece{{Len: uint32(len(path)), Data: []byte(path)}},
		})
	}
	return b
}

// inherited looks up a descriptor; false if execve closes it.
func inherited(proc string, fd int) (trace.Object, bool) {
	o := trace.Object{FD: int32(fd)}
	n := strconv.Itoa(fd)
	info, err := os.ReadFile(proc + "fdinfo/" + n)
	if err != nil {
		return o, false
	}
	if v, ok := field(info, "pos:"); ok {
		o.Pos, _ = strconv.ParseInt(v, 10, 64)
	}
	if v, ok := field(info, "flags:"); ok {
		flags, _ := strconv.ParseUint(v, 8, 32)
		o.Flags = uint32(flags)
	}
	if o.Flags&unix.O_CLOEXEC != 0 {
		return o, false
	}
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, proc+"fd/"+n, unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st) != nil {
		return o, false
	}
	o.Ino, o.Size, o.Mode, o.Nlink, o.UID, o.GID = st.Ino, int64(st.Size), uint32(st.Mode), st.Nlink, st.Uid, st.Gid
	o.Dev, o.Rdev = st.Dev_major<<20|st.Dev_minor, st.Rdev_major<<20|st.Rdev_minor
	return o, true
}

func umask(proc string) uint32 {
	b, err := os.ReadFile(proc + "status")
	if err != nil {
		return 0
	}
	v, _ := field(b, "Umask:")
	m, _ := strconv.ParseUint(v, 8, 32)
	return uint32(m)
}

// field returns the value of a line of a /proc file.
func field(b []byte, name string) (string, bool) {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return string(bytes.TrimSpace(rest)), true
		}
	}
	return "", false
}
