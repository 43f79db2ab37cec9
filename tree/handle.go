// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Everything below works on a directory descriptor and one name, and never follows
// the name if it is a symbolic link.

// confined is how any directory below a root is reached: the kernel refuses paths
// that leave the root or pass through any kind of link (Linux 5.6).
const confined = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// openRoot opens the directory that everything else is relative to. The caller named
// it, so here links are followed.
func openRoot(path string) (int, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, fmt.Errorf("open directory %s: %w", path, err)
	}
	return fd, nil
}

// openDir opens a directory below root. One call takes at most PATH_MAX bytes, so a
// longer path is walked in pieces.
func openDir(root int, rel string, flags int) (int, error) {
	const maxCallBytes = 4000
	at := root
	for {
		piece, rest := rel, ""
		if len(rel) > maxCallBytes {
			i := strings.LastIndexByte(rel[:maxCallBytes], '/')
			if i < 0 {
				closeUnless(at, root)
				return -1, unix.ENAMETOOLONG
			}
			piece, rest = rel[:i], rel[i+1:]
		}
		how := &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: confined,
		}
		if rest == "" {
			how.Flags = uint64(flags) | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		}
		fd, err := retry(func() (int, error) { return unix.Openat2(at, piece, how) })
		closeUnless(at, root)
		if err != nil {
			return -1, err
		}
		if rest == "" {
			return fd, nil
		}
		at, rel = fd, rest
	}
}

func closeUnless(fd, keep int) {
	if fd != keep {
		unix.Close(fd)
	}
}

// dirCache keeps the directory that was used last open, because entries come in the
// order of their directories.
type dirCache struct {
	root int
	rel  string
	fd   int
}

func newDirCache(root int) *dirCache { return &dirCache{root: root, fd: -1} }

// open returns a descriptor (O_PATH) that stays valid until the next call.
func (c *dirCache) open(rel string) (int, error) {
	if c.fd >= 0 && c.rel == rel {
		return c.fd, nil
	}
	fd, err := openDir(c.root, rel, unix.O_PATH)
	if err != nil {
		return -1, err
	}
	c.close()
	c.rel, c.fd = rel, fd
	return fd, nil
}

func (c *dirCache) close() {
	if c.fd >= 0 {
		unix.Close(c.fd)
		c.fd = -1
	}
}

// lstatAt looks at an entry without following or mounting anything.
func lstatAt(dir int, name string, st *unix.Stat_t) error {
	_, err := retry(func() (int, error) {
		return 0, unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	})
	return err
}

// openFileAt opens a regular file for reading. O_NONBLOCK keeps a fifo that was put
// there meanwhile from blocking us; O_NOATIME, where we may, leaves no trace.
func openFileAt(dir int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := retry(func() (int, error) { return unix.Openat(dir, name, flags|unix.O_NOATIME, 0) })
	if err == unix.EPERM {
		fd, err = retry(func() (int, error) { return unix.Openat(dir, name, flags, 0) })
	}
	return fd, err
}

func readlinkAt(dir int, name string) (string, error) {
	buf := make([]byte, maxTargetBytes+1)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// magicPath names an entry for the calls that take no directory descriptor. They are
// the l variants, so the last name is not followed. It needs /proc.
func magicPath(dir int, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir, name)
}

// xattrsAt reads all extended attributes. A file system without them has none.
func xattrsAt(dir int, name string) (map[string][]byte, error) {
	path := magicPath(dir, name)
	names, err := xattrNames(path)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	attrs := make(map[string][]byte, len(names))
	for _, n := range names {
		value, err := grow(func(buf []byte) (int, error) { return unix.Lgetxattr(path, n, buf) })
		switch err {
		case nil:
			attrs[n] = value
		case unix.ENODATA, unix.EOPNOTSUPP:
			// Removed meanwhile, or listed by a module that does not let it be read.
		default:
			return nil, fmt.Errorf("extended attribute %s: %w", n, err)
		}
	}
	if len(attrs) == 0 {
		return nil, nil
	}
	return attrs, nil
}

func xattrNames(path string) ([]string, error) {
	list, err := grow(func(buf []byte) (int, error) { return unix.Llistxattr(path, buf) })
	if err == unix.EOPNOTSUPP || err == nil && len(list) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	// XFS shows root its access lists a second time, in its own form.
	return slices.DeleteFunc(all, func(attr string) bool { return strings.HasPrefix(attr, "trusted.SGI_ACL_") }), nil
}

// grow calls a function that fills a buffer or says ERANGE, with larger and larger
// buffers up to the kernel's own limit. The result is not nil.
func grow(fill func([]byte) (int, error)) ([]byte, error) {
	var small [512]byte
	buf := small[:]
	for {
		n, err := fill(buf)
		if err == unix.ERANGE && len(buf) < MaxXattrBytes {
			buf = make([]byte, MaxXattrBytes)
			continue
		}
		if err != nil {
			return nil, err
		}
		return append(make([]byte, 0, n), buf[:n]...), nil
	}
}

// chmodAt sets the mode of anything but a symbolic link.
func chmodAt(dir int, name string, mode uint32) error {
	err := unix.Fchmodat(dir, name, mode, unix.AT_SYMLINK_NOFOLLOW)
	if err != unix.EOPNOTSUPP {
		return err
	}
	return chmodPinned(dir, name, mode)
}

// chmodPinned is for Linux before 6.6, where no call takes that flag: a descriptor
// pins the inode, and its name in /proc leads nowhere else.
func chmodPinned(dir int, name string, mode uint32) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
}

// names lists a directory, in no order. It takes over the descriptor.
func names(fd int, path string) ([]string, error) {
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	list, err := f.Readdirnames(-1)
	if err != nil {
		return nil, bare(err)
	}
	return list, nil
}

// pseudo are the file systems whose files are not stored data: reading them has
// effects, never ends, or says something about the machine and not about the tree.
var pseudo = map[int64]string{
	unix.AAFS_MAGIC: "apparmorfs", unix.ANON_INODE_FS_MAGIC: "anon_inodefs",
	unix.AUTOFS_SUPER_MAGIC: "autofs", unix.BINDERFS_SUPER_MAGIC: "binder",
	unix.BINFMTFS_MAGIC: "binfmt_misc", unix.BPF_FS_MAGIC: "bpf",
	unix.CGROUP_SUPER_MAGIC: "cgroup", unix.CGROUP2_SUPER_MAGIC: "cgroup2",
	unix.DEBUGFS_MAGIC: "debugfs", unix.DEVPTS_SUPER_MAGIC: "devpts",
	unix.EFIVARFS_MAGIC: "efivarfs", unix.NSFS_MAGIC: "nsfs",
	unix.PROC_SUPER_MAGIC: "proc", unix.PSTOREFS_MAGIC: "pstore",
	unix.RDTGROUP_SUPER_MAGIC: "resctrl", unix.SECURITYFS_MAGIC: "securityfs",
	unix.SELINUX_MAGIC: "selinuxfs", unix.SMACK_MAGIC: "smackfs",
	unix.SYSFS_MAGIC: "sysfs", unix.TRACEFS_MAGIC: "tracefs",
	unix.USBDEVICE_SUPER_MAGIC: "usbdevfs",
	0x62656570:                 "configfs", // these three are in no header of the library
	0x65735543:                 "fusectl",
	0x19800202:                 "mqueue",
}

// pseudoName returns the name of the pseudo file system that a descriptor is on, ""
// for a real one.
func pseudoName(fd int) (string, error) {
	var fs unix.Statfs_t
	_, err := retry(func() (int, error) { return 0, unix.Fstatfs(fd, &fs) })
	// The mask undoes the sign extension where the field has 32 bits.
	return pseudo[int64(fs.Type)&0xffffffff], err
}

func typeOf(mode uint32) (Type, bool) {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File, true
	case unix.S_IFDIR:
		return Dir, true
	case unix.S_IFLNK:
		return Symlink, true
	case unix.S_IFIFO:
		return FIFO, true
	case unix.S_IFSOCK:
		return Socket, true
	case unix.S_IFCHR:
		return CharDev, true
	case unix.S_IFBLK:
		return BlkDev, true
	}
	return 0, false
}

// retry repeats a call that a signal interrupted, or that openat2 could not decide
// because of a rename at the same moment.
func retry[T any](call func() (T, error)) (T, error) {
	const maxTries = 100 // a storm of renames must not hold us forever
	for range maxTries - 1 {
		v, err := call()
		if err != unix.EINTR && err != unix.EAGAIN {
			return v, err
		}
	}
	return call()
}

// bare takes the operation and path away from an error of package os, because the
// messages here carry their own.
func bare(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var se *os.SyscallError
	if errors.As(err, &se) {
		return se.Err
	}
	return err
}

// exhausted reports errors that say something about this process and not about one
// file, so that going on would only repeat them.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// gone reports errors that mean that a name no longer leads anywhere.
func gone(err error) bool {
	return err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP
}
