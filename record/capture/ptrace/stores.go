// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/mapped"
	"github.com/iotape/iotape/trace"
)

// stores finds out what programs stored to files through shared mappings. Nothing stops at a
// store, so it looks at the files when their content matters: before the end of a call that writes
// it back, ends the mapping or reads the file is told, at the end of a program, and now and then.
// Of each page a hash is kept, so that only what changed is recorded.
//
// Records are those of eBPF capture (event.OpMmapPwrite), also in this: a page that was
// written by a call is recorded once more.
type stores struct {
	r     *Recorder
	files map[fileID]*storedFile
	buf   []byte
	next  uint64      // when to look at all again, ns
	some  atomic.Bool // there are files

	version uint64 // of the set of files
}

// storedFile is a file that programs can store to.
type storedFile struct {
	object trace.Object
	fd     int
	pages  *mapped.Pages
	pids   map[int]bool  // processes that may have it mapped
	at     mapped.Moment // of the call that mapped it last
}

const (
	lookEvery = 100 * time.Millisecond
	lookShare = 10 // of the time at most one part of so many is spent on looking now and then
	lookBytes = 256 << 10
	allOfFile = 1 << 62
)

// after is told of a call that has returned, before it is recorded.
func (s *stores) after(th *thread, exit uint64, ret int64) {
	c := &th.call
	if c.compat || failed(ret) {
		return
	}
	if c.spec.Op == event.OpMmap {
		s.mapped(th, exit)
		return
	}
	if len(s.files) == 0 {
		return
	}
	at := mapped.Moment{PID: uint32(th.t.PID), TID: th.tid, Time: max(exit-1, c.enter)}
	switch c.spec.Op {
	case event.OpMsync:
		s.lookOf(th.t.PID, at)
	case event.OpMunmap, event.OpMremap:
		s.lookOf(th.t.PID, at)
		s.unmapped(th)
	case event.OpExecve, event.OpExecveat:
		s.leave(th.t.PID, at)
	case event.OpSync, event.OpSyncfs:
		s.lookAll(at)
	case event.OpFsync, event.OpFdatasync, event.OpSyncFileRange, event.OpCopyFileRange, event.OpSplice:
		s.lookAt(th, 0, 0, -1, at)
	case event.OpSendfile:
		s.lookAt(th, 1, 0, -1, at)
	case event.OpIoctl:
		if event.Clones(c.args[1]) {
			s.lookAll(at)
		}
	case event.OpRead, event.OpReadv:
		s.lookAt(th, 0, -1, ret, at)
	case event.OpPread64, event.OpPreadv, event.OpPreadv2:
		s.lookAt(th, 0, int64(c.args[3]), ret, at)
	}
	s.changedBy(th, ret)
}

// mapped begins to watch a file that a thread has mapped.
func (s *stores) mapped(th *thread, exit uint64) {
	const sharedTypes = unix.MAP_SHARED // set in MAP_SHARED_VALIDATE too
	a := &th.call.args
	if s.r.o.Mmap == capture.MmapOff || a[2]&unix.PROT_WRITE == 0 || a[3]&sharedTypes == 0 ||
		a[3]&unix.MAP_ANONYMOUS != 0 {
		return
	}
	tid, number := th.t.TID, int(int32(a[4]))
	o, ok := s.r.proc.object(tid, number, 0)
	if !ok || o.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	at := mapped.Moment{PID: uint32(th.t.PID), TID: th.tid, Time: exit}
	key := fileID{o.Dev, o.Ino}
	if f := s.files[key]; f != nil {
		f.pids[th.t.PID], f.at = true, at
		return
	}
	fd, err := s.r.proc.open(tid, number)
	if err != nil {
		s.r.out.lose(&trace.Record{Type: trace.RecLoss, Exit: exit, Count: 1, Reason: trace.LossMapped})
		return
	}
	o.FD, o.Pos, o.Arg, o.Flags = -1, 0, 0, unix.O_RDWR
	f := &storedFile{object: o, fd: fd, pages: mapped.NewPages(pageBytes), pids: map[int]bool{th.t.PID: true}, at: at}
	s.files[key] = f
	s.changed()
	s.look(f, 0, allOfFile, nil)
}

// forked is told of a new process, which has what its maker has mapped.
func (s *stores) forked(parent, child int) {
	for _, f := range s.files {
		if f.pids[parent] {
			f.pids[child] = true
		}
	}
}

// leave is told that a process has another memory, or none.
func (s *stores) leave(pid int, at mapped.Moment) {
	s.lookOf(pid, at)
	for key, f := range s.files {
		delete(f.pids, pid)
		s.close(key, f)
	}
}

// unmapped closes the files that a process has not mapped any more, if no other has.
func (s *stores) unmapped(th *thread) {
	var maps []byte
	for key, f := range s.files {
		if !f.pids[th.t.PID] {
			continue
		}
		if maps == nil {
			var err error
			if maps, err = os.ReadFile(s.r.proc.name(th.t.TID, "maps")); err != nil {
				return
			}
		}
		if !hasMapped(maps, f.object.Ino) {
			delete(f.pids, th.t.PID)
			s.close(key, f)
		}
	}
}

// hasMapped reports whether a maps file (proc_pid_maps(5)) has a shared mapping of an inode.
func hasMapped(maps []byte, ino uint64) bool {
	number := strconv.FormatUint(ino, 10)
	for line := range bytes.Lines(maps) {
		// address, permissions, offset, device, inode
		if f := bytes.Fields(line); len(f) >= 5 && string(f[4]) == number && bytes.HasSuffix(f[1], []byte("s")) {
			return true
		}
	}
	return false
}

func (s *stores) close(key fileID, f *storedFile) {
	if len(f.pids) > 0 {
		return
	}
	unix.Close(f.fd)
	delete(s.files, key)
	s.changed()
}

func (s *stores) changed() {
	s.version++
	s.some.Store(len(s.files) > 0)
}

// Stored returns the inodes of the files that programs can store to through mappings, and a number that
// changes with them: for those that have another way for most calls, and that must show the recorder the calls
// on these files.
func (r *Recorder) Stored() (version uint64, inodes []uint64) {
	for key := range r.stores.files {
		inodes = append(inodes, key.ino)
	}
	return r.stores.version, inodes
}

// of returns the file of a descriptor, and what the kernel says of it; nil if programs cannot store to it.
func (s *stores) of(th *thread, fd int32) (*storedFile, *trace.Object) {
	o, ok := s.r.proc.object(th.t.TID, int(fd), 0)
	if !ok {
		return nil, nil
	}
	return s.files[fileID{o.Dev, o.Ino}], &o
}

// lookAt looks at n bytes of the file of a descriptor argument; all if n is -1. off is -1 for those
// before its position.
func (s *stores) lookAt(th *thread, arg int, off, n int64, at mapped.Moment) {
	f, o := s.of(th, int32(th.call.args[arg]))
	switch {
	case f == nil:
	case n < 0:
		s.look(f, 0, allOfFile, &at)
	case off < 0:
		s.look(f, max(o.Pos-n, 0), n, &at)
	default:
		s.look(f, off, n, &at)
	}
}

func (s *stores) lookOf(pid int, at mapped.Moment) {
	for _, f := range s.files {
		if f.pids[pid] {
			s.look(f, 0, allOfFile, &at)
		}
	}
}

func (s *stores) lookAll(at mapped.Moment) {
	for _, f := range s.files {
		s.look(f, 0, allOfFile, &at)
	}
}

// tick looks at all files now and then.
func (s *stores) tick() {
	if began := now(); began >= s.next {
		s.lookNow()
		took := now() - began
		s.next = began + max(uint64(lookEvery), lookShare*took)
	}
}

// lookNow looks at all files, of which nothing is told.
func (s *stores) lookNow() {
	until := now
	if s.r.RecordedUntil != nil {
		until = s.r.RecordedUntil
	}
	for _, f := range s.files {
		at := f.at
		at.Time = max(until(), at.Time)
		s.look(f, 0, allOfFile, &at)
	}
}

// finish looks at all files when the recording ends, and closes them.
func (s *stores) finish() {
	s.lookNow()
	for key, f := range s.files {
		clear(f.pids)
		s.close(key, f)
	}
}

// look records what was stored to a range of a file since it was last looked at, if at says where it
// belongs, and remembers what is there.
func (s *stores) look(f *storedFile, off, n int64, at *mapped.Moment) {
	if s.buf == nil {
		s.buf = make([]byte, lookBytes)
	}
	const page = int64(pageBytes)
	off, end := off&^(page-1), off+min(n, allOfFile-off)
	for off < end {
		from, err := unix.Seek(f.fd, off, unix.SEEK_DATA)
		if err != nil || from >= end {
			f.pages.Forget(off, end)
			return
		}
		from &^= page - 1
		f.pages.Forget(off, from)
		to, err := unix.Seek(f.fd, max(from, off), unix.SEEK_HOLE)
		if err != nil || to <= from {
			return
		}
		to = min((to+page-1)&^(page-1), (end+page-1)&^(page-1))
		for off = max(from, off); off < to; {
			got, err := unix.Pread(f.fd, s.buf[:min(to-off, lookBytes)], off)
			if err != nil || got <= 0 {
				return // the end of the file
			}
			s.compare(f, off, s.buf[:got], at)
			if off += int64(got); int64(got)%page != 0 {
				return
			}
		}
	}
}

// compare records the pages that are not as they were when they were last looked at, if at says where.
func (s *stores) compare(f *storedFile, off int64, data []byte, at *mapped.Moment) {
	f.pages.Compare(off, data, true, func(off int64, data []byte) {
		if at == nil {
			return
		}
		n := uint64(len(data))
		pieces := mapped.Pieces(nil, s.r.o.Content, event.OpMmapPwrite, data, n)
		s.r.out.put(mapped.Store(&f.object, off, n, pieces, at))
		s.r.events++
	})
}

// ended is told of the end of a thread.
func (s *stores) ended(t *ptracer.Tracee, tid uint32, at uint64) {
	if t.TID == t.PID && len(s.files) > 0 {
		s.leave(t.PID, mapped.Moment{PID: uint32(t.PID), TID: tid, Time: at - 1})
	}
}
