// SPDX-License-Identifier: Apache-2.0

package script

import (
	"strconv"

	"github.com/iotape/iotape/event"
)

// facts are what the kernel said of an open file, besides the position. A line says
// what has changed since the open file was last mentioned.
type facts struct {
	dev, ino, rdev  uint64
	mode, flags     uint32
	nlink, uid, gid uint32
	size            int64
	pos             int64
	dropped         bool // reading: the call that opened it opens another file now
}

func factsOf(f *event.File) facts {
	return facts{dev: f.Dev, ino: f.Ino, rdev: f.Rdev, mode: f.Mode, flags: f.Flags, nlink: f.Nlink, uid: f.UID,
		gid: f.GID, size: f.Size, pos: f.Pos}
}

// appendNote writes what a descriptor stands for, in angle brackets: its name, for the
// reader, and what the kernel said.
//
//	</d/a #7@4096 flags=0x8000 mode=0100644 dev=8:1 ino=123 links=1 owner=0:0 size=9>
func (w *writer) appendNote(dst []byte, f *event.File, made bool) []byte {
	said := f != nil && (f.Known || f.Flags != 0) // foreign traces may know the flags alone
	if f == nil || f.Path == "" && !said {
		return dst
	}
	dst = append(dst, '<')
	at := len(dst)
	dst = appendWord(dst, f.Path)
	if said {
		if len(dst) > at {
			dst = append(dst, ' ')
		}
		dst = w.appendFacts(dst, f, made)
	}
	return append(dst, '>')
}

func (w *writer) appendFacts(dst []byte, f *event.File, made bool) []byte {
	now := factsOf(f)
	was, known := w.files[f.Open]
	known = known && !made && f.Open != 0
	dst = strconv.AppendUint(append(dst, '#'), uint64(f.Open), 10)
	dst = strconv.AppendInt(append(dst, '@'), f.Pos, 10)
	if !known || was.flags != now.flags {
		dst = appendHex(append(dst, " flags="...), uint64(now.flags))
	}
	if !known || was.mode != now.mode {
		dst = strconv.AppendUint(append(dst, " mode=0"...), uint64(now.mode), 8)
	}
	dst = appendInode(dst, &was, &now, known)
	if !known || was.nlink != now.nlink {
		dst = strconv.AppendUint(append(dst, " links="...), uint64(now.nlink), 10)
	}
	if !known || was.uid != now.uid || was.gid != now.gid {
		dst = appendOwner(append(dst, " owner="...), now.uid, now.gid)
	}
	if !known || was.size != now.size {
		dst = strconv.AppendInt(append(dst, " size="...), now.size, 10)
	}
	if f.Open != 0 {
		w.files[f.Open] = now
	}
	return dst
}

// appendInode writes which inode a file has, and which device it is, where that changed.
func appendInode(dst []byte, was, now *facts, known bool) []byte {
	if !known || was.dev != now.dev || was.ino != now.ino {
		dst = appendDevice(append(dst, " dev="...), now.dev)
		dst = strconv.AppendUint(append(dst, " ino="...), now.ino, 10)
	}
	if now.rdev != was.rdev || !known && now.rdev != 0 {
		dst = appendDevice(append(dst, " rdev="...), now.rdev)
	}
	return dst
}

func appendOwner(dst []byte, uid, gid uint32) []byte {
	dst = append(strconv.AppendUint(dst, uint64(uid), 10), ':')
	return strconv.AppendUint(dst, uint64(gid), 10)
}

// appendDevice writes a device number, as in stat, as major:minor.
func appendDevice(dst []byte, d uint64) []byte {
	dst = append(strconv.AppendUint(dst, d>>8&0xfff, 10), ':')
	return strconv.AppendUint(dst, d&0xff|d>>12&^0xff&0xffffffff, 10)
}

// appendWord writes a name as one word: what would end it, or the note around it, is
// escaped, and a # in front, which is a number.
func appendWord(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f && c != '\\' && c != '>' && c != '<' && c != '"' && (c != '#' || i > 0) {
			dst = append(dst, c)
			continue
		}
		const digits = "0123456789abcdef"
		dst = append(dst, '\\', 'x', digits[s[i]>>4], digits[s[i]&15])
	}
	return dst
}
