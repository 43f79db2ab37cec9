// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
)

// clone makes a part of one file share another's content or, where the file system cannot
// do that, copies it.
func (w *worker) clone(t *plan.Task) {
	c, _ := t.Event.Cloned()
	dst, src := t.Files.FDs[0].FD, t.Files.Others[0].FD
	err := unix.IoctlFileCloneRange(dst, &unix.FileCloneRange{
		Src_fd: int64(src), Src_offset: uint64(c.Off), Src_length: uint64(c.Len), Dest_offset: uint64(c.At),
	})
	if err == nil {
		return
	}
	if err2 := w.copyRange(src, dst, &c); err2 != nil {
		w.env.check.Mismatch(t, "errno", "0", result.ErrorName(err2))
		return
	}
	w.lacks(fmt.Errorf("share content between files: %w", err), "it is copied instead")
}

// copyRange copies what a clone would share. Holes stay holes: they can be larger than any
// disk.
func (w *worker) copyRange(src, dst int, c *event.Cloned) error {
	var from, to unix.Stat_t
	if err := unix.Fstat(src, &from); err != nil {
		return err
	}
	if err := unix.Fstat(dst, &to); err != nil {
		return err
	}
	n := from.Size - c.Off
	if c.Len > 0 {
		n = min(n, c.Len)
	}
	if n <= 0 || from.Dev == to.Dev && from.Ino == to.Ino && c.Off == c.At {
		return nil
	}
	cleared, err := clearRange(dst, c.At, n, to.Size)
	if err != nil {
		return err
	}
	position, err := unix.Seek(src, 0, unix.SEEK_CUR) // is the program's; to look for holes moves it
	if err != nil {
		return err
	}
	defer unix.Seek(src, position, unix.SEEK_SET)
	for at, end := c.Off, c.Off+n; at < end && !w.env.halted(); {
		data, hole := at, end
		if cleared {
			if data, err = unix.Seek(src, at, unix.SEEK_DATA); err == unix.ENXIO || data >= end {
				return nil // only a hole follows
			} else if err != nil {
				return err
			}
			if hole, err = unix.Seek(src, data, unix.SEEK_HOLE); err != nil {
				return err
			}
		}
		out := c.At + data - c.Off
		k, err := unix.CopyFileRange(src, &data, dst, &out, int(min(hole, end, data+1<<30)-data), 0)
		if err != nil {
			return err
		}
		if k == 0 {
			return nil
		}
		at = data
	}
	return nil
}

// clearRange makes a range of a file of the given size a hole, and the file that long. It
// reports false if the file system has no such call: then there is something in the range.
func clearRange(fd int, at, n, size int64) (bool, error) {
	if at+n > size {
		if err := unix.Ftruncate(fd, at+n); err != nil {
			return false, err
		}
	}
	if at >= size {
		return true, nil
	}
	const punch = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	return unix.Fallocate(fd, punch, at, n) == nil, nil
}

// dedupe has files share what is equal in them. Where the file system cannot do that, they
// hold the same without.
func (w *worker) dedupe(t *plan.Task) {
	off, n, with := t.Event.Deduped()
	r := unix.FileDedupeRange{Src_offset: uint64(off), Src_length: uint64(n)}
	for i, h := range t.Files.Others {
		if h != nil && h.FD >= 0 {
			r.Info = append(r.Info, unix.FileDedupeRangeInfo{Dest_fd: int64(h.FD), Dest_offset: uint64(with[i].Off)})
		}
	}
	err := unix.IoctlFileDedupeRange(t.Files.FDs[0].FD, &r)
	for i := range r.Info {
		if s := r.Info[i].Status; err == nil && s < 0 {
			err = unix.Errno(-s)
		}
	}
	if err != nil {
		w.lacks(fmt.Errorf("have files share what is equal: %w", err), "they do not share it")
	}
}
