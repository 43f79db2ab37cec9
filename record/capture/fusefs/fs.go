// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// FS is the file system: requests of the kernel on one side, calls on the lower
// directory on the other, and a record of each.
type FS struct {
	fuse.RawFileSystem // what is not implemented
	lowerPath          string
	cache              time.Duration
	procFD             int // of /proc/self/fd
	self               identity
	arch               event.Arch
	nodes              nodes
	files              files
	who                callers
	rec                dispatcher
	act                *actors
	xattrExt           bool // setting an attribute has flags (CAP_SETXATTR_EXT)
	// direct is set if reads and writes are requests as the callers made them. Kernels
	// before 6.6 cannot map such files: there, they go through the page cache.
	direct bool
}

var errNoProc = errors.New("/proc is not mounted, or not this system's")

// newFS takes a descriptor of the lower directory, which is its own from then on.
func newFS(lower int, path string, cache time.Duration) (*FS, error) {
	fs := &FS{RawFileSystem: fuse.NewDefaultRawFileSystem(), lowerPath: path, cache: cache, act: newActors(),
		arch: nativeArch()}
	var st unix.Stat_t
	if err := unix.Fstat(lower, &st); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var err error
	if fs.procFD, err = unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return nil, errNoProc
	}
	if fs.self, err = fs.who.own(); err != nil {
		return nil, err
	}
	fs.rec.init()
	fs.nodes.init(lower, &st)
	return fs, nil
}

func nativeArch() event.Arch {
	a, _ := event.ParseArch(runtime.GOARCH)
	return a
}

func (fs *FS) close() {
	fs.act.close()
	fs.files.close()
	fs.nodes.close()
	fs.who.close()
	unix.Close(fs.procFD)
}

func (fs *FS) String() string { return "iotape" }

// begin starts a call for a request.
func (fs *FS) begin(h *fuse.InHeader, op event.Op) *call {
	who, dead := fs.who.of(&fs.self, h.Pid, h.Uid, h.Gid)
	if len(dead) > 0 {
		fs.rec.gone(dead)
	}
	return fs.call(who, op)
}

// lowerName is the absolute name of a path below the lower directory.
func (fs *FS) lowerName(path string) string {
	switch {
	case path == ".":
		return fs.lowerPath
	case fs.lowerPath == "/":
		return "/" + path
	}
	return fs.lowerPath + "/" + path
}

// reopen opens the file of a descriptor again, with other flags.
func (fs *FS) reopen(fd int, flags int) (int, error) {
	return openat(fs.procFD, strconv.Itoa(fd), flags, 0)
}

// link is a name that leads to a node's file, for calls that take no descriptor of the
// kind that nodes have. It is not followed further if the file is a symbolic link.
func (n *node) link() string { return "/proc/self/fd/" + strconv.Itoa(n.fd) }

// attr fills a reply with a file's attributes.
func (fs *FS) attr(st *unix.Stat_t, a *fuse.Attr) {
	*a = fuse.Attr{
		Ino: fs.inode(st), Size: uint64(st.Size), Blocks: uint64(st.Blocks),
		Atime: uint64(st.Atim.Sec), Mtime: uint64(st.Mtim.Sec), Ctime: uint64(st.Ctim.Sec),
		Atimensec: uint32(st.Atim.Nsec), Mtimensec: uint32(st.Mtim.Nsec), Ctimensec: uint32(st.Ctim.Nsec),
		Mode: st.Mode, Nlink: uint32(st.Nlink), Owner: fuse.Owner{Uid: st.Uid, Gid: st.Gid},
		Rdev: newDev(st.Rdev), Blksize: uint32(st.Blksize),
	}
}

// newDev is a device number as FUSE has it (new_encode_dev, linux/kdev_t.h).
func newDev(dev uint64) uint32 {
	major, minor := unix.Major(dev), unix.Minor(dev)
	return minor&0xff | major<<8 | (minor&^0xff)<<12
}

// inode returns the number that callers see: the lower one. Those of file systems that
// are mounted below the lower directory are moved out of its way, always to the same
// place.
func (fs *FS) inode(st *unix.Stat_t) uint64 {
	if st.Dev == fs.nodes.root.dev {
		return st.Ino
	}
	const golden = 0x9e3779b97f4a7c15 // spreads numbers that are close (Fibonacci hashing)
	return st.Ino ^ st.Dev*golden&^(1<<40-1)
}

// attrTimeout is how long the kernel may use attributes that it was told: at least to the
// next tick of its clock, or it would ask again for each directory on a path, and for the
// file, that it has just looked up.
func (fs *FS) attrTimeout() time.Duration { return max(fs.cache, 1) }

func (fs *FS) entry(n *node, st *unix.Stat_t, out *fuse.EntryOut) {
	out.NodeId, out.Generation = n.id, 1
	out.SetEntryTimeout(fs.cache)
	out.SetAttrTimeout(fs.attrTimeout())
	fs.attr(st, &out.Attr)
}

func openat(dir int, path string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, path, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// retry repeats a call that a signal ended, which is the runtime's and not the caller's.
func retry(do func() error) error {
	for {
		if err := do(); err != unix.EINTR {
			return err
		}
	}
}

// errnoOf returns the number of a system call's error, 0 for nil.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return unix.EIO
}

func status(e syscall.Errno) fuse.Status { return fuse.Status(e) }
