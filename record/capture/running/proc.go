// SPDX-License-Identifier: Apache-2.0

package running

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/trace"
)

// dir returns a thread's directory in /proc, with a slash at the end.
func dir(pid, tid int) string {
	d := "/proc/" + strconv.Itoa(pid) + "/"
	if tid != pid {
		d += "task/" + strconv.Itoa(tid) + "/"
	}
	return d
}

// numbers returns the names of a directory's entries that are numbers.
func numbers(name string) []int {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // ended meanwhile: what there was
	list := make([]int, 0, len(names))
	for _, s := range names {
		if n, err := strconv.Atoi(s); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// Threads returns the threads of a process, its first one in front if it has not
// ended.
func Threads(pid int) []int { return numbers("/proc/" + strconv.Itoa(pid) + "/task") }

// All returns the processes of the machine without the kernel's own threads.
func All() []int {
	list := numbers("/proc")
	kept := list[:0]
	for _, pid := range list {
		const kernelThread = 0x00200000 // PF_KTHREAD (linux/sched.h)
		if st, ok := statOf(dir(pid, pid)); ok && st.flags&kernelThread == 0 {
			kept = append(kept, pid)
		}
	}
	return kept
}

// InCgroup returns the processes of a version 2 control group and those below it.
func InCgroup(dir string) []int {
	var list []int
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // removed meanwhile
		}
		b, _ := os.ReadFile(path + "/cgroup.procs")
		for line := range bytes.Lines(b) {
			if pid := number(bytes.TrimSpace(line)); pid > 0 { // 0: of another pid namespace
				list = append(list, int(pid))
			}
		}
		return nil
	})
	return list
}

// Tree returns processes and all that descend from them.
func Tree(roots []int) []int {
	children := map[int][]int{}
	for _, pid := range numbers("/proc") {
		if st, ok := statOf(dir(pid, pid)); ok {
			children[int(st.ppid)] = append(children[int(st.ppid)], pid)
		}
	}
	var list []int
	seen := map[int]bool{}
	for next := roots; len(next) > 0; {
		pid := next[0]
		next = next[1:]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		list = append(list, pid)
		next = append(next[:len(next):len(next)], children[pid]...)
	}
	return list
}

// stat is what /proc/PID/stat says (proc(5)).
type stat struct {
	comm            []byte
	state           byte
	ppid, pgid, sid uint32
	flags           uint32
}

// ended reports whether the thread is no longer one.
func (s *stat) ended() bool { return s.state == 'Z' || s.state == 'X' }

func statOf(dir string) (s stat, ok bool) {
	b, err := os.ReadFile(dir + "stat")
	open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if err != nil || open < 0 || shut < open {
		return s, false
	}
	f := bytes.Fields(b[shut+1:]) // state, ppid, pgrp, session, tty, its group, flags, …
	if len(f) < 7 {
		return s, false
	}
	s.comm, s.state = b[open+1:shut], f[0][0]
	s.ppid, s.pgid, s.sid, s.flags = number(f[1]), number(f[2]), number(f[3]), number(f[6])
	return s, true
}

func number(b []byte) uint32 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return uint32(n)
}

// task describes a thread; false if it has ended.
func task(pid, tid int, at uint64) (r trace.Record, ok bool) {
	d := dir(pid, tid)
	st, ok := statOf(d)
	if !ok || st.ended() {
		return r, false
	}
	r = trace.Record{
		Type: trace.RecTask, PID: uint32(pid), TID: uint32(tid), Exit: at,
		PPID: st.ppid, PGID: st.pgid, SID: st.sid,
	}
	copy(r.Comm[:15], st.comm)
	status, _ := os.ReadFile(d + "status")
	r.NSPID, r.NSTID = inside(status, "NStgid:"), inside(status, "NSpid:")
	r.UID, r.GID = last(status, "Uid:"), last(status, "Gid:") // real, effective, saved, file system
	return r, true
}

// inside returns the number of a process or thread in its own pid namespace, 0 if
// that is ours.
func inside(status []byte, name string) uint32 {
	if f := bytes.Fields(Field(status, name)); len(f) > 1 {
		return number(f[len(f)-1])
	}
	return 0
}

// last returns the last number of a line of /proc/PID/status.
func last(status []byte, name string) uint32 {
	f := bytes.Fields(Field(status, name))
	if len(f) == 0 {
		return 0
	}
	return number(f[len(f)-1])
}

// Field returns the value of a line of a file of /proc such as status, nil if there is none.
func Field(b []byte, name string) []byte {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return bytes.TrimSpace(rest)
		}
	}
	return nil
}

// place describes where a thread is: working directory, umask and, if it is not ours, root directory.
func place(pid, tid int, at uint64) trace.Record {
	d := dir(pid, tid)
	status, _ := os.ReadFile(d + "status")
	mask, _ := strconv.ParseUint(string(Field(status, "Umask:")), 8, 32)
	pieces := link(d + "cwd")
	if root := target(d + "root"); root != "" && root != "/" {
		pieces = append(pieces, trace.Piece{Arg: 1, Len: uint32(len(root)), Data: []byte(root)})
	}
	return trace.Record{
		Type: trace.RecStart, PID: uint32(pid), TID: uint32(tid), Exit: at, Umask: uint32(mask), Pieces: pieces,
	}
}

// link returns what a symbolic link says, as a record's only piece.
func link(name string) []trace.Piece {
	target, err := os.Readlink(name)
	if err != nil {
		return []trace.Piece{{Flags: trace.PieceMissing}}
	}
	return []trace.Piece{{Len: uint32(len(target)), Data: []byte(target)}}
}

// descriptor looks up a descriptor of a thread, whose directory is given; false if
// it is not open, or not shown to us.
func descriptor(dir string, fd int) (trace.Object, bool) {
	o := trace.Object{FD: int32(fd)}
	n := strconv.Itoa(fd)
	info, err := os.ReadFile(dir + "fdinfo/" + n)
	if err != nil {
		return o, false
	}
	o.Pos, _ = strconv.ParseInt(string(Field(info, "pos:")), 10, 64)
	flags, _ := strconv.ParseUint(string(Field(info, "flags:")), 8, 32)
	o.Flags = uint32(flags)
	// What the kernel has cached: asking a network or FUSE file system could wait
	// for a server that is held.
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir+"fd/"+n, unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st) != nil {
		return o, false
	}
	o.Ino, o.Size, o.Mode, o.Nlink, o.UID, o.GID = st.Ino, int64(st.Size), uint32(st.Mode), st.Nlink, st.Uid, st.Gid
	o.Dev, o.Rdev = st.Dev_major<<20|st.Dev_minor, st.Rdev_major<<20|st.Rdev_minor
	return o, true
}
