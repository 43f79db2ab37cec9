// SPDX-License-Identifier: Apache-2.0

package wholefile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is wrapped by errors about links, directories, FIFOs, sockets and devices
// where a regular file is expected.
var ErrNotRegular = errors.New("not a regular file")

// tempSuffix ends the names of temporary files: BASE.<12 hexadecimal digits>.tmp.
const tempSuffix = ".tmp"

// tempDigits is how many hexadecimal digits the name of a temporary file has.
const tempDigits = 12

// Open opens the regular file name in the directory dir for reading. It does not follow
// name if that is a symbolic link, and does not wait for the writer of a FIFO: both are
// errors that wrap ErrNotRegular.
func Open(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, notRegular(path)
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !st.Mode().IsRegular() {
		f.Close()
		return nil, notRegular(path)
	}
	return f, nil
}

// OpenGiven opens a file that the user has named for reading. If it is a FIFO it waits for a writer, until the context
// ends.
func OpenGiven(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		return nil, ctx.Err() // nobody can end the open: it waits until the process ends
	}
}

// notRegular says what is at path instead of a regular file.
func notRegular(path string) error {
	kind := "something else"
	if st, err := os.Lstat(path); err == nil {
		switch st.Mode().Type() {
		case os.ModeSymlink:
			kind = "a symbolic link"
		case os.ModeNamedPipe:
			kind = "a FIFO"
		case os.ModeSocket:
			kind = "a socket"
		case os.ModeDir:
			kind = "a directory"
		default:
			kind = "a device"
		}
	}
	return fmt.Errorf("%s is %s: %w", path, kind, ErrNotRegular)
}

// A File is being written under a temporary name.
type File struct {
	*os.File
	path string
	done bool
}

// Create begins the file at path, in the directory of path. The caller ends it with Commit
// or CommitNew, and calls Close in any case. Its mode is 0666 less the umask.
func Create(path string) (*File, error) { return create(path, 0o666) }

func create(path string, perm os.FileMode) (*File, error) {
	for {
		temp, err := tempName(path)
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, perm)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, asked("create", path, err)
		}
		if lost := lock(f); lost {
			f.Close()
			continue
		}
		return &File{File: f, path: path}, nil
	}
}

// asked returns an error about a temporary file as one about the file that was asked for.
func asked(op, path string, err error) error {
	var about *os.PathError
	if errors.As(err, &about) {
		err = about.Err
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}

// Commit syncs the file and gives it its name, in place of what has it.
func (f *File) Commit() error { return f.commit(0) }

// CommitNew is Commit if nothing has the name. Else the error wraps fs.ErrExist.
func (f *File) CommitNew() error { return f.commit(unix.RENAME_NOREPLACE) }

func (f *File) commit(flags uint) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := rename(f.Name(), f.path, flags); err != nil {
		return err
	}
	f.done = true
	return SyncDir(filepath.Dir(f.path))
}

// rename is renameat2. Some file systems know no flags: there the name is looked at first.
func rename(from, to string, flags uint) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
	if flags != 0 && (err == unix.EINVAL || err == unix.ENOSYS) {
		if _, err := os.Lstat(to); err == nil {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: unix.EEXIST}
		}
		return os.Rename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// Close closes the file. Without a Commit before, it removes the file.
func (f *File) Close() error {
	var err error
	if !f.done {
		err = os.Remove(f.Name())
		f.done = true
	}
	return errors.Join(err, f.File.Close())
}

// Write gives the file at path what write writes, all or nothing. What is there and is no
// regular file, as a terminal or a pipe, is written to as it goes.
func Write(path string, write func(io.Writer) error) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	RemoveLeft(path)
	f, err := Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Commit(), f.Close())
}

// WriteBytes is Write of b.
func WriteBytes(path string, b []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// WriteNew makes the file at path with the content b. If something has the name, the error
// wraps fs.ErrExist.
func WriteNew(path string, perm os.FileMode, b []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return &os.PathError{Op: "create", Path: path, Err: unix.EEXIST}
	}
	RemoveLeft(path)
	f, err := create(path, perm)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.CommitNew(), f.Close())
}

// A NewDir is a directory that is being filled under a temporary name.
type NewDir struct {
	Temp string // where it is until CommitNew
	path string
	lock *os.File
	done bool
}

// CreateDir begins the directory at path. The caller calls Close in any case; without
// CommitNew before it removes the directory with all that is in it.
func CreateDir(path string, perm os.FileMode) (*NewDir, error) {
	for {
		temp, err := tempName(path)
		if err != nil {
			return nil, err
		}
		if err := os.Mkdir(temp, perm); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return nil, asked("mkdir", path, err)
		}
		f, err := openDir(temp)
		if errors.Is(err, os.ErrNotExist) {
			continue // another process took it for what a killed one left
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(temp))
		}
		if lost := lock(f); lost {
			f.Close()
			continue
		}
		return &NewDir{Temp: temp, path: path, lock: f}, nil
	}
}

// CommitNew gives the directory its name. If something has it, the error wraps fs.ErrExist.
func (d *NewDir) CommitNew() error {
	if err := rename(d.Temp, d.path, unix.RENAME_NOREPLACE); err != nil {
		return err
	}
	d.done = true
	return SyncDir(filepath.Dir(d.path))
}

// Close ends the work on the directory.
func (d *NewDir) Close() error {
	var err error
	if !d.done {
		d.done = true
		err = os.RemoveAll(d.Temp)
	}
	return errors.Join(err, d.lock.Close())
}

// TempDir makes a directory for temporary files below os.TempDir, which Close removes. It
// first removes those of the same name whose makers were killed.
func TempDir(name string) (*NewDir, error) {
	path := filepath.Join(os.TempDir(), name)
	RemoveLeft(path)
	return CreateDir(path, 0o700)
}

// RemoveLeft removes the temporary files and directories for path that nobody writes any
// more: their makers were killed.
func RemoveLeft(path string) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), base+".")
		if !ok {
			continue
		}
		if digits, ok = strings.CutSuffix(digits, tempSuffix); !ok || len(digits) != tempDigits {
			continue
		}
		if _, err := hex.DecodeString(digits); err != nil {
			continue
		}
		name := filepath.Join(dir, e.Name())
		switch {
		case e.Type().IsRegular():
			if f, err := Open(dir, e.Name()); err == nil {
				if tryLock(f) {
					os.Remove(name)
				}
				f.Close()
			}
		case e.IsDir():
			if f, err := openDir(name); err == nil {
				if tryLock(f) {
					os.RemoveAll(name)
				}
				f.Close()
			}
		}
	}
}

// A Dir is a directory that its maker holds a lock on.
type Dir struct{ f *os.File }

// ErrInUse is wrapped by the error about a directory that another process holds.
var ErrInUse = errors.New("in use by another process")

// LockDir locks a directory, so that other processes find it in use. The error wraps
// ErrInUse if another one holds it. Where locks are not supported, it locks nothing.
func LockDir(path string) (*Dir, error) {
	f, err := openDir(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == unix.EWOULDBLOCK {
		f.Close()
		return nil, fmt.Errorf("%s is %w", path, ErrInUse)
	}
	return &Dir{f}, nil
}

// Unlock ends the lock.
func (d *Dir) Unlock() error { return d.f.Close() }

func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func tempName(path string) (string, error) {
	var b [tempDigits / 2]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return path + "." + hex.EncodeToString(b[:]) + tempSuffix, nil
}

// lock waits for the lock of a temporary file that was just made. lost is true if another
// process has removed it in between.
func lock(f *os.File) (lost bool) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return false // not supported here: nothing is removed either
	}
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) != nil || st.Nlink == 0
}

// tryLock takes the lock of a temporary file, if nobody has it.
func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
