// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"encoding/binary"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

const (
	pageBytes   = 4096
	recordBytes = 1 << 20 // content of one record
	argvBytes   = 3 << 20 // of an argument vector; one record carries trace.MaxPieceBytes
	failedBytes = 64 << 10
	maxIovecs   = 1024 // UIO_MAXIOV
	iovecBytes  = 16
)

// segment is a part of a call's memory: bytes that were read already (data), or
// n bytes at addr, or n bytes at off of a file.
type segment struct {
	arg   uint8
	flags uint8
	pos   uint64 // within the argument's bytes
	n     uint64
	addr  uint64
	data  []byte
	file  int // descriptor plus 1
}

// readMemory reads as many bytes of a thread's memory as it can.
func readMemory(tid int, addr uint64, b []byte) int {
	if len(b) == 0 {
		return 0
	}
	local := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
	n, _, e := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote)), 1, 0)
	if e == 0 && int(n) == len(b) {
		return len(b)
	}
	got := 0
	if e == 0 {
		got = int(n)
	}
	return got + readProcMemory(tid, addr+uint64(got), b[got:])
}

// readProcMemory also reads pages that the program itself may not.
func readProcMemory(tid int, addr uint64, b []byte) int {
	if int64(addr) < 0 {
		return 0
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	got := 0
	for got < len(b) {
		n, err := unix.Pread(fd, b[got:], int64(addr)+int64(got))
		if err != nil || n <= 0 {
			break
		}
		got += n
	}
	return got
}

// stringReader reads NUL-terminated strings, keeping the last page.
type stringReader struct {
	tid  int
	addr uint64 // of page; 0 is none
	n    int
	page [pageBytes]byte
}

// append appends the string at addr, at most limit bytes with its NUL, which is
// not appended. ok is false if it could not be read, cut is true if it goes on.
func (s *stringReader) append(b []byte, addr uint64, limit int) (out []byte, cut, ok bool) {
	for limit > 0 {
		base := addr &^ (pageBytes - 1)
		if base != s.addr || s.n == 0 {
			s.addr, s.n = base, readMemory(s.tid, base, s.page[:])
		}
		if int(addr-base) >= s.n {
			return b, false, false
		}
		p := s.page[addr-base : s.n]
		if len(p) > limit {
			p = p[:limit]
		}
		for i, c := range p {
			if c == 0 {
				return append(b, p[:i]...), false, true
			}
		}
		b = append(b, p...)
		addr += uint64(len(p))
		limit -= len(p)
	}
	return b, true, true
}

// planBytes adds memory that is no content, or content of which all is wanted.
func (r *Recorder) planBytes(s segment) {
	if s.n > 0 {
		r.plan = append(r.plan, s)
	}
}

// planContent adds n bytes of an argument as far as they are wanted.
func (r *Recorder) planContent(spec *event.Spec, s segment) {
	keep := uint64(r.o.Content.Of(spec, int(s.arg)).Bytes())
	n := s.n
	s.n = min(n, keep)
	r.planBytes(s)
	r.planOmitted(s.arg, s.flags, keep, n)
}

// planElement adds an element of a vector, as far as it is within what is wanted.
func (r *Recorder) planElement(s segment, keep uint64) {
	s.n = min(s.n, keep-min(keep, s.pos))
	r.planBytes(s)
}

// planOmitted adds the bytes of an argument, n in all, that are not wanted.
func (r *Recorder) planOmitted(arg, flags uint8, keep, n uint64) {
	if n > keep {
		r.plan = append(r.plan, segment{arg: arg, flags: flags | trace.PieceOmitted, pos: keep, n: n - keep})
	}
}

func (r *Recorder) planString(th *thread, arg uint8, addr uint64) {
	s := stringReader{tid: th.t.TID}
	b, cut, ok := s.append(nil, addr, event.MaxPath)
	seg := segment{arg: arg, data: b}
	if !ok {
		seg = segment{arg: arg, flags: trace.PieceMissing}
	} else if cut {
		seg.flags = trace.PieceTruncated
	}
	r.plan = append(r.plan, seg)
}

// planStrings joins an argument vector with NUL bytes.
func (r *Recorder) planStrings(th *thread, arg uint8, addr uint64, size int) {
	s, vec := stringReader{tid: th.t.TID}, stringReader{tid: th.t.TID}
	var b []byte
	for i := uint64(0); ; i++ {
		p, ok := vec.word(addr+uint64(size)*i, size)
		if !ok {
			if i == 0 {
				r.plan = append(r.plan, segment{arg: arg, flags: trace.PieceMissing})
				return
			}
			break
		}
		if p == 0 {
			break
		}
		if i > 0 {
			b = append(b, 0)
		}
		var cut bool
		b, cut, ok = s.append(b, p, argvBytes-len(b))
		if cut || !ok || len(b) >= argvBytes {
			r.plan = append(r.plan, segment{arg: arg, flags: trace.PieceTruncated, data: b})
			return
		}
	}
	r.plan = append(r.plan, segment{arg: arg, data: b})
}

// word reads an aligned or unaligned word of 4 or 8 bytes.
func (s *stringReader) word(addr uint64, size int) (uint64, bool) {
	base := addr &^ (pageBytes - 1)
	if base != s.addr || s.n == 0 {
		s.addr, s.n = base, readMemory(s.tid, base, s.page[:])
	}
	var b [8]byte
	if off := int(addr - base); off+size <= s.n {
		copy(b[:size], s.page[off:])
	} else if readMemory(s.tid, addr, b[:size]) != size {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// planVector adds the iovec array, also of a call that failed, and the bytes of
// its elements that a successful call moved.
func (r *Recorder) planVector(th *thread, arg uint8, a *event.Arg, ret int64) {
	c := &th.call
	count := c.args[a.LenArg]
	if count == 0 || count > maxIovecs {
		return // the kernel refuses it
	}
	shape, ok := readIovecs(th.t.TID, c.args[arg], int(count), int(a.Const))
	if !ok {
		r.plan = append(r.plan, segment{arg: arg, flags: trace.PieceShape | trace.PieceMissing, n: uint64(len(shape))})
		return
	}
	r.planIovecs(th, arg, a, shape, ret)
}

// planIovecs adds an iovec array and the bytes of its elements.
func (r *Recorder) planIovecs(th *thread, arg uint8, a *event.Arg, shape []byte, ret int64) {
	c := &th.call
	r.plan = append(r.plan, segment{arg: arg, flags: trace.PieceShape, data: shape})
	if failed(ret) {
		return
	}
	left := uint64(ret)
	if a.Len == event.LenVecAll {
		left = 1 << 31
	}
	pos, keep := uint64(0), uint64(r.o.Content.Of(c.spec, int(arg)).Bytes())
	for v := shape; len(v) > 0 && left > 0; v = v[iovecBytes:] {
		n := min(binary.LittleEndian.Uint64(v[8:]), left)
		r.planElement(segment{arg: arg, pos: pos, n: n, addr: binary.LittleEndian.Uint64(v)}, keep)
		pos += n
		left -= n
	}
	r.planOmitted(arg, 0, keep, pos)
}

// readIovecs reads an iovec array. That of a 32-bit program is made one of 64 bits.
func readIovecs(tid int, addr uint64, count, size int) (shape []byte, ok bool) {
	shape = make([]byte, count*iovecBytes)
	if size != event.Iovec32Bytes {
		return shape, readMemory(tid, addr, shape) == len(shape)
	}
	narrow := make([]byte, count*size)
	ok = readMemory(tid, addr, narrow) == len(narrow)
	for i := range count {
		base, n := capture.Iovec(narrow[i*size : (i+1)*size])
		binary.LittleEndian.PutUint64(shape[i*iovecBytes:], base)
		binary.LittleEndian.PutUint64(shape[i*iovecBytes+8:], n)
	}
	return shape, ok
}
