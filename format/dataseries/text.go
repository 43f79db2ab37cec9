// SPDX-License-Identifier: Apache-2.0

package dataseries

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WriteText writes a whole file as DataSeries' own ds2txt does: types, index, and
// every record, printed as its type asks for (the print_ attributes).
func (rd *Reader) WriteText(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	types := append([]*Type{typeType, indexType}, rd.list...)
	slices.SortFunc(types, func(a, b *Type) int { return strings.Compare(a.Name, b.Name) })
	b.WriteString("# Extent Types ...\n")
	for _, t := range types {
		b.WriteString(t.XML + "\n")
	}
	b.WriteString("extent offset  ExtentType\n")
	for _, x := range rd.index {
		fmt.Fprintf(b, "%-13d  %s\n", x.Offset, x.Type.Name)
	}
	for _, x := range rd.index {
		if x.Type == typeType {
			continue
		}
		e, err := rd.ReadExtent(x.Offset)
		if err != nil {
			b.Flush()
			return err
		}
		e.writeText(b)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write text: %w", err)
	}
	return nil
}

func (e *Extent) writeText(b *bufio.Writer) {
	fmt.Fprintf(b, "# Extent, type='%s'\n", e.Type.Name)
	for i, f := range e.Type.Fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.Name)
	}
	b.WriteByte('\n')
	for row := range e.n {
		for i := range e.Type.Fields {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(e.Text(row, i))
		}
		b.WriteByte('\n')
	}
}

// Text returns a value as ds2txt prints it.
func (e *Extent) Text(row, field int) string {
	f := &e.Type.Fields[field]
	if e.Null(row, field) {
		return "null"
	}
	format := f.Attr["print_format"]
	switch f.Kind {
	case Bool:
		if e.Bool(row, field) {
			return attr(f, "print_true", "T")
		}
		return attr(f, "print_false", "F")
	case Byte, Int32:
		return integer(format, e.Int(row, field), f.Kind)
	case Int64:
		v := e.Int(row, field)
		if format == "sec.nsec" {
			return seconds(f, v)
		}
		return integer(format, v, f.Kind)
	case Double:
		v := e.Double(row, field)
		if f.Attr["print_multiplier"] != "" {
			if m, err := strconv.ParseFloat(f.Attr["print_multiplier"], 64); err == nil {
				v *= m
			}
		}
		return real(format, v)
	}
	return text(f.Attr["print_style"], e.Bytes(row, field))
}

func attr(f *Field, name, otherwise string) string {
	if s, ok := f.Attr[name]; ok {
		return s
	}
	return otherwise
}

// seconds prints a time as seconds and nanoseconds.
func seconds(f *Field, v int64) string {
	switch f.Attr["units"] {
	case "2^-32 seconds":
		return fmt.Sprintf("%d.%09d", v>>32, uint64(v&math.MaxUint32)*1_000_000_000>>32)
	case "microseconds":
		return fmt.Sprintf("%d.%09d", v/1_000_000, v%1_000_000*1000)
	}
	return fmt.Sprintf("%d.%09d", v/1_000_000_000, v%1_000_000_000)
}

// conversion splits a printf format of one value: what is before it, flags and
// width, precision (-1 without), the verb.
func conversion(format string) (prefix, flags string, precision int, verb byte, suffix string) {
	at := strings.IndexByte(format, '%')
	if at < 0 {
		return "", "", -1, 0, ""
	}
	end := at + 1
	for end < len(format) && strings.IndexByte("-+ #0123456789.lhqjzL", format[end]) >= 0 {
		end++
	}
	if end == len(format) {
		return "", "", -1, 0, ""
	}
	spec := strings.TrimRight(format[at+1:end], "lhqjzL")
	precision = -1
	if width, p, ok := strings.Cut(spec, "."); ok {
		spec = width
		precision, _ = strconv.Atoi(p)
	}
	return format[:at], spec, min(precision, 100), format[end], format[end+1:]
}

func integer(format string, v int64, k Kind) string {
	prefix, flags, _, verb, suffix := conversion(format)
	if len(flags) > 3 {
		flags = ""
	}
	switch verb {
	case 'x', 'X', 'o', 'u':
		u := uint64(v)
		if k != Int64 {
			u = uint64(uint32(v))
		}
		if verb == 'u' {
			verb = 'd'
		}
		return prefix + fmt.Sprintf("%"+flags+string(verb), u) + suffix
	case 'd', 'i':
		return prefix + fmt.Sprintf("%"+flags+"d", v) + suffix
	}
	return strconv.FormatInt(v, 10)
}

func real(format string, v float64) string {
	_, _, precision, verb, _ := conversion(format)
	if strings.IndexByte("feEgG", verb) < 0 || verb == 0 {
		precision, verb = 9, 'g'
	}
	if precision < 0 {
		precision = 6
	}
	switch {
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	case math.IsNaN(v):
		return "nan"
	}
	return strconv.FormatFloat(v, verb, precision, 64)
}

func text(style string, b []byte) string {
	printable := !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' || r > '~' })
	switch style {
	case "hex":
		return hex.EncodeToString(b)
	case "text":
		return string(b)
	case "csv":
		return `"` + strings.ReplaceAll(string(b), `"`, `""`) + `"`
	}
	if !printable {
		return hex.EncodeToString(b)
	}
	return string(b)
}
