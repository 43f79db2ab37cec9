package timeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	magic = "iotape L"
	// pageSpans is how many spans a page has, but for a line's last.
	pageSpans = 64
	// maxPageBytes is more than a page can have.
	maxPageBytes = pageSpans * 48
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
	last  Span
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
	if line < 0 || line >= MaxLines || s.Kind >= Kinds || s.To < s.From {
		return fmt.Errorf("line %d, kind %d, from %d to %d ns: no such span can be", line, s.Kind, s.From, s.To)
	}
	for len(b.lines) <= line {
		b.lines = append(b.lines, &lineBuilder{})
	}
	l := b.lines[line]
	if s.ID < l.last.ID {
		return errors.New("spans of a line have to be added in the order of their IDs")
	}
	if l.spans == 0 {
		l.last = Span{}
	}
	l.page = appendSpan(l.page, s, &l.last)
	l.last = *s
	m := s.mark()
	l.sum.Add(&m)
	if l.spans++; l.spans == pageSpans {
		b.flush(l)
	}
	return b.err
}

// flush writes a line's page.
func (b *Builder) flush(l *lineBuilder) {
	l.done = append(l.done, pageEntry{b.at, len(l.page), crc32.Checksum(l.page, castagnoli), l.sum})
	b.write(l.page)
	l.page, l.spans, l.sum = l.page[:0], 0, Mark{}
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
	m := &e.sum
	d = binary.AppendUvarint(d, uint64(e.off))
	d = binary.AppendUvarint(d, uint64(e.bytes))
	d = binary.LittleEndian.AppendUint32(d, e.check)
	d = binary.AppendVarint(d, m.From)
	for _, v := range []uint64{uint64(m.To - m.From), m.N, m.Failed, m.Bytes, m.First, m.Last - m.First, m.most} {
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
	m := &e.sum
	e.off, e.bytes, e.check = int64(d.uvarint()), int(min(d.uvarint(), maxPageBytes+1)), d.uint32()
	m.From = d.varint()
	m.To = m.From + int64(d.uvarint())
	m.N, m.Failed, m.Bytes, m.First = d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint()
	m.Last = m.First + d.uvarint()
	m.most, m.Content = d.uvarint(), d.uint32()
	if kinds := d.take(1); kinds != nil {
		for k := range m.Busy {
			if kinds[0]&(1<<k) != 0 {
				m.Busy[k] = int64(d.uvarint() & (1<<63 - 1))
			}
		}
	}
	return e
}
