// SPDX-License-Identifier: Apache-2.0

package spanindex

import (
	"encoding/binary"
	"fmt"

	"github.com/iotape/iotape/trace"
)

// Kinds is how many kinds of spans can be told apart.
const Kinds = 8

// Span is something that took its time.
type Span struct {
	From, To int64 // ns, To not before From
	// ID says what it is; on one line, IDs grow in the order of Add.
	ID      uint64
	Kind    uint8 // below Kinds
	Failed  bool
	Untimed bool   // how long it took is not known: To is From
	Bytes   uint64 // that it moved
	Content uint32 // what it moved, as a number that is the same for equal content; 0 is nothing
}

// Mark is one span, or several that are too close to be told apart.
type Mark struct {
	From, To    int64 // of the first that begins, and of the last that ends
	N, Failed   uint64
	Untimed     uint64       // spans of which it is not known how long they took
	Busy        [Kinds]int64 // ns that spans of each kind took together, those that are Untimed 1 ns each
	Bytes       uint64
	First, Last uint64 // IDs
	Content     uint32 // of the span that moved most
	most        uint64 // bytes of that
}

// Kind returns the kind that took the most time.
func (m *Mark) Kind() (kind uint8) {
	for k := range m.Busy {
		if m.Busy[k] > m.Busy[kind] {
			kind = uint8(k)
		}
	}
	return kind
}

// Add makes another mark a part of this one.
func (m *Mark) Add(o *Mark) {
	if m.N == 0 {
		*m = *o
		return
	}
	m.From, m.To = min(m.From, o.From), max(m.To, o.To)
	m.First, m.Last = min(m.First, o.First), max(m.Last, o.Last)
	m.N, m.Failed, m.Bytes = m.N+o.N, m.Failed+o.Failed, m.Bytes+o.Bytes
	m.Untimed += o.Untimed
	for k := range m.Busy {
		m.Busy[k] += o.Busy[k]
	}
	if o.Content != 0 && (m.Content == 0 || o.most > m.most) {
		m.Content, m.most = o.Content, o.most
	}
}

// mark makes a mark of one span. A span that takes no time counts as one ns, so that its
// kind is known.
func (s *Span) mark() Mark {
	m := Mark{From: s.From, To: s.To, N: 1, Bytes: s.Bytes, First: s.ID, Last: s.ID, Content: s.Content, most: s.Bytes}
	m.Busy[s.Kind] = max(s.To-s.From, 1)
	if s.Failed {
		m.Failed = 1
	}
	if s.Untimed {
		m.Untimed = 1
	}
	return m
}

// The first byte of a span in a page: its kind, and what follows.
const (
	kindBits   = 0x07
	failedBit  = 0x08
	bytesBit   = 0x10
	contentBit = 0x20
	untimedBit = 0x40
)

// appendSpan encodes a span as differences to the one before.
func appendSpan(b []byte, s, before *Span) []byte {
	head := s.Kind
	if s.Failed {
		head |= failedBit
	}
	if s.Bytes != 0 {
		head |= bytesBit
	}
	if s.Content != 0 {
		head |= contentBit
	}
	if s.Untimed {
		head |= untimedBit
	}
	b = append(b, head)
	b = binary.AppendVarint(b, s.From-before.From)
	b = binary.AppendUvarint(b, uint64(s.To-s.From))
	b = binary.AppendUvarint(b, s.ID-before.ID)
	if s.Bytes != 0 {
		b = binary.AppendUvarint(b, s.Bytes)
	}
	if s.Content != 0 {
		b = binary.LittleEndian.AppendUint32(b, s.Content)
	}
	return b
}

// decoder takes varints off a slice; after one that is not whole it gives zeros, and bad
// is set.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	part := d.b[:n]
	d.b = d.b[n:]
	return part
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// span decodes a span, which comes after s.
func (d *decoder) span(s *Span) error {
	head := d.take(1)
	if head == nil {
		return fmt.Errorf("a page of spans breaks off: %w", trace.ErrCorrupt)
	}
	s.Kind, s.Failed, s.Bytes, s.Content = head[0]&kindBits, head[0]&failedBit != 0, 0, 0
	s.Untimed = head[0]&untimedBit != 0
	s.From += d.varint()
	length := d.uvarint()
	s.To = s.From + int64(length)
	s.ID += d.uvarint()
	if head[0]&bytesBit != 0 {
		s.Bytes = d.uvarint()
	}
	if head[0]&contentBit != 0 {
		s.Content = d.uint32()
	}
	if d.bad || s.To < s.From {
		return fmt.Errorf("a span is damaged: %w", trace.ErrCorrupt)
	}
	return nil
}
