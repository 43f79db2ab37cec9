// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Limits of a manifest. They bound what a hostile one can cost and are far above what
// a real tree needs.
const (
	MaxEntries      = 1 << 26
	MaxNotes        = 1 << 20
	MaxChunks       = 1 << 27 // in the whole manifest: 512 GiB of stored content
	MaxXattrs       = 1 << 12 // of one entry
	MaxXattrBytes   = 64 << 10
	maxTextBytes    = 1 << 20 // of a note or the root: escaping can make a line six times longer
	maxTargetBytes  = 4095    // what symlink(2) takes
	maxNameBytes    = 255     // of an extended attribute
	maxRdev         = math.MaxUint32
	modeMask        = 0o7777
	fileOnly        = KnownSize | KnownHash | KnownContent | KnownBlocks
	allKnown        = KnownBlocks<<1 - 1
	maxFileOffset   = math.MaxInt64
	chunkBytes      = 4096 // content is cut at these file offsets
	maxRunChunks    = 256
	runsPerLine     = 1 << 16
	formatName      = "iotape.tree"
	formatVersion   = 1
	progressEntries = 256
)

// Validate reports the first thing that makes a manifest unusable, or nil. Encode,
// Decode and Restore call it themselves; Compare and Lookup rely on it.
func (m *Manifest) Validate() error {
	if len(m.Root) > maxTextBytes {
		return fmt.Errorf("root %s is too long", clip(m.Root))
	}
	if len(m.Notes) > MaxNotes {
		return fmt.Errorf("tree manifest has %d notes, more than %d", len(m.Notes), MaxNotes)
	}
	for _, n := range m.Notes {
		if len(n.Text) > maxTextBytes || len(n.Path) > maxTextBytes {
			return fmt.Errorf("note %s is too long", clip(n.Text))
		}
		if !utf8.ValidString(n.Text) {
			return fmt.Errorf("note %s is not text", clip(n.Text))
		}
	}
	var c checker
	before := 0
	find := func(path string) *Entry { return lookup(m.Entries[:before], path) }
	for ; before < len(m.Entries); before++ {
		if err := c.check(&m.Entries[before], find); err != nil {
			return err
		}
	}
	return nil
}

// checker validates entries one after another, so that a decoder can stop at the
// first bad one. The zero value is ready.
type checker struct {
	ancestors []ancestor // of the last entry, and itself; those the manifest has
	last      string     // path of the last entry
	entries   int
	chunks    int
}

type ancestor struct {
	path string
	typ  Type
}

// check validates e as the successor of the entries before it. find returns one of
// those, nil if there is none with the path.
func (c *checker) check(e *Entry, find func(path string) *Entry) error {
	if c.entries >= MaxEntries {
		return fmt.Errorf("tree manifest has more than %d entries", MaxEntries)
	}
	if err := ValidPath(e.Path); err != nil {
		return fmt.Errorf("path %s %w", clip(e.Path), err)
	}
	err := c.place(e)
	if err == nil {
		err = e.attributes()
	}
	if err == nil {
		err = c.content(e)
	}
	if err == nil {
		err = e.link(find)
	}
	if err != nil {
		return fmt.Errorf("entry %s: %w", clip(e.Path), err)
	}
	c.last = e.Path
	c.entries++
	return nil
}

// place checks the order and that nothing lies below a thing that is no directory.
// The latter is what stops a manifest from planting a symlink and writing through it.
func (c *checker) place(e *Entry) error {
	if c.entries > 0 {
		switch {
		case isAbs(c.last) != isAbs(e.Path):
			return errors.New("absolute and relative paths are mixed")
		case c.last == e.Path:
			return errors.New("occurs twice")
		case ComparePaths(c.last, e.Path) > 0:
			return fmt.Errorf("comes after %s, which is not the manifest's order", clip(c.last))
		}
	}
	for len(c.ancestors) > 0 && !isAncestor(c.ancestors[len(c.ancestors)-1].path, e.Path) {
		c.ancestors = c.ancestors[:len(c.ancestors)-1]
	}
	if n := len(c.ancestors); n > 0 && c.ancestors[n-1].typ != Dir {
		return fmt.Errorf("lies below %s, which is a %s", clip(c.ancestors[n-1].path), c.ancestors[n-1].typ)
	}
	c.ancestors = append(c.ancestors, ancestor{e.Path, e.Type})
	return nil
}

// attributes checks that the values are possible, and that what is not known is zero.
func (e *Entry) attributes() error {
	if err := e.kind(); err != nil {
		return err
	}
	if err := e.values(); err != nil {
		return err
	}
	if err := e.target(); err != nil {
		return err
	}
	return e.xattrs()
}

// kind checks that the type is one, and that what is known is of this type.
func (e *Entry) kind() error {
	switch e.Type {
	case File, Dir, Symlink, FIFO, Socket, CharDev, BlkDev:
	default:
		return fmt.Errorf("type %q is not one of f d l p s c b", string(rune(e.Type)))
	}
	switch {
	case (e.Path == "." || e.Path == "/") && e.Type != Dir:
		return fmt.Errorf("the root is a %s", e.Type)
	case e.Known&^allKnown != 0:
		return fmt.Errorf("known attributes %#x do not exist", uint(e.Known&^allKnown))
	case e.Type != File && e.Known&fileOnly != 0:
		return fmt.Errorf("a %s has no %s", e.Type, e.Known&fileOnly)
	case e.Type != Dir && e.Has(KnownListing):
		return fmt.Errorf("a %s has no listing", e.Type)
	case e.Type == Dir && e.Has(KnownLinks):
		return errors.New("a directory has no hard links")
	}
	return nil
}

// validHash reports whether a hash is marked as known in at most one way, and in one if there is any.
func (e *Entry) validHash() bool {
	return !e.Has(KnownHash|KnownBlocks) && (e.HasHash() || e.Hash == [32]byte{})
}

// values checks the numbers and the hash.
func (e *Entry) values() error {
	has, device := e.Has, e.Type == CharDev || e.Type == BlkDev
	switch {
	case e.Mode&^modeMask != 0 || !has(KnownMode) && e.Mode != 0:
		return fmt.Errorf("mode %#o is impossible", e.Mode)
	case !has(KnownOwner) && (e.UID != 0 || e.GID != 0):
		return errors.New("has an owner that is not marked as known")
	case e.Size < 0 || !has(KnownSize) && e.Size != 0:
		return fmt.Errorf("size %d is impossible", e.Size)
	case !has(KnownMTime) && e.MTime != 0:
		return errors.New("has a time that is not marked as known")
	case !e.validHash():
		return errors.New("has a hash that is not marked as known, or as of the content and of blocks")
	case e.Rdev > maxRdev || !device && e.Rdev != 0:
		return fmt.Errorf("device number %#x is impossible", e.Rdev)
	case !has(KnownLinks) && e.Nlink != 0:
		return errors.New("has a link count that is not marked as known")
	}
	return nil
}

// target checks what a symlink contains.
func (e *Entry) target() error {
	switch {
	case e.Type != Symlink && e.Target != "":
		return fmt.Errorf("a %s has no target", e.Type)
	case e.Type != Symlink:
		return nil
	case e.Target == "", len(e.Target) > maxTargetBytes, strings.IndexByte(e.Target, 0) >= 0:
		return fmt.Errorf("symlink target %s is impossible", clip(e.Target))
	}
	return nil
}

func (e *Entry) xattrs() error {
	switch {
	case !e.Has(KnownXattrs) && len(e.Xattrs) != 0:
		return errors.New("has extended attributes that are not marked as known")
	case len(e.Xattrs) > MaxXattrs:
		return fmt.Errorf("has %d extended attributes, more than %d", len(e.Xattrs), MaxXattrs)
	}
	for name, value := range e.Xattrs {
		switch {
		case name == "" || len(name) > maxNameBytes || strings.IndexByte(name, 0) >= 0:
			return fmt.Errorf("extended attribute name %s is impossible", clip(name))
		case len(value) > MaxXattrBytes:
			return fmt.Errorf("extended attribute %s has %d bytes, more than %d", clip(name), len(value), MaxXattrBytes)
		}
	}
	return nil
}

func (c *checker) content(e *Entry) error {
	if len(e.Chunks) == 0 {
		return nil
	}
	if e.Type != File {
		return fmt.Errorf("a %s has no content", e.Type)
	}
	if c.chunks += len(e.Chunks); c.chunks > MaxChunks {
		return fmt.Errorf("brings the manifest to more than %d chunks", MaxChunks)
	}
	limit := int64(maxFileOffset)
	if e.Has(KnownSize) {
		limit = e.Size
	}
	end := int64(0)
	for i, k := range e.Chunks {
		switch {
		case k.Len == 0:
			return fmt.Errorf("chunk %d is empty", i)
		case k.Off < end:
			return fmt.Errorf("chunk %d starts at %d, before %d where the one before it ends", i, k.Off, end)
		case k.Off > limit || int64(k.Len) > limit-k.Off:
			return fmt.Errorf("chunk %d at %d reaches beyond the end of the file at %d", i, k.Off, limit)
		}
		end = k.Off + int64(k.Len)
	}
	return nil
}

func (e *Entry) link(find func(path string) *Entry) error {
	if e.Link == "" {
		return nil
	}
	if !e.Has(KnownLinks) {
		return errors.New("is a link, but links are not marked as known")
	}
	first := find(e.Link)
	switch {
	case first == nil:
		return fmt.Errorf("is a link to %s, which is not before it", clip(e.Link))
	case first.Type != e.Type:
		return fmt.Errorf("is a %s linked to %s, a %s", e.Type, clip(e.Link), first.Type)
	case first.Link != "":
		return fmt.Errorf("is a link to %s, which is a link itself", clip(e.Link))
	case !first.Has(KnownLinks):
		return fmt.Errorf("is a link to %s, whose links are not marked as known", clip(e.Link))
	case len(e.Chunks) != 0:
		return fmt.Errorf("has chunks, which belong to the first of the group, %s", clip(e.Link))
	}
	return nil
}

// clip quotes bytes from a manifest for a message, so that neither control characters
// nor length can spoil a terminal.
func clip(s string) string {
	const limit = 200
	if len(s) > limit {
		return fmt.Sprintf("%q…", s[:limit])
	}
	return fmt.Sprintf("%q", s)
}
