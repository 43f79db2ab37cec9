// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// Extended attributes, ACLs among them, are the lower file's own. Names that begin with
// "system.posix_acl_" are what the kernel above decides by.

// GetXAttr reads an attribute.
func (fs *FS) GetXAttr(_ <-chan struct{}, in *fuse.InHeader, attr string, dest []byte) (uint32, fuse.Status) {
	return fs.readXattr(in, event.OpFgetxattr, event.OpLgetxattr, attr, dest,
		func(n *node) (int, error) { return unix.Getxattr(n.link(), attr, dest) })
}

// ListXAttr lists the names of attributes.
func (fs *FS) ListXAttr(_ <-chan struct{}, in *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	return fs.readXattr(in, event.OpFlistxattr, event.OpLlistxattr, "", dest,
		func(n *node) (int, error) { return unix.Listxattr(n.link(), dest) })
}

func (fs *FS) readXattr(in *fuse.InHeader, onFile, onPath event.Op, attr string, dest []byte,
	read func(*node) (int, error)) (uint32, fuse.Status) {
	n := fs.nodes.get(in.NodeId)
	if n == nil {
		return 0, fuse.Status(unix.ESTALE)
	}
	s := fs.subject(n, nil)
	c := fs.begin(in, s.op(onFile, onPath))
	var size int
	err := retry(func() (err error) { size, err = read(n); return err })
	s.put(c, 0)
	i := 1
	if attr != "" {
		c.text(1, attr)
		i = 2
	}
	c.arg(i+1, uint64(len(dest)))
	switch {
	case err == nil && len(dest) > 0:
		c.bytes(i, dest[:size])
	case len(dest) > 0:
		c.arg(i, pointer)
	}
	c.done(int64(size), errnoOf(err))
	return uint32(max(size, 0)), status(errnoOf(err))
}

// SetXAttr sets an attribute.
func (fs *FS) SetXAttr(_ <-chan struct{}, in *fuse.SetXAttrIn, attr string, data []byte) fuse.Status {
	n := fs.nodes.get(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	s := fs.subject(n, nil)
	c := fs.begin(&in.InHeader, s.op(event.OpFsetxattr, event.OpLsetxattr))
	err := retry(func() error { return unix.Setxattr(n.link(), attr, data, int(in.Flags)) })
	s.put(c, 0)
	c.text(1, attr)
	c.bytes(2, data)
	c.arg(3, uint64(len(data)))
	c.arg(4, uint64(in.Flags))
	c.done(0, errnoOf(err))
	if err == nil && fs.xattrExt && in.SetXAttrFlags&fuse.SETXATTR_ACL_KILL_SGID != 0 {
		fs.killSetGroup(in, n)
	}
	return status(errnoOf(err))
}

// killSetGroup takes set-group-ID away from a file whose owner, who is not of its group,
// set an ACL: the kernel does so for its own file systems.
func (fs *FS) killSetGroup(in *fuse.SetXAttrIn, n *node) {
	var st unix.Stat_t
	if unix.Fstat(n.fd, &st) != nil || st.Mode&unix.S_ISGID == 0 {
		return
	}
	mode := st.Mode & 0o7777 &^ unix.S_ISGID
	c := fs.begin(&in.InHeader, event.OpFchmodat)
	c.name(1, n, "")
	c.arg(2, uint64(mode))
	c.done(0, errnoOf(unix.Chmod(n.link(), mode)))
}

// RemoveXAttr removes an attribute.
func (fs *FS) RemoveXAttr(_ <-chan struct{}, in *fuse.InHeader, attr string) fuse.Status {
	n := fs.nodes.get(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	s := fs.subject(n, nil)
	c := fs.begin(in, s.op(event.OpFremovexattr, event.OpLremovexattr))
	err := retry(func() error { return unix.Removexattr(n.link(), attr) })
	s.put(c, 0)
	c.text(1, attr)
	c.done(0, errnoOf(err))
	return status(errnoOf(err))
}
