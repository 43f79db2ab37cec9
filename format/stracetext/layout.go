package stracetext

import (
	"encoding/binary"
	"math"
	"strconv"

	"iotape/event"
)

// form is how a field of a structure is written.
type form uint8

const (
	signed form = iota
	unsigned
	octal
	hexadecimal
	fileMode  // type and permission bits
	device    // as in stat: major and minor
	timespec  // seconds in v, nanoseconds in w
	timeval   // seconds in v, microseconds in w
	openFlag  // open flags
	named     // value of set
	bitNames  // bits of set
	fileDescr // a descriptor
)

// field is one field of a structure.
type field struct {
	name  string
	form  form
	v     uint64
	w     int64
	set   *event.Set
	brief bool // also shown without Options.Verbose
}

// structure is a kernel structure, decoded.
type structure struct {
	fields []field
	list   bool // an array: the fields have no names
	single bool // not a structure but its only field
}

// reader takes numbers out of a structure. What is not there is zero.
type reader struct {
	b []byte
}

func (r reader) at(off, n int) []byte {
	if off+n > len(r.b) {
		var zero [8]byte
		return zero[:n]
	}
	return r.b[off : off+n]
}
func (r reader) u64(off int) uint64 { return binary.LittleEndian.Uint64(r.at(off, 8)) }
func (r reader) u32(off int) uint64 { return uint64(binary.LittleEndian.Uint32(r.at(off, 4))) }
func (r reader) u16(off int) uint64 { return uint64(binary.LittleEndian.Uint16(r.at(off, 2))) }
func (r reader) i32(off int) uint64 { return uint64(int64(int32(r.u32(off)))) }

func (r reader) time(name string, off int) field {
	return field{name: name, form: timespec, v: r.u64(off), w: int64(r.u64(off + 8))}
}

// statxTime reads a struct statx_timestamp.
func (r reader) statxTime(name string, off int) field {
	return field{name: name, form: timespec, v: r.u64(off), w: int64(r.u32(off + 8))}
}

// decode reads a structure as it lies in memory on an architecture. ok is false
// when it has not enough bytes.
func decode(l event.Layout, a event.Arch, b []byte) (s structure, ok bool) {
	if len(b) < l.Bytes(a) || l == event.LayoutNone {
		return s, false
	}
	r := reader{b}
	switch l {
	case event.LayoutStat:
		s.fields = stat(r, a)
	case event.LayoutStatx:
		s.fields = statx(r)
	case event.LayoutStatfs:
		s.fields = statfs(r)
	case event.LayoutTimespec:
		s.fields, s.single = []field{r.time("", 0)}, true
	case event.LayoutTimespec2:
		s.fields, s.list = []field{r.time("", 0), r.time("", 16)}, true
	case event.LayoutTimeval2:
		s.fields, s.list = []field{{form: timeval, v: r.u64(0), w: int64(r.u64(8))}, {form: timeval, v: r.u64(16), w: int64(r.u64(24))}}, true
	case event.LayoutUtimbuf:
		s.fields = []field{{name: "actime", v: r.u64(0), brief: true}, {name: "modtime", v: r.u64(8), brief: true}}
	case event.LayoutFlock:
		s.fields = flock(r)
	case event.LayoutOpenHow:
		s.fields = openHow(r)
	case event.LayoutFDPair:
		s.fields, s.list = []field{{form: fileDescr, v: r.i32(0)}, {form: fileDescr, v: r.i32(4)}}, true
	case event.LayoutOffset:
		s.fields, s.list = []field{{v: r.u64(0)}}, true
	case event.LayoutCloneArgs:
		s.fields = cloneArgs(r)
	case event.LayoutRlimit:
		s.fields = []field{{name: "rlim_cur", form: unsigned, v: r.u64(0), brief: true}, {name: "rlim_max", form: unsigned, v: r.u64(8), brief: true}}
	default:
		return s, false
	}
	return s, true
}

// stat reads struct stat (arch/x86/include/uapi/asm/stat.h,
// include/uapi/asm-generic/stat.h).
func stat(r reader, a event.Arch) []field {
	nlink, mode, uid, rdev, blksize := r.u64(16), r.u32(24), 28, 40, r.u64(56)
	if a == event.ARM64 {
		nlink, mode, uid, rdev, blksize = r.u32(20), r.u32(16), 24, 32, r.i32(56)
	}
	fields := []field{
		{name: "st_dev", form: device, v: r.u64(0)},
		{name: "st_ino", form: unsigned, v: r.u64(8)},
		{name: "st_mode", form: fileMode, v: mode, brief: true},
		{name: "st_nlink", form: unsigned, v: nlink},
		{name: "st_uid", form: unsigned, v: r.u32(uid)},
		{name: "st_gid", form: unsigned, v: r.u32(uid + 4)},
		{name: "st_rdev", form: device, v: r.u64(rdev)},
		{name: "st_size", v: r.u64(48)},
		{name: "st_blksize", v: blksize},
		{name: "st_blocks", v: r.u64(64)},
		r.time("st_atime", 72), r.time("st_mtime", 88), r.time("st_ctime", 104),
	}
	markSizeOrDevice(fields, mode, 6, 7)
	return fields
}

// markSizeOrDevice makes the size brief, or the device number where the file is
// one.
func markSizeOrDevice(fields []field, mode uint64, rdev, size int) {
	if t := mode & sIFMT; t == sIFCHR || t == sIFBLK {
		fields[rdev].brief = true
		return
	}
	fields[size].brief = true
}

// statx reads struct statx (include/uapi/linux/stat.h).
func statx(r reader) []field {
	mode := r.u16(28)
	fields := []field{
		{name: "stx_mask", form: bitNames, set: statxMask, v: r.u32(0), brief: true},
		{name: "stx_blksize", form: unsigned, v: r.u32(4)},
		{name: "stx_attributes", form: hexadecimal, v: r.u64(8)},
		{name: "stx_nlink", form: unsigned, v: r.u32(16)},
		{name: "stx_uid", form: unsigned, v: r.u32(20)},
		{name: "stx_gid", form: unsigned, v: r.u32(24)},
		{name: "stx_mode", form: fileMode, v: mode, brief: true},
		{name: "stx_ino", form: unsigned, v: r.u64(32)},
		{name: "stx_size", form: unsigned, v: r.u64(40)},
		{name: "stx_blocks", form: unsigned, v: r.u64(48)},
		{name: "stx_attributes_mask", form: hexadecimal, v: r.u64(56)},
		r.statxTime("stx_atime", 64), r.statxTime("stx_btime", 80), r.statxTime("stx_ctime", 96), r.statxTime("stx_mtime", 112),
		{name: "stx_rdev", form: device, v: makedev(r.u32(128), r.u32(132))},
		{name: "stx_dev", form: device, v: makedev(r.u32(136), r.u32(140))},
		{name: "stx_mnt_id", form: unsigned, v: r.u64(144)},
	}
	markSizeOrDevice(fields, mode, 15, 8)
	return fields
}

// statfs reads struct statfs (include/uapi/asm-generic/statfs.h, 64 bits).
func statfs(r reader) []field {
	return []field{
		{name: "f_type", form: named, set: fsTypes, v: r.u64(0), brief: true},
		{name: "f_bsize", v: r.u64(8), brief: true},
		{name: "f_blocks", form: unsigned, v: r.u64(16), brief: true},
		{name: "f_bfree", form: unsigned, v: r.u64(24), brief: true},
		{name: "f_bavail", form: unsigned, v: r.u64(32), brief: true},
		{name: "f_files", form: unsigned, v: r.u64(40)},
		{name: "f_ffree", form: unsigned, v: r.u64(48)},
		{name: "f_fsid", form: hexadecimal, v: r.u64(56)},
		{name: "f_namelen", v: r.u64(64)},
		{name: "f_frsize", v: r.u64(72)},
		{name: "f_flags", form: hexadecimal, v: r.u64(80)},
	}
}

func flock(r reader) []field {
	return []field{
		{name: "l_type", form: named, set: lockTypes, v: r.u16(0), brief: true},
		{name: "l_whence", form: named, set: seekNames, v: r.u16(2), brief: true},
		{name: "l_start", v: r.u64(8), brief: true},
		{name: "l_len", v: r.u64(16), brief: true},
		{name: "l_pid", v: r.i32(24)},
	}
}

func openHow(r reader) []field {
	return []field{
		{name: "flags", form: openFlag, v: r.u64(0), brief: true},
		{name: "mode", form: octal, v: r.u64(8), brief: true},
		{name: "resolve", form: bitNames, set: resolveFlags, v: r.u64(16), brief: true},
	}
}

func cloneArgs(r reader) []field {
	flags := event.Lookup(event.OpClone).Args[0].Set
	return []field{
		{name: "flags", form: bitNames, set: flags, v: r.u64(0), brief: true},
		{name: "pidfd", form: hexadecimal, v: r.u64(8)},
		{name: "child_tid", form: hexadecimal, v: r.u64(16)},
		{name: "parent_tid", form: hexadecimal, v: r.u64(24)},
		{name: "exit_signal", v: r.u64(32), brief: true},
		{name: "stack", form: hexadecimal, v: r.u64(40)},
		{name: "stack_size", form: unsigned, v: r.u64(48)},
		{name: "tls", form: hexadecimal, v: r.u64(56)},
		{name: "set_tid", form: hexadecimal, v: r.u64(64)},
		{name: "set_tid_size", form: unsigned, v: r.u64(72)},
		{name: "cgroup", form: unsigned, v: r.u64(80)},
	}
}

// Specials of a timespec's nanoseconds (linux/stat.h).
const (
	utimeNow  = 0x3fffffff
	utimeOmit = 0x3ffffffe
)

// appendField writes a field's value.
func appendField(dst []byte, f *field, a event.Arch) []byte {
	switch f.form {
	case unsigned:
		return strconv.AppendUint(dst, f.v, 10)
	case octal:
		return appendOctal(dst, f.v)
	case hexadecimal:
		return appendHex(dst, f.v)
	case fileMode:
		return appendMode(dst, f.v)
	case device:
		return appendDevice(dst, f.v)
	case timespec:
		return appendClock(dst, f, "tv_nsec")
	case timeval:
		return appendClock(dst, f, "tv_usec")
	case openFlag:
		return append(dst, event.FormatOpenFlags(a, f.v)...)
	case named:
		return append(dst, f.set.FormatEnum(f.v)...)
	case bitNames:
		return append(dst, f.set.FormatFlags(f.v)...)
	}
	return strconv.AppendInt(dst, int64(f.v), 10)
}

func appendClock(dst []byte, f *field, fraction string) []byte {
	if fraction == "tv_nsec" {
		switch f.w {
		case utimeNow:
			return append(dst, "UTIME_NOW"...)
		case utimeOmit:
			return append(dst, "UTIME_OMIT"...)
		}
	}
	dst = append(dst, "{tv_sec="...)
	dst = strconv.AppendInt(dst, int64(f.v), 10)
	dst = append(dst, ", "...)
	dst = append(dst, fraction...)
	dst = append(dst, '=')
	dst = strconv.AppendInt(dst, f.w, 10)
	return append(dst, '}')
}

// File types in a mode.
const (
	sIFMT  = 0o170000
	sIFCHR = 0o020000
	sIFBLK = 0o060000
)

var fileTypes = &event.Set{Name: "S_IFMT", Items: []event.Item{
	{Name: "S_IFSOCK", Value: 0o140000}, {Name: "S_IFLNK", Value: 0o120000}, {Name: "S_IFREG", Value: 0o100000},
	{Name: "S_IFBLK", Value: sIFBLK}, {Name: "S_IFDIR", Value: 0o040000}, {Name: "S_IFCHR", Value: sIFCHR}, {Name: "S_IFIFO", Value: 0o010000},
}}

func appendMode(dst []byte, v uint64) []byte {
	if t := v & sIFMT; t != 0 {
		dst = append(dst, fileTypes.FormatEnum(t)...)
		dst = append(dst, '|')
	}
	return appendOctal(dst, v&^sIFMT)
}

// appendOctal writes at least three digits with the leading 0, as strace does
// with permissions.
func appendOctal(dst []byte, v uint64) []byte {
	dst = append(dst, '0')
	if v < 0o10 {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, v, 8)
}

func appendHex(dst []byte, v uint64) []byte {
	if v == 0 {
		return append(dst, '0')
	}
	return strconv.AppendUint(append(dst, "0x"...), v, 16)
}

func appendDevice(dst []byte, v uint64) []byte {
	dst = append(dst, "makedev("...)
	dst = appendHex(dst, major(v))
	dst = append(dst, ", "...)
	dst = appendHex(dst, minor(v))
	return append(dst, ')')
}

func major(v uint64) uint64 { return v>>8&0xfff | v>>32&^0xfff }
func minor(v uint64) uint64 { return v&0xff | v>>12&^0xff&math.MaxUint32 }
func makedev(major, minor uint64) uint64 {
	return major&0xfff<<8 | major&^0xfff<<32 | minor&0xff | minor&^0xff<<12
}
