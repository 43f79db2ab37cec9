// SPDX-License-Identifier: Apache-2.0

package store

import (
	"unicode/utf8"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// vector is a column of a chunk of the engine's memory, which is filled in place: a
// call of the engine's for each value would cost more than all else that indexing does.
type vector struct {
	vec    mapping.Vector
	data   unsafe.Pointer
	valid  []uint64 // a bit for each row, set unless that is NULL; nil while none is
	recent *recentTexts
}

// values is the memory of a vector of fixed-size values.
func values[V any](v *vector, rows int) []V { return unsafe.Slice((*V)(v.data), rows) }

func (v *vector) null(row int) {
	if v.valid == nil {
		mapping.VectorEnsureValidityWritable(v.vec)
		v.valid = unsafe.Slice((*uint64)(mapping.VectorGetValidity(v.vec)), (chunkRows+63)/64)
	}
	v.valid[row/64] &^= 1 << (row % 64)
}

// inlineText is the engine's string (duckdb_string_t of duckdb.h): one of up to 12
// bytes lies within it.
type inlineText struct {
	length uint32
	bytes  [12]byte
}

// recentTexts remembers where in a chunk a long string was set: names come again and
// again, and share their memory as long as they are of one block of events.
type recentTexts [256]struct {
	data *byte
	len  int
	row  int
}

// setText sets a string, invalid UTF-8 of which becomes \xNN.
func (v *vector) setText(row int, s string) {
	all := values[inlineText](v, row+1)
	if len(s) <= len(all[row].bytes) {
		if s = text(s); len(s) <= len(all[row].bytes) {
			all[row] = inlineText{length: uint32(len(s))}
			copy(all[row].bytes[:], s)
			return
		}
	}
	at := unsafe.StringData(s)
	r := &v.recent[(uintptr(unsafe.Pointer(at))>>3^uintptr(unsafe.Pointer(at))>>11)%uintptr(len(v.recent))]
	if r.data == at && r.len == len(s) {
		all[row] = all[r.row] // the vector owns the bytes
		return
	}
	r.data, r.len, r.row = at, len(s), row
	mapping.VectorAssignStringElement(v.vec, mapping.IdxT(row), text(s))
}

func (v *vector) setBytes(row int, b []byte) {
	mapping.VectorAssignStringElementLen(v.vec, mapping.IdxT(row), b)
}

// text makes valid UTF-8 of a name: other bytes become \xNN.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	const hex = "0123456789abcdef"
	var b []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b = append(b, '\\', 'x', hex[s[0]>>4], hex[s[0]&15])
		} else {
			b = append(b, s[:n]...)
		}
		s = s[n:]
	}
	return string(b)
}
