package main

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is a file or directory.
type node struct {
	*fs.LoopbackNode
	device  *device
	content content
}

var (
	_ fs.NodeOpener      = (*node)(nil)
	_ fs.NodeCreater     = (*node)(nil)
	_ fs.NodeWrapChilder = (*node)(nil)
	_ fs.NodeSetattrer   = (*node)(nil)
)

// WrapChild makes what is found below slow as well.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	if below, ok := ops.(*fs.LoopbackNode); ok {
		return &node{LoopbackNode: below, device: n.device}
	}
	return ops
}

// Open has no pages cached: every read comes here.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, out, errno := n.LoopbackNode.Open(ctx, flags&^notPassed)
	if errno == 0 {
		f, errno = n.slow(f, flags)
	}
	if errno == 0 && flags&syscall.O_TRUNC != 0 {
		n.device.written(&n.content)
	}
	return f, out | fuse.FOPEN_DIRECT_IO, errno
}

// Create is Open of a new file.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, f, flagsOut, errno := n.LoopbackNode.Create(ctx, name, flags&^notPassed, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	child, ok := inode.Operations().(*node)
	if !ok { // the library found no reason to wrap it, which it always has
		return nil, nil, 0, syscall.EIO
	}
	f, errno = child.slow(f, flags)
	child.device.written(&child.content) // it is new
	return inode, f, flagsOut | fuse.FOPEN_DIRECT_IO, errno
}

// Setattr takes no time, but a file that was cut has to be flushed.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if _, ok := in.GetSize(); ok {
		n.device.written(&n.content)
	}
	return n.LoopbackNode.Setattr(ctx, f, in, out)
}

// notPassed are flags that are not for what is behind: that is memory.
const notPassed = syscall.O_DIRECT | syscall.O_SYNC

func (n *node) slow(f fs.FileHandle, flags uint32) (fs.FileHandle, syscall.Errno) {
	loop, ok := f.(*fs.LoopbackFile)
	if !ok {
		return nil, syscall.EIO
	}
	fd, ok := loop.PassthroughFd()
	if !ok {
		return nil, syscall.EBADF
	}
	return &file{LoopbackFile: loop, fd: fd, node: n, sync: flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0}, 0
}

// file is an open file that takes its time. Each request is done first, and then held:
// so what it costs here is part of the modelled time.
type file struct {
	*fs.LoopbackFile
	fd   int // of LoopbackFile, which is open as long as this is
	node *node
	sync bool // each write is flushed
}

var (
	_ fs.FileReader    = (*file)(nil)
	_ fs.FileWriter    = (*file)(nil)
	_ fs.FileFsyncer   = (*file)(nil)
	_ fs.FileAllocater = (*file)(nil)
)

func (f *file) Read(_ context.Context, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	d := f.node.device
	now := d.clock.now()
	n, err := syscall.Pread(f.fd, b, off)
	if err != nil {
		return nil, fs.ToErrno(err)
	}
	if n > 0 { // behind the end there is nothing to get
		d.clock.until(d.transferred(now, &f.node.content, off, int64(n), false))
	}
	return fuse.ReadResultData(b[:n]), 0
}

func (f *file) Write(_ context.Context, b []byte, off int64) (uint32, syscall.Errno) {
	d := f.node.device
	done := d.transferred(d.clock.now(), &f.node.content, off, int64(len(b)), true)
	n, err := syscall.Pwrite(f.fd, b, off)
	if err != nil {
		return 0, fs.ToErrno(err)
	}
	if f.sync {
		done = d.flushed(done, &f.node.content)
	}
	d.clock.until(done)
	return uint32(n), 0
}

// Allocate takes no time, but has to be flushed.
func (f *file) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	f.node.device.written(&f.node.content)
	return f.LoopbackFile.Allocate(ctx, off, size, mode)
}

// Flush is that of close(2): it has nothing to wait for.
func (f *file) Flush(context.Context) syscall.Errno { return 0 }

// Fsync is fsync(2) and fdatasync(2).
func (f *file) Fsync(context.Context, uint32) syscall.Errno {
	d := f.node.device
	d.clock.until(d.flushed(d.clock.now(), &f.node.content))
	return 0
}

// PassthroughFd keeps the kernel from reading and writing what is behind by itself.
func (f *file) PassthroughFd() (int, bool) { return 0, false }
