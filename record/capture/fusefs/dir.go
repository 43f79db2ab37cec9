// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"syscall"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// listing is what is left of the last getdents64 of a directory. The kernel's replies
// hold fewer entries than a call gives.
type listing struct {
	buf  []byte // of the call
	left []byte // not given yet
	next int64  // position of the first of them, in the lower directory's terms
}

const listBytes = 32 << 10

// OpenDir opens a directory.
func (fs *FS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return fs.open(in, out, unix.O_DIRECTORY)
}

// ReleaseDir closes a directory.
func (fs *FS) ReleaseDir(in *fuse.ReleaseIn) { fs.release(in) }

// FsyncDir writes a directory to the disk.
func (fs *FS) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fs.Fsync(cancel, in)
}

// ReadDir lists a directory.
func (fs *FS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return fs.readDir(in, func(_ *node, e *fuse.DirEntry) bool { return out.AddDirEntry(*e) })
}

// ReadDirPlus lists a directory with the attributes of the entries. These are not
// recorded: the caller asked for names.
func (fs *FS) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return fs.readDir(in, func(dir *node, e *fuse.DirEntry) bool {
		slot := out.AddDirLookupEntry(*e)
		if slot == nil {
			return false
		}
		if e.Name == "." || e.Name == ".." {
			return true // an entry without a node
		}
		var st unix.Stat_t
		if n, errno := fs.nodes.find(dir, e.Name, &st); errno == 0 {
			fs.entry(n, &st, slot)
			out.FixMode(st.Mode)
		}
		return true
	})
}

func (fs *FS) readDir(in *fuse.ReadIn, add func(*node, *fuse.DirEntry) bool) fuse.Status {
	h := fs.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &h.list
	if int64(in.Offset) != l.next {
		if errno := fs.seekDir(in, h); errno != 0 {
			return status(errno)
		}
	}
	if len(l.left) == 0 {
		if errno := fs.getdents(in, h); errno != 0 {
			return status(errno)
		}
	}
	for len(l.left) > 0 { // a call for a request at most, as the caller made
		var e fuse.DirEntry
		n := e.Parse(l.left)
		if n == 0 {
			return fuse.EIO
		}
		if !add(h.node, &e) {
			break // no room
		}
		l.left, l.next = l.left[n:], int64(e.Off)
	}
	return fuse.OK
}

// seekDir goes to where the caller wants to go on: it called rewinddir or seekdir.
func (fs *FS) seekDir(in *fuse.ReadIn, h *handle) syscall.Errno {
	c := fs.begin(&in.InHeader, event.OpLseek)
	at, err := unix.Seek(h.fd, int64(in.Offset), unix.SEEK_SET)
	c.file(0, h)
	c.arg(1, in.Offset)
	c.arg(2, unix.SEEK_SET)
	c.done(at, errnoOf(err))
	if err == nil {
		h.list.left, h.list.next = nil, at
	}
	return errnoOf(err)
}

func (fs *FS) getdents(in *fuse.ReadIn, h *handle) syscall.Errno {
	l := &h.list
	if l.buf == nil {
		l.buf = make([]byte, listBytes)
	}
	c := fs.begin(&in.InHeader, event.OpGetdents64)
	n, err := 0, error(nil)
	err = retry(func() (err error) { n, err = unix.Getdents(h.fd, l.buf); return err })
	c.file(0, h)
	c.arg(1, pointer)
	c.arg(2, listBytes)
	if err == nil {
		c.bytes(1, l.buf[:n])
		l.left = l.buf[:n]
	}
	c.done(int64(n), errnoOf(err))
	return errnoOf(err)
}

// Requests of ioctl that are about a file's own attributes (linux/fs.h). Others are for
// file systems and devices of a kind that this is not.
const (
	getFlags    = 0x80086601
	setFlags    = 0x40086602
	getFlags32  = 0x80046601
	setFlags32  = 0x40046602
	getFsxattr  = 0x801c581f
	setFsxattr  = 0x401c5820
	fsxattrSize = 28
)

// Ioctl reads and changes the attributes that lsattr and chattr, or project quotas, do.
func (fs *FS) Ioctl(_ <-chan struct{}, in *fuse.IoctlIn, inbuf []byte, out *fuse.IoctlOut, outbuf []byte) fuse.Status {
	h := fs.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	size := 4
	switch in.Cmd {
	case getFlags, setFlags, getFlags32, setFlags32:
	case getFsxattr, setFsxattr:
		size = fsxattrSize
	default:
		return fuse.Status(unix.ENOTTY)
	}
	c := fs.begin(&in.InHeader, event.OpIoctl)
	mem := c.mem[:size]
	clear(mem)
	copy(mem, inbuf)
	var errno syscall.Errno
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(h.fd), uintptr(in.Cmd), uintptr(unsafe.Pointer(&mem[0])))
	if errno == 0 {
		copy(outbuf, mem)
	}
	c.file(0, h)
	c.arg(1, uint64(in.Cmd))
	c.bytes(2, mem)
	c.done(0, errno)
	return status(errno)
}
