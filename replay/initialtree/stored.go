// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// A tree is stored as parts, each behind its length (uvarint): the manifest, as package tree encodes it; and, of
// uvarints and texts behind their lengths,
//
//	pieces    n n*(chunk skip length)
//	inline    n n*text
//	remaining n n*(bytes shared with the path before, text, 1 if all names in it are known)    sorted
//	rest      written, lists, mounts, files with content that the tape does not have

// Limits of what is stored: a tree of more is found again by each replay.
const (
	maxStoredBytes   = trace.MaxDerivation
	maxStoredEntries = 1 << 19
)

var errTooLong = errors.New("the initial tree is too long to be stored")

// stored is the tree in place of names.
type stored struct {
	entries   []tree.Entry
	remaining []remaining
}

// remaining is a path that exists after the last event.
type remaining struct {
	path   string
	listed bool
}

// Stored returns the initial tree of a tape that a replay with the same layout found before, nil if none did.
func Stored(t *trace.Tape, key string) *Tree {
	b, err := t.Derivation(trace.InitialName, key, maxStoredBytes)
	if err != nil {
		return nil
	}
	s, err := decodeTree(t, b)
	if err != nil {
		return nil
	}
	return s
}

// Store stores the tree for Stored.
func (s *Tree) Store(key string) error {
	parts, err := s.encode()
	if err != nil {
		return err
	}
	return s.tape.SetDerivation(trace.InitialName, key, parts)
}

// IsStored reports whether Stored returns this very tree.
func (s *Tree) IsStored(key string) bool {
	b, err := s.tape.Derivation(trace.InitialName, key, maxStoredBytes)
	found, wrong := s.encode()
	return err == nil && wrong == nil && bytes.Equal(b, found)
}

func (s *Tree) encode() ([]byte, error) {
	m := &tree.Manifest{Root: "/"}
	for e := range s.Entries() {
		if m.Entries = append(m.Entries, *e); len(m.Entries) > maxStoredEntries {
			return nil, errTooLong
		}
	}
	var manifest bytes.Buffer
	if err := tree.Encode(&manifest, m); err != nil {
		return nil, err
	}
	var left []remaining
	for p, c := range s.names.current() {
		if left = append(left, remaining{p, c.obj.allKnown()}); len(left) > 2*maxStoredEntries {
			return nil, errTooLong
		}
	}
	slices.SortFunc(left, func(a, b remaining) int { return strings.Compare(a.path, b.path) })
	b := appendText(nil, manifest.Bytes())
	b = appendText(b, s.appendPieces(nil))
	b = appendText(b, appendRemaining(nil, left))
	b = appendText(b, s.appendRest(nil))
	if len(b) > maxStoredBytes {
		return nil, errTooLong
	}
	return b, nil
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

func (s *Tree) appendPieces(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(s.pieces)))
	for _, p := range s.pieces {
		b = binary.AppendUvarint(b, p.chunk)
		b = binary.AppendUvarint(b, uint64(p.skip))
		b = binary.AppendUvarint(b, uint64(p.len))
	}
	b = binary.AppendUvarint(b, uint64(len(s.inline)))
	for _, p := range s.inline {
		b = appendText(b, p)
	}
	return b
}

func appendRemaining(b []byte, left []remaining) []byte {
	b = binary.AppendUvarint(b, uint64(len(left)))
	before := ""
	for _, r := range left {
		n := 0
		for n < len(before) && n < len(r.path) && before[n] == r.path[n] {
			n++
		}
		b = appendText(binary.AppendUvarint(b, uint64(n)), r.path[n:])
		if before = r.path; r.listed {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// lists are the lists of names of a tree.
func (s *Tree) lists() []*[]string {
	return []*[]string{&s.Elsewhere, &s.Specials, &s.LeftOut, &s.Others, &s.Overlays}
}

func (s *Tree) appendRest(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.Written))
	for _, list := range s.lists() {
		b = appendList(b, *list)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Mounted)))
	for _, r := range s.Mounted {
		b = appendText(appendText(b, r.Old), r.New)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Tainted)))
	for _, f := range s.Tainted {
		b = binary.AppendUvarint(binary.AppendUvarint(b, f.Dev), f.Ino)
		b = binary.AppendUvarint(b, uint64(len(f.Spans)))
		for _, span := range f.Spans {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(span[0])), uint64(span[1]))
		}
	}
	return b
}

// decoder reads what was stored. After an error everything is empty.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) text() []byte {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

// count returns how many of something follow that take at least so many bytes each.
func (d *decoder) count(bytes int) int {
	n := d.number()
	if n > uint64(len(d.b)/bytes) {
		d.b, d.bad = nil, true
		return 0
	}
	return int(n)
}

func (d *decoder) list() (list []string) {
	for range d.count(1) {
		list = append(list, string(d.text()))
	}
	return list
}

func decodeTree(t *trace.Tape, b []byte) (*Tree, error) {
	wrong := fmt.Errorf("stored initial tree: %w", trace.ErrCorrupt)
	d := &decoder{b: b}
	manifest, pieces, left, rest := d.text(), &decoder{b: d.text()}, &decoder{b: d.text()}, &decoder{b: d.text()}
	if d.bad || len(d.b) > 0 {
		return nil, wrong
	}
	m, err := tree.Decode(bytes.NewReader(manifest))
	if err != nil {
		return nil, fmt.Errorf("stored initial tree: %w", err)
	}
	s := &Tree{tape: t, kept: &stored{entries: m.Entries}}
	s.decodePieces(pieces)
	s.kept.decodeRemaining(left)
	s.decodeRest(rest)
	for _, d := range []*decoder{pieces, left, rest} {
		if d.bad || len(d.b) > 0 {
			return nil, wrong
		}
	}
	return s, nil
}

func (s *Tree) decodePieces(d *decoder) {
	for range d.count(3) {
		p := piece{chunk: d.number()}
		skip, length := d.number(), d.number()
		d.bad = d.bad || skip > 1<<31 || length > 1<<31
		p.skip, p.len = uint32(skip), uint32(length)
		s.pieces = append(s.pieces, p)
	}
	for range d.count(1) {
		s.inline = append(s.inline, d.text())
	}
}

func (st *stored) decodeRemaining(d *decoder) {
	before := ""
	for range d.count(3) {
		shared, text := d.number(), d.text()
		if shared > uint64(len(before)) || uint64(len(text))+shared > tree.MaxPathBytes {
			d.bad = true
			return
		}
		r := remaining{path: before[:shared] + string(text), listed: d.number() == 1}
		if r.path <= before {
			d.bad = true
			return
		}
		st.remaining = append(st.remaining, r)
		before = r.path
	}
}

func (s *Tree) decodeRest(d *decoder) {
	s.Written = int64(d.number() &^ (1 << 63))
	for _, list := range s.lists() {
		*list = d.list()
	}
	for range d.count(2) {
		s.Mounted = append(s.Mounted, eventsource.Rename{Old: string(d.text()), New: string(d.text())})
	}
	for range d.count(3) {
		f := effect.FileRanges{Dev: d.number(), Ino: d.number()}
		for range d.count(2) {
			from, to := d.number(), d.number()
			d.bad = d.bad || from > to || to > 1<<62
			f.Spans = append(f.Spans, [2]int64{int64(from), int64(to)})
		}
		s.Tainted = append(s.Tainted, f)
	}
}

// all returns the entries.
func (st *stored) all() iter.Seq[*tree.Entry] {
	return func(yield func(*tree.Entry) bool) {
		for i := range st.entries {
			if e := st.entries[i]; !yield(&e) {
				return
			}
		}
	}
}

func (st *stored) fifos() bool {
	return slices.ContainsFunc(st.entries, func(e tree.Entry) bool { return e.Type == tree.FIFO })
}

func (st *stored) remains(path string) bool {
	_, found := slices.BinarySearchFunc(st.remaining, path, func(r remaining, p string) int {
		return strings.Compare(r.path, p)
	})
	return found || path == "."
}

func (st *stored) listed() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range st.remaining {
			if r.listed && !yield(r.path) {
				return
			}
		}
	}
}
