// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// Operations of io_uring_register (linux/io_uring.h) on files and buffers.
const (
	registerFiles        = 2
	registerFilesUpdate  = 6
	registerFiles2       = 13
	registerFilesUpdate2 = 14
	registerBufferRing   = 22

	filesSparse = 1 // IORING_RSRC_REGISTER_SPARSE
	maxSlots    = 8192
	maxPlaced   = 1 << 15 // entries of a ring of buffers
)

// planSlots adds the descriptors that a ring's table of files is filled with (event.LayoutSlots).
func (r *Recorder) planSlots(th *thread, arg uint8, ret int64) {
	c := &th.call
	if c.spec.Op == event.OpUringFilesUpdate {
		r.planSlotList(th, arg, c.args[0], uint32(c.args[2]), uint32(max(ret, 0)))
		return
	}
	addr := c.args[2]
	var head [32]byte
	le := binary.LittleEndian
	read := func(n int) bool { return th.read(addr, head[:n]) == n }
	switch c.args[1] &^ registerLast {
	case registerFiles:
		r.planSlotList(th, arg, addr, 0, uint32(c.args[3]))
	case registerFilesUpdate, registerFilesUpdate2: // struct io_uring_files_update, struct io_uring_rsrc_update2
		if read(16) {
			r.planSlotList(th, arg, le.Uint64(head[8:]), le.Uint32(head[:]), uint32(max(ret, 0)))
		}
	case registerFiles2: // struct io_uring_rsrc_register
		if read(24) {
			list := le.Uint64(head[16:])
			if le.Uint32(head[4:])&filesSparse != 0 {
				list = 0
			}
			r.planSlotList(th, arg, list, 0, le.Uint32(head[:]))
		}
	}
}

// planSlotList adds n descriptors from a list, or n empty slots if there is none.
func (r *Recorder) planSlotList(th *thread, arg uint8, list uint64, first, n uint32) {
	if n == 0 {
		return
	}
	b := binary.LittleEndian.AppendUint32(nil, first)
	b = binary.LittleEndian.AppendUint32(b, n)
	if list != 0 {
		fds := make([]byte, 4*min(n, maxSlots))
		b = append(b, fds[:th.read(list, fds)]...)
	}
	r.plan = append(r.plan, segment{arg: arg, data: b})
}

// buffers are the buffers of a group from which the kernel takes one for a request (IOSQE_BUFFER_SELECT).
type buffers struct {
	group uint16
	addr  uint64 // of the first, or of the ring of buffers
	size  uint64 // of each; 0: addr is that of a ring of struct io_uring_buf
	first uint16 // its number
	n     uint32
}

// provided learns buffers that a request has given to the kernel.
func (g *uring) provided(c *call) {
	g.buffers = append(g.buffers, buffers{group: uint16(c.args[4]), addr: c.args[0], size: c.args[1] & 0xffffffff,
		n: uint32(c.args[2]), first: uint16(c.args[3])})
	const most = 1 << 12
	if len(g.buffers) > most { // the oldest have been given again since
		g.buffers = g.buffers[1:]
	}
}

// ringOfBuffers learns one that a thread has registered (struct io_uring_buf_reg).
func (g *uring) ringOfBuffers(th *thread, addr uint64) {
	var b [16]byte
	if th.read(addr, b[:]) != len(b) {
		return
	}
	le := binary.LittleEndian
	if at := le.Uint64(b[:]); at != 0 { // else it is mapped later
		g.buffers = append(g.buffers, buffers{group: le.Uint16(b[12:]), addr: at, n: le.Uint32(b[8:])})
	}
}

// selected returns the address of a buffer of a group, 0 if it is not known.
func (g *uring) selected(th *thread, group, number uint16) uint64 {
	for i := len(g.buffers) - 1; i >= 0; i-- {
		b := &g.buffers[i]
		switch {
		case b.group != group:
		case b.size == 0:
			return b.placed(th, number)
		case uint32(number-b.first) < b.n:
			return b.addr + uint64(number-b.first)*b.size
		}
	}
	return 0
}

// placed finds a buffer in a ring of them.
func (b *buffers) placed(th *thread, number uint16) (addr uint64) {
	const entry = 16 // struct io_uring_buf
	list := make([]byte, entry*min(b.n, maxPlaced))
	list = list[:th.read(b.addr, list)]
	for ; len(list) >= entry; list = list[entry:] {
		at, of := binary.LittleEndian.Uint64(list), binary.LittleEndian.Uint16(list[12:])
		if of != number || at == 0 {
			continue
		}
		if addr != 0 && addr != at {
			return 0 // two of that number
		}
		addr = at
	}
	return addr
}
