// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// RestoreOptions change how a tree is recreated. Nil recreates all.
type RestoreOptions struct {
	// NoDevices leaves out character and block devices even as root. Set it for
	// manifests of unknown origin: a node is a way out of any directory.
	NoDevices bool
	// BlankDevices makes them with number 0:0, which leads to no driver.
	BlankDevices bool

	// Progress, if not nil, is told now and then, and at the end, how many entries
	// were created and how many bytes of content written.
	Progress func(entries int, bytes int64)
}

// RestoreReport says what was made, and what could not be made here, or not all of it,
// although everything went well otherwise.
type RestoreReport struct {
	Entries  int
	Bytes    int64 // of content written; holes do not count
	Problems []Problem
}

// Problem is one kind of thing that this file system or user does not allow.
type Problem struct {
	Kind  string // for example "xattr user" or "character device"
	Err   error  // the first one
	Path  string // where it came up first
	Count int
}

// String describes the problem in one line.
func (p Problem) String() string {
	more := ""
	if p.Count > 1 {
		more = fmt.Sprintf(" and %d more", p.Count-1)
	}
	return fmt.Sprintf("%s: %v (%s%s)", p.Kind, p.Err, clip(p.Path), more)
}

// errSymlinkWay replaces the kernel's ELOOP or EXDEV.
var errSymlinkWay = errors.New("the way there is not a plain directory inside the root")

// Restore recreates the manifest's tree under root, which is created if it is
// missing and should be empty: what exists already is an error, except for
// directories. Absolute paths are put under root too. Directories above the first
// entry that the manifest does not have are made with mode 0755; an unknown mode is
// 0644 for files and 0755 for directories. Owners are set only by root, and devices
// made only by root; another user gets what he may, in silence for owners, as a
// Problem for the rest.
//
// content returns the chunk with an id; it may return the same buffer every time.
// After an error part of the tree is there, with preliminary modes and times.
func Restore(ctx context.Context, m *Manifest, root string, content func(id uint64) ([]byte, error),
	opt *RestoreOptions) (*RestoreReport, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("restore to %s: %w", root, err)
	}
	return restore(ctx, m.all(), func(*Entry) error { return nil }, root, content, opt)
}

// RestoreEntries is Restore for a tree of which not all is in memory at once: each entry
// need be valid only until the next. An entry that is not valid ends it where it comes,
// and so does a link to one whose Nlink is not above 1.
func RestoreEntries(ctx context.Context, entries iter.Seq[*Entry], root string, content func(id uint64) ([]byte, error),
	opt *RestoreOptions) (*RestoreReport, error) {
	var c checker
	linked := map[string]*Entry{} // first names of those that have several
	find := func(path string) *Entry { return linked[path] }
	check := func(e *Entry) error {
		if e.Link == "" && e.Has(KnownLinks) && e.Nlink > 1 {
			linked[e.Path] = &Entry{Type: e.Type, Known: KnownLinks}
		}
		return c.check(e, find)
	}
	return restore(ctx, entries, check, root, content, opt)
}

func restore(ctx context.Context, entries iter.Seq[*Entry], check func(*Entry) error, root string,
	content func(uint64) ([]byte, error), opt *RestoreOptions) (*RestoreReport, error) {
	r := &restorer{ctx: ctx, content: content, superuser: os.Geteuid() == 0, problems: map[string]int{}}
	if opt != nil {
		r.opt = *opt
	}
	if err := unix.Mkdir(root, 0o755); err != nil && err != unix.EEXIST {
		return nil, fmt.Errorf("create directory %s: %w", root, err)
	}
	fd, err := openRoot(root)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	defer unix.Close(fd)
	r.root, r.dirs = fd, newDirCache(fd)
	defer r.dirs.close()
	if err := r.run(entries, check); err != nil {
		return nil, fmt.Errorf("restore to %s: %w", root, err)
	}
	return &r.report, nil
}

type restorer struct {
	ctx       context.Context
	content   func(uint64) ([]byte, error)
	opt       RestoreOptions
	superuser bool
	root      int
	dirs      *dirCache
	report    RestoreReport
	problems  map[string]int  // kind to index in report.Problems
	skipped   map[string]bool // paths that were not made, so that nothing is linked to them
	without   string          // the last directory that was not made, so that nothing is made below
	buf       []byte
}

func (r *restorer) run(entries iter.Seq[*Entry], check func(*Entry) error) error {
	var dirs []Entry
	for e := range entries {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := check(e); err != nil {
			return err
		}
		if r.without != "" && isAncestor(r.without, e.Path) {
			continue
		}
		if err := r.create(e); err != nil {
			kind, why := lacking(e, err)
			if kind == "" {
				return fmt.Errorf("%s %s: %w", e.Type, clip(e.Path), err)
			}
			r.problem(kind, e.Path, why)
			r.skip(e)
			continue
		}
		if e.Type == Dir && e.Known&(KnownMode|KnownOwner|KnownXattrs|KnownMTime) != 0 {
			dirs = append(dirs, *e)
		}
		if r.report.Entries++; r.report.Entries%progressEntries == 1 {
			r.progress()
		}
	}
	// Directories last and from the bottom up: making children needs write permission
	// and changes the time, and an inherited access list would go on to them.
	for i := len(dirs) - 1; i >= 0; i-- {
		e := &dirs[i]
		if err := r.ctx.Err(); err != nil {
			return err
		}
		dir, name, err := r.parent(e)
		if err == nil {
			err = r.attributes(dir, name, -1, e)
		}
		if err != nil {
			return fmt.Errorf("directory %s: %w", clip(e.Path), err)
		}
	}
	r.progress()
	return nil
}

// all returns the entries one by one.
func (m *Manifest) all() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for i := range m.Entries {
			if !yield(&m.Entries[i]) {
				return
			}
		}
	}
}

func (r *restorer) progress() {
	if r.opt.Progress != nil {
		r.opt.Progress(r.report.Entries, r.report.Bytes)
	}
}

// create makes one entry, and completes it unless it is a directory.
func (r *restorer) create(e *Entry) error {
	dir, name, err := r.parent(e)
	if err != nil {
		return err
	}
	if e.Link != "" {
		return r.link(e, dir, name)
	}
	switch e.Type {
	case Dir:
		return r.mkdir(e, dir, name)
	case File:
		return r.file(e, dir, name)
	case Symlink:
		err = unix.Symlinkat(e.Target, dir, name)
	case FIFO:
		err = unix.Mknodat(dir, name, unix.S_IFIFO|0o600, 0)
	case Socket:
		err = unix.Mknodat(dir, name, unix.S_IFSOCK|0o600, 0)
	case CharDev, BlkDev:
		made, err := r.device(e, dir, name)
		if err != nil || !made {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return r.attributes(dir, name, -1, e)
}

// parent opens the directory that holds an entry, and makes it if the manifest begins
// further down.
func (r *restorer) parent(e *Entry) (int, string, error) {
	rel, name := splitRelative(relative(e.Path))
	fd, err := r.dirs.open(rel)
	if err == unix.ENOENT {
		if err = r.mkdirAll(rel); err == nil {
			fd, err = r.dirs.open(rel)
		}
	}
	if err == unix.ELOOP || err == unix.EXDEV || err == unix.ENOTDIR {
		err = errSymlinkWay
	}
	if err != nil {
		return -1, "", fmt.Errorf("open its directory: %w", err)
	}
	return fd, name, nil
}

func (r *restorer) mkdirAll(rel string) error {
	for i := range len(rel) + 1 {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		up, name := splitRelative(rel[:i])
		fd, err := r.dirs.open(up)
		if err != nil {
			return err
		}
		err = unix.Mkdirat(fd, name, 0o755)
		if err == nil {
			err = chmodAt(fd, name, 0o755) // whatever the umask is
		}
		if err != nil && err != unix.EEXIST {
			return err
		}
	}
	return nil
}

// mkdir makes a directory that we can fill; its own mode comes last. An unknown mode
// is set at once, so that a directory which was there before keeps its own.
func (r *restorer) mkdir(e *Entry, dir int, name string) error {
	if name == "." {
		return nil
	}
	err := unix.Mkdirat(dir, name, 0o700)
	if err == nil && !e.Has(KnownMode) {
		err = chmodAt(dir, name, 0o755)
	}
	if err == unix.EEXIST {
		var st unix.Stat_t
		if lstatAt(dir, name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return nil
}

func (r *restorer) file(e *Entry, dir int, name string) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	err = r.fill(fd, e)
	if attrErr := r.attributes(dir, name, fd, e); err == nil { // a file without room has them all the same
		err = attrErr
	}
	// Some file systems report a full disk only here.
	if closeErr := unix.Close(fd); err == nil && closeErr != nil && closeErr != unix.EINTR {
		err = fmt.Errorf("close: %w", closeErr)
	}
	return err
}

// fill sets the size, which makes everything a hole, and writes the chunks into it.
// Adjacent chunks are written together.
func (r *restorer) fill(fd int, e *Entry) error {
	if e.Size > 0 {
		if err := unix.Ftruncate(fd, e.Size); err != nil {
			return fmt.Errorf("set size to %d: %w", e.Size, err)
		}
	}
	if len(e.Chunks) > 0 && r.content == nil {
		return errors.New("has content, but there is nothing to get it from")
	}
	start := int64(0) // file offset of the buffer
	r.buf = r.buf[:0]
	flush := func() error {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		return r.writeAt(fd, start)
	}
	for i := range e.Chunks {
		k := &e.Chunks[i]
		if k.Off != start+int64(len(r.buf)) || len(r.buf) >= readBytes {
			if err := flush(); err != nil {
				return err
			}
			start = k.Off
		}
		data, err := r.content(k.ID)
		if err != nil {
			return fmt.Errorf("get content %d: %w", k.ID, err)
		}
		if len(data) != int(k.Len) {
			return fmt.Errorf("content %d has %d bytes, the manifest says %d", k.ID, len(data), k.Len)
		}
		r.buf = append(r.buf, data...)
	}
	return flush()
}

// writeAt writes the buffer and empties it.
func (r *restorer) writeAt(fd int, off int64) error {
	for data := r.buf; len(data) > 0; {
		n, err := retry(func() (int, error) { return unix.Pwrite(fd, data, off) })
		if err != nil {
			return fmt.Errorf("write %d bytes at %d: %w", len(data), off, err)
		}
		data, off = data[n:], off+int64(n)
		r.report.Bytes += int64(n)
	}
	r.buf = r.buf[:0]
	return nil
}

// link gives the first entry of a group, which was made before, another name.
func (r *restorer) link(e *Entry, dir int, name string) error {
	if r.skipped[e.Link] {
		return nil // and was reported
	}
	rel, firstName := splitRelative(relative(e.Link))
	first, err := openDir(r.root, rel, unix.O_PATH)
	if err != nil {
		return fmt.Errorf("open the directory of %s: %w", clip(e.Link), err)
	}
	defer unix.Close(first)
	// Without AT_SYMLINK_FOLLOW a symlink itself gets the second name.
	if err := unix.Linkat(first, firstName, dir, name, 0); err != nil {
		return fmt.Errorf("link to %s: %w", clip(e.Link), err)
	}
	return nil
}

// device makes a node if that is wanted and allowed.
func (r *restorer) device(e *Entry, dir int, name string) (made bool, err error) {
	kind := uint32(unix.S_IFCHR)
	if e.Type == BlkDev {
		kind = unix.S_IFBLK
	}
	switch {
	case r.opt.NoDevices:
		err = errors.New("left out as asked")
	case !r.superuser:
		err = errors.New("only root can create it")
	default:
		err = unix.Mknodat(dir, name, kind|0o600, r.rdev(e))
		if err == nil {
			return true, nil
		}
		if err != unix.EPERM { // which a container's root gets
			return false, fmt.Errorf("create: %w", err)
		}
	}
	r.problem(e.Type.String(), e.Path, err)
	r.skip(e)
	return false, nil
}

func (r *restorer) skip(e *Entry) {
	if r.skipped == nil {
		r.skipped = map[string]bool{}
	}
	r.skipped[e.Path] = true
	if e.Type == Dir {
		r.without = e.Path
	}
}

// lacking names what a file system would need to hold an entry that it refused; "" if
// the fault is another.
func lacking(e *Entry, err error) (kind string, why syscall.Errno) {
	if !errors.As(err, &why) {
		return "", 0
	}
	switch why {
	case unix.ENOSPC, unix.EDQUOT:
		kind = "space"
	case unix.ENAMETOOLONG:
		kind = "name of this length"
	case unix.EFBIG:
		kind = "file of this size"
	case unix.EPERM, unix.EOPNOTSUPP:
		if e.Type != File && e.Type != Dir {
			kind = e.Type.String()
		}
	}
	return kind, why
}

// problem notes what was refused, once for each kind.
func (r *restorer) problem(kind, path string, err error) {
	i, ok := r.problems[kind]
	if !ok {
		i = len(r.report.Problems)
		r.problems[kind] = i
		r.report.Problems = append(r.report.Problems, Problem{Kind: kind, Err: err, Path: path})
	}
	r.report.Problems[i].Count++
}

// rdev returns the number to make a device node with.
func (r *restorer) rdev(e *Entry) int {
	if r.opt.BlankDevices {
		return 0
	}
	return int(e.Rdev)
}
