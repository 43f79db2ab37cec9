// SPDX-License-Identifier: Apache-2.0

package event

import "encoding/binary"

// Requests are operations that a program asks for without a system call of their
// own: entries of an io_uring submission queue, and the control blocks of Linux
// AIO. Their numbers begin here, so that calls and requests can be appended without
// getting into each other's way.
const (
	firstUring Op = 1024 // one row per opcode, in the opcodes' order
	firstAIO   Op = 1280 // one row per command, likewise
)

// RequestArg is the argument index of a request's head (RequestBytes of it), which
// is no argument.
const RequestArg = 15

// HeadBytes is the size of what a program fills in for one request: struct
// io_uring_sqe (linux/io_uring.h) without its optional second half, or struct iocb
// (linux/aio_abi.h).
const HeadBytes = 64

// RequestBytes is the size of a recorded request head: the program's 64 bytes, the
// queue, and a word of the completion.
const RequestBytes = HeadBytes + 16

// Field is where in a request's head an argument stands. A field without a size is
// an argument that such requests have not.
type Field struct {
	Off, Size uint8 // bytes; Size is 0, 2, 4 or 8
	Signed    bool
	// Else is where it stands if the field is 0, in 64 bits if that is a word of 8;
	// 0 if there is no such place.
	Else, ElseSize uint8
}

// Get reads the field from a head of HeadBytes.
func (f Field) Get(head []byte) uint64 {
	v := number(head, f.Off, f.Size)
	if v == 0 && f.ElseSize != 0 {
		return number(head, f.Else, f.ElseSize)
	}
	if f.Signed && f.Size == 4 {
		return uint64(int64(int32(v)))
	}
	return v
}

func number(head []byte, off, size uint8) uint64 {
	b := head[off:]
	switch size {
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Like returns the system call that an operation does the work of: itself, unless
// it is a request. OpUnknown stands for requests that no call does. Its arguments
// are the first of the request's.
func (op Op) Like() Op {
	if op < firstUring {
		return op
	}
	return Lookup(op).Like
}

// IsUring reports whether the operation is a request to an io_uring.
func (op Op) IsUring() bool { return op >= firstUring && op < firstAIO }

// IsAIO reports whether the operation is a request of Linux AIO.
func (op Op) IsAIO() bool { return op >= firstAIO }

// UringOp returns the operation of an opcode (enum io_uring_op), OpUring if the
// operation table has none.
func UringOp(opcode uint8) Op { return row(OpUringNop+Op(opcode), uringTable[:], firstUring) }

// AIOOp returns the operation of a command (IOCB_CMD_…), OpAIO if the operation table has
// none.
func AIOOp(command uint16) Op { return row(OpAIOPread+Op(min(command, 1000)), aioTable[:], firstAIO) }

// row returns op, or the table's first number if it has no such row.
func row(op Op, table []Spec, first Op) Op {
	if n := op - first; int(n) < len(table) && table[n].Name != "" {
		return op
	}
	return first
}

// Request is a request's head, decoded. Which fields count depends on Op.
type Request struct {
	Op     Op
	Opcode uint16 // IORING_OP_… or IOCB_CMD_…
	// Queue is the ring's descriptor number, -1 if it is not known, or the AIO
	// context.
	Queue int64
	// UserData is what the program recognises the completion by.
	UserData    uint64
	Flags       uint8  // io_uring: IOSQE_…
	Prio        uint16 // I/O priority, or flags of its own of network requests
	BufIndex    uint16 // io_uring: fixed buffer, or group of provided buffers
	Personality uint16 // io_uring
	FileIndex   uint32 // io_uring: slot for the result plus 1, or ^0 to choose one
	CQEFlags    uint32 // io_uring: IORING_CQE_F_… of the completion
	Address     uint64 // AIO: of the control block
	Key         uint32 // AIO: IOCB_FLAG_…
}

// Flags of submission queue entries and completions (linux/io_uring.h).
const (
	SQEFixedFile    = 1 << 0
	SQEDrain        = 1 << 1
	SQELink         = 1 << 2
	SQEHardLink     = 1 << 3
	SQEAsync        = 1 << 4
	SQEBufferSelect = 1 << 5
	SQESkipSuccess  = 1 << 6
	CQEBuffer       = 1 << 0
	CQEMore         = 1 << 1
)

// Request returns the head of a request; ok is false for other events and where it
// was not recorded.
func (e *Event) Request() (r Request, ok bool) {
	b := e.BufArg(RequestArg)
	if b == nil || len(b.Inline) < RequestBytes || e.Op < firstUring {
		return r, false
	}
	return RequestOf(e.Op, b.Inline), true
}

// RequestOf decodes a head of RequestBytes of a request op.
func RequestOf(op Op, h []byte) (r Request) {
	le := binary.LittleEndian
	r.Op, r.Queue = op, int64(le.Uint64(h[HeadBytes:]))
	if op.IsAIO() {
		r.Opcode = le.Uint16(h[16:])
		r.UserData, r.Prio, r.Key, r.Address = le.Uint64(h), le.Uint16(h[18:]), le.Uint32(h[56:]),
			le.Uint64(h[HeadBytes+8:])
		return r
	}
	r.Opcode = uint16(h[0])
	r.UserData, r.Flags, r.Prio = le.Uint64(h[32:]), h[1], le.Uint16(h[2:])
	r.BufIndex, r.Personality, r.FileIndex = le.Uint16(h[40:]), le.Uint16(h[42:]), le.Uint32(h[44:])
	r.CQEFlags = le.Uint32(h[HeadBytes+8:])
	return r
}

// Fixed reports whether the first descriptor is a slot of the ring's table.
func (r *Request) Fixed() bool { return r.Op.IsUring() && r.Flags&SQEFixedFile != 0 }

// InSlot reports whether a request's descriptor, argument arg, is a slot of its ring's table.
func (r *Request) InSlot(args *[MaxArgs]uint64, arg int) bool {
	const inFixed = 1 << 31 // SPLICE_F_FD_IN_FIXED
	own := 0
	switch r.Op {
	case OpUringSplice:
		if own = 2; arg == 0 {
			return args[5]&inFixed != 0
		}
	case OpUringTee:
		if own = 1; arg == 0 {
			return args[3]&inFixed != 0
		}
	}
	return arg == own && r.Fixed()
}

// Slot returns the slot of the ring's table that a request fills, or empties, rather
// than a descriptor. ret is its result.
func (r *Request) Slot(ret int64) (slot int32, ok bool) {
	const choose = ^uint32(0) // IORING_FILE_INDEX_ALLOC
	switch r.Op {
	case OpUringOpenat, OpUringOpenat2, OpUringAccept, OpUringSocket, OpUringClose:
	default:
		return 0, false
	}
	switch r.FileIndex {
	case 0:
		return 0, false
	case choose:
		return int32(ret), true
	}
	return int32(r.FileIndex - 1), true
}
