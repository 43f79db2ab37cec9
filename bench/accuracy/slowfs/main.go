// Slowfs is a file system of a speed that is chosen: it passes everything on to a
// directory, best one in memory, and holds each read, write and flush for as long as a
// modelled device would take.
//
//	slowfs [-arms N] [-seek D] [-transfer D] BACKING MOUNTPOINT
//
// A device has N arms, of which each does one request at a time, first come first served:
// a disk has one, a flash drive many. A request that does not follow the one before on
// its arm takes the seek time; each 64 KiB take the transfer time. It writes a line when
// it is mounted, and ends with SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	var d device
	arms := flag.Int("arms", 1, "requests that are done at the same `time`")
	flag.DurationVar(&d.seek, "seek", 3*time.Millisecond, "`time` of a request that does not follow the one before on its arm")
	flag.DurationVar(&d.transfer, "transfer", 300*time.Microsecond, "`time` for each 64 KiB")
	flag.Parse()
	if flag.NArg() != 2 || *arms < 1 || *arms > 1024 || d.seek < 0 || d.transfer < 0 {
		fmt.Fprintln(os.Stderr, "usage: slowfs [-arms N] [-seek D] [-transfer D] BACKING MOUNTPOINT")
		os.Exit(2)
	}
	d.arms = make([]arm, *arms)
	if err := serve(&d, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintf(os.Stderr, "slowfs: %v\n", err)
		os.Exit(1)
	}
}

func serve(d *device, backing, mountpoint string) error {
	root, err := fs.NewLoopbackRoot(backing)
	if err != nil {
		return fmt.Errorf("%s: %w", backing, err)
	}
	loop, ok := root.(*fs.LoopbackNode)
	if !ok {
		return fmt.Errorf("%s: a loopback of type %T", backing, root)
	}
	top := &node{loop, d}
	loop.RootData.RootNode = top
	server, err := fs.Mount(mountpoint, top, &fs.Options{MountOptions: fuse.MountOptions{FsName: "slowfs", Name: "slowfs", DirectMount: true}})
	if err != nil {
		return fmt.Errorf("mount %s: %w", mountpoint, err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for range stop {
			_ = server.Unmount() // EBUSY: the next signal tries again
		}
	}()
	fmt.Println("mounted")
	server.Wait()
	return nil
}

// node is a file or directory.
type node struct {
	*fs.LoopbackNode
	device *device
}

var (
	_ fs.NodeOpener      = (*node)(nil)
	_ fs.NodeCreater     = (*node)(nil)
	_ fs.NodeWrapChilder = (*node)(nil)
)

// WrapChild makes what is found below slow as well.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	if below, ok := ops.(*fs.LoopbackNode); ok {
		return &node{below, n.device}
	}
	return ops
}

// Open has no pages cached: every read comes here.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	// Direct I/O is not for what is behind: that is memory.
	f, out, errno := n.LoopbackNode.Open(ctx, flags&^syscall.O_DIRECT)
	if errno != 0 {
		return nil, 0, errno
	}
	return n.slow(f), out | fuse.FOPEN_DIRECT_IO, 0
}

// Create is Open of a new file.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, f, flagsOut, errno := n.LoopbackNode.Create(ctx, name, flags&^syscall.O_DIRECT, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	child, _ := inode.Operations().(*node)
	if child == nil {
		child = n
	}
	return inode, child.slow(f), flagsOut | fuse.FOPEN_DIRECT_IO, 0
}

func (n *node) slow(f fs.FileHandle) fs.FileHandle {
	return &file{FileHandle: f, device: n.device, inode: n.StableAttr().Ino}
}

// file is an open file that takes its time.
type file struct {
	fs.FileHandle
	device *device
	inode  uint64
}

var (
	_ fs.FileReader   = (*file)(nil)
	_ fs.FileWriter   = (*file)(nil)
	_ fs.FileFsyncer  = (*file)(nil)
	_ fs.FileReleaser = (*file)(nil)
)

func (f *file) Read(ctx context.Context, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f.device.hold(f.inode, off, int64(len(b)))
	return f.FileHandle.(fs.FileReader).Read(ctx, b, off)
}

func (f *file) Write(ctx context.Context, b []byte, off int64) (uint32, syscall.Errno) {
	f.device.hold(f.inode, off, int64(len(b)))
	return f.FileHandle.(fs.FileWriter).Write(ctx, b, off)
}

// Fsync waits for nothing: writes are done when they return.
func (f *file) Fsync(context.Context, uint32) syscall.Errno { return 0 }

func (f *file) Release(ctx context.Context) syscall.Errno {
	return f.FileHandle.(fs.FileReleaser).Release(ctx)
}

// device is what the requests are for.
type device struct {
	seek, transfer time.Duration

	mu   sync.Mutex
	arms []arm
}

// arm is where an arm is, and when it has done all that it was given.
type arm struct {
	inode uint64
	off   int64
	free  time.Time
}

const unit = 64 << 10 // bytes of a transfer

// hold waits until a request would be done.
func (d *device) hold(inode uint64, off, n int64) {
	time.Sleep(time.Until(d.schedule(time.Now(), inode, off, n)))
}

// schedule gives a request to the arm that is free first, and returns when it is done.
func (d *device) schedule(now time.Time, inode uint64, off, n int64) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := &d.arms[0]
	for i := range d.arms {
		if d.arms[i].free.Before(a.free) {
			a = &d.arms[i]
		}
	}
	took := time.Duration(n) * d.transfer / unit
	if len(d.arms) > 1 || a.inode != inode || a.off != off {
		took += d.seek
	}
	if a.free.Before(now) {
		a.free = now
	}
	a.inode, a.off, a.free = inode, off+n, a.free.Add(took)
	return a.free
}
