// SPDX-License-Identifier: Apache-2.0

package dataseries

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of a field.
type Kind uint8

// The kinds, in the format's terms.
const (
	Bool Kind = iota
	Byte
	Int32
	Int64
	Double
	Variable32 // a string of bytes
	FixedWidth // Field.Size bytes
)

var kindNames = map[string]Kind{
	"bool": Bool, "byte": Byte, "int32": Int32, "int64": Int64, "double": Double, "variable32": Variable32, "fixedwidth": FixedWidth,
}

// Field is a column of a type.
type Field struct {
	Name     string
	Kind     Kind
	Size     int // of FixedWidth, bytes
	Nullable bool
	Unique   bool              // equal strings of an extent are stored once
	Relative string            // stored as the difference to this field, or to its own last value
	Scale    float64           // doubles are stored as multiples of this; 0 as they are
	Attr     map[string]string // all other attributes: units, comments, hints for printing
}

// Type is the type of an extent: its name, its fields, and how they are stored.
type Type struct {
	Name      string
	Namespace string
	Version   string
	XML       string // exactly as in the file: it is what identifies the type
	Fields    []Field

	compact  bool // pack_null_compact
	tight    bool // pack_pad_record=max_column_size
	bigFirst bool // pack_field_ordering=big_to_small_sep_var32
	layout
}

// Index returns the position of a field, -1 if there is none of the name.
func (t *Type) Index(name string) int {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

const (
	typeTypeName  = "DataSeries: XmlType"
	indexTypeName = "DataSeries: ExtentIndex"
	typeTypeXML   = "<ExtentType name=\"DataSeries: XmlType\">\n  <field type=\"variable32\" name=\"xmltype\" " +
		"/>\n</ExtentType>\n"
	indexTypeXML = "<ExtentType name=\"DataSeries: ExtentIndex\">\n  <field type=\"int64\" name=\"offset\" />\n " +
		" <field type=\"variable32\" name=\"extenttype\" />\n</ExtentType>\n"

	maxXML    = 1 << 20 // of one type
	maxFields = 4096
	maxSize   = 1 << 20 // of a fixedwidth field
)

var typeType, indexType = mustType(typeTypeXML), mustType(indexTypeXML)

func mustType(s string) *Type {
	t, err := ParseType(s)
	if err != nil {
		panic(err)
	}
	return t
}

// ParseType reads the XML of a type.
func ParseType(s string) (*Type, error) {
	if len(s) > maxXML {
		return nil, fmt.Errorf("type of %d bytes: %w", len(s), ErrDamaged)
	}
	t := &Type{XML: s}
	if err := t.parse(s); err != nil {
		return nil, fmt.Errorf("type %q: %w", t.Name, err)
	}
	return t, nil
}

func (t *Type) parse(s string) error {
	// encoding/xml neither expands entities of its own nor reads external ones.
	d := xml.NewDecoder(strings.NewReader(s))
	depth := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", err, ErrDamaged)
		}
		switch token := token.(type) {
		case xml.StartElement:
			switch {
			case depth == 0 && token.Name.Local == "ExtentType" && t.Name == "":
				err = t.head(token.Attr)
			case depth == 1 && token.Name.Local == "field":
				err = t.field(token.Attr)
			default:
				err = damaged("element %q", token.Name.Local)
			}
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			if strings.TrimSpace(string(token)) != "" {
				err = damaged("text %q", token)
			}
		case xml.ProcInst:
		default:
			err = damaged("a comment or a directive")
		}
		if err != nil {
			return err
		}
	}
	if t.Name == "" {
		return damaged("no ExtentType")
	}
	return t.place()
}

func (t *Type) head(attrs []xml.Attr) error {
	for _, a := range attrs {
		switch a.Name.Local {
		case "name":
			t.Name = a.Value
		case "namespace":
			t.Namespace = a.Value
		case "version":
			t.Version = a.Value
		case "pack_null_compact":
			if a.Value != "no" && a.Value != "non_bool" {
				return badAttr(a)
			}
			t.compact = a.Value == "non_bool"
		case "pack_pad_record":
			if a.Value != "original" && a.Value != "max_column_size" {
				return badAttr(a)
			}
			t.tight = a.Value == "max_column_size"
		case "pack_field_ordering":
			if a.Value != "small_to_big_sep_var32" && a.Value != "big_to_small_sep_var32" {
				return badAttr(a)
			}
			t.bigFirst = a.Value == "big_to_small_sep_var32"
		default:
			if strings.HasPrefix(a.Name.Local, "pack_") {
				return badAttr(a)
			}
		}
	}
	if n := len(t.Name); n < 1 || n > 255 {
		return damaged("a name of %d bytes", n)
	}
	return nil
}

func badAttr(a xml.Attr) error { return damaged("%s=%q", a.Name.Local, a.Value) }

// field adds a field to the type.
func (t *Type) field(attrs []xml.Attr) error {
	f, kind, err := fieldOf(attrs)
	if err != nil {
		return err
	}
	k, ok := kindNames[kind]
	f.Kind = k
	switch {
	case !ok:
		return damaged("field %q of type %q", f.Name, kind)
	case len(f.Name) < 1 || len(f.Name) > 255 || f.Name[0] == ' ' || t.Index(f.Name) >= 0:
		return damaged("field name %q", f.Name)
	case len(t.Fields) == maxFields:
		return damaged("more than %d fields", maxFields)
	case (k == FixedWidth) != (f.Size != 0) || f.Size < 0 || f.Size > maxSize:
		return damaged("field %q of %d bytes", f.Name, f.Size)
	case f.Scale != 0 && k != Double, f.Unique && k != Variable32:
		return damaged("packing of field %q", f.Name)
	}
	t.Fields = append(t.Fields, f)
	return t.relative(&t.Fields[len(t.Fields)-1])
}

// fieldOf reads the attributes of a field; kind is the name of its type.
func fieldOf(attrs []xml.Attr) (f Field, kind string, err error) {
	for _, a := range attrs {
		yes := a.Value == "yes"
		var err error
		switch a.Name.Local {
		case "name":
			f.Name = a.Value
		case "type":
			kind = a.Value
		case "size":
			f.Size, err = strconv.Atoi(a.Value)
		case "opt_nullable":
			f.Nullable = yes
		case "pack_unique":
			f.Unique = yes
		case "pack_relative":
			f.Relative = a.Value
		case "pack_scale":
			if f.Scale, err = strconv.ParseFloat(a.Value, 64); err == nil && f.Scale == 0 {
				err = errors.New("zero")
			}
		case "opt_doublebase", "pack_scale_warn":
		default:
			if strings.HasPrefix(a.Name.Local, "pack_") || strings.HasPrefix(a.Name.Local, "opt_") {
				return f, "", badAttr(a)
			}
		}
		if err != nil {
			return f, "", badAttr(a)
		}
		if f.Attr == nil {
			f.Attr = map[string]string{}
		}
		f.Attr[a.Name.Local] = a.Value
	}
	return f, kind, nil
}

// relative checks what a field is relative to.
func (t *Type) relative(f *Field) error {
	if f.Relative == "" {
		return nil
	}
	base := t.Index(f.Relative)
	numeric := f.Kind == Int32 || f.Kind == Int64 || f.Kind == Double
	if base < 0 || !numeric || t.Fields[base].Kind != f.Kind {
		return damaged("field %q is relative to %q", f.Name, f.Relative)
	}
	if f.Relative == f.Name && f.Kind == Double && f.Scale == 0 {
		return damaged("field %q is relative to itself and not scaled", f.Name)
	}
	return nil
}

// layout is where the fields are in a record.
type layout struct {
	size  int   // of a record
	at    []int // of each field: a byte offset, or for Bool a bit
	null  []int // of each field: the bit that says it is null, -1 if it cannot be
	bits  int   // number of bits
	strs  []int // fields that are strings
	moved bool  // some field is relative or scaled
}

// placer lays out a record from its begin on.
type placer struct {
	t      *Type
	off    int // bytes that have been laid out
	widest int // field, bytes
}

// group places the fields of some kinds, of width bytes each or of their own size.
func (p *placer) group(width int, kinds ...Kind) {
	for i := range p.t.Fields {
		if f := &p.t.Fields[i]; slices.Contains(kinds, f.Kind) {
			p.t.layout.at[i] = p.off
			p.off += max(width, f.Size)
			p.widest = max(p.widest, width)
		}
	}
}

// bits places the fields of one bit, and the bits that say that a field is null.
func (p *placer) bits() {
	l := &p.t.layout
	for i := range p.t.Fields {
		f := &p.t.Fields[i]
		if f.Kind == Bool {
			l.at[i] = p.off*8 + l.bits
			l.bits++
		}
		l.null[i] = -1
		if f.Nullable {
			l.null[i] = p.off*8 + l.bits
			l.bits++
		}
	}
	p.off += (l.bits + 7) / 8
}

// pad makes the offset a multiple of n.
func (p *placer) pad(n int) { p.off = (p.off + n - 1) / n * n }

func (t *Type) has(kinds ...Kind) bool {
	return slices.ContainsFunc(t.Fields, func(f Field) bool { return slices.Contains(kinds, f.Kind) })
}

// place lays out a record: by default the bits, then bytes, 4-byte fields, strings
// and 8-byte fields, each group in the order of the type.
func (t *Type) place() error {
	l := &t.layout
	l.at, l.null = make([]int, len(t.Fields)), make([]int, len(t.Fields))
	p := placer{t: t, widest: 1}
	if t.bigFirst {
		p.group(8, Int64, Double)
		p.group(4, Int32)
		p.group(4, Variable32)
		p.group(1, Byte, FixedWidth)
		p.bits()
		if t.tight {
			p.pad(p.widest)
		} else {
			p.pad(8)
		}
	} else {
		p.bits()
		p.group(1, Byte, FixedWidth)
		if !t.tight || t.has(Int32, Variable32) {
			p.pad(4)
		}
		p.group(4, Int32)
		p.group(4, Variable32)
		if !t.tight || t.has(Int64, Double) {
			p.pad(8)
		}
		p.group(8, Int64, Double)
	}
	l.size = p.off
	for i := range t.Fields {
		f := &t.Fields[i]
		if f.Kind == Variable32 {
			l.strs = append(l.strs, i)
		}
		l.moved = l.moved || f.Relative != "" || f.Scale != 0
		if t.compact && f.Kind == FixedWidth {
			return damaged("left-out nulls and field %q of fixed width", f.Name)
		}
	}
	if t.compact && (t.bigFirst || l.bits == 0) {
		return damaged("left-out nulls with this layout")
	}
	if l.size == 0 {
		return damaged("no fields")
	}
	return nil
}
