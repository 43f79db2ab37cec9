// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"context"
	"fmt"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// tree maps a tree of files. New names have a new order, so of the names of one file
// another one may come first: it then has what all share.
func (x *rewriter) tree(name string) error {
	r, err := x.from.OpenFile(name)
	if err != nil {
		return err
	}
	defer r.Close()
	t, err := tree.Decode(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	m := &x.m
	t.Root = m.path(t.Root)
	for i := range t.Notes {
		t.Notes[i].Path = m.path(t.Notes[i].Path)
	}
	hashes := map[string][32]byte{}
	for i := range t.Entries {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		e := &t.Entries[i]
		was := e.Path
		if err := x.entry(e, hashes); err != nil {
			return fmt.Errorf("%s: %s: %w", name, was, err)
		}
		if e.Link == "" && e.Nlink > 1 {
			hashes[e.Path] = e.Hash
		}
	}
	t.Sort()
	relink(t)
	return seal.WriteTree(x.to, name, t)
}

// entry maps one name of a tree. hashes are those of files with several names, by the
// first.
func (x *rewriter) entry(e *tree.Entry, hashes map[string][32]byte) error {
	m := &x.m
	e.Path, e.Link, e.Target = m.path(e.Path), m.path(e.Link), m.path(e.Target)
	e.UID, e.GID, e.Ino = m.id(UID, e.UID), m.id(GID, e.GID), m.number(Inode, e.Ino)
	if e.Has(tree.KnownMTime) && m.fields.Has(Time) {
		e.MTime = m.wallNS(e.MTime)
	}
	if len(e.Xattrs) > 0 {
		e.Xattrs = m.xattrs(e.Xattrs)
	}
	if m.fields.Has(Content) && m.content == trace.ContentRemoved {
		for _, c := range e.Chunks {
			x.removed += int64(c.Len)
		}
		e.Known &^= tree.KnownHash | tree.KnownBlocks | tree.KnownContent
		e.Hash, e.Chunks = [32]byte{}, nil
		return nil
	}
	x.forgetBlocks(e)
	whole := m.sub != nil && m.fields.Has(Content) && hashable(e)
	h := newHoleHasher(x.ctx)
	for k := range e.Chunks {
		c := &e.Chunks[k]
		if whole {
			if err := x.hashChunk(h, c); err != nil {
				return err
			}
		}
		var err error
		if c.ID, err = x.chunk(c.ID, c.Off); err != nil {
			return err
		}
	}
	switch {
	case !e.Has(tree.KnownHash) || !m.fields.Has(Content):
	case whole:
		if err := h.to(e.Size); err != nil {
			return err
		}
		h.hash.Sum(e.Hash[:0])
	case m.sub != nil && e.Has(tree.KnownContent) && e.Link != "":
		e.Hash = hashes[e.Link]
	default:
		m.opaque(Content, e.Hash[:])
	}
	return nil
}

// forgetBlocks takes the hash of a file's blocks away if these change.
func (x *rewriter) forgetBlocks(e *tree.Entry) {
	if e.Has(tree.KnownBlocks) && x.m.fields.Has(Content) {
		e.Known &^= tree.KnownBlocks
		e.Hash = [32]byte{}
	}
}

// hashable reports whether an entry has all that its file's hash is made of.
func hashable(e *tree.Entry) bool {
	return e.Has(tree.KnownHash|tree.KnownContent|tree.KnownSize) && e.Link == "" && e.Size <= maxHashed
}

// xattrs returns extended attributes with mapped names and values.
func (m *mapper) xattrs(list map[string][]byte) map[string][]byte {
	mapped := make(map[string][]byte, len(list))
	for name, value := range list {
		b, v := []byte(name), append([]byte{}, value...)
		m.xattrName(b)
		m.xattrValue(name, v)
		mapped[string(b)] = v
	}
	return mapped
}

// maxHashed is the largest file whose content is hashed anew, in bytes, holes included.
const maxHashed = 1 << 40

// holeHasher hashes a file of which some parts are there, the others being zero.
type holeHasher struct {
	ctx  context.Context
	hash *blake3.Hasher
	at   int64
}

func newHoleHasher(ctx context.Context) *holeHasher {
	return &holeHasher{ctx: ctx, hash: blake3.New()}
}

// to hashes zeros up to an offset.
func (h *holeHasher) to(off int64) error {
	var zeros [64 << 10]byte
	for h.at < off {
		if err := h.ctx.Err(); err != nil {
			return err
		}
		n := min(off-h.at, int64(len(zeros)))
		h.hash.Write(zeros[:n])
		h.at += n
	}
	return nil
}

// hashChunk adds a chunk of a file as it will be.
func (x *rewriter) hashChunk(h *holeHasher, c *tree.Chunk) error {
	if err := h.to(c.Off); err != nil {
		return err
	}
	data, err := x.from.Chunk(c.ID)
	if err != nil {
		return err
	}
	if uint64(c.Len) > uint64(len(data)) {
		return fmt.Errorf("%d bytes of chunk %d, which has %d: %w", c.Len, c.ID, len(data), trace.ErrCorrupt)
	}
	x.data = append(x.data[:0], data[:c.Len]...)
	x.m.bytesAt(x.data, c.Off)
	h.hash.Write(x.data)
	h.at += int64(c.Len)
	return nil
}

// relink lets the first name of each hard-linked file, in the manifest's order, hold what
// the others refer to.
func relink(t *tree.Manifest) {
	first := map[string]string{} // by the path that held it before
	moved := map[string][]tree.Chunk{}
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Link == "" {
			continue
		}
		if _, ok := first[e.Link]; !ok {
			first[e.Link] = e.Path
			if old := t.Lookup(e.Link); old != nil && tree.ComparePaths(old.Path, e.Path) < 0 {
				first[e.Link] = old.Path
			} else if old != nil {
				moved[e.Path], old.Chunks = old.Chunks, nil
			}
		}
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		was := e.Link
		if was == "" {
			was = e.Path
		}
		to, ok := first[was]
		switch {
		case !ok:
		case to == e.Path:
			if e.Link = ""; moved[e.Path] != nil {
				e.Chunks = moved[e.Path]
			}
		default:
			e.Link = to
		}
	}
}
