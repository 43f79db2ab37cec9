// SPDX-License-Identifier: Apache-2.0

package dataseries

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Options for NewWriter.
type Options struct {
	Codec Codec // tried on each part of an extent; None where it does not help
	// ExtentBytes is how large an extent may grow before it is written; 0 is 4 MiB.
	ExtentBytes int
}

// Writer writes a file, in little-endian order. It is not safe for concurrent use;
// after an error every call returns it again.
type Writer struct {
	w      io.Writer
	o      Options
	off    int64
	chain  uint32
	types  map[string]*builder
	order  []*builder
	index  *builder
	err    error
	closed bool
}

// NewWriter writes a file's header and its types, of which each record has one.
func NewWriter(w io.Writer, types []*Type, o Options) (*Writer, error) {
	if o.ExtentBytes <= 0 {
		o.ExtentBytes = 4 << 20
	}
	wr := &Writer{w: w, o: o, types: map[string]*builder{}, index: newBuilder(indexType)}
	var head [fileHeaderBytes]byte
	le := binary.LittleEndian
	copy(head[:], "DSv1")
	le.PutUint32(head[4:], checkInt32)
	le.PutUint64(head[8:], checkInt64)
	le.PutUint64(head[16:], math.Float64bits(math.Pi))
	le.PutUint64(head[24:], math.Float64bits(math.Inf(1)))
	le.PutUint64(head[32:], 0x7ff8000000000000)
	wr.write(head[:])

	library := newBuilder(typeType)
	types = slices.SortedFunc(slices.Values(types), func(a, b *Type) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range types {
		if wr.types[t.Name] != nil || t.Name == typeTypeName || t.Name == indexTypeName {
			return nil, fmt.Errorf("write DataSeries: type %q twice", t.Name)
		}
		b := newBuilder(t)
		wr.types[t.Name] = b
		wr.order = append(wr.order, b)
		library.add()
		library.row.SetBytes(0, []byte(t.XML))
	}
	wr.flush(library)
	return wr, wr.err
}

// Row begins a record of a type. It is complete, and its fields zero, empty or not
// null as far as they were not set, when the next call of the Writer is made.
func (wr *Writer) Row(t *Type) (*Row, error) {
	b := wr.types[t.Name]
	if b == nil || b.e.Type != t {
		return nil, fmt.Errorf("write DataSeries: type %q is not in the file", t.Name)
	}
	if len(b.e.fixed)+b.strBytes+t.size > wr.o.ExtentBytes {
		wr.flush(b)
	}
	if wr.err != nil {
		return nil, wr.err
	}
	b.add()
	return &b.row, nil
}

// Close writes what is left, the index and the tail. It does not close the
// underlying writer.
func (wr *Writer) Close() error {
	if wr.closed {
		return wr.err
	}
	wr.closed = true
	for _, b := range wr.order {
		wr.flush(b)
	}
	at := wr.off
	wr.entry(indexTypeName)
	wr.flush(wr.index)
	var b [tailBytes]byte
	le := binary.LittleEndian
	le.PutUint32(b[:], math.MaxUint32)
	le.PutUint32(b[4:], uint32(wr.off-at))
	le.PutUint32(b[8:], ^uint32(wr.off-at))
	le.PutUint32(b[12:], wr.chain)
	le.PutUint64(b[16:], uint64(at))
	le.PutUint32(b[24:], hash(tailSeed, b[:24]))
	wr.write(b[:])
	return wr.err
}

func (wr *Writer) write(b []byte) {
	if wr.err != nil {
		return
	}
	n, err := wr.w.Write(b)
	wr.off += int64(n)
	if err != nil {
		wr.err = fmt.Errorf("write DataSeries: %w", err)
	}
}

func (wr *Writer) entry(name string) {
	wr.index.add()
	wr.index.row.SetInt(0, wr.off)
	wr.index.row.SetBytes(1, []byte(name))
}

// flush writes a builder's records as an extent.
func (wr *Writer) flush(b *builder) {
	if b.e.n == 0 || wr.err != nil {
		return
	}
	if b != wr.index {
		wr.entry(b.e.Type.Name)
	}
	out, sum, err := b.pack(wr.o.Codec)
	if err != nil {
		wr.err = fmt.Errorf("write DataSeries: %s: %w", b.e.Type.Name, err)
		return
	}
	wr.chain = chain(wr.chain, sum, binary.LittleEndian.Uint32(out[16:]))
	wr.write(out)
	b.reset()
}

// builder collects records of a type.
type builder struct {
	e        Extent
	row      Row
	strs     [][][]byte // by record, by string field
	strBytes int
}

func newBuilder(t *Type) *builder {
	b := &builder{e: Extent{Type: t, order: binary.LittleEndian}}
	b.row.b = b
	b.reset()
	return b
}

func (b *builder) reset() {
	b.e.n, b.e.fixed, b.strs, b.strBytes = 0, b.e.fixed[:0], b.strs[:0], 4
}

func (b *builder) add() {
	b.e.n++
	b.e.fixed = append(b.e.fixed, make([]byte, b.e.Type.size)...)
	b.strs = append(b.strs, make([][]byte, len(b.e.Type.strs)))
}

// pack returns the bytes of an extent, and its hash.
func (b *builder) pack(codec Codec) (out []byte, sum uint32, err error) {
	t, e := b.e.Type, &b.e
	if t.compact {
		b.clearNulls()
	}
	if err := b.layStrings(); err != nil {
		return nil, 0, err
	}
	e.relative()
	sum = hashExtent(e.fixed, e.vars, e.order)
	fixed := e.fixed
	if t.compact {
		fixed = t.shrink(fixed)
	}
	fixedCodec, fixed, err := compress(codec, fixed)
	if err != nil {
		return nil, 0, err
	}
	varCodec, vars, err := compress(codec, e.vars[4:])
	if err != nil {
		return nil, 0, err
	}
	if len(fixed) >= maxPart || len(vars) >= maxPart {
		return nil, 0, fmt.Errorf("an extent of %d and %d bytes, less than %d can be written", len(fixed), len(vars),
			maxPart)
	}
	le := binary.LittleEndian
	for _, v := range [...]uint32{uint32(len(fixed)), uint32(len(vars)), uint32(e.n), uint32(len(e.vars)), 0, sum} {
		out = le.AppendUint32(out, v)
	}
	out = append(out, byte(fixedCodec), byte(varCodec), byte(len(t.Name)), 0)
	for _, part := range [][]byte{[]byte(t.Name), fixed, vars} {
		out = append(out, part...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	le.PutUint32(out[16:], adler(adler(1, out[:16]), out[20:]))
	return out, sum, nil
}

// clearNulls takes the values of null fields away, which are not to be stored.
func (b *builder) clearNulls() {
	t := b.e.Type
	for row := range b.e.n {
		r := b.e.record(row)
		for i := range t.Fields {
			if t.null[i] < 0 || !bit(r, t.null[i]) {
				continue
			}
			switch t.Fields[i].Kind {
			case Bool:
			case Byte:
				r[t.at[i]] = 0
			case Variable32:
				b.strs[row][slices.Index(t.strs, i)] = nil
			default:
				b.e.put(r, i, 0)
			}
		}
	}
}

// layStrings lays the strings down, record by record.
func (b *builder) layStrings() error {
	e, t, le := &b.e, b.e.Type, binary.LittleEndian
	e.vars = append(e.vars[:0], 0, 0, 0, 0)
	seen := map[string]uint32{} // strings of unique fields
	for row, strs := range b.strs {
		r := e.record(row)
		for k, s := range strs {
			if len(s) == 0 {
				continue
			}
			f := &t.Fields[t.strs[k]]
			off, ok := uint32(0), false
			if f.Unique {
				off, ok = seen[string(s)]
			}
			if !ok {
				if len(e.vars)+len(s)+16 >= maxPart {
					return fmt.Errorf("strings of more than %d bytes", maxPart)
				}
				off = uint32(len(e.vars))
				e.vars = le.AppendUint32(e.vars, uint32(len(s)))
				e.vars = append(e.vars, s...)
				for len(e.vars)%8 != 4 {
					e.vars = append(e.vars, 0)
				}
				if f.Unique {
					seen[string(s)] = off
				}
			}
			le.PutUint32(r[t.at[t.strs[k]]:], off)
		}
	}
	return nil
}

// relative does what Field.Relative and Field.Scale say: the reverse of absolute.
func (e *Extent) relative() {
	t := e.Type
	if !t.moved {
		return
	}
	last := make([]uint64, len(t.Fields))
	for row := range e.n {
		r := e.record(row)
		skip := func(i int) bool { return t.compact && t.null[i] >= 0 && bit(r, t.null[i]) }
		for i := len(t.Fields) - 1; i >= 0; i-- {
			f := &t.Fields[i]
			if f.Relative == "" || f.Relative == f.Name || skip(i) {
				continue
			}
			if base := t.Index(f.Relative); !skip(base) {
				e.put(r, i, sub(f, e.get(r, i), e.get(r, base)))
			}
		}
		for i := range t.Fields {
			f := &t.Fields[i]
			if f.Relative != f.Name || f.Relative == "" || skip(i) {
				continue
			}
			v := e.get(r, i)
			e.put(r, i, sub(f, v, last[i]))
			last[i] = v
		}
		for i := range t.Fields {
			if f := &t.Fields[i]; f.Scale != 0 && !skip(i) {
				m := 1.0 / f.Scale
				e.put(r, i, math.Float64bits(math.Round(e.float(r, i)*m)))
			}
		}
	}
}

// Row is the record that is being written.
type Row struct{ b *builder }

func (r *Row) record() []byte { return r.b.e.record(r.b.e.n - 1) }

// SetNull makes a nullable field null.
func (r *Row) SetNull(field int) {
	if at := r.b.e.Type.null[field]; at >= 0 {
		r.record()[at>>3] |= 1 << (at & 7)
	}
}

// ClearNull takes SetNull back.
func (r *Row) ClearNull(field int) {
	if at := r.b.e.Type.null[field]; at >= 0 {
		r.record()[at>>3] &^= 1 << (at & 7)
	}
}

// Null reports whether a field of the record is null so far.
func (r *Row) Null(field int) bool { return r.b.e.Null(r.b.e.n-1, field) }

// Int returns a Byte, an Int32 or an Int64 as it was set.
func (r *Row) Int(field int) int64 { return r.b.e.Int(r.b.e.n-1, field) }

// SetBool sets a Bool.
func (r *Row) SetBool(field int, v bool) {
	at := r.b.e.Type.at[field]
	if v {
		r.record()[at>>3] |= 1 << (at & 7)
	} else {
		r.record()[at>>3] &^= 1 << (at & 7)
	}
}

// SetInt sets a Byte, an Int32 or an Int64, of which it keeps the low bits.
func (r *Row) SetInt(field int, v int64) {
	t := r.b.e.Type
	if t.Fields[field].Kind == Byte {
		r.record()[t.at[field]] = byte(v)
		return
	}
	r.b.e.put(r.record(), field, uint64(v))
}

// SetDouble sets a Double.
func (r *Row) SetDouble(field int, v float64) { r.b.e.put(r.record(), field, math.Float64bits(v)) }

// SetBytes sets a Variable32 or a FixedWidth, of which it fills what there is. The
// bytes are copied.
func (r *Row) SetBytes(field int, v []byte) {
	t := r.b.e.Type
	if t.Fields[field].Kind == FixedWidth {
		copy(r.record()[t.at[field]:][:t.Fields[field].Size], v)
		return
	}
	r.b.strs[r.b.e.n-1][slices.Index(t.strs, field)] = slices.Clone(v)
	r.b.strBytes += (4 + len(v) + 7) &^ 7
}
