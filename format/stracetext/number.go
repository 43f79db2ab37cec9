// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"math"
	"strconv"

	"github.com/iotape/iotape/event"
)

// fileTypes are the types in a mode (inode(7)).
var fileTypes = event.Enum("S_IFMT",
	event.Item{Name: "S_IFSOCK", Value: 0o140000}, event.Item{Name: "S_IFLNK", Value: 0o120000}, event.Item{Name: "S_IFREG", Value: 0o100000},
	event.Item{Name: "S_IFBLK", Value: 0o060000}, event.Item{Name: "S_IFDIR", Value: 0o040000}, event.Item{Name: "S_IFCHR", Value: 0o020000},
	event.Item{Name: "S_IFIFO", Value: 0o010000})

// appendMode writes permissions, with what else a mode says if it says the type.
func appendMode(dst []byte, v uint64) []byte {
	t := uint64(event.FileType(uint32(v)))
	if t == 0 {
		return appendOctal(dst, v)
	}
	dst = append(fileTypes.AppendEnum(dst, t), '|')
	for _, b := range [...]struct {
		bit  uint64
		name string
	}{{0o4000, "S_ISUID|"}, {0o2000, "S_ISGID|"}, {0o1000, "S_ISVTX|"}} {
		if v&b.bit != 0 {
			dst = append(dst, b.name...)
		}
	}
	return appendOctal(dst, v&^(t|0o7000))
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

func appendAddress(dst []byte, v uint64) []byte {
	if v == 0 {
		return append(dst, "NULL"...)
	}
	return appendHex(dst, v)
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

// appendSignal writes a signal's name, 0 for none.
func appendSignal(dst []byte, n int32) []byte {
	if n == 0 {
		return append(dst, '0')
	}
	return append(dst, event.SignalName(int(n))...)
}

// appendFlags writes the names of bits, which may be those of an architecture.
func appendFlags(dst []byte, a event.Arch, set *event.Set, v uint64) []byte {
	if set == nil {
		return appendHex(dst, v)
	}
	if set.Open {
		v = event.OpenFlags(a, v)
	}
	return set.AppendFlags(dst, v)
}

func appendEnum(dst []byte, set *event.Set, v uint64) []byte {
	if set == nil {
		return appendHex(dst, v)
	}
	return set.AppendEnum(dst, v)
}

// intOf returns an argument that the kernel takes as an int: what is in the
// upper half of the register does not count. Longer numbers stay.
func intOf(v uint64) int64 {
	if upper := v >> 32; upper == 0 || upper == math.MaxUint32 {
		return int64(int32(v))
	}
	return int64(v)
}

// bitsOf returns an argument that the kernel takes as an unsigned int, likewise.
func bitsOf(v uint64) uint64 {
	if v>>32 == math.MaxUint32 {
		return v & math.MaxUint32
	}
	return v
}
