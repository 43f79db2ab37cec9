// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// treeReader makes a manifest of a tree's commands.
type treeReader struct {
	c       *compiler
	initial bool
	m       *tree.Manifest
	at      map[string]int // entry by path
	lines   map[string]int
	unknown map[string]bool // files of whose content nothing is known
}

// readTree reads one of the trees of a script and stores its content in the tape.
func (c *compiler) readTree(ctx context.Context, name string, initial bool) (*tree.Manifest, error) {
	r := &treeReader{c: c, initial: initial, m: &tree.Manifest{Root: "/"}, at: map[string]int{},
		lines: map[string]int{}, unknown: map[string]bool{}}
	if err := eachLine(ctx, c.dir, name, "iotape-tree", r.command); err != nil {
		return nil, err
	}
	r.leave()
	r.m.Sort()
	if err := r.m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r.m, nil
}

// leave takes files of unknown content out: who replays finds them in the events, as it
// did in those of the recording, and knows then what of them cannot be compared. But in a
// directory that is listed, what is not there does not exist.
func (r *treeReader) leave() {
	if !r.initial || len(r.unknown) == 0 {
		return
	}
	listed := map[string]bool{}
	for i := range r.m.Entries {
		if e := &r.m.Entries[i]; e.Has(tree.KnownListing) {
			listed[e.Path] = true
		}
	}
	r.m.Entries = slices.DeleteFunc(r.m.Entries, func(e tree.Entry) bool {
		return (r.unknown[e.Path] || r.unknown[e.Link]) && !listed[path.Dir(e.Path)]
	})
}

var treeCommands = []string{"file", linkWord, "mkdir", "mknod", "symlink", xattrWord}

func (r *treeReader) command(p *scanner) error {
	at := p.i
	word := p.word()
	if !in(treeCommands, word) {
		return p.fail(at, fmt.Sprintf("%q: no such command", first(p.s[at:])), didYouMean(word, treeCommands))
	}
	p.space()
	nameAt := p.i
	name, err := p.text("a path")
	if err != nil {
		return err
	}
	if word == xattrWord {
		return r.xattr(p, name, nameAt)
	}
	if name != "." {
		name = path.Clean("/" + name)[1:] // people write /a and a/
	}
	if name == "" {
		name = "."
	}
	if err := tree.ValidPath(name); err != nil {
		return p.fail(nameAt, err.Error(), "")
	}
	if line, ok := r.lines[name]; ok {
		return p.fail(nameAt, fmt.Sprintf("%q is made in line %d already", name, line), "remove one of the lines")
	}
	if len(r.m.Entries) >= tree.MaxEntries {
		return p.fail(at, "too many entries", "")
	}
	e := tree.Entry{Path: name}
	for t, w := range treeWords {
		if w == word {
			e.Type = t
		}
	}
	if word == "mknod" {
		e.Type = tree.FIFO
	}
	if err := r.entry(p, word, &e); err != nil {
		return err
	}
	r.lines[name], r.at[name] = p.line, len(r.m.Entries)
	r.m.Entries = append(r.m.Entries, e)
	return nil
}

// The attributes of the commands.
var (
	treeKeys  = map[string][]string{linkWord: {"to"}, "symlink": append([]string{"target"}, someKeys...), "mknod": append([]string{"type", "rdev"}, someKeys...), "mkdir": someKeys, "file": append([]string{"size", "blake3", "content"}, someKeys...)}
	someKeys  = []string{"mode", "owner", "mtime", "links", "dev", "ino"}
	someWords = []string{"listed", "noxattrs", "partial", "unknown"}
)

// entry reads the attributes of an entry and fills in what is left out.
func (r *treeReader) entry(p *scanner, word string, e *tree.Entry) error {
	partial := false
	err := p.attributes(treeKeys[word], someWords, func(key string, at int, v *told) error {
		switch key {
		case "partial":
			partial = true
			return nil
		case "unknown":
			r.unknown[e.Path] = true
			return nil
		}
		return r.attribute(p, e, key, v)
	})
	switch {
	case err != nil:
		return err
	case word == linkWord:
		return r.link(p, e)
	case e.Type == tree.Symlink && e.Target == "":
		return p.fail(len(p.s), "a symlink needs a target", `add target="…"`)
	case e.Type != tree.File:
		return nil
	}
	if n := len(e.Chunks); n > 0 {
		end := e.Chunks[n-1].Off + int64(e.Chunks[n-1].Len)
		if e.Has(tree.KnownSize) && e.Size < end {
			return p.fail(0, fmt.Sprintf("the content ends at %d, the size is %d", end, e.Size),
				"leave the size out, or correct it")
		}
		e.Size = max(e.Size, end)
	}
	if r.initial || len(e.Chunks) > 0 && !partial {
		e.Known |= tree.KnownContent | tree.KnownSize // what is not said is zero
	}
	return nil
}

// link makes an entry another name of one that is there.
func (r *treeReader) link(p *scanner, e *tree.Entry) error {
	to := path.Clean("/" + e.Link)[1:]
	i, ok := r.at[to]
	if e.Link == "" || !ok {
		return p.fail(len(p.s), fmt.Sprintf("%q, which the link is to, is not made above", e.Link),
			`write to="PATH" of a file that stands above`)
	}
	if r.m.Entries[i].Type == tree.Dir {
		return p.fail(len(p.s), fmt.Sprintf("%q is a directory, which has no links", to), "")
	}
	name, one := e.Path, &r.m.Entries[i]
	if one.Ino == 0 { // what makes two names one file; no recording has such a number
		one.Ino = 1<<63 | uint64(i)
	}
	if !one.Has(tree.KnownLinks) {
		one.Nlink, one.Known = 2, one.Known|tree.KnownLinks
	}
	*e = *one
	e.Path, e.Link, e.Chunks = name, to, nil
	return nil
}

// attribute sets an attribute of an entry. Keys without a place in it are ignored.
func (r *treeReader) attribute(p *scanner, e *tree.Entry, key string, v *told) error {
	if key == "content" {
		return r.content(p, e, v)
	}
	if a, ok := attributes[key]; ok && !a.set(e, v) {
		return p.fail(v.at, fmt.Sprintf("%s: %q is not understood", key, first(v.Text)), a.hint)
	}
	return nil
}

// attributes are what a line says of an entry, by key. set is false if the value cannot be.
var attributes = map[string]struct {
	hint string
	set  func(e *tree.Entry, v *told) bool
}{
	"listed": {"", func(e *tree.Entry, _ *told) bool {
		e.Known |= tree.KnownListing
		return true
	}},
	"noxattrs": {"", func(e *tree.Entry, _ *told) bool {
		e.Known |= tree.KnownXattrs
		return true
	}},
	"to": {"", func(e *tree.Entry, v *told) bool {
		e.Link = string(v.Data)
		return true
	}},
	"target": {"", func(e *tree.Entry, v *told) bool {
		e.Target = string(v.Data)
		return true
	}},
	"type": {"it is fifo, socket, char or block", func(e *tree.Entry, v *told) bool {
		for t, w := range nodeWords {
			if w == v.Text {
				e.Type = t
				return true
			}
		}
		return false
	}},
	"rdev": {"it is MAJOR:MINOR", func(e *tree.Entry, v *told) (ok bool) {
		e.Rdev, ok = device(v.Text)
		return ok
	}},
	"dev": {"it is MAJOR:MINOR", func(e *tree.Entry, v *told) (ok bool) {
		e.Dev, ok = device(v.Text)
		return ok
	}},
	"ino": {"", func(e *tree.Entry, v *told) (ok bool) {
		e.Ino, ok = event.ParseNumber(v.Text)
		return ok
	}},
	"mode": {"it is octal with a leading 0: 0644", func(e *tree.Entry, v *told) bool {
		n, ok := event.ParseNumber(v.Text)
		e.Mode, e.Known = uint32(n), e.Known|tree.KnownMode
		return ok && n <= 0o7777
	}},
	"owner": {"it is UID:GID", func(e *tree.Entry, v *told) (ok bool) {
		e.UID, e.GID, ok = owner(v.Text)
		e.Known |= tree.KnownOwner
		return ok
	}},
	"mtime": {"it is in ns since 1970", func(e *tree.Entry, v *told) bool {
		n, ok := event.ParseNumber(v.Text)
		e.MTime, e.Known = int64(n), e.Known|tree.KnownMTime
		return ok
	}},
	"links": {"", func(e *tree.Entry, v *told) bool {
		n, ok := event.ParseNumber(v.Text)
		e.Nlink, e.Known = uint32(n), e.Known|tree.KnownLinks
		return ok && n <= math.MaxUint32
	}},
	"size": {"it is in bytes", func(e *tree.Entry, v *told) bool {
		n, ok := event.ParseNumber(v.Text)
		e.Size, e.Known = int64(n), e.Known|tree.KnownSize
		return ok && n < 1<<62
	}},
	"blake3": {"it has 64 hexadecimal digits", hashOf(tree.KnownHash)},
	"blocks": {"it has 64 hexadecimal digits", hashOf(tree.KnownBlocks)},
}

// content stores a file's bytes: a string, a place in the content file, or a list of
// {off=…, data=…}, beyond which there are holes.
func (r *treeReader) content(p *scanner, e *tree.Entry, v *told) error {
	if v.Kind != layout.ToldItems {
		return r.store(p, e, v, 0)
	}
	end := int64(0)
	for i := range v.Parts {
		off, data := int64(-1), (*layout.Told)(nil)
		for j := range v.Parts[i].Parts {
			switch f := &v.Parts[i].Parts[j]; f.Name {
			case "off":
				if n, ok := event.ParseNumber(f.Text); ok && n < 1<<62 {
					off = int64(n)
				}
			case "data":
				data = f
			}
		}
		if off < end || data == nil {
			return p.fail(v.at, fmt.Sprintf("part %d of the content is not understood, or before the one in "+
				"front of it", i+1), "a part is {off=BYTES, data=…}")
		}
		if err := r.store(p, e, &told{*data, v.at}, off); err != nil {
			return err
		}
		if n := len(e.Chunks); n > 0 {
			end = e.Chunks[n-1].Off + int64(e.Chunks[n-1].Len)
		}
	}
	return nil
}

// store adds bytes to the tape, cut where a recording cuts them.
func (r *treeReader) store(p *scanner, e *tree.Entry, v *told, off int64) error {
	s, err := r.c.spanOf(p, v)
	if err != nil {
		return err
	}
	if s.kind != contentSpan {
		return p.fail(v.at, "the initial content of a file is bytes", `write "…" or @OFFSET+LENGTH`)
	}
	for done := int64(0); done < s.n; {
		n := min(s.n-done, trace.ChunkBytes-(off+done)%trace.ChunkBytes)
		b := s.data
		if b != nil {
			b = b[done:][:n]
		} else if b, err = r.c.content.get(r.c.scratch[:0], s.at+done, n); err != nil {
			return p.fail(v.at, err.Error(), "")
		} else {
			r.c.scratch = b
		}
		id, err := r.c.tw.AddChunk(b)
		if err != nil {
			return err
		}
		e.Chunks = append(e.Chunks, tree.Chunk{Off: off + done, Len: uint32(n), ID: id})
		done += n
	}
	return nil
}

// xattr adds an extended attribute to an entry that stands above.
func (r *treeReader) xattr(p *scanner, name string, at int) error {
	i, ok := r.at[path.Clean("/" + name)[1:]]
	if !ok {
		return p.fail(at, strconv.Quote(name)+" is not made above", "xattr stands behind what it is of")
	}
	key, err := p.text("the name of an attribute")
	if err != nil {
		return err
	}
	value, err := p.text("the attribute's value")
	if err != nil {
		return err
	}
	if p.space(); !p.end() {
		return p.fail(p.i, "nothing more was expected", `it is: xattr "PATH" "NAME" "VALUE"`)
	}
	e := &r.m.Entries[i]
	if e.Xattrs == nil {
		e.Xattrs = map[string][]byte{}
	}
	if len(e.Xattrs) >= tree.MaxXattrs {
		return p.fail(at, "too many attributes", "")
	}
	e.Xattrs[key], e.Known = []byte(value), e.Known|tree.KnownXattrs
	return nil
}

// hashOf reads a hash of the content or of its blocks.
func hashOf(what tree.Known) func(e *tree.Entry, v *told) bool {
	return func(e *tree.Entry, v *told) bool {
		b, err := hex.DecodeString(v.Text)
		e.Known |= what
		copy(e.Hash[:], b)
		return err == nil && len(b) == len(e.Hash)
	}
}
