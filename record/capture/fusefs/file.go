// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"encoding/binary"
	"runtime"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// kernelFlags are those of an open that the kernel adds: FMODE_EXEC (linux/fs.h), and
// O_LARGEFILE, which the C library calls 0 on 64-bit machines (asm/fcntl.h).
var kernelFlags = func() uint32 {
	if runtime.GOARCH == "arm64" {
		return 0x20 | 0o400000
	}
	return 0x20 | 0o100000
}()

// callerFlags are not for the lower file: the position of appends is told with each write,
// O_DIRECT would need the caller's alignment here, O_ASYNC sends signals from the caller's
// file.
const callerFlags = unix.O_CREAT | unix.O_EXCL | unix.O_NOCTTY | unix.O_APPEND | unix.O_DIRECT | unix.O_ASYNC |
	unix.O_NOFOLLOW

// settable are the flags that F_SETFL changes and that a request tells of.
const settable = unix.O_APPEND | unix.O_NONBLOCK | unix.O_DIRECT | unix.O_NOATIME

// Open opens a file that exists.
func (fs *FS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return fs.open(in, out, 0)
}

func (fs *FS) open(in *fuse.OpenIn, out *fuse.OpenOut, more int) fuse.Status {
	n := fs.nodes.get(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(&in.InHeader, event.OpOpenat)
	flags := in.Flags &^ kernelFlags
	c.name(1, n, "")
	c.arg(2, uint64(flags))
	var errno syscall.Errno
	fd := -1
	if more == 0 && n.typ != unix.S_IFREG {
		errno = unix.EIO // another file by now; no opening of what may wait for a partner
	}
	if errno == 0 && in.Mode&fuse.OPEN_KILL_SUIDGID != 0 {
		fs.killPrivileges(c.who, n, nil)
	}
	if errno == 0 {
		var err error
		fd, err = fs.reopen(n.fd, int(flags&^callerFlags)|more)
		errno = errnoOf(err)
	}
	if errno != 0 {
		c.done(0, errno)
		return status(errno)
	}
	h := &handle{fd: fd, node: n}
	fs.opened(c, h, flags, out)
	return fuse.OK
}

// opened gives an open file its number and records the call that opened it.
func (fs *FS) opened(c *call, h *handle, flags uint32, out *fuse.OpenOut) {
	h.flags.Store(flags &^ (unix.O_EXCL | unix.O_TRUNC | unix.O_NOCTTY))
	h.closer = c.who
	fs.files.add(h)
	out.Fh = uint64(h.number)
	if h.node.typ == unix.S_IFREG && fs.direct {
		// Every read and write is a request, as the caller made it; pages are cached
		// only for mappings.
		out.OpenFlags = fuse.FOPEN_DIRECT_IO
	}
	c.object(event.ResultArg, h)
	c.done(int64(h.number), 0)
}

// Create makes a file and opens it.
func (fs *FS) Create(_ <-chan struct{}, in *fuse.CreateIn, entry string, out *fuse.CreateOut) fuse.Status {
	dir := fs.nodes.get(in.NodeId)
	if dir == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(&in.InHeader, event.OpOpenat)
	flags := in.Flags &^ kernelFlags
	c.name(1, dir, entry)
	c.arg(2, uint64(flags|unix.O_CREAT))
	fd, errno := -1, syscall.Errno(0)
	fs.act.as(in.Uid, in.Gid, in.Umask, func() {
		var err error
		fd, err = openat(dir.fd, entry, int(flags&^callerFlags&^unix.O_TRUNC)|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW,
			in.Mode&0o7777)
		errno = errnoOf(err)
	})
	if errno == unix.EEXIST && flags&unix.O_EXCL == 0 {
		errno = unix.ESTALE // made beneath the mount since the kernel looked: it looks again
	}
	return fs.created(c, in, fd, errno, name{dir, entry}, flags|unix.O_CREAT, out)
}

// Tmpfile makes a file without a name and opens it.
func (fs *FS) Tmpfile(_ <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	dir := fs.nodes.get(in.NodeId)
	if dir == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(&in.InHeader, event.OpOpenat)
	flags := in.Flags&^kernelFlags | unix.O_TMPFILE
	c.name(1, dir, "")
	c.arg(2, uint64(flags))
	fd, errno := -1, syscall.Errno(0)
	fs.act.as(in.Uid, in.Gid, in.Umask, func() {
		var err error
		fd, err = openat(dir.fd, ".", int(flags&^callerFlags)|unix.O_TMPFILE|int(flags&unix.O_EXCL), in.Mode&0o7777)
		errno = errnoOf(err)
	})
	return fs.created(c, in, fd, errno, name{}, flags, out)
}

func (fs *FS) created(c *call, in *fuse.CreateIn, fd int, errno syscall.Errno, nm name, flags uint32,
	out *fuse.CreateOut) fuse.Status {
	var st unix.Stat_t
	node := -1
	if errno == 0 {
		errno = errnoOf(unix.Fstat(fd, &st))
	}
	if errno == 0 {
		var err error
		node, err = fs.reopen(fd, unix.O_PATH)
		errno = errnoOf(err)
	}
	c.arg(3, modeMade(in.Mode&0o7777, in.Umask, &st, errno))
	if errno != 0 {
		if fd >= 0 {
			unix.Close(fd)
		}
		c.done(0, errno)
		return status(errno)
	}
	h := &handle{fd: fd, node: fs.nodes.adopt(node, &st, nm)}
	fs.entry(h.node, &st, &out.EntryOut)
	fs.opened(c, h, flags, &out.OpenOut)
	return fuse.OK
}

// noteFlags records that the caller changed the flags of an open file: the kernel tells
// of it only with the next request.
func (fs *FS) noteFlags(h *fuse.InHeader, f *handle, now uint32) {
	old := f.flags.Load()
	if (old^now)&settable == 0 {
		return
	}
	flags := old&^settable | now&settable
	if !f.flags.CompareAndSwap(old, flags) {
		return
	}
	c := fs.begin(h, event.OpFcntl)
	c.file(0, f)
	c.arg(1, unix.F_SETFL)
	c.arg(2, uint64(flags&^unix.O_CREAT))
	c.done(0, 0)
}

// Read reads from a file: for the caller, or a page for a mapping.
func (fs *FS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	h := fs.files.get(in.Fh)
	if h == nil {
		return nil, fuse.EBADF
	}
	mapped := fs.direct && in.ReadFlags&fuse.READ_LOCKOWNER == 0
	op := event.OpPread64
	if mapped {
		op = event.OpMmapPread
		fs.noteMapping(h)
	} else {
		fs.noteFlags(&in.InHeader, h, in.Flags)
	}
	c := fs.begin(&in.InHeader, op)
	buf = buf[:min(len(buf), int(in.Size))]
	n, errno := readFull(h.fd, buf, int64(in.Offset))
	c.file(0, h)
	c.bytes(1, buf[:n])
	c.arg(2, uint64(in.Size))
	c.arg(3, in.Offset)
	if mapped {
		c.arg(1, h.address(in.Offset))
		c.arg(5, in.Offset)
	}
	if errno != 0 {
		c.rec.Pieces = c.rec.Pieces[:0]
	}
	c.done(int64(n), errno)
	if errno != 0 {
		return nil, status(errno)
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

// readFull reads until the buffer is full or the file ends. An error after some bytes
// were read is left to the next read, as the kernel does.
func readFull(fd int, buf []byte, off int64) (n int, errno syscall.Errno) {
	for n < len(buf) {
		got, err := unix.Pread(fd, buf[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil && n == 0:
			return 0, errnoOf(err)
		case err != nil || got == 0:
			return n, 0
		}
		n += got
	}
	return n, 0
}

// Write writes to a file.
func (fs *FS) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	return fs.Writev(nil, in, [][]byte{data})
}

// Writev writes to a file: for the caller, or pages that were stored to through mappings.
func (fs *FS) Writev(_ <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	h := fs.files.get(in.Fh)
	if h == nil {
		return 0, fuse.EBADF
	}
	mapped := in.WriteFlags&fuse.WRITE_CACHE != 0
	op := event.OpPwrite64
	if mapped {
		op = event.OpMmapPwrite
		fs.noteMapping(h)
	} else {
		fs.noteFlags(&in.InHeader, h, in.Flags)
	}
	c := fs.begin(&in.InHeader, op)
	if in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
		fs.killPrivileges(c.who, h.node, h)
	}
	off, n, errno := h.write(data, int64(in.Offset), in.Flags&unix.O_APPEND != 0 && !mapped)
	c.file(0, h)
	left := n
	for _, part := range data {
		k := min(left, len(part))
		c.add(1, uint64(n-left), part[:k])
		left -= k
	}
	if errno != 0 {
		c.rec.Pieces = c.rec.Pieces[:0]
	}
	c.arg(1, pointer)
	if mapped {
		c.arg(1, h.address(uint64(off)))
	}
	c.arg(2, uint64(in.Size))
	c.arg(3, uint64(off))
	c.done(int64(n), errno)
	return uint32(n), status(errno)
}

// write writes all it can, and says where. What is appended goes where the file ends
// then, which the kernel above us need not know.
func (h *handle) write(data [][]byte, off int64, atEnd bool) (at int64, n int, errno syscall.Errno) {
	if atEnd {
		h.mu.Lock() // of the position
		defer h.mu.Unlock()
		var err error
		for {
			n, err = unix.Pwritev2(h.fd, data, -1, unix.RWF_APPEND)
			if err != unix.EINTR {
				break
			}
		}
		if err != nil {
			return off, 0, errnoOf(err)
		}
		if end, err := unix.Seek(h.fd, 0, unix.SEEK_CUR); err == nil {
			off = end - int64(n)
		}
		return off, n, 0
	}
	for _, part := range data {
		for len(part) > 0 {
			k, err := unix.Pwrite(h.fd, part, off+int64(n))
			switch {
			case err == unix.EINTR:
				continue
			case err != nil && n == 0:
				return off, 0, errnoOf(err)
			case err != nil || k == 0:
				return off, n, 0
			}
			part, n = part[k:], n+k
		}
	}
	return off, n, 0
}

// killPrivileges takes set-user-ID and set-group-ID away, as the kernel does before an
// ordinary user's write: our writes are root's, before which it does not.
func (fs *FS) killPrivileges(who identity, n *node, h *handle) {
	var st unix.Stat_t
	if unix.Fstat(n.fd, &st) != nil {
		return
	}
	mode := st.Mode &^ unix.S_ISUID
	if st.Mode&unix.S_IXGRP != 0 {
		mode &^= unix.S_ISGID
	}
	if mode == st.Mode || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	s := subject{h, n}
	c := fs.call(who, s.op(event.OpFchmod, event.OpFchmodat))
	s.put(c, 1)
	if h != nil {
		c.arg(1, uint64(mode&0o7777))
	} else {
		c.arg(2, uint64(mode&0o7777))
	}
	c.done(0, errnoOf(unix.Chmod(n.link(), mode&0o7777)))
}

// Mappings are not told of: the first page that the kernel reads or writes for one stands
// for it. It is recorded as the mount's own, over all of the file, until that is closed.
const (
	mappingBase = 0x7e0000000000
	mappingRoom = 1 << 36 // between the addresses of two
)

func (fs *FS) noteMapping(h *handle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mapping != 0 {
		return
	}
	var st unix.Stat_t
	if unix.Fstat(h.fd, &st) != nil {
		return
	}
	const page = 4096
	h.mapped = max(uint64(st.Size)+page-1, page) &^ (page - 1)
	h.mapping = mappingBase + uint64(h.number)*mappingRoom
	c := fs.call(fs.self, event.OpMmap)
	c.arg(1, h.mapped)
	prot := uint64(unix.PROT_READ)
	if h.writable() {
		prot |= unix.PROT_WRITE
	}
	c.arg(2, prot)
	c.arg(3, unix.MAP_SHARED)
	c.file(4, h)
	c.done(int64(h.mapping), 0)
}

// address is where an offset of the file is mapped.
func (h *handle) address(off uint64) uint64 { return h.mapping + off%mappingRoom }

// Lseek looks for data and holes.
func (fs *FS) Lseek(_ <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	h := fs.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	c := fs.begin(&in.InHeader, event.OpLseek)
	h.mu.Lock()
	at, err := unix.Seek(h.fd, int64(in.Offset), int(in.Whence))
	h.mu.Unlock()
	c.file(0, h)
	c.arg(1, in.Offset)
	c.arg(2, uint64(in.Whence))
	c.done(at, errnoOf(err))
	if err == nil {
		out.Offset = uint64(at)
	}
	return status(errnoOf(err))
}

// Fallocate allocates or frees a range.
func (fs *FS) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	h := fs.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	c := fs.begin(&in.InHeader, event.OpFallocate)
	err := retry(func() error { return unix.Fallocate(h.fd, in.Mode, int64(in.Offset), int64(in.Length)) })
	c.file(0, h)
	c.arg(1, uint64(in.Mode))
	c.arg(2, in.Offset)
	c.arg(3, in.Length)
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}

// maxCopy is what one request copies at most, so that one record has it. The caller is
// told of less than it asked for, and asks again.
const maxCopy = 1 << 20

// CopyFileRange copies between two files.
func (fs *FS) CopyFileRange(_ <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	src, dst := fs.files.get(in.FhIn), fs.files.get(in.FhOut)
	if src == nil || dst == nil {
		return 0, fuse.EBADF
	}
	c := fs.begin(&in.InHeader, event.OpCopyFileRange)
	from, to := int64(in.OffIn), int64(in.OffOut)
	size := int(min(in.Len, maxCopy))
	var n int
	err := retry(func() (err error) {
		n, err = unix.CopyFileRange(src.fd, &from, dst.fd, &to, size, int(in.Flags))
		return err
	})
	c.file(0, src)
	c.file(2, dst)
	c.arg(4, uint64(size))
	c.arg(5, in.Flags)
	if err == nil && n > 0 {
		moved := make([]byte, n)
		if got, _ := readFull(dst.fd, moved, int64(in.OffOut)); got < n { // dst may be for writing only
			got, _ = readFull(src.fd, moved, int64(in.OffIn))
			moved = moved[:got]
		}
		c.bytes(0, moved)
		c.arg(0, uint64(src.number))
	}
	binary.NativeEndian.PutUint64(c.mem[0:], uint64(from))
	binary.NativeEndian.PutUint64(c.mem[8:], uint64(to))
	c.bytes(1, c.mem[0:8])
	c.bytes(3, c.mem[8:16])
	c.done(int64(n), errnoOf(err))
	return uint32(n), status(errnoOf(err))
}

// Flush is sent for each descriptor that is closed; the file is closed with the last.
func (fs *FS) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	h := fs.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	who, _ := fs.who.of(&fs.self, in.Pid, in.Uid, in.Gid)
	h.mu.Lock()
	h.closer = who
	h.mu.Unlock()
	fs.unlockOwner(h.node, in.LockOwner)
	return fuse.OK
}

// Fsync writes a file to the disk.
func (fs *FS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	h := fs.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	const dataOnly = 1 // FUSE_FSYNC_FDATASYNC
	op, do := event.OpFsync, unix.Fsync
	if in.FsyncFlags&dataOnly != 0 {
		op, do = event.OpFdatasync, unix.Fdatasync
	}
	c := fs.begin(&in.InHeader, op)
	err := retry(func() error { return do(h.fd) })
	c.file(0, h)
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}

// Release closes a file. It comes from whoever let go of it last; the record has the
// thread that closed the last descriptor, if that is known.
func (fs *FS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) { fs.release(in) }

func (fs *FS) release(in *fuse.ReleaseIn) {
	h := fs.files.get(in.Fh)
	if h == nil {
		return
	}
	h.mu.Lock()
	who, mapping, mapped := h.closer, h.mapping, h.mapped
	h.mu.Unlock()
	if mapping != 0 {
		c := fs.call(fs.self, event.OpMunmap)
		c.arg(0, mapping)
		c.arg(1, mapped)
		c.done(0, 0)
	}
	c := fs.call(who, event.OpClose)
	c.arg(0, uint64(h.number))
	// Its number is free only when that is in the record.
	c.after = func() { fs.files.remove(h) }
	err := unix.Close(h.fd) // and flock's lock with it
	c.done(0, errnoOf(err))
	h.node.locks.back()
}
