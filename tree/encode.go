// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// MaxLineBytes bounds a line of the encoded form.
const MaxLineBytes = 64 << 20

// The lines of the encoded form. Encoder and decoder share these types, so a field
// exists once. A pointer or raw slice that is nil is a field that is absent.

type headerLine struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Root    string `json:"root,omitempty"`
	Root64  []byte `json:"root64,omitempty"`
}

type entryLine struct {
	Path     string     `json:"path,omitempty"`
	Path64   []byte     `json:"path64,omitempty"`
	Type     string     `json:"type,omitempty"`
	Mode     *octal     `json:"mode,omitempty"`
	UID      *uint32    `json:"uid,omitempty"`
	GID      *uint32    `json:"gid,omitempty"`
	MTime    *int64     `json:"mtime,omitempty"`
	Size     *int64     `json:"size,omitempty"`
	Hash     *hash      `json:"hash,omitempty"`
	Blocks   *hash      `json:"blocks,omitempty"`
	Content  bool       `json:"content,omitempty"`
	Target   string     `json:"target,omitempty"`
	Target64 []byte     `json:"target64,omitempty"`
	Rdev     uint64     `json:"rdev,omitempty"`
	Xattrs   *xattrList `json:"xattrs,omitempty"`
	Nlink    *uint32    `json:"nlink,omitempty"`
	Link     string     `json:"link,omitempty"`
	Link64   []byte     `json:"link64,omitempty"`
	Listing  bool       `json:"listing,omitempty"`
	Dev      uint64     `json:"dev,omitempty"`
	Ino      uint64     `json:"ino,omitempty"`
	Chunks   runList    `json:"chunks,omitempty"`
}

type xattrPair struct {
	Name   string `json:"name,omitempty"`
	Name64 []byte `json:"name64,omitempty"`
	Value  []byte `json:"value"`
}

type moreLine struct {
	More runList `json:"more"`
}

type noteLine struct {
	Note   string `json:"note"`
	Path   string `json:"path,omitempty"`
	Path64 []byte `json:"path64,omitempty"`
}

type endLine struct {
	End     bool `json:"end"`
	Entries int  `json:"entries"`
	Notes   int  `json:"notes"`
}

// Encode writes a manifest. It refuses one that Decode would refuse.
func Encode(w io.Writer, m *Manifest) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("encode tree manifest: %w", err)
	}
	bw := bufio.NewWriterSize(w, 1<<16)
	e := &encoder{w: bw}
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)

	h := headerLine{Format: formatName, Version: formatVersion}
	h.Root, h.Root64 = split(m.Root)
	e.line(h)
	for i := range m.Entries {
		e.entry(&m.Entries[i])
	}
	for _, n := range m.Notes {
		l := noteLine{Note: n.Text}
		l.Path, l.Path64 = split(n.Path)
		e.line(l)
	}
	e.line(endLine{End: true, Entries: len(m.Entries), Notes: len(m.Notes)})
	if e.err == nil {
		e.err = bw.Flush()
	}
	if e.err != nil {
		return fmt.Errorf("encode tree manifest: %w", e.err)
	}
	return nil
}

// encoder keeps the first error, so that its callers need not look.
type encoder struct {
	w    *bufio.Writer
	buf  bytes.Buffer // one line
	json *json.Encoder
	err  error
}

func (e *encoder) line(v any) {
	if e.err != nil {
		return
	}
	e.buf.Reset()
	e.err = e.json.Encode(v)
	switch {
	case e.err != nil:
	case e.buf.Len() > MaxLineBytes:
		e.err = fmt.Errorf("line of %d bytes, more than %d: %.100q…", e.buf.Len(), MaxLineBytes, e.buf.Bytes())
	default:
		_, e.err = e.w.Write(e.buf.Bytes())
	}
}

func (e *encoder) entry(n *Entry) {
	l := entryLine{Type: string(rune(n.Type)), Rdev: n.Rdev, Dev: n.Dev, Ino: n.Ino}
	l.Path, l.Path64 = split(n.Path)
	l.Target, l.Target64 = split(n.Target)
	l.Link, l.Link64 = split(n.Link)
	if n.Has(KnownMode) {
		l.Mode = (*octal)(&n.Mode)
	}
	if n.Has(KnownOwner) {
		l.UID, l.GID = &n.UID, &n.GID
	}
	if n.Has(KnownMTime) {
		l.MTime = &n.MTime
	}
	if n.Has(KnownSize) {
		l.Size = &n.Size
	}
	if n.Has(KnownHash) {
		l.Hash = (*hash)(&n.Hash)
	}
	if n.Has(KnownBlocks) {
		l.Blocks = (*hash)(&n.Hash)
	}
	if n.Has(KnownLinks) {
		l.Nlink = &n.Nlink
	}
	l.Content, l.Listing = n.Has(KnownContent), n.Has(KnownListing)
	if n.Has(KnownXattrs) {
		pairs := make(xattrList, 0, len(n.Xattrs))
		for _, name := range slices.Sorted(maps.Keys(n.Xattrs)) {
			p := xattrPair{Value: n.Xattrs[name]}
			p.Name, p.Name64 = split(name)
			pairs = append(pairs, p)
		}
		l.Xattrs = &pairs
	}
	var rest []Chunk
	l.Chunks, rest = runs(n.Chunks)
	e.line(l)
	for len(rest) > 0 {
		var more moreLine
		more.More, rest = runs(rest)
		e.line(more)
	}
}

// split puts bytes into the text field, or into the base64 field if JSON could not
// carry them.
func split(s string) (text string, b64 []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

// run is offset, length, id and count of chunks with consecutive offsets and ids.
type run [4]uint64

// MarshalJSON leaves out the count where it is one, as for most deduplicated content.
func (r run) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 48)
	b = append(b, '[')
	n := 3
	if r[3] > 1 {
		n = 4
	}
	for i, v := range r[:n] {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, v, 10)
	}
	return append(b, ']'), nil
}

// runs turns as many chunks as fit into one line into runs, and returns the others.
func runs(chunks []Chunk) (runList, []Chunk) {
	var out runList
	for i := range chunks {
		k := &chunks[i]
		if len(out) > 0 {
			last := &out[len(out)-1]
			if k.Len == chunkBytes && last[1] == chunkBytes && last[3] < maxRunChunks &&
				uint64(k.Off) == last[0]+last[3]*chunkBytes &&
				k.ID-last[2] == last[3] && k.ID > last[2] {
				last[3]++
				continue
			}
		}
		if len(out) == runsPerLine {
			return out, chunks[i:]
		}
		out = append(out, run{uint64(k.Off), uint64(k.Len), k.ID, 1})
	}
	return out, nil
}

// expand appends the chunks of a run.
func (r run) expand(to []Chunk) ([]Chunk, error) {
	off, length, id, count := r[0], r[1], r[2], max(r[3], 1)
	switch {
	case off > maxFileOffset || length > math.MaxUint32:
		return nil, fmt.Errorf("chunk %d,%d is impossible", off, length)
	case count > maxRunChunks:
		return nil, fmt.Errorf("run of %d chunks, more than %d", count, maxRunChunks)
	case count > 1 && length != chunkBytes:
		return nil, fmt.Errorf("run of chunks of %d bytes, not %d", length, chunkBytes)
	case off > maxFileOffset-count*chunkBytes && count > 1, id > math.MaxUint64-count:
		return nil, fmt.Errorf("run at %d with id %d overflows", off, id)
	}
	for i := range count {
		to = append(to, Chunk{Off: int64(off + i*chunkBytes), Len: uint32(length), ID: id + i})
	}
	return to, nil
}

// octal is a mode in the usual notation.
type octal uint32

func (o octal) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(o)), nil }

func (o *octal) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 8, 32)
	if err != nil {
		return fmt.Errorf("mode %s is not an octal number", clip(string(b)))
	}
	*o = octal(v)
	return nil
}

// hash is a BLAKE3-256 in hexadecimal.
type hash [32]byte

func (h hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

func (h *hash) UnmarshalText(b []byte) error {
	if len(b) != 2*len(h) {
		return fmt.Errorf("hash has %d digits, not %d", len(b), 2*len(h))
	}
	if _, err := hex.Decode(h[:], b); err != nil {
		return fmt.Errorf("hash %s is not hexadecimal", clip(string(b)))
	}
	return nil
}
