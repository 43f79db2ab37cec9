// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// attributes sets what is known of an entry that is otherwise complete. The order
// matters: changing the owner clears set-id bits and capabilities, the mode may take
// away the right to set extended attributes, and everything changes the time.
// fd is the open file of a regular file, or -1.
func (r *restorer) attributes(dir int, name string, fd int, e *Entry) error {
	if e.Has(KnownOwner) && r.superuser {
		err := unix.Fchownat(dir, name, int(e.UID), int(e.GID), unix.AT_SYMLINK_NOFOLLOW)
		switch err {
		case nil:
		case unix.EPERM, unix.EINVAL: // ids that this user namespace or server does not have
			r.problem("owner", e.Path, err)
		default:
			return fmt.Errorf("set owner: %w", err)
		}
	}
	if e.Has(KnownXattrs) {
		if err := r.xattrs(dir, name, e); err != nil {
			return err
		}
	}
	if err := r.mode(dir, name, fd, e); err != nil {
		return fmt.Errorf("set mode %04o: %w", e.Mode, err)
	}
	if e.Has(KnownMTime) {
		times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(e.MTime)}
		if err := unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("set time: %w", err)
		}
	}
	return nil
}

func (r *restorer) mode(dir int, name string, fd int, e *Entry) error {
	mode := e.Mode
	switch {
	case e.Type == Symlink:
		return nil
	case e.Has(KnownMode):
	case e.Type == Dir:
		return nil // mkdir did it
	default:
		mode = 0o644
	}
	if fd >= 0 {
		return unix.Fchmod(fd, mode)
	}
	return chmodAt(dir, name, mode)
}

// xattrs makes the set of extended attributes what the manifest says, as far as this
// file system and user allow.
func (r *restorer) xattrs(dir int, name string, e *Entry) error {
	path := magicPath(dir, name)
	have, err := xattrNames(path)
	if err == unix.ENOENT && len(e.Xattrs) == 0 {
		return nil // no /proc, and nothing to do
	}
	if err != nil {
		r.problem("list of xattrs", e.Path, err)
	}
	for _, attr := range have {
		if _, ok := e.Xattrs[attr]; ok || !removable(attr) {
			continue
		}
		if err := unix.Lremovexattr(path, attr); err != nil && err != unix.ENODATA {
			r.problem("removal of inherited xattr "+class(attr), e.Path, err)
		}
	}
	for _, attr := range slices.Sorted(maps.Keys(e.Xattrs)) {
		value := e.Xattrs[attr]
		if slices.Contains(have, attr) {
			old, err := grow(func(buf []byte) (int, error) { return unix.Lgetxattr(path, attr, buf) })
			if err == nil && bytes.Equal(old, value) {
				continue
			}
		}
		err := unix.Lsetxattr(path, attr, value, 0)
		switch {
		case err == nil:
		case refused(err):
			r.problem("xattr "+class(attr), e.Path, err)
		default:
			return fmt.Errorf("set extended attribute %s: %w", clip(attr), err)
		}
	}
	return nil
}

// removable tells attributes that a new file inherits from its directory, or that an
// older directory brought along. Labels of security modules are the machine's matter.
func removable(attr string) bool {
	return strings.HasPrefix(attr, "user.") || strings.HasPrefix(attr, "system.posix_acl_")
}

// class is the part of an attribute's name that decides who handles it.
func class(attr string) string {
	name, _, _ := strings.Cut(attr, ".")
	return strings.Trim(clip(name), `"`)
}

// refused reports errors that mean that a file system or user cannot have this
// attribute, as against something being broken.
func refused(err error) bool {
	for _, e := range []error{unix.EOPNOTSUPP, unix.EPERM, unix.EACCES, unix.EINVAL, unix.E2BIG,
		unix.ERANGE, unix.ENOSPC, unix.ENOENT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
