// SPDX-License-Identifier: Apache-2.0

package script

import (
	"math"
	"strconv"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/socket"
	"github.com/iotape/iotape/trace"
)

func errnoOf(n int) syscall.Errno { return syscall.Errno(n) }

// factWords splits a note into the name, unescaped, and what the kernel said, "" if
// nothing.
func factWords(note string) (name, known string) {
	name, known, _ = strings.Cut(note, " ")
	if strings.HasPrefix(name, "#") {
		name, known = "", note
	}
	if !strings.HasPrefix(known, "#") {
		known = ""
	}
	return unescape(name), known
}

// unescape is the inverse of appendWord.
func unescape(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' {
			if c, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// openNumber returns the number of the open file in what the kernel said.
func openNumber(known string) (n uint64, pos string, rest string, ok bool) {
	head, rest, _ := strings.Cut(known, " ")
	number, pos, _ := strings.Cut(strings.TrimPrefix(head, "#"), "@")
	n, err := strconv.ParseUint(number, 10, 63)
	return n, pos, rest, err == nil
}

// drop makes what the kernel says of an open file not count, as long as it is open.
func (c *compiler) drop(known string) {
	if n, _, _, ok := openNumber(known); ok && n != 0 {
		c.files[n] = facts{dropped: true}
	}
}

// object adds what the kernel said of a descriptor, if its note says that.
func (c *compiler) object(p *scanner, at int, r *trace.Record, arg int8, fd int32, note string, op event.Op) error {
	name, known := factWords(note)
	if known == "" {
		if arg == event.MemoryArg { // that it is one is all that is known
			r.Objects = append(r.Objects, trace.Object{FD: fd, Arg: arg})
		}
		return nil
	}
	n, pos, rest, ok := openNumber(known)
	if !ok {
		return p.fail(at, "#"+first(known)+": the number of an open file was expected",
			"it is <NAME #NUMBER@POSITION …>; the note can be left out")
	}
	was, seen := c.files[n]
	f := was
	if n == 0 || arg == event.ResultArg { // made anew
		f = facts{}
	} else if seen && was.dropped {
		return nil
	}
	if err := f.words(p, at, rest); err != nil {
		return err
	}
	switch {
	case pos != "":
		v, err := strconv.ParseInt(pos, 10, 64)
		if err != nil {
			return p.fail(at, first(pos)+": a position was expected", "it is a number of bytes, or left out")
		}
		f.pos = v
	case r.Ret >= 0:
		f.move(op, r.Ret)
	}
	if n != 0 {
		c.files[n] = f
	}
	r.Objects = append(r.Objects, trace.Object{
		FD: fd, Arg: arg, Ino: f.ino, Size: f.size, Pos: f.pos, Dev: kernelDevice(f.dev), Rdev: kernelDevice(f.rdev),
		Mode: f.mode, Flags: f.flags, Nlink: f.nlink, UID: f.uid, GID: f.gid,
	})
	if e, ok := socket.Parse(name); ok {
		b := socket.Encode(&e, e.Local.Sockaddr(e.Family), e.Peer.Sockaddr(e.Family))
		r.Pieces = append(r.Pieces, trace.Piece{Arg: uint8(event.PartSocket.Of(0)), Len: uint32(len(b)),
			Off: uint64(len(r.Objects) - 1), Data: b})
	}
	if arg == fdOfStart {
		o := &r.Objects[len(r.Objects)-1]
		o.Arg, o.Open = 0, uint32(min(n, math.MaxUint32))
	}
	return nil
}

// unknownSize is written for the size of a file that the recording does not know.
const unknownSize = "-1"

// fdOfStart is the argument of a descriptor that was open at the start.
const fdOfStart = math.MinInt8

// move is what a call that succeeded does to a position that is not said.
func (f *facts) move(op event.Op, ret int64) {
	switch op.Like() {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		if f.pos <= math.MaxInt64-ret {
			f.pos += ret
		}
	case event.OpLseek:
		f.pos = ret
	}
}

// words takes what has changed.
func (f *facts) words(p *scanner, at int, rest string) error {
	for word := range strings.FieldsSeq(rest) {
		key, value, _ := strings.Cut(word, "=")
		n, isNumber := event.ParseNumber(value)
		small, ok := uint32(n), isNumber && n <= math.MaxUint32
		switch key {
		case "flags":
			f.flags = small
		case "mode":
			f.mode = small
		case "links":
			f.nlink = small
		case "ino":
			f.ino, ok = n, isNumber
		case "size":
			f.size, ok = int64(n), isNumber && (n < 1<<63 || value == unknownSize)
		case "dev":
			f.dev, ok = device(value)
		case "rdev":
			f.rdev, ok = device(value)
		case "owner":
			f.uid, f.gid, ok = owner(value)
		default:
			return p.fail(at, first(word)+" is not understood of a file",
				didYouMean(key, []string{"flags", "mode", "links", "ino", "size", "dev", "rdev", "owner"}))
		}
		if !ok {
			return p.fail(at, key+": "+first(value)+" is not understood", "")
		}
	}
	return nil
}

// kernelDevice turns stat's number of a device into the kernel's own.
func kernelDevice(d uint64) uint32 {
	return uint32(d>>8&0xfff)<<20 | uint32(d&0xff|d>>12&0xfff00)
}
