// SPDX-License-Identifier: Apache-2.0

package wholefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrStrange is wrapped by errors about files that somebody else may have put, or may write, where a program keeps
// its own.
var ErrStrange = errors.New("not a file of this program alone")

// OpenBelow opens the regular file name below the directory root, with flags and mode as in os.OpenFile. No part of
// name may be a symbolic link or "..". It waits for no FIFO. A file that is opened for writing must have one name
// only: another one may be that of a file elsewhere. O_TRUNC takes effect after these checks.
func OpenBelow(root, name string, flag int, perm os.FileMode) (*os.File, error) {
	truncate := flag&os.O_TRUNC != 0
	f, err := openBelow(root, name, flag&^os.O_TRUNC|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
	if err != nil {
		return nil, err
	}
	if err = checkOwn(f, flag&(os.O_WRONLY|os.O_RDWR) != 0); err == nil && truncate {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkOwn checks the open file itself, which nobody can replace any more.
func checkOwn(f *os.File, write bool) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return notRegular(f.Name())
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && write && st.Nlink > 1 {
		return fmt.Errorf("%s has %d names (hard links): %w", f.Name(), st.Nlink, ErrStrange)
	}
	return nil
}

// ReadBelow returns the content of the regular file name below the directory root. More than max bytes are an error.
func ReadBelow(root, name string, max int64) ([]byte, error) {
	f, err := OpenBelow(root, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fmt.Errorf("%s has more than %d bytes", f.Name(), max)
	}
	return b, err
}

// DirBelow opens the directory name below the directory root. No part of name may be a symbolic link or "..".
func DirBelow(root, name string) (*os.File, error) {
	return openBelow(root, name, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// MkdirBelow makes the directory name below the directory root, with the directories on the way to it.
func MkdirBelow(root, name string, perm os.FileMode) error {
	if err := os.MkdirAll(root, perm); err != nil {
		return err
	}
	parent := "."
	for part := range strings.SplitSeq(filepath.Clean(name), "/") {
		d, err := DirBelow(root, parent)
		if err != nil {
			return err
		}
		err = unix.Mkdirat(int(d.Fd()), part, uint32(perm.Perm()))
		d.Close()
		parent = filepath.Join(parent, part)
		if err != nil && err != unix.EEXIST {
			return &fs.PathError{Op: "mkdir", Path: filepath.Join(root, parent), Err: err}
		}
	}
	d, err := DirBelow(root, parent) // not what else has its name
	if err != nil {
		return err
	}
	return d.Close()
}

// RenameBelow renames a file or directory below the directory root to another name below it. A symbolic link in the
// place of from is renamed itself, one on the way to it is an error.
func RenameBelow(root, from, to string) error {
	a, err := DirBelow(root, filepath.Dir(from))
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := DirBelow(root, filepath.Dir(to))
	if err != nil {
		return err
	}
	defer b.Close()
	if err := unix.Renameat(int(a.Fd()), filepath.Base(from), int(b.Fd()), filepath.Base(to)); err != nil {
		return &os.LinkError{Op: "rename", Old: filepath.Join(root, from), New: filepath.Join(root, to), Err: err}
	}
	return nil
}

// openBelow opens what is below a directory, and follows no link on the way.
func openBelow(root, name string, flag int, perm os.FileMode) (*os.File, error) {
	path := filepath.Join(root, name)
	if !filepath.IsLocal(name) {
		return nil, &fs.PathError{Op: "open", Path: root + "/" + name, Err: unix.EXDEV}
	}
	top, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(top)
	how := unix.OpenHow{
		Flags:   uint64(flag | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	if flag&os.O_CREATE != 0 {
		how.Mode = uint64(perm.Perm())
	}
	fd, err := unix.Openat2(top, name, &how)
	for err == unix.EAGAIN || err == unix.EINTR { // a rename meanwhile
		fd, err = unix.Openat2(top, name, &how)
	}
	if err == unix.ENOSYS || err == unix.EPERM { // before Linux 5.6, or a filter that does not know the call
		fd, err = walk(top, filepath.Clean(name), int(how.Flags), perm)
	}
	if err == unix.ELOOP || err == unix.ENXIO || err == unix.ENODEV || err == unix.ENOTDIR {
		return nil, strange(root, name, err)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// walk opens part by part what Openat2 opens at once.
func walk(top int, name string, flag int, perm os.FileMode) (int, error) {
	parts := strings.Split(name, "/")
	at := top
	for i, part := range parts {
		last := i == len(parts)-1
		f, mode := unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(0)
		if last {
			f, mode = flag, uint32(perm.Perm())
		}
		fd, err := unix.Openat(at, part, f, mode)
		if at != top {
			unix.Close(at)
		}
		if err != nil || last {
			return fd, err
		}
		at = fd
	}
	return -1, unix.EINVAL
}

// strange names the first part of a path that is no directory, or no regular file.
func strange(root, name string, err error) error {
	path := root
	for part := range strings.SplitSeq(filepath.Clean(name), "/") {
		path = filepath.Join(path, part)
		if st, err := os.Lstat(path); err == nil && !st.IsDir() {
			if st.Mode().IsRegular() {
				break // and a directory is looked for
			}
			return notRegular(path)
		}
	}
	return &fs.PathError{Op: "open", Path: filepath.Join(root, name), Err: err}
}

// Below divides a path into a directory, which is the administrator's and may be a link, and the last so many parts,
// which are a program's own.
func Below(path string, parts int) (root, name string) {
	root = filepath.Clean(path)
	for range parts {
		root, name = filepath.Dir(root), filepath.Join(filepath.Base(root), name)
	}
	return root, name
}

// OpenOwn is OpenBelow of a path whose last parts are below a directory.
func OpenOwn(path string, parts, flag int, perm os.FileMode) (*os.File, error) {
	root, name := Below(path, parts)
	return OpenBelow(root, name, flag, perm)
}

// ReadOwn is ReadBelow of a path whose last parts are below a directory.
func ReadOwn(path string, parts int, max int64) ([]byte, error) {
	root, name := Below(path, parts)
	return ReadBelow(root, name, max)
}

// MkdirOwn is MkdirBelow of a path whose last parts are below a directory.
func MkdirOwn(path string, parts int, perm os.FileMode) error {
	root, name := Below(path, parts)
	return MkdirBelow(root, name, perm)
}

// ReadDirOwn lists a directory whose last parts are below a directory.
func ReadDirOwn(path string, parts int) ([]fs.DirEntry, error) {
	d, err := DirBelow(Below(path, parts))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// parentOwn opens the directory of a path whose last parts are below a directory, nil if there is none. name is the
// last part.
func parentOwn(path string, parts int) (d *os.File, name string, err error) {
	root, name := Below(path, parts)
	d, err = DirBelow(root, filepath.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	return d, filepath.Base(name), err
}

// UnlinkOwn removes a file or link, and no directory, whose last parts are below a directory. That nothing has the name
// is no error.
func UnlinkOwn(path string, parts int) error {
	d, name, err := parentOwn(path, parts)
	if err != nil || d == nil {
		return err
	}
	defer d.Close()
	if err := unix.Unlinkat(int(d.Fd()), name, 0); err != nil && err != unix.ENOENT {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

// RemoveOwn removes a file, or a directory with all that is in it, whose last parts are below a directory. It follows
// no link. That nothing has the name is no error.
func RemoveOwn(path string, parts int) error {
	d, name, err := parentOwn(path, parts)
	if err != nil || d == nil {
		return err
	}
	defer d.Close()
	r, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", d.Fd())) // that directory, and not what has its name now
	if err != nil {
		return err
	}
	defer r.Close()
	return r.RemoveAll(name)
}
