// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/trace"
)

// task is what a RecTask says.
type task struct {
	ppid, pgid, sid, uid, gid uint32
	comm                      [16]byte
}

// identify reads a thread's identity and writes it if it is not what was written
// last. It reports whether the thread could be read.
func (r *Recorder) identify(th *thread) bool {
	tk, ok := r.proc.task(th.t.TID)
	if ok && tk != th.task {
		th.task = tk
		r.taskRecord(th)
	}
	return ok
}

func (r *Recorder) taskRecord(th *thread) {
	k := &th.task
	rec := trace.Record{
		Type: trace.RecTask, PID: uint32(th.t.PID), TID: th.tid, Exit: now(),
		PPID: k.ppid, PGID: k.pgid, SID: k.sid, UID: k.uid, GID: k.gid, Comm: k.comm,
	}
	r.out.put(&rec)
}

// identityChanged follows a call that changed identities: the caller's, and of
// process groups and sessions also that of other threads.
func (r *Recorder) identityChanged(th *thread) {
	c := &th.call
	pid, executed := 0, false
	switch c.spec.Op {
	case event.OpExecve, event.OpExecveat:
		th.task = task{} // written even if unchanged: a new program
		executed = true
	case event.OpSetpgid:
		if pid = int(int32(c.args[0])); pid == 0 {
			pid = th.t.PID
		}
	case event.OpSetsid:
		pid = th.t.PID
	}
	r.identify(th)
	if executed {
		rec := running.ProcessRecord(th.t.PID, now(), r.o.Environ, running.Executed)
		r.out.put(&rec)
		r.cgroups.executed(th.t.PID)
		if text := r.unprivileged.executed(th.t.PID); text != "" && r.o.Note != nil {
			r.o.Note(text)
		}
	}
	if pid == 0 {
		return
	}
	r.tr.Threads(func(t *ptracer.Tracee) {
		if other, ok := t.Data.(*thread); ok && t.PID == pid {
			r.identify(other)
		}
	})
}

// procReader reads files of /proc into one buffer.
type procReader struct {
	buf  []byte
	path []byte
}

// read returns the file's start, valid until the next call; nil if it cannot be
// read. name is below /proc/TID.
func (p *procReader) read(tid int, name string) []byte {
	return p.readPath(p.name(tid, name))
}

func (p *procReader) name(tid int, name string) string {
	p.path = append(p.path[:0], "/proc/"...)
	p.path = strconv.AppendInt(p.path, int64(tid), 10)
	p.path = append(p.path, '/')
	p.path = append(p.path, name...)
	return string(p.path)
}

func (p *procReader) readPath(path string) []byte {
	if p.buf == nil {
		p.buf = make([]byte, 4096)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, p.buf)
	if err != nil || n <= 0 {
		return nil
	}
	return p.buf[:n]
}

func (p *procReader) task(tid int) (task, bool) {
	var k task
	b := p.read(tid, "stat")
	open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || shut < open {
		return k, false
	}
	copy(k.comm[:15], b[open+1:shut])
	f := bytes.Fields(b[shut+1:]) // state, ppid, pgrp, session, …
	if len(f) < 4 {
		return k, false
	}
	k.ppid, k.pgid, k.sid = number(f[1]), number(f[2]), number(f[3])
	for line := range bytes.Lines(p.read(tid, "status")) {
		if ids := idLine(line, "Uid:"); ids != nil {
			k.uid = number(ids[3]) // real, effective, saved, file system
		} else if ids := idLine(line, "Gid:"); ids != nil {
			k.gid = number(ids[3])
			return k, true
		}
	}
	return k, false
}

func idLine(line []byte, name string) [][]byte {
	rest, ok := bytes.CutPrefix(line, []byte(name))
	if !ok {
		return nil
	}
	if f := bytes.Fields(rest); len(f) == 4 {
		return f
	}
	return nil
}

func number(b []byte) uint32 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return uint32(n)
}

// cpu returns the run time of a thread in ns, 0 if the kernel does not say.
func (r *Recorder) cpu(th *thread) uint64 {
	if th.stat < 0 {
		fd, err := unix.Open(r.proc.name(th.t.TID, "schedstat"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0
		}
		th.stat = fd
	}
	var b [64]byte
	n, err := unix.Pread(th.stat, b[:], 0)
	if err != nil {
		return 0
	}
	ns := uint64(0)
	for _, c := range b[:n] {
		if c < '0' || c > '9' {
			break
		}
		ns = ns*10 + uint64(c-'0')
	}
	return ns
}

// startRecords writes what the command starts with: working directory, umask and
// the descriptors that survive its execve.
func (r *Recorder) startRecords(th *thread) {
	tid := th.t.TID
	start := trace.Record{Type: trace.RecStart, PID: uint32(th.t.PID), TID: th.tid, Exit: now()}
	for line := range bytes.Lines(r.proc.read(tid, "status")) {
		if rest, ok := bytes.CutPrefix(line, []byte("Umask:")); ok {
			mask, _ := strconv.ParseUint(string(bytes.TrimSpace(rest)), 8, 32)
			start.Umask = uint32(mask)
			break
		}
	}
	start.Pieces = []trace.Piece{linkPiece(r.proc.name(tid, "cwd"))}
	r.out.put(&start)

	var opens running.OpenFiles
	entries, _ := os.ReadDir(r.proc.name(tid, "fd"))
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		obj, ok := r.proc.object(tid, fd, 0)
		if !ok || obj.Flags&unix.O_CLOEXEC != 0 {
			continue
		}
		obj.Open = opens.Number(tid, &obj)
		file := trace.Record{
			Type: trace.RecFile, PID: uint32(th.t.PID), TID: th.tid, Exit: now(), Umask: start.Umask,
			Objects: []trace.Object{obj}, Pieces: []trace.Piece{linkPiece(r.proc.name(tid, "fd/"+e.Name()))},
		}
		file.Pieces = running.AppendEnds(file.Pieces, th.t.PID, file.Objects, event.EndsAlways)
		r.out.put(&file)
	}
}

func linkPiece(path string) trace.Piece {
	target, err := os.Readlink(path)
	if err != nil {
		return trace.Piece{Flags: trace.PieceMissing}
	}
	return trace.Piece{Len: uint32(len(target)), Data: []byte(target)}
}
