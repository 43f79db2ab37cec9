// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"strconv"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// Lookup finds an entry of a directory.
func (fs *FS) Lookup(_ <-chan struct{}, h *fuse.InHeader, entry string, out *fuse.EntryOut) fuse.Status {
	dir := fs.nodes.get(h.NodeId)
	if dir == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(h, event.OpNewfstatat)
	var st unix.Stat_t
	n, errno := fs.nodes.find(dir, entry, &st)
	c.name(1, dir, entry)
	c.arg(3, unix.AT_SYMLINK_NOFOLLOW)
	if errno == 0 {
		fs.entry(n, &st, out)
		c.stat(2, &st)
	} else {
		c.arg(2, pointer)
	}
	c.done(0, errno)
	return status(errno)
}

// Forget gives back references to a node.
func (fs *FS) Forget(id, count uint64) { fs.nodes.forget(id, count) }

// makeEntry makes an entry as the caller, and looks it up for the reply.
// that makes the file when nothing but mode and umask decide.
func (fs *FS) makeEntry(c *call, h *fuse.InHeader, dir *node, entry string, umask uint32, out *fuse.EntryOut,
	do func() error) (st unix.Stat_t, errno syscall.Errno) {
	fs.act.as(h.Uid, h.Gid, umask, func() { errno = errnoOf(retry(do)) })
	if errno != 0 {
		return st, errno
	}
	n, errno := fs.nodes.find(dir, entry, &st)
	if errno == 0 {
		fs.entry(n, &st, out)
	}
	return st, errno
}

// modeMade is the mode that a call made a file with. The umask is the caller's, of which
// a recording has only one for all, 0; with a default ACL it does not count.
func modeMade(mode, umask uint32, st *unix.Stat_t, errno syscall.Errno) uint64 {
	if masked := mode &^ umask; errno != 0 || masked&0o777 == st.Mode&0o777 {
		return uint64(masked)
	}
	return uint64(mode)
}

// Mkdir makes a directory.
func (fs *FS) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, entry string, out *fuse.EntryOut) fuse.Status {
	dir := fs.nodes.get(in.NodeId)
	if dir == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(&in.InHeader, event.OpMkdirat)
	st, errno := fs.makeEntry(c, &in.InHeader, dir, entry, in.Umask, out,
		func() error { return unix.Mkdirat(dir.fd, entry, in.Mode) })
	c.name(1, dir, entry)
	c.arg(2, modeMade(in.Mode&^unix.S_IFMT, in.Umask, &st, errno))
	c.done(0, errno)
	return status(errno)
}

// Mknod makes a file of any other kind.
func (fs *FS) Mknod(_ <-chan struct{}, in *fuse.MknodIn, entry string, out *fuse.EntryOut) fuse.Status {
	dir := fs.nodes.get(in.NodeId)
	if dir == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(&in.InHeader, event.OpMknodat)
	st, errno := fs.makeEntry(c, &in.InHeader, dir, entry, in.Umask, out,
		func() error { return unix.Mknodat(dir.fd, entry, in.Mode, int(in.Rdev)) })
	c.name(1, dir, entry)
	c.arg(2, modeMade(in.Mode, in.Umask, &st, errno))
	c.arg(3, uint64(in.Rdev))
	c.done(0, errno)
	return status(errno)
}

// Symlink makes a symbolic link.
func (fs *FS) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, entry string, out *fuse.EntryOut) fuse.Status {
	dir := fs.nodes.get(h.NodeId)
	if dir == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(h, event.OpSymlinkat)
	_, errno := fs.makeEntry(c, h, dir, entry, 0, out, func() error { return unix.Symlinkat(target, dir.fd, entry) })
	c.text(0, target)
	c.name(2, dir, entry)
	c.done(0, errno)
	return status(errno)
}

// Readlink says where a symbolic link leads.
func (fs *FS) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	n := fs.nodes.get(h.NodeId)
	if n == nil {
		return nil, fuse.Status(unix.ESTALE)
	}
	c := fs.begin(h, event.OpReadlinkat)
	buf := make([]byte, unix.PathMax)
	var size int
	err := retry(func() (err error) { size, err = unix.Readlinkat(n.fd, "", buf); return err })
	c.name(1, n, "")
	if err == nil {
		c.bytes(2, buf[:size])
	} else {
		c.arg(2, pointer)
	}
	c.arg(3, unix.PathMax)
	c.done(int64(size), errnoOf(err))
	if err != nil {
		return nil, status(errnoOf(err))
	}
	return buf[:size], fuse.OK
}

// Link gives a file another name.
func (fs *FS) Link(_ <-chan struct{}, in *fuse.LinkIn, entry string, out *fuse.EntryOut) fuse.Status {
	dir, n := fs.nodes.get(in.NodeId), fs.nodes.get(in.Oldnodeid)
	if dir == nil || n == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(&in.InHeader, event.OpLinkat)
	c.cwd(0)
	if old, named := fs.nodes.path(n); named { // now: it will have the new name, too
		c.text(1, old)
	} else if h := fs.files.of(n); h != nil { // of O_TMPFILE
		c.text(1, "/proc/self/fd/"+strconv.Itoa(int(h.number)))
		c.arg(4, unix.AT_SYMLINK_FOLLOW)
	}
	// A link to a file without a name is refused there as it is to the caller.
	err := retry(func() error { return unix.Linkat(unix.AT_FDCWD, n.link(), dir.fd, entry, unix.AT_SYMLINK_FOLLOW) })
	c.name(3, dir, entry)
	if err == nil {
		var st unix.Stat_t
		found, errno := fs.nodes.find(dir, entry, &st)
		if errno != 0 {
			c.done(0, 0)
			return status(errno)
		}
		fs.entry(found, &st, out)
	}
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}

// Unlink removes a name of a file.
func (fs *FS) Unlink(_ <-chan struct{}, h *fuse.InHeader, entry string) fuse.Status {
	return fs.remove(h, entry, 0)
}

// Rmdir removes a directory.
func (fs *FS) Rmdir(_ <-chan struct{}, h *fuse.InHeader, entry string) fuse.Status {
	return fs.remove(h, entry, unix.AT_REMOVEDIR)
}

func (fs *FS) remove(h *fuse.InHeader, entry string, flags int) fuse.Status {
	dir := fs.nodes.get(h.NodeId)
	if dir == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(h, event.OpUnlinkat)
	err := retry(func() error { return unix.Unlinkat(dir.fd, entry, flags) })
	c.name(1, dir, entry)
	c.arg(2, uint64(flags))
	if err == nil {
		c.after = func() { fs.nodes.removed(name{dir, entry}) }
	}
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}

// opRename is FUSE_RENAME (linux/fuse.h).
const opRename = 12

// Rename moves a name, or exchanges two.
func (fs *FS) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	olddir, newdir := fs.nodes.get(in.NodeId), fs.nodes.get(in.Newdir)
	if olddir == nil || newdir == nil {
		return fuse.Status(unix.ESTALE)
	}
	c := fs.begin(&in.InHeader, event.OpRenameat2)
	flags := in.Flags
	if in.Opcode == opRename { // which has none: the names begin there
		flags = 0
	}
	err := retry(func() error { return unix.Renameat2(olddir.fd, from, newdir.fd, to, uint(flags)) })
	c.name(1, olddir, from)
	c.name(3, newdir, to)
	c.arg(4, uint64(flags))
	if err == nil {
		c.after = func() {
			fs.nodes.renamed(name{olddir, from}, name{newdir, to}, flags&unix.RENAME_EXCHANGE != 0)
		}
	}
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}
