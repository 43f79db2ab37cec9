// SPDX-License-Identifier: Apache-2.0

package spanindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	magic = "iotapeL3"
	// pageSpans is how many spans a page has, but for a line's last.
	pageSpans = 64
	// groupSpans is how many of these are summed up within the page, so that one that is
	// opened need not be read span by span.
	groupSpans = 8
	// maxPageBytes is more than a page can have.
	maxPageBytes = pageSpans*48 + pageSpans/groupSpans*maxMarkBytes
	maxMarkBytes = 10*(10+Kinds) + 8
	trailerBytes = 8 + 8 + 4 + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MaxLines is how many lines an index can have.
const MaxLines = 1 << 20

// Builder writes an index.
type Builder struct {
	w     io.Writer
	at    int64
	lines []*lineBuilder
	err   error // the first
}

type lineBuilder struct {
	page  []byte
	spans int
	last  uint64 // ID
	group []Span
	near  Mark // of the page's group before
	sum   Mark
	done  []pageEntry
}

// pageEntry is what the directory says of a page.
type pageEntry struct {
	off   int64
	bytes int
	check uint32
	sum   Mark
}

// NewBuilder returns a Builder that writes to w.
func NewBuilder(w io.Writer) *Builder {
	b := &Builder{w: w}
	b.write([]byte(magic))
	return b
}

func (b *Builder) write(p []byte) {
	if b.err != nil {
		return
	}
	n, err := b.w.Write(p)
	b.at += int64(n)
	b.err = err
}

// Add puts a span on a line. Lines are numbered from 0; those that get none are empty.
func (b *Builder) Add(line int, s *Span) error {
	if b.err != nil {
		return b.err
	}
	if line < 0 || line >= MaxLines || s.Kind >= Kinds || s.To < s.From || s.Untimed && s.To != s.From {
		return fmt.Errorf("line %d, kind %d, from %d to %d ns: no such span can be", line, s.Kind, s.From, s.To)
	}
	for len(b.lines) <= line {
		b.lines = append(b.lines, &lineBuilder{})
	}
	l := b.lines[line]
	if s.ID < l.last {
		return errors.New("spans of a line have to be added in the order of their IDs")
	}
	l.last = s.ID
	if l.group = append(l.group, *s); len(l.group) == groupSpans {
		l.close()
	}
	if l.spans++; l.spans == pageSpans {
		b.flush(l)
	}
	return b.err
}

// close puts a group into the page: its sum, how many bytes its spans have, and these.
func (l *lineBuilder) close() {
	var sum Mark
	for i := range l.group {
		m := l.group[i].mark()
		sum.Add(&m)
	}
	var spans [groupSpans * 48]byte
	list, before := spans[:0], Span{From: sum.From, ID: sum.First}
	for i := range l.group {
		list = appendSpan(list, &l.group[i], &before)
		before = l.group[i]
	}
	l.page = appendMark(l.page, &sum, l.near.From, l.near.First)
	l.page = binary.AppendUvarint(l.page, uint64(len(list)))
	l.page = append(l.page, list...)
	l.near, l.group = sum, l.group[:0]
	l.sum.Add(&sum)
}

// flush writes a line's page.
func (b *Builder) flush(l *lineBuilder) {
	if len(l.group) > 0 {
		l.close()
	}
	l.done = append(l.done, pageEntry{b.at, len(l.page), crc32.Checksum(l.page, castagnoli), l.sum})
	b.write(l.page)
	l.page, l.spans, l.sum, l.near = l.page[:0], 0, Mark{}, Mark{}
}

// Finish writes what is left, with extra bytes of the caller's for who opens the index.
func (b *Builder) Finish(extra []byte) error {
	d := binary.AppendUvarint(nil, uint64(len(extra)))
	d = append(d, extra...)
	d = binary.AppendUvarint(d, uint64(len(b.lines)))
	for _, l := range b.lines {
		if l.spans > 0 {
			b.flush(l)
		}
		d = binary.AppendUvarint(d, uint64(len(l.done)))
		for i := range l.done {
			d = appendEntry(d, &l.done[i])
		}
		l.done, l.page = nil, nil
	}
	start := b.at
	b.write(d)
	t := binary.LittleEndian.AppendUint64(nil, uint64(start))
	t = binary.LittleEndian.AppendUint64(t, uint64(len(d)))
	t = binary.LittleEndian.AppendUint32(t, crc32.Checksum(d, castagnoli))
	b.write(append(t, magic...))
	if b.err != nil {
		return fmt.Errorf("write index of the time line: %w", b.err)
	}
	return nil
}

func appendEntry(d []byte, e *pageEntry) []byte {
	d = binary.AppendUvarint(d, uint64(e.off))
	d = binary.AppendUvarint(d, uint64(e.bytes))
	d = binary.LittleEndian.AppendUint32(d, e.check)
	return appendMark(d, &e.sum, 0, 0)
}

// appendMark encodes a mark: its beginning and first ID as differences to others.
func appendMark(d []byte, m *Mark, from int64, first uint64) []byte {
	d = binary.AppendVarint(d, m.From-from)
	for _, v := range []uint64{uint64(m.To - m.From), m.N, m.Failed, m.Untimed, m.Bytes, m.First - first,
		m.Last - m.First, m.most} {
		d = binary.AppendUvarint(d, v)
	}
	d = binary.LittleEndian.AppendUint32(d, m.Content)
	var kinds byte
	for k, ns := range m.Busy {
		if ns != 0 {
			kinds |= 1 << k
		}
	}
	d = append(d, kinds)
	for _, ns := range m.Busy {
		if ns != 0 {
			d = binary.AppendUvarint(d, uint64(ns))
		}
	}
	return d
}

func (d *decoder) entry() (e pageEntry) {
	e.off, e.bytes, e.check = int64(d.uvarint()), int(min(d.uvarint(), maxPageBytes+1)), d.uint32()
	d.mark(&e.sum, 0, 0)
	return e
}

// mark decodes what appendMark encoded.
func (d *decoder) mark(m *Mark, from int64, first uint64) {
	*m = Mark{From: from + d.varint()}
	m.To = m.From + int64(d.uvarint())
	m.N, m.Failed, m.Untimed, m.Bytes, m.First = d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint(), first+d.uvarint()
	m.Last = m.First + d.uvarint()
	m.most, m.Content = d.uvarint(), d.uint32()
	if kinds := d.take(1); kinds != nil {
		for k := range m.Busy {
			if kinds[0]&(1<<k) != 0 {
				m.Busy[k] = int64(d.uvarint() & (1<<63 - 1))
			}
		}
	}
}
