package ptrace

import (
	"encoding/binary"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"iotape/event"
	"iotape/trace"
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
	n, _, e := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
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

// planArg adds the memory of argument i to the plan.
func (r *recorder) planArg(th *thread, i int, ret int64) {
	c := &th.call
	a := &c.spec.Args[i]
	addr := c.args[i]
	if addr == 0 || !applies(&a.Cond, &c.args) {
		return
	}
	arg := uint8(i)
	switch {
	case a.Kind == event.KindStrings:
		r.planStrings(th, arg, addr)
		return
	case a.Len == event.LenNUL:
		r.planString(th, arg, addr)
		return
	case a.Len == event.LenVec || a.Len == event.LenVecAll:
		r.planVector(th, arg, a, ret)
		return
	}
	if a.Dir == event.Out && failed(ret) {
		return
	}
	var n uint64
	var flags uint8
	switch a.Len {
	case event.LenConst:
		n = uint64(a.Bytes(r.arch))
	case event.LenArg:
		n = c.args[a.LenArg]
		if failed(ret) && n > failedBytes {
			n, flags = failedBytes, trace.PieceTruncated // a length that the kernel refused
		}
	case event.LenRet:
		if failed(ret) {
			return
		}
		n = uint64(ret)
		if a.LenArg != event.NoArg {
			n = min(n, c.args[a.LenArg])
		}
	}
	keep := uint64(r.o.Content.Of(c.spec, i).Bytes())
	if kept := min(n, keep); kept > 0 {
		r.plan = append(r.plan, segment{arg: arg, flags: flags, n: kept, addr: addr})
	}
	r.planOmitted(arg, flags, keep, n)
}

// planOmitted adds the bytes of an argument, n in all, that are not wanted.
func (r *recorder) planOmitted(arg, flags uint8, keep, n uint64) {
	if n > keep {
		r.plan = append(r.plan, segment{arg: arg, flags: flags | trace.PieceOmitted, pos: keep, n: n - keep})
	}
}

func applies(c *event.Cond, args *[6]uint64) bool {
	if c.Mask == 0 {
		return true
	}
	v := args[c.Arg]
	return v < 64 && c.Mask>>v&1 != 0
}

func (r *recorder) planString(th *thread, arg uint8, addr uint64) {
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
func (r *recorder) planStrings(th *thread, arg uint8, addr uint64) {
	s, vec := stringReader{tid: th.t.TID}, stringReader{tid: th.t.TID}
	var b []byte
	for i := uint64(0); ; i++ {
		p, ok := vec.word(addr + 8*i)
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

// word reads an aligned or unaligned 64-bit word.
func (s *stringReader) word(addr uint64) (uint64, bool) {
	base := addr &^ (pageBytes - 1)
	if base != s.addr || s.n == 0 {
		s.addr, s.n = base, readMemory(s.tid, base, s.page[:])
	}
	if off := int(addr - base); off+8 <= s.n {
		return binary.LittleEndian.Uint64(s.page[off:]), true
	}
	var b [8]byte
	if readMemory(s.tid, addr, b[:]) != len(b) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// planVector adds the iovec array, also of a call that failed, and the bytes of
// its elements that a successful call moved.
func (r *recorder) planVector(th *thread, arg uint8, a *event.Arg, ret int64) {
	c := &th.call
	count := c.args[a.LenArg]
	if count == 0 || count > maxIovecs {
		return // the kernel refuses it
	}
	shape := make([]byte, count*iovecBytes)
	if readMemory(th.t.TID, c.args[arg], shape) != len(shape) {
		r.plan = append(r.plan, segment{arg: arg, flags: trace.PieceShape | trace.PieceMissing, n: uint64(len(shape))})
		return
	}
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
		if kept := min(n, keep-min(keep, pos)); kept > 0 {
			r.plan = append(r.plan, segment{arg: arg, pos: pos, n: kept, addr: binary.LittleEndian.Uint64(v)})
		}
		pos += n
		left -= n
	}
	r.planOmitted(arg, 0, keep, pos)
}
