// SPDX-License-Identifier: Apache-2.0

package dataseries

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrDamaged is wrapped by all errors about what a file holds.
var ErrDamaged = errors.New("DataSeries file is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrDamaged)...)
}

// Extent is a table: records of one type, as they were before packing. It is not
// changed after reading and may be used by several goroutines.
type Extent struct {
	Type   *Type
	Offset int64 // in its file, bytes
	n      int
	fixed  []byte
	vars   []byte // 4 bytes, then the strings with their sizes
	order  binary.ByteOrder
}

// Len returns the number of records.
func (e *Extent) Len() int { return e.n }

func (e *Extent) record(row int) []byte { return e.fixed[row*e.Type.size:][:e.Type.size] }

func bit(b []byte, i int) bool { return b[i>>3]>>(i&7)&1 != 0 }

// Null reports whether a field is null. Its value means nothing then.
func (e *Extent) Null(row, field int) bool {
	at := e.Type.null[field]
	return at >= 0 && bit(e.record(row), at)
}

// Bool returns a Bool.
func (e *Extent) Bool(row, field int) bool { return bit(e.record(row), e.Type.at[field]) }

// Int returns a Byte, an Int32 or an Int64.
func (e *Extent) Int(row, field int) int64 {
	b := e.record(row)[e.Type.at[field]:]
	switch e.Type.Fields[field].Kind {
	case Byte:
		return int64(b[0])
	case Int32:
		return int64(int32(e.order.Uint32(b)))
	}
	return int64(e.order.Uint64(b))
}

// Double returns a Double.
func (e *Extent) Double(row, field int) float64 {
	return math.Float64frombits(e.order.Uint64(e.record(row)[e.Type.at[field]:]))
}

// Bytes returns a Variable32 or a FixedWidth. The slice is the extent's.
func (e *Extent) Bytes(row, field int) []byte {
	b := e.record(row)[e.Type.at[field]:]
	if f := &e.Type.Fields[field]; f.Kind == FixedWidth {
		return b[:f.Size:f.Size]
	}
	off := e.order.Uint32(b)
	if off == 0 {
		return nil
	}
	n := e.order.Uint32(e.vars[off:])
	return e.vars[off+4:][:n:n]
}

// extentHeader is the fixed part of an extent's header.
type extentHeader struct {
	fixed, vars      int // compressed bytes
	records          int
	varBytes         int // uncompressed, with the first 4
	adler, hash      uint32
	fixedCodec       Codec
	varCodec         Codec
	headBytes, bytes int64 // of header and name, and of all
}

const (
	extentHeaderBytes = 28
	maxPart           = 1 << 29 // compressed or not, bytes of fixed data or strings
)

func pad4(n int64) int64 { return (n + 3) &^ 3 }

// parseHeader reads the first 28 bytes; the name is still to come.
func parseHeader(b []byte, order binary.ByteOrder) (h extentHeader, err error) {
	h = extentHeader{
		fixed: int(int32(order.Uint32(b))), vars: int(int32(order.Uint32(b[4:]))),
		records:  int(int32(order.Uint32(b[8:]))),
		varBytes: int(int32(order.Uint32(b[12:]))), adler: order.Uint32(b[16:]), hash: order.Uint32(b[20:]),
		fixedCodec: Codec(b[24]), varCodec: Codec(b[25]),
	}
	if h.fixed < 0 || h.fixed >= maxPart || h.vars < 0 || h.vars >= maxPart || h.records < 0 || h.varBytes < 4 ||
		h.varBytes >= maxPart || b[26] == 0 {
		return h, damaged("extent header")
	}
	h.headBytes = pad4(extentHeaderBytes + int64(b[26]))
	h.bytes = h.headBytes + pad4(int64(h.fixed)) + pad4(int64(h.vars))
	if h.varBytes == 4 {
		h.varCodec = None // the C++ writer leaves it undefined
	}
	return h, nil
}

// unpack decodes an extent from all its bytes.
func unpack(t *Type, h *extentHeader, b []byte, order binary.ByteOrder) (*Extent, error) {
	sum := adler(adler(1, b[:16]), b[20:])
	if sum != h.adler {
		return nil, damaged("checksum of the compressed data is %08x, not %08x", sum, h.adler)
	}
	if uint64(h.records)*uint64(t.size) >= maxPart {
		return nil, damaged("%d records of %d bytes", h.records, t.size)
	}
	e := &Extent{Type: t, n: h.records, order: order}
	src := b[h.headBytes:]
	fixed, err := decompress(h.fixedCodec, src[:h.fixed], h.records*t.size, !t.compact)
	if err != nil {
		return nil, fmt.Errorf("records: %w: %w", err, ErrDamaged)
	}
	src = src[pad4(int64(h.fixed)):]
	vars, err := decompress(h.varCodec, src[:h.vars], h.varBytes-4, true)
	if err != nil {
		return nil, fmt.Errorf("strings: %w: %w", err, ErrDamaged)
	}
	e.vars = make([]byte, 4+len(vars))
	copy(e.vars[4:], vars)
	if t.compact {
		if e.fixed, err = t.expand(fixed, h.records); err != nil {
			return nil, err
		}
	} else {
		e.fixed = append([]byte(nil), fixed...)
	}
	if err := e.checkStrings(); err != nil {
		return nil, err
	}
	if sum := hashExtent(e.fixed, e.vars, order); sum != h.hash {
		return nil, damaged("checksum of the data is %08x, not %08x", sum, h.hash)
	}
	e.absolute()
	return e, nil
}

// checkStrings verifies that every string is where a record says.
func (e *Extent) checkStrings() error {
	begins := make([]bool, len(e.vars)/8+1) // by (offset+4)/8
	for at := 4; at < len(e.vars); {
		if at+4 > len(e.vars) {
			return damaged("strings end within a size")
		}
		n := uint64(e.order.Uint32(e.vars[at:]))
		end := uint64(at) + (n+4+7)&^7
		if n > math.MaxInt32 || end > uint64(len(e.vars)) {
			return damaged("string of %d bytes in %d", n, len(e.vars))
		}
		for _, c := range e.vars[uint64(at)+4+n : end] {
			if c != 0 {
				return damaged("padding of a string")
			}
		}
		begins[(at+4)/8] = true
		at = int(end)
	}
	for row := range e.n {
		r := e.record(row)
		for _, f := range e.Type.strs {
			off := e.order.Uint32(r[e.Type.at[f]:])
			if off == 0 {
				continue
			}
			if off%8 != 4 || uint64(off) >= uint64(len(e.vars)) || !begins[(off+4)/8] {
				return damaged("string at %d", off)
			}
		}
	}
	return nil
}

// absolute undoes what Field.Relative and Field.Scale say.
func (e *Extent) absolute() {
	t := e.Type
	if !t.moved {
		return
	}
	last := make([]uint64, len(t.Fields)) // values of the record before
	for row := range e.n {
		r := e.record(row)
		skip := func(i int) bool { return t.compact && t.null[i] >= 0 && bit(r, t.null[i]) }
		for i := range t.Fields {
			if f := &t.Fields[i]; f.Scale != 0 && !skip(i) {
				e.put(r, i, math.Float64bits(e.float(r, i)*f.Scale))
			}
		}
		for i := range t.Fields {
			f := &t.Fields[i]
			if f.Relative != f.Name || f.Relative == "" || skip(i) {
				continue
			}
			v := add(f, e.get(r, i), last[i])
			if f.Scale != 0 {
				m := 1.0 / f.Scale
				v = math.Float64bits(math.Round(math.Float64frombits(v)*m) * f.Scale)
			}
			e.put(r, i, v)
			last[i] = v
		}
		for i := range t.Fields {
			f := &t.Fields[i]
			if f.Relative == "" || f.Relative == f.Name || skip(i) {
				continue
			}
			base := t.Index(f.Relative)
			if skip(base) {
				continue // it counts as 0
			}
			e.put(r, i, add(f, e.get(r, i), e.get(r, base)))
		}
	}
}

func add(f *Field, a, b uint64) uint64 {
	if f.Kind == Double {
		return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
	}
	return a + b // put drops what an Int32 has no room for
}

func sub(f *Field, a, b uint64) uint64 {
	if f.Kind == Double {
		return math.Float64bits(math.Float64frombits(a) - math.Float64frombits(b))
	}
	return a - b
}

func (e *Extent) float(r []byte, i int) float64 {
	return math.Float64frombits(e.order.Uint64(r[e.Type.at[i]:]))
}

// get returns the bits of a numeric field.
func (e *Extent) get(r []byte, i int) uint64 {
	b := r[e.Type.at[i]:]
	if e.Type.Fields[i].Kind == Int32 {
		return uint64(e.order.Uint32(b))
	}
	return e.order.Uint64(b)
}

func (e *Extent) put(r []byte, i int, v uint64) {
	b := r[e.Type.at[i]:]
	if e.Type.Fields[i].Kind == Int32 {
		e.order.PutUint32(b, uint32(v))
		return
	}
	e.order.PutUint64(b, v)
}

// groups are the fields that left-out nulls are in, by width, in the order of the
// record.
func (t *Type) groups() (g [3][]int) {
	for i := range t.Fields {
		switch t.Fields[i].Kind {
		case Byte:
			g[0] = append(g[0], i)
		case Int32:
			g[1] = append(g[1], i)
		case Int64, Double:
			g[2] = append(g[2], i)
		}
	}
	g[1] = append(g[1], t.strs...)
	return g
}

var groupWidths = [...]int{1, 4, 8}

// expand puts the nulls back that were left out. Values are aligned to their width
// in the compacted bytes, not in the record.
func (t *Type) expand(src []byte, records int) ([]byte, error) {
	if records > len(src) {
		return nil, damaged("%d records in %d bytes", records, len(src))
	}
	out := make([]byte, records*t.size)
	groups, nbits, at := t.groups(), (t.bits+7)/8, 0
	for row := range records {
		r := out[row*t.size:][:t.size]
		if at+nbits > len(src) {
			return nil, damaged("records end after %d of %d", row, records)
		}
		at += copy(r, src[at:at+nbits])
		for g, fields := range groups {
			w := groupWidths[g]
			for _, i := range fields {
				if t.null[i] >= 0 && bit(r, t.null[i]) {
					continue
				}
				at = (at + w - 1) &^ (w - 1)
				if at+w > len(src) {
					return nil, damaged("records end after %d of %d", row, records)
				}
				at += copy(r[t.at[i]:], src[at:at+w])
			}
		}
	}
	if at != len(src) {
		return nil, damaged("%d bytes after the last record", len(src)-at)
	}
	return out, nil
}

// shrink leaves nulls out.
func (t *Type) shrink(fixed []byte) []byte {
	var out []byte
	groups, nbits := t.groups(), (t.bits+7)/8
	for ; len(fixed) > 0; fixed = fixed[t.size:] {
		r := fixed[:t.size]
		out = append(out, r[:nbits]...)
		for g, fields := range groups {
			w := groupWidths[g]
			for _, i := range fields {
				if t.null[i] >= 0 && bit(r, t.null[i]) {
					continue
				}
				for len(out)%w != 0 {
					out = append(out, 0)
				}
				out = append(out, r[t.at[i]:t.at[i]+w]...)
			}
		}
	}
	return out
}
