// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/tree"
)

// Stat is what a replay compares of struct stat and struct statx.
type Stat struct {
	Dev, Ino, Rdev        uint64
	Mode, Nlink, UID, GID uint32
	Size                  int64 // bytes
	MTime                 int64 // ns; not compared
}

// Partial reports whether only type, permissions, size and device number are known: strace and
// others leave out the rest, and no file has the inode number 0.
func (s *Stat) Partial() bool { return s.Ino == 0 }

// statOf returns the structure that a call of the stat family filled in, nil if there is none.
func statOf(ev *event.Event) (b *event.Buf, layout event.Layout) {
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Kind != event.KindStruct || int(b.Arg) >= len(ev.Spec().Args) {
			continue
		}
		if layout := ev.Spec().Args[b.Arg].Layout; layout == event.LayoutStat || layout == event.LayoutStatx {
			return b, layout
		}
	}
	return nil, 0
}

// DecodeStat returns the structure that a successful call of the stat family
// filled in.
func DecodeStat(ev *event.Event, arch event.Arch) (Stat, bool) {
	switch b, layout := statOf(ev); {
	case b == nil:
		return Stat{}, false
	case layout == event.LayoutStatx:
		return ParseStatx(b.Inline)
	default:
		return ParseStat(b.Inline, arch)
	}
}

// MapDevice replaces the device in the structure that a call of the stat family filled in.
func MapDevice(ev *event.Event, device func(uint64) uint64) {
	le := binary.LittleEndian
	switch b, layout := statOf(ev); {
	case b == nil:
	case layout == event.LayoutStatx:
		if s, ok := ParseStatx(b.Inline); ok {
			b.Inline = slices.Clone(b.Inline) // which the tape only lends
			dev := device(s.Dev)
			le.PutUint32(b.Inline[136:], uint32(dev>>8&0xfff))
			le.PutUint32(b.Inline[140:], uint32(dev&0xff|dev>>12&^0xff))
		}
	case len(b.Inline) >= 8:
		b.Inline = slices.Clone(b.Inline)
		le.PutUint64(b.Inline, device(le.Uint64(b.Inline)))
	}
}

// MapOwner replaces the user and the group in the structure that a call of the stat family filled in.
func MapOwner(ev *event.Event, arch event.Arch, user, group func(uint32) uint32) {
	b, layout := statOf(ev)
	if b == nil {
		return
	}
	at := 24
	switch {
	case layout == event.LayoutStatx:
		at = 20
	case arch == event.AMD64:
		at = 28
	}
	if len(b.Inline) < at+8 {
		return
	}
	b.Inline = slices.Clone(b.Inline)
	le := binary.LittleEndian
	le.PutUint32(b.Inline[at:], user(le.Uint32(b.Inline[at:])))
	le.PutUint32(b.Inline[at+4:], group(le.Uint32(b.Inline[at+4:])))
}

// ParseStat reads struct stat (asm/stat.h; x86-64 differs from the generic one of
// arm64).
func ParseStat(b []byte, arch event.Arch) (Stat, bool) {
	if len(b) < event.LayoutStat.Bytes(arch) {
		return Stat{}, false
	}
	le := binary.LittleEndian
	s := Stat{Dev: le.Uint64(b), Ino: le.Uint64(b[8:])}
	if arch == event.AMD64 {
		s.Nlink, s.Mode = uint32(le.Uint64(b[16:])), le.Uint32(b[24:])
		s.UID, s.GID = le.Uint32(b[28:]), le.Uint32(b[32:])
	} else {
		s.Mode, s.Nlink, s.UID, s.GID = le.Uint32(b[16:]), le.Uint32(b[20:]), le.Uint32(b[24:]), le.Uint32(b[28:])
	}
	if arch == event.AMD64 {
		s.Rdev, s.Size = le.Uint64(b[40:]), int64(le.Uint64(b[48:]))
	} else {
		s.Rdev, s.Size = le.Uint64(b[32:]), int64(le.Uint64(b[48:]))
	}
	s.MTime = int64(le.Uint64(b[88:]))*1e9 + int64(le.Uint64(b[96:]))
	return s, true
}

// ParseStatx reads struct statx (linux/stat.h).
func ParseStatx(b []byte) (Stat, bool) {
	if len(b) < event.LayoutStatx.Bytes(0) {
		return Stat{}, false
	}
	le := binary.LittleEndian
	dev := func(o int) uint64 {
		major, minor := uint64(le.Uint32(b[o:])), uint64(le.Uint32(b[o+4:]))
		return minor&0xff | major&0xfff<<8 | minor&^0xff<<12
	}
	return Stat{
		Nlink: le.Uint32(b[16:]), UID: le.Uint32(b[20:]), GID: le.Uint32(b[24:]), Mode: uint32(le.Uint16(b[28:])),
		Ino: le.Uint64(b[32:]), Size: int64(le.Uint64(b[40:])), Rdev: dev(128), Dev: dev(136),
		MTime: int64(le.Uint64(b[112:]))*1e9 + int64(le.Uint32(b[120:])),
	}, true
}

// TypeOf returns the type bits of a mode as a tree's type, 0 if they are none.
func TypeOf(mode uint32) tree.Type {
	switch event.FileType(mode) {
	case event.TypeRegular:
		return tree.File
	case event.TypeDir:
		return tree.Dir
	case event.TypeSymlink:
		return tree.Symlink
	case event.TypeFIFO:
		return tree.FIFO
	case event.TypeSocket:
		return tree.Socket
	case event.TypeChar:
		return tree.CharDev
	case event.TypeBlock:
		return tree.BlkDev
	}
	return 0
}

// Dirent is an entry of a directory listing.
type Dirent struct {
	Name string
	Type tree.Type // 0 if the file system did not say
}

// Dirents reads struct linux_dirent64 (getdents64(2)). Damage ends the list.
func Dirents(b []byte) []Dirent {
	var out []Dirent
	for len(b) >= 19 {
		n := int(binary.LittleEndian.Uint16(b[16:]))
		if n < 19 || n > len(b) {
			break
		}
		out = append(out, Dirent{CString(b[19:n]), TypeOf(uint32(b[18]) << 12)})
		b = b[n:]
	}
	return out
}

// CString returns the bytes up to the first NUL.
func CString(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// ContentArg returns the argument whose buffer holds what a data call moved.
func ContentArg(op event.Op) int {
	switch op {
	case event.OpCopyFileRange, event.OpSplice:
		return 0
	}
	return 1
}
