// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"
)

// TakeOptions say how much of a tree to take. Nil and the zero value take everything
// and hash the content without storing it.
type TakeOptions struct {
	// Sink stores content and returns its id. It gets every part of every file that
	// is not a hole, in ascending order, cut at multiples of 4096 bytes of the file;
	// fileOff is such a multiple. The data is valid only during the call. An error
	// ends the taking. Nil: content is only hashed, and the manifest cannot bring it
	// back.
	Sink func(data []byte, fileOff int64) (id uint64, err error)

	// NoHash leaves out Hash. Without a Sink no file is opened at all.
	NoHash bool

	// Whole has the content of large files hashed as that of others is: the time for that is by their
	// length and not by their data. Manifests of before have such hashes.
	Whole bool

	// Prefix is the manifest's path for the root, "." if empty; "/srv/db" gives
	// absolute paths like "/srv/db/log".
	Prefix string

	// OneFileSystem stays on the file system of the root. Pseudo file systems are
	// not entered in any case.
	OneFileSystem bool

	// Progress, if not nil, is told now and then, and at the end, how many entries
	// and bytes of content have been taken so far.
	Progress func(entries int, bytes int64)
}

// Take walks the tree at root. Symbolic links are entries, never ways; only root
// itself may be one. What cannot be read is noted in the manifest; an error means
// that there is no manifest: root is no directory, ctx is done, the sink has no more
// room, or the process has no more descriptors or memory.
func Take(ctx context.Context, root string, opt *TakeOptions) (*Manifest, error) {
	t, err := newTaker(ctx, root, opt)
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", root, err)
	}
	defer t.close()
	if err = t.walk(); err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", root, err)
	}
	return t.finish(), nil
}

// taker is one Take or TakePaths under way.
type taker struct {
	ctx  context.Context
	opt  TakeOptions
	root int
	m    *Manifest

	inodes map[inode]*content // of files with more than one link, so that each is read once
	fsys   map[uint64]string  // by device: name of the pseudo file system, "" for a real one
	buf    []byte
	hasher *blake3.Hasher
	number [8]byte // scratch
	bytes  int64
}

type inode struct{ dev, ino uint64 }

// content is what reading a file gave.
type content struct {
	known  Known
	size   int64
	hash   [32]byte
	chunks []Chunk
}

// pending is a directory that the walk found and has not read yet.
type pending struct {
	rel    string
	index  int // of its entry
	inode  inode
	parent uint64 // device of the directory that holds it
}

func newTaker(ctx context.Context, root string, opt *TakeOptions) (*taker, error) {
	t := &taker{ctx: ctx, inodes: map[inode]*content{}, fsys: map[uint64]string{}}
	if opt != nil {
		t.opt = *opt
	}
	if t.opt.Prefix == "" {
		t.opt.Prefix = "."
	}
	if err := ValidPath(t.opt.Prefix); err != nil {
		return nil, fmt.Errorf("prefix %s %w", clip(t.opt.Prefix), err)
	}
	fd, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	t.root, t.m = fd, &Manifest{Root: root}
	return t, nil
}

func (t *taker) close() { unix.Close(t.root) }

// walk keeps the directories still to read in a list instead of recursing, and opens
// each by its path from the root. So it needs three descriptors for any depth, and a
// directory that is moved away meanwhile takes nobody along.
func (t *taker) walk() error {
	var st unix.Stat_t
	if err := lstatAt(t.root, ".", &st); err != nil {
		return fmt.Errorf("look at it: %w", err)
	}
	rootDev := uint64(st.Dev)
	if err := t.entry(t.root, ".", ".", true); err != nil {
		return err
	}
	if len(t.m.Entries) == 0 { // which the notes explain
		return errors.New(t.m.Notes[0].Text)
	}
	todo := []pending{{rel: ".", inode: inode{rootDev, st.Ino}, parent: rootDev + 1}}
	for len(todo) > 0 {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if t.opt.OneFileSystem && d.inode.dev != rootDev {
			t.note(d.rel, "is on another file system and was not entered")
			continue
		}
		found, err := t.directory(d)
		if err != nil {
			return err
		}
		todo = append(todo, found...)
	}
	return nil
}

// directory takes all entries of one directory and returns the directories among them.
func (t *taker) directory(d pending) ([]pending, error) {
	fd, err := openDir(t.root, d.rel, unix.O_PATH)
	if err != nil {
		return nil, t.trouble(d.rel, "open it", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, t.trouble(d.rel, "look at it", err)
	}
	if (inode{uint64(st.Dev), st.Ino}) != d.inode {
		t.note(d.rel, "was replaced while the snapshot was taken")
		return nil, nil
	}
	if d.inode.dev != d.parent {
		name, err := t.fileSystem(fd, d.inode.dev)
		if err != nil {
			return nil, t.trouble(d.rel, "find its file system", err)
		}
		if name != "" {
			t.note(d.rel, "is a "+name+" file system, which holds no stored data, and was not entered")
			return nil, nil
		}
	}
	// A second descriptor, because O_PATH cannot list: the first works in directories
	// that may be searched but not read as well, which TakePaths needs.
	listFD, err := openDir(fd, ".", unix.O_RDONLY)
	if err != nil {
		return nil, t.trouble(d.rel, "list it", err)
	}
	list, err := names(listFD, d.rel)
	if err != nil {
		return nil, t.trouble(d.rel, "list it", err)
	}
	t.m.Entries[d.index].Known |= KnownListing
	slices.Sort(list)

	var dirs []pending
	for _, name := range list {
		rel := join(d.rel, name)
		before := len(t.m.Entries)
		if err := t.entry(fd, name, rel, true); err != nil {
			return nil, err
		}
		if len(t.m.Entries) == before {
			// Left out. Unless it is gone, the listing is not the whole one.
			var st unix.Stat_t
			if err := lstatAt(fd, name, &st); !gone(err) {
				t.m.Entries[d.index].Known &^= KnownListing
			}
			continue
		}
		if e := &t.m.Entries[before]; e.Type == Dir {
			dirs = append(dirs, pending{rel, before, inode{e.Dev, e.Ino}, d.inode.dev})
		}
	}
	return dirs, nil
}

// entry appends what the name in dir is. A name that is gone appends nothing.
func (t *taker) entry(dir int, name, rel string, readContent bool) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	path := join(t.opt.Prefix, rel)
	if len(path) > MaxPathBytes {
		t.note(path[:MaxPathBytes/2], fmt.Sprintf("has an entry whose path is longer than %d bytes", MaxPathBytes))
		return nil
	}
	if len(t.m.Entries) >= MaxEntries {
		return fmt.Errorf("it has more than %d entries", MaxEntries)
	}
	var st unix.Stat_t
	if err := lstatAt(dir, name, &st); err != nil {
		return t.trouble(rel, "look at it", err)
	}
	e := Entry{Path: path}
	if !e.fill(&st) {
		t.note(rel, "is of a type that Linux does not have")
		return nil
	}
	switch e.Type {
	case Symlink:
		target, err := readlinkAt(dir, name)
		if err == nil && (target == "" || len(target) > maxTargetBytes) {
			err = fmt.Errorf("the target has %d bytes", len(target))
		}
		if err != nil {
			return t.trouble(rel, "read the link", err)
		}
		e.Target = target
	case File:
		if t.fsys[e.Dev] != "" {
			e.madeUp()
		} else if readContent {
			if err := t.readFile(dir, name, rel, &e); err != nil {
				return err
			}
		}
	}
	attrs, err := xattrsAt(dir, name)
	if err == nil {
		e.Known |= KnownXattrs
		e.Xattrs = attrs
	} else if err := t.trouble(rel, "list its extended attributes", err); err != nil {
		return err
	}
	t.m.Entries = append(t.m.Entries, e)
	if len(t.m.Entries)%progressEntries == 0 {
		t.progress()
	}
	return nil
}

// fill sets what stat knows, and reports whether the type is a possible one.
func (e *Entry) fill(st *unix.Stat_t) bool {
	typ, ok := typeOf(st.Mode)
	e.Type = typ
	e.Known = KnownOwner
	e.UID, e.GID = st.Uid, st.Gid
	e.setMTime(st.Mtim)
	e.Dev, e.Ino = uint64(st.Dev), st.Ino
	if typ != Symlink { // whose mode is always 0777 and means nothing
		e.Known |= KnownMode
		e.Mode = st.Mode & modeMask
	}
	if typ == File {
		e.Known |= KnownSize
		e.Size = st.Size
	}
	if typ == CharDev || typ == BlkDev {
		e.Rdev = uint64(st.Rdev)
	}
	if typ != Dir {
		e.Known |= KnownLinks
		e.Nlink = uint32(st.Nlink)
	}
	return ok
}

// setMTime leaves the time unknown if nanoseconds cannot hold it: ext4 and xfs go beyond
// the year 2262, and a wrapped time would be restored as a wrong one.
func (e *Entry) setMTime(ts unix.Timespec) {
	if ns := ts.Nano(); unix.NsecToTimespec(ns) == ts {
		e.Known |= KnownMTime
		e.MTime = ns
	} else {
		e.MTime = 0
	}
}

// madeUp keeps of a file on a pseudo file system what is a fact: its name and rights.
func (e *Entry) madeUp() {
	e.Known &^= KnownSize | KnownMTime | KnownLinks
	e.Size, e.MTime, e.Nlink = 0, 0, 0
}

// fileSystem returns the name of the pseudo file system that fd is on, or "".
func (t *taker) fileSystem(fd int, dev uint64) (string, error) {
	if name, ok := t.fsys[dev]; ok {
		return name, nil
	}
	name, err := pseudoName(fd)
	if err == nil {
		t.fsys[dev] = name
	}
	return name, err
}

// trouble turns what happened to one entry into a note, unless the whole taking has
// to end.
func (t *taker) trouble(rel, verb string, err error) error {
	if exhausted(err) {
		return fmt.Errorf("%s: %s: %w", clip(rel), verb, err)
	}
	if gone(err) {
		t.note(rel, "went away while the snapshot was taken")
	} else {
		t.note(rel, verb+": "+err.Error())
	}
	return nil
}

// note records what is missing. Beyond the limit only the last note counts on.
func (t *taker) note(rel, text string) {
	path := rel
	if len(rel) < MaxPathBytes {
		path = join(t.opt.Prefix, rel)
	}
	if len(t.m.Notes) == MaxNotes {
		path, text = t.opt.Prefix, fmt.Sprintf("has more than %d notes, later ones are left out", MaxNotes)
		t.m.Notes = t.m.Notes[:MaxNotes-1]
	}
	t.m.Notes = append(t.m.Notes, Note{path, strings.ToValidUTF8(text, "?")})
}

func (t *taker) progress() {
	if t.opt.Progress != nil {
		t.opt.Progress(len(t.m.Entries), t.bytes)
	}
}

// finish orders the entries and ties hard links: the first of a group in that order
// gets the chunks, all get what else is known of the content.
func (t *taker) finish() *Manifest {
	t.m.Sort()
	first := map[inode]*Entry{}
	for i := range t.m.Entries {
		e := &t.m.Entries[i]
		if !e.Has(KnownLinks) || e.Nlink < 2 {
			continue
		}
		id := inode{e.Dev, e.Ino}
		c := t.inodes[id]
		if c != nil {
			e.Known |= c.known
			e.Size, e.Hash = c.size, c.hash
		}
		switch f := first[id]; {
		case f == nil:
			first[id] = e
			if c != nil {
				e.Chunks = c.chunks
			}
		case f.Type == e.Type: // else the inode was reused meanwhile
			e.Link = f.Path
		}
	}
	t.progress()
	return t.m
}
