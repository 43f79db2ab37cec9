// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// column is a column of a table of rows of type R.
type column[R any] struct {
	name string
	typ  func() mapping.LogicalType
	fill func(v *vector, rows []*R)
}

// value is what a column of numbers holds.
type value interface {
	int8 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool
}

// typeOf returns the engine's type of a value.
func typeOf[V value]() func() mapping.LogicalType {
	var t mapping.Type
	switch any(*new(V)).(type) {
	case int8:
		t = mapping.TypeTinyInt
	case int32:
		t = mapping.TypeInteger
	case int64:
		t = mapping.TypeBigInt
	case uint8:
		t = mapping.TypeUTinyInt
	case uint16:
		t = mapping.TypeUSmallInt
	case uint32:
		t = mapping.TypeUInteger
	case uint64:
		t = mapping.TypeUBigInt
	case bool:
		t = mapping.TypeBoolean
	}
	return plainType(t)
}

func plainType(t mapping.Type) func() mapping.LogicalType {
	return func() mapping.LogicalType { return mapping.CreateLogicalType(t) }
}

// The kinds of columns. The functions that a column's value comes from say with
// ok = false that it is NULL.

func numberColumn[R any, V value](name string, f func(*R) V) column[R] {
	return column[R]{name, typeOf[V](), func(v *vector, rows []*R) {
		out := values[V](v, len(rows))
		for i, r := range rows {
			out[i] = f(r)
		}
	}}
}

func maybeColumn[R any, V value](name string, f func(*R) (V, bool)) column[R] {
	return column[R]{name, typeOf[V](), func(v *vector, rows []*R) {
		out := values[V](v, len(rows))
		for i, r := range rows {
			x, ok := f(r)
			if out[i] = x; !ok {
				v.null(i)
			}
		}
	}}
}

// timeColumn has ns since 1970.
func timeColumn[R any](name string, f func(*R) (int64, bool)) column[R] {
	c := maybeColumn(name, f)
	c.typ = plainType(mapping.TypeTimestampNS)
	return c
}

// textColumn is NULL for "".
func textColumn[R any](name string, f func(*R) string) column[R] {
	return column[R]{name, plainType(mapping.TypeVarchar), func(v *vector, rows []*R) {
		for i, r := range rows {
			if s := f(r); s != "" {
				v.setText(i, s)
			} else {
				v.null(i)
			}
		}
	}}
}

// bytesColumn is NULL for nil.
func bytesColumn[R any](name string, f func(*R) []byte) column[R] {
	return column[R]{name, plainType(mapping.TypeBlob), func(v *vector, rows []*R) {
		for i, r := range rows {
			if b := f(r); b != nil {
				v.setBytes(i, b)
			} else {
				v.null(i)
			}
		}
	}}
}

// enumColumn has one of the names, by its position; it is NULL where there is none.
// They are fewer than 2^16.
func enumColumn[R any](name string, names []string, f func(*R) int) column[R] {
	fill := fillEnum[R, uint16]
	if len(names) <= 0xff {
		fill = fillEnum[R, uint8]
	}
	return column[R]{name, func() mapping.LogicalType { return enumType(names) },
		func(v *vector, rows []*R) {
			fill(v, rows, len(names), f)
		}}
}

func fillEnum[R any, V uint8 | uint16](v *vector, rows []*R, names int, f func(*R) int) {
	out := values[V](v, len(rows))
	for i, r := range rows {
		n := f(r)
		if n < 0 || n >= names {
			n = 0
			v.null(i)
		}
		out[i] = V(n)
	}
}

// maxErrno is above the largest number that the kernel returns (MAX_ERRNO).
const maxErrno = 4096

// errnoNames has the names by number, from 1; "E133" and the like for those without.
var errnoNames = func() []string {
	names := make([]string, maxErrno)
	for i := 1; i < maxErrno; i++ {
		if names[i] = unix.ErrnoName(unix.Errno(i)); names[i] == "" {
			names[i] = fmt.Sprintf("E%d", i)
		}
	}
	return names[1:]
}()

// opNames has the names of operations, and opIndex the position of each.
var opNames, opIndex = func() (names []string, index []int) {
	for i, s := range event.Specs() {
		for int(s.Op) >= len(index) {
			index = append(index, 0) // OpUnknown
		}
		names, index[s.Op] = append(names, s.Name), i
	}
	return names, index
}()

// opOf returns the position of an operation's name.
func opOf(op event.Op) int {
	if int(op) < len(opIndex) {
		return opIndex[op]
	}
	return 0
}

var classNames = func() (names []string) {
	for c := event.Raw; int(c) < event.NumClasses; c++ {
		names = append(names, c.String())
	}
	return names
}()

var kindNames = []string{"call", "exit", "loss", "note", "other", "woken", "signal"}

func kindOf(k event.EventKind) int {
	switch {
	case k <= event.NoteMark:
		return int(k)
	case k == event.Woken:
		return 5
	case k == event.Signalled:
		return 6
	}
	return 4
}

// signalNames has the names of signals by number, from 1.
var signalNames = func() (names []string) {
	for n := 1; n <= 64; n++ {
		names = append(names, event.SignalName(n))
	}
	return names
}()

var signalActions = func() (names []string) {
	for a := event.SignalUnknown; a <= event.SignalStops; a++ {
		names = append(names, a.String())
	}
	return names
}()

// hostNames returns the display name of each host, distinct and never empty.
func hostNames(t *trace.Tape) []string {
	var names []string
	seen := make(map[string]bool)
	for i, h := range t.Manifest().Hosts {
		name := text(h.Host)
		if name == "" || seen[name] {
			name = fmt.Sprintf("%s#%d", name, i)
		}
		seen[name] = true
		names = append(names, name)
	}
	if len(names) == 0 {
		names = []string{"#0"}
	}
	return names
}
