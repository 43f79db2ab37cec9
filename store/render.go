// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duckdb/duckdb-go/v2"
)

// Format is a way to print rows.
type Format string

// The formats.
const (
	Table Format = "table" // aligned columns for people
	CSV   Format = "csv"   // RFC 4180 with a header line; NULL is empty
	JSON  Format = "json"  // one object per line
)

// ParseFormat checks a format's name.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Table, CSV, JSON:
		return f, nil
	}
	return "", fmt.Errorf("format %q is none of table, csv and json", s)
}

// tableRows are held back to find the widths of the columns; further rows are
// printed with these.
const tableRows = 1000

// maxCellRunes cuts the cells of a table.
const maxCellRunes = 120

const timeLayout = "2006-01-02 15:04:05.000000000"

// Render prints all rows and returns how many those were.
func Render(w io.Writer, r *Rows, f Format) (rows int64, err error) {
	b := bufio.NewWriterSize(w, 1<<16)
	switch f {
	case CSV:
		rows, err = renderCSV(b, r)
	case JSON:
		rows, err = renderJSON(b, r)
	default:
		rows, err = renderTable(b, r)
	}
	if err == nil {
		err = r.Err()
	}
	if ferr := b.Flush(); err == nil {
		err = ferr
	}
	return rows, err
}

func renderCSV(w io.Writer, r *Rows) (n int64, err error) {
	c := csv.NewWriter(w)
	if err := c.Write(r.Columns()); err != nil {
		return 0, err
	}
	line := make([]string, len(r.Columns()))
	for ; r.Next(); n++ {
		for i, v := range r.Values() {
			line[i] = plain(v, "")
		}
		if err := c.Write(line); err != nil {
			return n, err
		}
	}
	c.Flush()
	return n, c.Error()
}

func renderJSON(w *bufio.Writer, r *Rows) (n int64, err error) {
	var names [][]byte
	for _, c := range r.Columns() {
		name, err := json.Marshal(c)
		if err != nil {
			return 0, err
		}
		names = append(names, name)
	}
	for ; r.Next(); n++ {
		w.WriteByte('{')
		for i, v := range r.Values() {
			if i > 0 {
				w.WriteByte(',')
			}
			w.Write(names[i])
			w.WriteByte(':')
			b, err := json.Marshal(jsonValue(v))
			if err != nil {
				return n, err
			}
			w.Write(b)
		}
		if _, err := w.WriteString("}\n"); err != nil {
			return n, err
		}
	}
	return n, nil
}

// jsonValue is what encodes as people expect it.
func jsonValue(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return v
	case []byte:
		return text(string(v))
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = jsonValue(v[i])
		}
		return out
	case duckdb.OrderedMap:
		out := make(map[string]any, v.Len())
		keys, values := v.Keys(), v.Values()
		for i := range keys {
			out[plain(keys[i], "")] = jsonValue(values[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = jsonValue(v[k])
		}
		return out
	case nil, bool, string, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, int, *big.Int:
		return v
	}
	return plain(v, "")
}

// plain is a value as text.
func plain(v any, null string) string {
	switch v := v.(type) {
	case nil:
		return null
	case string:
		return v
	case []byte:
		return text(string(v))
	case time.Time:
		return v.UTC().Format(timeLayout)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case duckdb.Decimal:
		return v.String()
	case duckdb.OrderedMap:
		if b, err := json.Marshal(jsonValue(v)); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(v)
}

func renderTable(w *bufio.Writer, r *Rows) (n int64, err error) {
	width, right := make([]int, len(r.Columns())), make([]bool, len(r.Columns()))
	var held [][]string
	for i, c := range r.Columns() {
		width[i], right[i] = utf8.RuneCountInString(cell(c)), true
	}
	more := true
	for len(held) < tableRows {
		if more = r.Next(); !more {
			break
		}
		line := make([]string, len(width))
		for i, v := range r.Values() {
			line[i] = cell(plain(v, "NULL"))
			width[i] = max(width[i], utf8.RuneCountInString(line[i]))
			right[i] = right[i] && isNumber(v)
		}
		held = append(held, line)
	}
	line := make([]string, len(width))
	for i, c := range r.Columns() {
		line[i] = cell(c)
	}
	printLine(w, line, width, right)
	for i := range line {
		line[i] = strings.Repeat("-", width[i])
	}
	printLine(w, line, width, right)
	for _, l := range held {
		n++
		if err := printLine(w, l, width, right); err != nil {
			return n, err
		}
	}
	for more && r.Next() {
		for i, v := range r.Values() {
			line[i] = cell(plain(v, "NULL"))
		}
		n++
		if err := printLine(w, line, width, right); err != nil {
			return n, err
		}
	}
	return n, nil
}

func isNumber(v any) bool {
	switch v.(type) {
	case nil, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, *big.Int, duckdb.Decimal:
		return true
	}
	return false
}

// cell makes text safe for a terminal and one line long.
func cell(s string) string {
	if n := utf8.RuneCountInString(s); n > maxCellRunes {
		s = string([]rune(s)[:maxCellRunes-1]) + "…"
	}
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if unprintable(c) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func unprintable(c rune) bool { return c == utf8.RuneError || !strconv.IsPrint(c) }

func printLine(w *bufio.Writer, line []string, width []int, right []bool) error {
	for i, s := range line {
		pad := max(width[i]-utf8.RuneCountInString(s), 0)
		if i > 0 {
			w.WriteString("  ")
		}
		if right[i] {
			w.WriteString(strings.Repeat(" ", pad))
		}
		w.WriteString(s)
		if !right[i] && i < len(line)-1 {
			w.WriteString(strings.Repeat(" ", pad))
		}
	}
	return w.WriteByte('\n')
}
