// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// subject is how a record calls the file of a request: by a descriptor, or by a path.
type subject struct {
	h *handle // nil: by path
	n *node
}

// subject prefers a path, which says more, unless the request has a descriptor or the
// file has no name.
func (fs *FS) subject(n *node, h *handle) subject {
	if h == nil {
		if _, named := fs.nodes.path(n); !named {
			h = fs.files.of(n)
		}
	}
	return subject{h, n}
}

// op chooses the operation on a descriptor or on a path.
func (s subject) op(onFile, onPath event.Op) event.Op {
	if s.h != nil {
		return onFile
	}
	return onPath
}

// put records the argument: a descriptor as the first, or a path.
func (s subject) put(c *call, path int) {
	if s.h != nil {
		c.file(0, s.h)
	} else {
		c.name(path, s.n, "")
	}
}

// GetAttr is stat.
func (fs *FS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := fs.nodes.get(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	var h *handle
	if in.Flags()&fuse.FUSE_GETATTR_FH != 0 {
		h = fs.files.get(in.Fh())
	}
	var st unix.Stat_t
	s := fs.subject(n, h)
	c := fs.begin(&in.InHeader, s.op(event.OpFstat, event.OpNewfstatat))
	err := unix.Fstat(n.fd, &st)
	s.put(c, 1)
	buf := 1
	if s.h == nil {
		buf = 2
		c.arg(3, unix.AT_SYMLINK_NOFOLLOW)
	}
	c.arg(buf, pointer)
	if err == nil {
		c.stat(buf, &st)
		fs.attr(&st, &out.Attr)
		out.SetTimeout(fs.attrTimeout())
	}
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}

// Statx is sent when a caller asks for what stat does not have, such as the time of
// birth.
func (fs *FS) Statx(_ <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	n := fs.nodes.get(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	if _, named := fs.nodes.path(n); !named {
		return fuse.ENOSYS // the kernel asks for what stat has
	}
	var st unix.Statx_t
	c := fs.begin(&in.InHeader, event.OpStatx)
	err := unix.Statx(n.fd, "", unix.AT_EMPTY_PATH|int(in.SxFlags&atStatxSyncType), int(in.SxMask), &st)
	c.name(1, n, "")
	c.arg(2, uint64(unix.AT_SYMLINK_NOFOLLOW|in.SxFlags&atStatxSyncType))
	c.arg(3, uint64(in.SxMask))
	c.arg(4, pointer)
	if err == nil {
		c.bytes(4, unsafe.Slice((*byte)(unsafe.Pointer(&st)), unsafe.Sizeof(st)))
		fs.statx(n, &st, out)
	}
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}

func (fs *FS) statx(n *node, st *unix.Statx_t, out *fuse.StatxOut) {
	out.SetTimeout(fs.attrTimeout())
	o := &out.Statx
	o.Mask, o.Blksize, o.Attributes, o.AttributesMask = st.Mask, st.Blksize, st.Attributes, st.Attributes_mask
	o.Nlink, o.Uid, o.Gid, o.Mode = st.Nlink, st.Uid, st.Gid, st.Mode
	o.Ino = fs.inode(&unix.Stat_t{Dev: n.dev, Ino: st.Ino})
	o.Size, o.Blocks = st.Size, st.Blocks
	o.Atime.FromStatxTimestamp(&st.Atime)
	o.Btime.FromStatxTimestamp(&st.Btime)
	o.Ctime.FromStatxTimestamp(&st.Ctime)
	o.Mtime.FromStatxTimestamp(&st.Mtime)
	o.RdevMajor, o.RdevMinor = st.Rdev_major, st.Rdev_minor
}

// SetAttr changes attributes; several at once if the kernel has reason to, which are
// recorded as a call each. Ownership is first: changing it takes away set-user-ID, which
// the new mode knows of.
func (fs *FS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := fs.nodes.get(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	var h *handle
	if fh, ok := in.GetFh(); ok {
		h = fs.files.get(fh)
	}
	who, _ := fs.who.of(&fs.self, in.Pid, in.InHeader.Uid, in.InHeader.Gid) // in.Uid is the new owner
	w := attrWriter{fs: fs, who: who, s: fs.subject(n, h)}
	var errno syscall.Errno
	for _, step := range []func(*fuse.SetAttrIn) syscall.Errno{w.owner, w.mode, w.size, w.times} {
		if errno == 0 {
			errno = step(in)
		}
	}
	if errno != 0 {
		return status(errno)
	}
	var st unix.Stat_t
	if err := unix.Fstat(n.fd, &st); err != nil {
		return status(errnoOf(err))
	}
	fs.attr(&st, &out.Attr)
	out.SetTimeout(fs.attrTimeout())
	return fuse.OK
}

// attrWriter makes the calls of one SetAttr.
type attrWriter struct {
	fs  *FS
	who identity
	s   subject
}

func (w *attrWriter) begin(onFile, onPath event.Op) (c *call, i int) {
	c = w.fs.call(w.who, w.s.op(onFile, onPath))
	if w.s.h != nil {
		return c, 1
	}
	i = 1
	if c.spec().Args[0].Kind == event.KindDirFD {
		i = 2
	}
	return c, i
}

func (w *attrWriter) end(c *call, err error) syscall.Errno {
	path := 0
	if w.s.h == nil && c.spec().Args[0].Kind == event.KindDirFD {
		path = 1
	}
	w.s.put(c, path)
	c.done(0, errnoOf(err))
	return errnoOf(err)
}

func (w *attrWriter) owner(in *fuse.SetAttrIn) syscall.Errno {
	uid, setUID := in.GetUID()
	gid, setGID := in.GetGID()
	if !setUID && !setGID {
		return 0
	}
	c, i := w.begin(event.OpFchown, event.OpFchownat)
	err := unix.Fchownat(w.s.n.fd, "", int(int32(uid)), int(int32(gid)), unix.AT_EMPTY_PATH)
	c.arg(i, uint64(uid))
	c.arg(i+1, uint64(gid))
	if w.s.h == nil {
		c.arg(i+2, unix.AT_SYMLINK_NOFOLLOW)
	}
	return w.end(c, err)
}

func (w *attrWriter) mode(in *fuse.SetAttrIn) syscall.Errno {
	mode, ok := in.GetMode()
	if !ok {
		return 0
	}
	c, i := w.begin(event.OpFchmod, event.OpFchmodat)
	err := unix.Chmod(w.s.n.link(), mode)
	c.arg(i, uint64(mode))
	return w.end(c, err)
}

func (w *attrWriter) size(in *fuse.SetAttrIn) syscall.Errno {
	size, ok := in.GetSize()
	if !ok {
		return 0
	}
	if in.Valid&fuse.FATTR_KILL_SUIDGID != 0 {
		w.fs.killPrivileges(w.who, w.s.n, w.s.h)
	}
	c, i := w.begin(event.OpFtruncate, event.OpTruncate)
	err := retry(func() error {
		if w.s.h != nil && w.s.h.writable() {
			return unix.Ftruncate(w.s.h.fd, int64(size))
		}
		return unix.Truncate(w.s.n.link(), int64(size))
	})
	c.arg(i, size)
	return w.end(c, err)
}

func (w *attrWriter) times(in *fuse.SetAttrIn) syscall.Errno {
	if in.Valid&(fuse.FATTR_ATIME|fuse.FATTR_MTIME) == 0 {
		return 0
	}
	ts := [2]unix.Timespec{
		timespec(in.Valid, fuse.FATTR_ATIME, fuse.FATTR_ATIME_NOW, in.Atime, in.Atimensec),
		timespec(in.Valid, fuse.FATTR_MTIME, fuse.FATTR_MTIME_NOW, in.Mtime, in.Mtimensec),
	}
	c := w.fs.call(w.who, event.OpUtimensat)
	err := utimensat(w.s.n.fd, &ts)
	if w.s.h != nil {
		c.file(0, w.s.h) // with no path
	} else {
		c.name(1, w.s.n, "")
		c.arg(3, unix.AT_SYMLINK_NOFOLLOW)
	}
	for i := range ts {
		binary.NativeEndian.PutUint64(c.mem[16*i:], uint64(ts[i].Sec))
		binary.NativeEndian.PutUint64(c.mem[16*i+8:], uint64(ts[i].Nsec))
	}
	c.bytes(2, c.mem[:32])
	c.done(0, errnoOf(err))
	return errnoOf(err)
}

func timespec(valid, set, now uint32, sec uint64, nsec uint32) unix.Timespec {
	switch {
	case valid&set == 0:
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	case valid&now != 0:
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	}
	return unix.Timespec{Sec: int64(sec), Nsec: int64(nsec)}
}

// utimensat sets the times of a descriptor's file, of whatever kind.
func utimensat(fd int, ts *[2]unix.Timespec) error {
	empty := [1]byte{}
	_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])),
		uintptr(unsafe.Pointer(ts)), unix.AT_EMPTY_PATH, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// StatFs describes the file system that the file is on.
func (fs *FS) StatFs(_ <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	n := fs.nodes.get(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(in, event.OpStatfs)
	var st unix.Statfs_t
	err := retry(func() error { return unix.Fstatfs(n.fd, &st) })
	c.name(0, n, "")
	c.arg(1, pointer)
	if err == nil {
		c.bytes(1, unsafe.Slice((*byte)(unsafe.Pointer(&st)), unsafe.Sizeof(st)))
		*out = fuse.StatfsOut{
			Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail, Files: st.Files, Ffree: st.Ffree,
			Bsize: uint32(st.Bsize), Frsize: uint32(st.Frsize), NameLen: uint32(st.Namelen),
		}
	}
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}

// Access is not sent: the kernel decides by attributes and ACLs (default_permissions).
func (fs *FS) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.ENOSYS }

const atStatxSyncType = 0x6000 // AT_STATX_SYNC_TYPE (linux/fcntl.h)
