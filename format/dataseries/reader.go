// SPDX-License-Identifier: Apache-2.0

package dataseries

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
)

const (
	fileHeaderBytes = 40
	tailBytes       = 28
	checkInt32      = 0x12345678
	checkInt64      = 0x123456789abcdef0
)

// Reader reads a file. Its methods may be used by several goroutines.
type Reader struct {
	r     io.ReaderAt
	size  int64
	order binary.ByteOrder
	types map[string]*Type
	list  []*Type
	index []Entry
}

// Entry says where an extent is.
type Entry struct {
	Offset int64
	Type   *Type
}

// NewReader reads a file's header, types and index. r has size bytes.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	rd := &Reader{r: r, size: size, types: map[string]*Type{typeTypeName: typeType, indexTypeName: indexType}}
	if err := rd.header(); err != nil {
		return nil, err
	}
	end, err := rd.tail()
	if err != nil {
		return nil, err
	}
	if err := rd.readTypes(); err != nil {
		return nil, fmt.Errorf("types: %w", err)
	}
	if err := rd.readIndex(end); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return rd, nil
}

func (rd *Reader) header() error {
	var b [fileHeaderBytes]byte
	if _, err := rd.r.ReadAt(b[:], 0); err != nil {
		if err == io.EOF {
			return damaged("a file of %d bytes", rd.size)
		}
		return fmt.Errorf("read header: %w", err)
	}
	if string(b[:4]) != "DSv1" {
		return damaged("not a DataSeries file")
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if order.Uint32(b[4:]) == checkInt32 {
			rd.order = order
		}
	}
	if rd.order == nil || rd.order.Uint64(b[8:]) != checkInt64 ||
		math.Float64frombits(rd.order.Uint64(b[16:])) != math.Pi ||
		!math.IsInf(math.Float64frombits(rd.order.Uint64(b[24:])), 1) ||
		!math.IsNaN(math.Float64frombits(rd.order.Uint64(b[32:]))) {
		return damaged("file header")
	}
	return nil
}

// tail returns the offset of the index.
func (rd *Reader) tail() (int64, error) {
	var b [tailBytes]byte
	if _, err := rd.r.ReadAt(b[:], max(rd.size-tailBytes, 0)); err != nil {
		return 0, damaged("a file of %d bytes without a tail", rd.size)
	}
	size := rd.order.Uint32(b[4:])
	at := int64(rd.order.Uint64(b[16:]))
	if rd.order.Uint32(b[:]) != math.MaxUint32 || rd.order.Uint32(b[8:]) != ^size {
		return 0, damaged("no tail: the file was cut, or its writing was not finished")
	}
	if hash(tailSeed, b[:24]) != rd.order.Uint32(b[24:]) {
		return 0, damaged("checksum of the tail")
	}
	if at != rd.size-tailBytes-int64(size) || at < fileHeaderBytes {
		return 0, damaged("index at %d", at)
	}
	return at, nil
}

func (rd *Reader) readTypes() error {
	e, err := rd.ReadExtent(fileHeaderBytes)
	if err != nil {
		return err
	}
	if e.Type != typeType {
		return damaged("the first extent is of type %q", e.Type.Name)
	}
	for row := range e.Len() {
		t, err := ParseType(string(e.Bytes(row, 0)))
		if err != nil {
			return err
		}
		if old := rd.types[t.Name]; old != nil && old.XML != t.XML {
			return damaged("two types %q", t.Name)
		} else if old != nil {
			continue
		}
		rd.types[t.Name] = t
		rd.list = append(rd.list, t)
	}
	return nil
}

func (rd *Reader) readIndex(at int64) error {
	e, err := rd.ReadExtent(at)
	if err != nil {
		return err
	}
	if e.Type != indexType {
		return damaged("it is of type %q", e.Type.Name)
	}
	for row := range e.Len() {
		name := string(e.Bytes(row, 1))
		t := rd.types[name]
		if t == nil {
			return damaged("extent of type %q, which the file does not define", name)
		}
		rd.index = append(rd.index, Entry{e.Int(row, 0), t})
	}
	return nil
}

// Types returns the types that the file defines, in its order.
func (rd *Reader) Types() []*Type { return rd.list }

// Type returns a type by its name, nil if the file has none.
func (rd *Reader) Type(name string) *Type { return rd.types[name] }

// Index returns where the extents are, those of types and of the index included.
func (rd *Reader) Index() []Entry { return rd.index }

// Extents iterates over the data: all extents but those of types and of the index.
func (rd *Reader) Extents() iter.Seq2[*Extent, error] {
	return func(yield func(*Extent, error) bool) {
		for _, x := range rd.index {
			if x.Type == typeType || x.Type == indexType {
				continue
			}
			e, err := rd.ReadExtent(x.Offset)
			if err == nil && e.Type != x.Type {
				err = damaged("extent at %d is of type %q, the index says %q", x.Offset, e.Type.Name, x.Type.Name)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// ReadExtent reads and checks the extent at an offset.
func (rd *Reader) ReadExtent(at int64) (*Extent, error) {
	e, err := rd.extent(at)
	if err != nil {
		return nil, fmt.Errorf("extent at %d: %w", at, err)
	}
	e.Offset = at
	return e, nil
}

func (rd *Reader) extent(at int64) (*Extent, error) {
	if at < fileHeaderBytes || at%4 != 0 || at+extentHeaderBytes > rd.size {
		return nil, damaged("not within the file")
	}
	var head [extentHeaderBytes]byte
	if _, err := rd.r.ReadAt(head[:], at); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	h, err := parseHeader(head[:], rd.order)
	if err != nil {
		return nil, err
	}
	if at+h.bytes > rd.size {
		return nil, damaged("%d bytes, beyond the end of the file", h.bytes)
	}
	b := make([]byte, h.bytes)
	if _, err := rd.r.ReadAt(b, at); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read: %w", err)
	}
	name := string(b[extentHeaderBytes:][:b[26]])
	t := rd.types[name]
	if t == nil {
		return nil, damaged("type %q is not defined", name)
	}
	return unpack(t, &h, b, rd.order)
}
