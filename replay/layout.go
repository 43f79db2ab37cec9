package replay

import (
	"bytes"
	"encoding/binary"

	"iotape/event"
	"iotape/tree"
)

// stat is what a replay compares of struct stat and struct statx.
type stat struct {
	dev, ino, rdev        uint64
	mode, nlink, uid, gid uint32
	size                  int64
}

// decodeStat returns the structure that a successful call of the stat family
// filled in.
func decodeStat(ev *event.Event, arch event.Arch) (stat, bool) {
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Kind != event.KindStruct || int(b.Arg) >= len(ev.Spec().Args) {
			continue
		}
		switch ev.Spec().Args[b.Arg].Layout {
		case event.LayoutStat:
			return parseStat(b.Inline, arch)
		case event.LayoutStatx:
			return parseStatx(b.Inline)
		}
	}
	return stat{}, false
}

// parseStat reads struct stat (asm/stat.h; x86-64 differs from the generic one of
// arm64).
func parseStat(b []byte, arch event.Arch) (stat, bool) {
	if len(b) < event.LayoutStat.Bytes(arch) {
		return stat{}, false
	}
	le := binary.LittleEndian
	s := stat{dev: le.Uint64(b), ino: le.Uint64(b[8:])}
	if arch == event.AMD64 {
		s.nlink, s.mode, s.uid, s.gid = uint32(le.Uint64(b[16:])), le.Uint32(b[24:]), le.Uint32(b[28:]), le.Uint32(b[32:])
	} else {
		s.mode, s.nlink, s.uid, s.gid = le.Uint32(b[16:]), le.Uint32(b[20:]), le.Uint32(b[24:]), le.Uint32(b[28:])
	}
	if arch == event.AMD64 {
		s.rdev, s.size = le.Uint64(b[40:]), int64(le.Uint64(b[48:]))
	} else {
		s.rdev, s.size = le.Uint64(b[32:]), int64(le.Uint64(b[48:]))
	}
	return s, true
}

// parseStatx reads struct statx (linux/stat.h).
func parseStatx(b []byte) (stat, bool) {
	if len(b) < event.LayoutStatx.Bytes(0) {
		return stat{}, false
	}
	le := binary.LittleEndian
	dev := func(o int) uint64 {
		major, minor := uint64(le.Uint32(b[o:])), uint64(le.Uint32(b[o+4:]))
		return minor&0xff | major&0xfff<<8 | minor&^0xff<<12
	}
	return stat{
		nlink: le.Uint32(b[16:]), uid: le.Uint32(b[20:]), gid: le.Uint32(b[24:]), mode: uint32(le.Uint16(b[28:])),
		ino: le.Uint64(b[32:]), size: int64(le.Uint64(b[40:])), rdev: dev(128), dev: dev(136),
	}, true
}

// typeOf returns the type bits of a mode as a tree's type, 0 if they are none.
func typeOf(mode uint32) tree.Type {
	switch mode & 0o170000 {
	case 0o100000:
		return tree.File
	case 0o040000:
		return tree.Dir
	case 0o120000:
		return tree.Symlink
	case 0o010000:
		return tree.FIFO
	case 0o140000:
		return tree.Socket
	case 0o020000:
		return tree.CharDev
	case 0o060000:
		return tree.BlkDev
	}
	return 0
}

// dirent is an entry of a directory listing.
type dirent struct {
	name string
	typ  tree.Type // 0 if the file system did not say
}

// dirents reads struct linux_dirent64 (getdents64(2)). Damage ends the list.
func dirents(b []byte) []dirent {
	var out []dirent
	for len(b) >= 19 {
		n := int(binary.LittleEndian.Uint16(b[16:]))
		if n < 19 || n > len(b) {
			break
		}
		out = append(out, dirent{cstring(b[19:n]), typeOf(uint32(b[18]) << 12)})
		b = b[n:]
	}
	return out
}

// cstring returns the bytes up to the first NUL.
func cstring(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// contentArg returns the argument whose buffer holds what a data call moved.
func contentArg(op event.Op) int {
	switch op {
	case event.OpCopyFileRange, event.OpSplice:
		return 0
	}
	return 1
}

// sourceOffset returns where a copy inside the kernel began to read, targetOffset
// where it began to write; -1 if that is not known.
func sourceOffset(ev *event.Event) int64 {
	if ev.Op == event.OpSendfile {
		return movedFrom(ev, 2, 1)
	}
	return movedFrom(ev, 1, 0)
}

func targetOffset(ev *event.Event) int64 {
	if ev.Op == event.OpSendfile {
		return movedFrom(ev, -1, 0)
	}
	return movedFrom(ev, 3, 2)
}

// movedFrom takes the offset after the call from its argument, if one was passed,
// or from the descriptor's position.
func movedFrom(ev *event.Event, offArg, fdArg int) int64 {
	if offArg >= 0 && ev.Args[offArg] != 0 {
		if b := ev.BufArg(offArg); b != nil && len(b.Inline) >= 8 {
			return int64(binary.LittleEndian.Uint64(b.Inline)) - ev.Ret
		}
		return -1
	}
	if f := ev.FileArg(fdArg); f != nil && f.Known {
		return f.Pos - ev.Ret
	}
	return -1
}
