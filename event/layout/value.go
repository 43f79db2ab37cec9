// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// Kind says what a Value is.
type Kind uint8

// The kinds. A number is in Num, sign-extended where it has a sign.
const (
	Int        Kind = iota // signed number
	Uint                   // unsigned number; where it has a Set, some values have names
	Hex                    // bits without names
	Octal                  // permissions
	Address                // pointer into the program's memory
	Mode                   // type and permissions of a file
	Flags                  // bits with names (Set)
	Enum                   // one of named values (Set)
	Device                 // as in stat: major and minor
	Time                   // Num seconds and Frac nanoseconds
	TimeMicros             // Num seconds and Frac microseconds
	FD                     // descriptor
	ID                     // user, group, process or thread
	Signal                 // signal number
	Signals                // bit map of signals; bit 0 is signal 1
	Status                 // of a process, as from wait
	Port                   // of an internet address, in host order
	IP                     // Data is 4 or 16 bytes
	Text                   // Data is a string without its NUL
	UnixPath               // Data is the name of a local socket; an abstract one begins with a NUL
	Bytes                  // Data is the first of Num bytes
	Bits                   // Data is a bit map: a list of numbers
	Struct                 // named Values
	List                   // Values without names
)

// Value is a thing in memory. It shares the memory that it was decoded from.
type Value struct {
	Name  string // the kernel's name of a field, "" if it is none
	Kind  Kind
	Brief bool // among those shown when not all fields are
	Date  bool // a time since 1970

	Num  uint64
	Frac int64
	Data []byte
	Set  *event.Set
	// Raw is where a number lies in the memory, for those who change it there; nil
	// where it is put together of several, or is a part of one.
	Raw []byte

	// Before is what a number was before the call that changed it, where Changed.
	Before  uint64
	Changed bool

	arch   event.Arch
	record *record // Struct: its fields; List: of each element, unless it has kind elem
	elem   *field
	stride int
	values []Value
}

// Len returns how many Values a Struct or a List has.
func (v *Value) Len() int {
	switch {
	case v.values != nil:
		return len(v.values)
	case v.Kind == Struct && v.record != nil:
		return len(v.record.fields)
	case v.Kind == List && v.stride > 0:
		return len(v.Data) / v.stride
	}
	return 0
}

// At returns the Value with an index below Len.
func (v *Value) At(i int) Value {
	switch {
	case v.values != nil:
		return v.values[i]
	case v.Kind == Struct:
		f := v.record.fields[i].value(v.Data, v.arch)
		if m := v.record.mode; m != nil {
			f.Brief = m.brief(v.Data)>>i&1 != 0
		}
		return f
	}
	b := v.Data[i*v.stride : (i+1)*v.stride]
	if v.record != nil {
		return Value{Kind: Struct, Data: b, record: v.record, arch: v.arch}
	}
	return v.elem.value(b, v.arch)
}

// Field returns the field with a name.
func (v *Value) Field(name string) (Value, bool) {
	for i := range v.Len() {
		if f := v.At(i); f.Name == name {
			return f, true
		}
	}
	return Value{}, false
}

// record is a structure of which every field has its place.
type record struct {
	fields []field
	mode   *modeRule // nil where brief fields are always the same
}

// modeRule says which fields are brief where that depends on a file's mode: sets of
// fields as bits.
type modeRule struct {
	off, size              int // of the mode
	always, sized, devices uint32
}

func (m *modeRule) brief(b []byte) uint32 {
	const sIFMT, sIFCHR, sIFBLK = 0o170000, 0o020000, 0o060000
	if t := number(within(b, m.off, m.size)) & sIFMT; t == sIFCHR || t == sIFBLK {
		return m.always | m.devices
	}
	return m.always | m.sized
}

// field is one field of a record.
type field struct {
	name   string
	off    uint16
	size   uint16 // bytes: of a number 1, 2, 4 or 8; of a list all elements
	kind   Kind
	signed bool
	big    bool // in network byte order
	brief  bool
	date   bool
	shift  uint8 // of a bit field, from the lowest bit
	width  uint8 // of a bit field; 0: all bits
	set    *event.Set
	record *record // Struct, or elements of a List
	elem   *field  // elements of a List that are no records
	stride uint16  // List
}

// value reads a field. What lies behind the end of the bytes is zero.
func (f *field) value(b []byte, a event.Arch) Value {
	v := Value{Name: f.name, Kind: f.kind, Brief: f.brief, Date: f.date, Set: f.set, arch: a}
	at := func(off, n int) []byte { return within(b, int(f.off)+off, n) }
	switch f.kind {
	case Time, TimeMicros:
		v.Raw = at(0, int(f.size))
		v.Num = number(at(0, 8))
		if f.size == 12 { // struct statx_timestamp
			v.Frac = int64(number(at(8, 4)))
		} else {
			v.Frac = int64(number(at(8, 8)))
		}
	case Text:
		v.Data = untilNUL(at(0, int(f.size)))
	case Bytes:
		v.Data = at(0, int(f.size))
		v.Num = uint64(len(v.Data))
	case IP, Bits:
		v.Data = at(0, int(f.size))
	case Struct, List:
		v.Data, v.record, v.elem, v.stride = at(0, int(f.size)), f.record, f.elem, int(f.stride)
	default:
		raw := at(0, int(f.size))
		v.Num = number(raw)
		if f.width == 0 {
			v.Raw = raw
		}
		switch {
		case f.big && f.size == 2 && len(raw) == 2:
			v.Num = uint64(binary.BigEndian.Uint16(raw))
		case f.big && f.size == 4 && len(raw) == 4:
			v.Num = uint64(binary.BigEndian.Uint32(raw))
		case f.width > 0:
			v.Num = v.Num >> f.shift & (1<<f.width - 1)
		case f.signed:
			shift := 64 - 8*uint(f.size)
			v.Num = uint64(int64(v.Num<<shift) >> shift)
		}
	}
	return v
}

// within returns up to n bytes from an offset, fewer at the end.
func within(b []byte, off, n int) []byte {
	if off >= len(b) {
		return nil
	}
	return b[off:min(off+n, len(b))]
}

// number reads a little-endian number of up to 8 bytes.
func number(b []byte) uint64 {
	switch len(b) {
	case 8:
		return binary.LittleEndian.Uint64(b)
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	}
	var v uint64
	for i := min(len(b), 8) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

func untilNUL(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

// Constructors of fields, named for what the structures' declarations say.

func num(kind Kind, size uint16, name string, off uint16) field {
	return field{name: name, off: off, size: size, kind: kind}
}

func i64(name string, off uint16) field {
	return field{name: name, off: off, size: 8, kind: Int, signed: true}
}
func i32(name string, off uint16) field {
	return field{name: name, off: off, size: 4, kind: Int, signed: true}
}
func i16(name string, off uint16) field {
	return field{name: name, off: off, size: 2, kind: Int, signed: true}
}
func u64(name string, off uint16) field { return num(Uint, 8, name, off) }
func u32(name string, off uint16) field { return num(Uint, 4, name, off) }
func u16(name string, off uint16) field { return num(Uint, 2, name, off) }
func u8(name string, off uint16) field  { return num(Uint, 1, name, off) }
func x64(name string, off uint16) field { return num(Hex, 8, name, off) }
func x32(name string, off uint16) field { return num(Hex, 4, name, off) }
func x16(name string, off uint16) field { return num(Hex, 2, name, off) }
func ptr(name string, off uint16) field { return num(Address, 8, name, off) }

func fd(name string, off uint16) field {
	return field{name: name, off: off, size: 4, kind: FD, signed: true}
}
func id(name string, off uint16) field {
	return field{name: name, off: off, size: 4, kind: ID, signed: true}
}
func dev(name string, off uint16) field  { return num(Device, 8, name, off) }
func time(name string, off uint16) field { return num(Time, 16, name, off) }
func micros(name string, off uint16) field {
	return num(TimeMicros, 16, name, off)
}
func text(name string, off, size uint16) field { return num(Text, size, name, off) }
func raw(name string, off, size uint16) field  { return num(Bytes, size, name, off) }

func flags(name string, off, size uint16, s *event.Set) field {
	return field{name: name, off: off, size: size, kind: Flags, set: s}
}
func enum(name string, off, size uint16, s *event.Set) field {
	return field{name: name, off: off, size: size, kind: Enum, set: s}
}

// bit is a field of some bits of a number of size bytes.
func bit(name string, off, size uint16, shift, width uint8) field {
	return field{name: name, off: off, size: size, kind: Uint, shift: shift, width: width}
}

// named is a number of which some values have names.
func named(f field, s *event.Set) field { f.set = s; return f }

func nested(name string, off, size uint16, r *record) field {
	return field{name: name, off: off, size: size, kind: Struct, record: r}
}

// array is n elements, one after the other.
func array(name string, off, n uint16, elem field) field {
	return field{name: name, off: off, size: n * elem.size, kind: List, elem: &elem, stride: elem.size}
}

func brief(f field) field { f.brief = true; return f }

// date marks a time that counts from 1970.
func date(f field) field { f.date = true; return f }

// all is a record whose fields are all brief.
func all(fields ...field) *record {
	for i := range fields {
		fields[i].brief = true
	}
	return &record{fields: fields}
}

func of(fields ...field) *record { return &record{fields: fields} }
