// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// Sizes of struct msghdr and struct mmsghdr (bits/socket.h of 64-bit Linux), and
// limits of what they point to.
const (
	MsghdrBytes  = 56
	MmsghdrBytes = 64

	maxIovecs    = 1024 // UIO_MAXIOV, of one message
	iovecBytes   = 16
	maxNameBytes = 128     // struct sockaddr_storage
	maxControl   = 1 << 20 // more than net.core.optmem_max lets pass
)

// Read reads memory of a program and returns how many bytes of it there are.
type Read func(addr uint64, b []byte) int

// Range is memory that a message points to.
type Range struct {
	Part event.Part
	Pos  uint64 // within the part's bytes, of all messages one after the other
	Addr uint64
	Len  uint64
	// Shape is set for an iovec array. Data is it then; nil if it could not be read.
	Shape bool
	Data  []byte
}

// Messages is how a call passes messages.
type Messages struct {
	Addr   uint64 // of a struct msghdr or an array of struct mmsghdr
	Count  int
	Stride int    // MsghdrBytes or MmsghdrBytes
	Moved  uint64 // bytes that the one msghdr moved; a mmsghdr says so itself
	Room   uint64 // for the sender's address, if less than it takes
	Failed bool   // nothing was moved
}

// Ranges lists what the messages point to.
func (m *Messages) Ranges(read Read) []Range {
	var all []Range
	var pos [8]uint64 // by part
	add := func(r Range) {
		r.Pos = pos[r.Part]
		pos[r.Part] += r.Len
		if r.Len > 0 {
			all = append(all, r)
		}
	}
	shapes := uint64(0)
	for i := range m.Count {
		var b [MmsghdrBytes]byte
		addr := m.Addr + uint64(i*m.Stride)
		if read(addr, b[:m.Stride]) != m.Stride {
			continue // the structure's own piece says that it is missing
		}
		h := parseMsghdr(b[:])
		moved := m.Moved
		if m.Stride == MmsghdrBytes {
			moved = uint64(binary.LittleEndian.Uint32(b[MsghdrBytes:]))
		}
		if m.Failed {
			moved = 0
		}
		if h.name != 0 {
			add(Range{Part: event.PartName, Addr: h.name, Len: min(uint64(h.nameLen), m.Room, maxNameBytes)})
		}
		if h.control != 0 {
			add(Range{Part: event.PartControl, Addr: h.control, Len: min(h.controlLen, maxControl)})
		}
		if h.iovLen == 0 || h.iovLen > maxIovecs {
			continue // the kernel refuses it
		}
		shape := Range{Part: event.PartData, Shape: true, Pos: shapes, Addr: h.iov, Len: h.iovLen * iovecBytes}
		v := make([]byte, shape.Len)
		if read(h.iov, v) == len(v) {
			shape.Data = v
			shapes += shape.Len
		}
		all = append(all, shape)
		for v = shape.Data; len(v) > 0 && moved > 0; v = v[iovecBytes:] {
			n := min(binary.LittleEndian.Uint64(v[8:]), moved)
			add(Range{Part: event.PartData, Addr: binary.LittleEndian.Uint64(v), Len: n})
			moved -= n
		}
	}
	return all
}

// Passed returns the descriptors that the control messages of the first messages
// pass (SCM_RIGHTS, SCM_PIDFD), at most event.MaxPassed.
func (m *Messages) Passed(read Read) []int32 {
	const (
		headBytes = 16
		solSocket = 1
		scmRights = 1
		scmPidfd  = 4
	)
	var fds []int32
	for i := range min(m.Count, event.MaxMessages) {
		var b [MsghdrBytes]byte
		if read(m.Addr+uint64(i*m.Stride), b[:]) != len(b) {
			continue
		}
		h := parseMsghdr(b[:])
		if h.control == 0 {
			continue
		}
		c := make([]byte, min(h.controlLen, maxControl))
		for c = c[:read(h.control, c)]; len(c) >= headBytes; {
			n := binary.LittleEndian.Uint64(c)
			if n < headBytes || n > uint64(len(c)) {
				break
			}
			level, kind := binary.LittleEndian.Uint32(c[8:]), binary.LittleEndian.Uint32(c[12:])
			if level == solSocket && (kind == scmRights || kind == scmPidfd) {
				for d := c[headBytes:n]; len(d) >= 4 && len(fds) < event.MaxPassed; d = d[4:] {
					fds = append(fds, int32(binary.LittleEndian.Uint32(d)))
				}
			}
			c = c[min((n+7)&^7, uint64(len(c))):]
		}
	}
	return fds
}

// Iovec returns what an element of an iovec array says: one of 16 bytes, or of 8 of a
// 32-bit program.
func Iovec(b []byte) (base, size uint64) {
	le := binary.LittleEndian
	if len(b) == event.Iovec32Bytes {
		return uint64(le.Uint32(b)), uint64(le.Uint32(b[4:]))
	}
	return le.Uint64(b), le.Uint64(b[8:])
}

type msghdr struct {
	name        uint64
	nameLen     uint32
	iov, iovLen uint64
	control     uint64
	controlLen  uint64
}

func parseMsghdr(b []byte) msghdr {
	le := binary.LittleEndian
	return msghdr{
		name: le.Uint64(b), nameLen: le.Uint32(b[8:]), iov: le.Uint64(b[16:]), iovLen: le.Uint64(b[24:]),
		control: le.Uint64(b[32:]), controlLen: le.Uint64(b[40:]),
	}
}
