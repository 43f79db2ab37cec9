package store

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/duckdb/duckdb-go/v2"
	"golang.org/x/sys/unix"

	"iotape/event"
	"iotape/trace"
)

// column is a column of a table of rows of type R.
type column[R any] struct {
	name string
	typ  duckdb.Type
	enum []string // values, for TYPE_ENUM
	fill func(c duckdb.DataChunk, col, row int, r *R) error
}

func (c *column[R]) info() (duckdb.ColumnInfo, error) {
	info, err := duckdb.TypeInfo(nil), error(nil)
	if c.typ == duckdb.TYPE_ENUM {
		info, err = duckdb.NewEnumInfo(c.enum[0], c.enum[1:]...)
	} else {
		info, err = duckdb.NewTypeInfo(c.typ)
	}
	return duckdb.ColumnInfo{Name: c.name, T: info}, err
}

// The kinds of columns. The functions that a column's value comes from say with
// ok = false that it is NULL.

func numberColumn[R any, V int8 | int32 | int64 | uint16 | uint32 | uint64 | bool](name string, typ duckdb.Type, f func(*R) V) column[R] {
	return column[R]{name: name, typ: typ, fill: func(c duckdb.DataChunk, col, row int, r *R) error {
		return duckdb.SetChunkValue(c, col, row, f(r))
	}}
}

func maybeColumn[R any, V int8 | int32 | int64 | uint16 | uint32 | uint64 | bool](name string, typ duckdb.Type, f func(*R) (V, bool)) column[R] {
	return column[R]{name: name, typ: typ, fill: func(c duckdb.DataChunk, col, row int, r *R) error {
		if v, ok := f(r); ok {
			return duckdb.SetChunkValue(c, col, row, v)
		}
		return c.SetValue(col, row, nil)
	}}
}

// textColumn is NULL for "".
func textColumn[R any](name string, f func(*R) string) column[R] {
	return column[R]{name: name, typ: duckdb.TYPE_VARCHAR, fill: func(c duckdb.DataChunk, col, row int, r *R) error {
		if s := f(r); s != "" {
			return duckdb.SetChunkValue(c, col, row, text(s))
		}
		return c.SetValue(col, row, nil)
	}}
}

// enumColumn is NULL for "".
func enumColumn[R any](name string, values []string, f func(*R) string) column[R] {
	return column[R]{name: name, typ: duckdb.TYPE_ENUM, enum: values, fill: func(c duckdb.DataChunk, col, row int, r *R) error {
		if s := f(r); s != "" {
			return duckdb.SetChunkValue(c, col, row, s)
		}
		return c.SetValue(col, row, nil)
	}}
}

// text makes valid UTF-8 of a name: other bytes become \xNN.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// maxErrno is above the largest number that the kernel returns (MAX_ERRNO).
const maxErrno = 4096

// errnoNames has the names by number; "E133" and the like for those without.
var errnoNames = func() []string {
	names := make([]string, maxErrno)
	for i := 1; i < maxErrno; i++ {
		if names[i] = unix.ErrnoName(unix.Errno(i)); names[i] == "" {
			names[i] = fmt.Sprintf("E%d", i)
		}
	}
	return names
}()

func errnoName(ev *event.Event) string {
	if int(ev.Errno) < maxErrno {
		return errnoNames[ev.Errno]
	}
	return fmt.Sprintf("E%d", int(ev.Errno))
}

func opNames() []string {
	var names []string
	for _, s := range event.Catalogue() {
		names = append(names, s.Name)
	}
	return names
}

func classNames() []string {
	var names []string
	for c := event.Raw; c <= event.Wait; c++ {
		names = append(names, c.String())
	}
	return names
}

var kindNames = []string{"call", "exit", "loss", "note", "other", "woken"}

func kindName(k event.EventKind) string {
	switch {
	case k <= event.NoteMark:
		return kindNames[k]
	case k == event.Woken:
		return "woken"
	}
	return "other"
}

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
