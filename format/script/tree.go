// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/tree"
)

// treeWords are the commands of a tree by the type of what they make. A link is another
// name of a file.
var treeWords = map[tree.Type]string{tree.Dir: "mkdir", tree.File: "file", tree.Symlink: "symlink", tree.FIFO: "mknod",
	tree.Socket: "mknod", tree.CharDev: "mknod", tree.BlkDev: "mknod"}

// nodeWords are the values of mknod's type.
var nodeWords = map[tree.Type]string{tree.FIFO: "fifo", tree.Socket: "socket", tree.CharDev: "char",
	tree.BlkDev: "block"}

const (
	linkWord  = "link"
	xattrWord = "xattr"
)

// tree writes the commands that make a tree, and returns how many entries it has.
func (w *writer) tree(ctx context.Context, out *bufio.Writer, what string, t Tree) (n int, err error) {
	dst := strconv.AppendInt([]byte("iotape-tree "), version, 10)
	dst = append(append(append(dst, ' '), what...),
		"\n# docs/script.md says what stands here; paths are relative to the root of the replay\n"...)
	if _, err := out.Write(dst); err != nil || t.Entries == nil {
		return 0, err
	}
	for e := range t.Entries {
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		if dst, err = w.appendEntry(dst[:0], e, t.Content); err != nil {
			return n, err
		}
		if _, err := out.Write(dst); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (w *writer) appendEntry(dst []byte, e *tree.Entry, content func(uint64) ([]byte, error)) ([]byte, error) {
	path := stracetext.AppendQuoted(nil, []byte(e.Path))
	if e.Link != "" {
		dst = append(append(dst, linkWord...), ' ')
		dst = append(append(dst, path...), " to="...)
		return append(stracetext.AppendQuoted(dst, []byte(e.Link)), '\n'), nil
	}
	dst = append(append(dst, treeWords[e.Type]...), ' ')
	dst = append(dst, path...)
	if word, ok := nodeWords[e.Type]; ok {
		dst = append(append(dst, " type="...), word...)
	}
	if e.Type == tree.CharDev || e.Type == tree.BlkDev {
		dst = appendDevice(append(dst, " rdev="...), e.Rdev)
	}
	if e.Type == tree.Symlink {
		dst = stracetext.AppendQuoted(append(dst, " target="...), []byte(e.Target))
	}
	if e.Has(tree.KnownMode) {
		dst = strconv.AppendUint(append(dst, " mode=0"...), uint64(e.Mode), 8)
	}
	if e.Has(tree.KnownOwner) {
		dst = appendOwner(append(dst, " owner="...), e.UID, e.GID)
	}
	if e.Has(tree.KnownMTime) {
		dst = strconv.AppendInt(append(dst, " mtime="...), e.MTime, 10)
	}
	if e.Has(tree.KnownLinks) {
		dst = strconv.AppendUint(append(dst, " links="...), uint64(e.Nlink), 10)
	}
	if e.Ino != 0 {
		dst = appendDevice(append(dst, " dev="...), e.Dev)
		dst = strconv.AppendUint(append(dst, " ino="...), e.Ino, 10)
	}
	if e.Has(tree.KnownListing) {
		dst = append(dst, " listed"...)
	}
	if e.Has(tree.KnownXattrs) && len(e.Xattrs) == 0 {
		dst = append(dst, " noxattrs"...)
	}
	if e.Type == tree.File {
		var err error
		if dst, err = w.appendFile(dst, e, content); err != nil {
			return dst, err
		}
	}
	dst = append(dst, '\n')
	for _, name := range slices.Sorted(maps.Keys(e.Xattrs)) {
		dst = append(append(append(append(dst, xattrWord...), ' '), path...), ' ')
		dst = append(stracetext.AppendQuoted(dst, []byte(name)), ' ')
		dst = append(stracetext.AppendQuoted(dst, e.Xattrs[name]), '\n')
	}
	return dst, nil
}

// appendFile writes what is known of a regular file's bytes.
func (w *writer) appendFile(dst []byte, e *tree.Entry, content func(uint64) ([]byte, error)) ([]byte, error) {
	if e.Has(tree.KnownSize) {
		dst = strconv.AppendInt(append(dst, " size="...), e.Size, 10)
	}
	if e.Has(tree.KnownHash) {
		dst = hex.AppendEncode(append(dst, " blake3="...), e.Hash[:])
	}
	if e.Has(tree.KnownBlocks) {
		dst = hex.AppendEncode(append(dst, " blocks="...), e.Hash[:])
	}
	switch {
	case len(e.Chunks) == 1 && e.Chunks[0].Off == 0 && int64(e.Chunks[0].Len) == e.Size && e.Size <= maxInline:
		b, err := content(e.Chunks[0].ID)
		if err != nil {
			return dst, err
		}
		if !e.Has(tree.KnownContent) {
			dst = append(dst, " partial"...)
		}
		return stracetext.AppendQuoted(append(dst, " content="...), b), nil
	case len(e.Chunks) == 0 && !e.Has(tree.KnownContent):
		if e.Size > 0 {
			dst = append(dst, " unknown"...)
		}
		return dst, nil
	}
	parts, err := w.place(e.Chunks, content)
	if err != nil {
		return dst, err
	}
	if !e.Has(tree.KnownContent) {
		dst = append(dst, " partial"...)
	}
	dst = append(dst, " content="...)
	if len(parts) == 1 && parts[0].off == 0 && parts[0].n == e.Size {
		return spans{{at: parts[0].at, n: parts[0].n}}.append(dst), nil
	}
	dst = append(dst, '[')
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(strconv.AppendInt(append(dst, "{off="...), p.off, 10), ", data="...)
		dst = append(spans{{at: p.at, n: p.n}}.append(dst), '}')
	}
	return append(dst, ']'), nil
}

// place adds a file's chunks to the content file. Those that follow each other there too
// are one part.
func (w *writer) place(chunks []tree.Chunk, content func(uint64) ([]byte, error)) (parts []placed, err error) {
	for _, c := range chunks {
		b, err := content(c.ID)
		if err != nil {
			return nil, err
		}
		at, err := w.content.add(b)
		if err != nil {
			return nil, err
		}
		if k := len(parts) - 1; k >= 0 && parts[k].off+parts[k].n == c.Off && parts[k].at+parts[k].n == at {
			parts[k].n += int64(c.Len)
			continue
		}
		parts = append(parts, placed{c.Off, at, int64(c.Len)})
	}
	return parts, nil
}

// placed is a part of a file, and where it stands in the content file.
type placed struct{ off, at, n int64 }
