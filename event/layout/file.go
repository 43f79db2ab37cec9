// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// Structures of calls on files (stat(2), statx(2), statfs(2), fcntl(2), openat2(2),
// ioctl_ficlonerange(2) …).

// stat is struct stat (arch/x86/include/uapi/asm/stat.h,
// include/uapi/asm-generic/stat.h).
func stat(a event.Arch) *record {
	nlink, mode, owner, rdev, blksize := u64("st_nlink", 16), uint16(24), uint16(28), uint16(40), i64("st_blksize", 56)
	if a == event.ARM64 {
		nlink, mode, owner, rdev, blksize = u32("st_nlink", 20), 16, 24, 32, i32("st_blksize", 56)
	}
	return &record{
		fields: []field{
			dev("st_dev", 0), u64("st_ino", 8), brief(num(Mode, 4, "st_mode", mode)), nlink, id("st_uid", owner), id("st_gid", owner+4),
			dev("st_rdev", rdev), i64("st_size", 48), blksize, i64("st_blocks", 64),
			date(time("st_atime", 72)), date(time("st_mtime", 88)), date(time("st_ctime", 104)),
		},
		mode: &modeRule{off: int(mode), size: 4, always: 1 << 2, sized: 1 << 7, devices: 1 << 6},
	}
}

// statx is struct statx (include/uapi/linux/stat.h).
var statx = &record{
	fields: []field{
		flags("stx_mask", 0, 4, event.StatxNames), u32("stx_blksize", 4), flags("stx_attributes", 8, 8, statxAttributes), u32("stx_nlink", 16),
		id("stx_uid", 20), id("stx_gid", 24), num(Mode, 2, "stx_mode", 28), u64("stx_ino", 32), u64("stx_size", 40), u64("stx_blocks", 48),
		flags("stx_attributes_mask", 56, 8, statxAttributes),
		date(num(Time, 12, "stx_atime", 64)), date(num(Time, 12, "stx_btime", 80)), date(num(Time, 12, "stx_ctime", 96)), date(num(Time, 12, "stx_mtime", 112)),
		u32("stx_rdev_major", 128), u32("stx_rdev_minor", 132), u32("stx_dev_major", 136), u32("stx_dev_minor", 140), u64("stx_mnt_id", 144),
		u32("stx_dio_mem_align", 152), u32("stx_dio_offset_align", 156), u64("stx_subvol", 160), u32("stx_atomic_write_unit_min", 168),
		u32("stx_atomic_write_unit_max", 172), u32("stx_atomic_write_segments_max", 176), u32("stx_dio_read_offset_align", 180),
		u32("stx_atomic_write_unit_max_opt", 184),
	},
	mode: &modeRule{off: 28, size: 2, always: 1<<0 | 1<<2 | 1<<6, sized: 1 << 8, devices: 1<<15 | 1<<16},
}

// statfs is struct statfs (include/uapi/asm-generic/statfs.h, 64 bits).
var statfs = all(
	enum("f_type", 0, 8, fsTypes), i64("f_bsize", 8), u64("f_blocks", 16), u64("f_bfree", 24), u64("f_bavail", 32), u64("f_files", 40), u64("f_ffree", 48),
	nested("f_fsid", 56, 8, all(array("val", 0, 2, x32("", 0)))), i64("f_namelen", 64), i64("f_frsize", 72), flags("f_flags", 80, 8, statfsFlags))

// seconds since 1970.
var utimbuf = all(date(i64("actime", 0)), date(i64("modtime", 8)))

var flock = of(
	brief(enum("l_type", 0, 2, lockTypes)), brief(enum("l_whence", 2, 2, event.SeekNames)), brief(i64("l_start", 8)), brief(i64("l_len", 16)), i32("l_pid", 24))

var owner = all(enum("type", 0, 4, ownerTypes), i32("pid", 4))

var openHow = all(flags("flags", 0, 8, event.OpenNames), num(Octal, 8, "mode", 8),
	flags("resolve", 16, 8, resolveFlags))

var iovec = all(ptr("iov_base", 0), u64("iov_len", 8))

var mountAttr = all(flags("attr_set", 0, 8, event.MountAttrNames), flags("attr_clr", 8, 8, event.MountAttrNames),
	flags("propagation", 16, 8, propagations), u64("userns_fd", 24))

var fileAttr = all(flags("fa_xflags", 0, 8, xflags), u32("fa_extsize", 8), u32("fa_nextents", 12), u32("fa_projid", 16),
	u32("fa_cowextsize", 20))

// linux/fs.h, linux/fiemap.h
var (
	fsxattr     = all(flags("fsx_xflags", 0, 4, xflags), u32("fsx_extsize", 4), u32("fsx_nextents", 8), u32("fsx_projid", 12), u32("fsx_cowextsize", 16))
	fstrim      = all(x64("start", 0), x64("len", 8), x64("minlen", 16))
	cloneRange  = all(num(FD, 8, "src_fd", 0), u64("src_offset", 8), u64("src_length", 16), u64("dest_offset", 24))
	dedupeHead  = all(u64("src_offset", 0), u64("src_length", 8), u16("dest_count", 16))
	dedupeInfo  = all(num(FD, 8, "dest_fd", 0), u64("dest_offset", 8), u64("bytes_deduped", 16), named(i32("status", 24), dedupeStates))
	fiemapHead  = all(u64("fm_start", 0), u64("fm_length", 8), flags("fm_flags", 16, 4, fiemapFlags), u32("fm_mapped_extents", 20), u32("fm_extent_count", 24))
	fiemapEntry = all(u64("fe_logical", 0), u64("fe_physical", 8), u64("fe_length", 16), flags("fe_flags", 40, 4, extentFlags))
)

// tail is a structure whose head is followed by elements that it counts.
type tail struct {
	head     *record
	headSize int
	name     string
	element  *record
	size     int
	array    bool
}

var tails = map[event.Layout]tail{
	event.LayoutDedupeRange: {dedupeHead, 24, "info", dedupeInfo, 32, true},
	event.LayoutFiemap:      {fiemapHead, 32, "fm_extents", fiemapEntry, 56, true},
}

// counted decodes a head and as many elements as there are bytes of.
func counted(b []byte, t tail) (Value, bool) {
	if len(b) < t.headSize {
		return Value{}, false
	}
	head := Value{Kind: Struct, Data: b[:t.headSize], record: t.head}
	list := Value{Name: t.name, Kind: List, Brief: true, Data: b[t.headSize:], record: t.element, stride: t.size}
	return Value{Kind: Struct, values: append(fieldsOf(&head), list)}, true
}

func fieldsOf(v *Value) []Value {
	list := make([]Value, 0, v.Len()+2)
	for i := range v.Len() {
		list = append(list, v.At(i))
	}
	return list
}

// handle decodes struct file_handle (name_to_handle_at(2)).
func handle(b []byte) (Value, bool) {
	if len(b) < 8 {
		return Value{}, false
	}
	n := number(b[:4])
	data := b[8:][:min(n, uint64(len(b)-8))]
	return Value{Kind: Struct, values: []Value{
		{Name: "handle_bytes", Kind: Uint, Num: n, Brief: true},
		{Name: "handle_type", Kind: Hex, Num: number(b[4:8]), Brief: true},
		{Name: "f_handle", Kind: Bytes, Data: data, Num: uint64(len(data)), Brief: true},
	}}, true
}

// dirent64 is struct linux_dirent64, whose name ends with its bytes.
var dirent64 = of(
	brief(u64("d_ino", 0)), i64("d_off", 8), u16("d_reclen", 16), brief(enum("d_type", 18, 1, direntTypes)), brief(text("d_name", 19, 1<<15)))

// dirents decodes directory entries (linux/dirent.h). It stops at the first that
// does not fit.
func dirents(b []byte, is64 bool) Value {
	head := 18 // d_ino, d_off, d_reclen; the type is the entry's last byte
	if is64 {
		head = 19
	}
	list := make([]Value, 0, len(b)/32)
	for len(b) > head {
		n := int(binary.LittleEndian.Uint16(b[16:]))
		if n < head || n > len(b) {
			break
		}
		d := Value{Kind: Struct, Data: b[:n], record: dirent64}
		if !is64 {
			d.values = fieldsOf(&d)
			d.values[3].Num = uint64(b[n-1])
			d.values[4].Data = untilNUL(b[head:n])
		}
		list = append(list, d)
		b = b[n:]
	}
	return Value{Kind: List, values: list}
}

// names decodes strings, each with its NUL (listxattr(2)).
func names(b []byte) Value {
	list := []Value{}
	for len(b) > 0 {
		s := untilNUL(b)
		list = append(list, Value{Kind: Text, Data: s})
		b = b[min(len(s)+1, len(b)):]
	}
	return Value{Kind: List, values: list}
}
