// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/iotape/iotape/event"
)

// Errors that readers of streams and tapes wrap.
var (
	ErrCorrupt   = errors.New("data is damaged")
	ErrTruncated = errors.New("data ends early")
	ErrNotATrace = errors.New("not an iotape trace")
	ErrEmpty     = errors.New("the stream is empty: nothing was recorded") // it has 0 bytes
	ErrNewer     = errors.New("written by a newer version of iotape")
)

// RecordType is the first field of every record.
type RecordType uint16

// The record types. Numbers are part of the stream format.
const (
	RecCall RecordType = 1 // a completed call
	RecData RecordType = 2 // more content of the thread's last call
	// content read at entry, of the thread's next call; with an Op, of the request that was submitted then
	RecEnter RecordType = 3
	RecTask  RecordType = 4  // identity of a thread, before its first record and after each change
	RecFork  RecordType = 5  // a new thread
	RecExit  RecordType = 6  // a thread ended
	RecLoss  RecordType = 7  // records were lost before this one
	RecFile  RecordType = 8  // a descriptor that was open at the start (see FileOwn)
	RecNote  RecordType = 9  // text from the user
	RecStart RecordType = 10 // working directory, umask and root directory of a process at the start
	RecWake  RecordType = 11 // the thread was woken up
	RecLink  RecordType = 12 // a symbolic link that was known at the start: two pieces, its name and its target
	// a signal was delivered; one piece, its siginfo_t (event.SiginfoBytes); Flags are the event.SignalAction
	RecSignal RecordType = 13
	// the stack of the thread's next call, which begins at Enter: Flags are the event.StackEnd; see StackRecord
	RecStack RecordType = 14
	// where the process runs and with what; pieces as package event/facts numbers them
	RecProcess RecordType = 15
)

// Record flags.
const (
	CallMore        uint32 = 1 << 0 // RecCall: RecData records follow, the last with DataLast
	CallCompat      uint32 = 1 << 1 // RecCall: a 32-bit call; NR and Args are that ABI's
	CallInterrupted uint32 = 1 << 2 // RecCall: no return was seen; Exit is when the thread was last known
	CallDelays      uint32 = 1 << 3 // RecCall: DelayBefore and DelayWithin are there
	CallUntimed     uint32 = 1 << 4 // RecCall: it is not known how long the call took; Exit is for its order alone
	CallMissed      uint32 = 1 << 5 // RecCall: a page that it read was not in the page cache
	CallStandIn     uint32 = 1 << 6 // RecCall: not made by the program: event.Synthetic
	CallUnknownArg  uint32 = 1 << 8 // RecCall: argument 0 is not known; that of argument i is CallUnknownArg << i
	DataLast        uint32 = 1 << 0 // RecData: the call is complete
	FileOwn         uint32 = 1 << 0 // RecFile: a followed process had opened it; else it was passed in from outside
	WakeInterrupt   uint32 = 1 << 0 // RecWake: by an interrupt, whoever was running
	ProcessChanged  uint32 = 1 << 1 // RecProcess: no program was executed since the last one

	// Of all records but RecStack, in streams that are made of tapes.
	RecordLate   uint32 = 1 << 30 // it came out of order when the tape was sealed: event.Late
	RecordBehind uint32 = 1 << 31 // its place is behind the record before, whatever its time is
)

// Where the flags of a RecFile have the number of the bind mount that the file was reached through.
const (
	FileOverShift = 8
	FileOverMask  = (RecordLate - 1) >> FileOverShift
)

// Fork flags: what the child shares, and what it does not, in clone(2)'s bits.
const (
	ShareVM     = 0x100
	ShareFS     = 0x200
	ShareFiles  = 0x400
	ShareThread = 0x10000
	NewMounts   = 0x20000 // it has a mount namespace of its own
	ForkFlags   = ShareVM | ShareFS | ShareFiles | ShareThread | NewMounts
)

// Loss reasons.
const (
	LossRing    uint32 = 1 // the ring was full
	LossDisk    uint32 = 2 // the stream could not be written
	LossKilled  uint32 = 3 // the recorder ended before its programs
	LossTasks   uint32 = 4 // more threads than the recorder has room to follow
	LossPartial uint32 = 5 // a call's data records did not all arrive
	LossMapped  uint32 = 6 // a file that was stored to through a mapping could not be opened
	LossDamage  uint32 = 7 // events of a tape that was damaged; not in streams
	LossSpool   uint32 = 8 // the agent's spool was full
	LossCounted uint32 = 9 // the agent kept counters only

	LossPages    uint32 = 10 // reads of mapped pages that could not be looked up
	LossRequests uint32 = 11 // requests of io_uring, more than the recorder has room to follow
	LossUnseen   uint32 = 12 // the programs that see requests could not be loaded
	LossStalled  uint32 = 13 // what the stream is written to accepted nothing for too long
	LossBlocks   uint32 = 14 // requests to block devices, more than the recorder has room for
	LossLocked   uint32 = 15 // the ring had room, but the kernel refused its lock
	LossHung     uint32 = 16 // content that the recorder was to read, for longer than its threads may be held
)

// LossReason returns the words for a loss reason of a stream.
func LossReason(r uint32) string {
	switch r {
	case LossRing:
		return "the ring was full"
	case LossDisk:
		return "the stream could not be written"
	case LossKilled:
		return "the recorder ended before its programs"
	case LossTasks:
		return "too many threads"
	case LossPartial:
		return "content did not arrive"
	case LossMapped:
		return "a mapped file could not be opened"
	case LossDamage:
		return "the tape was damaged"
	case LossSpool:
		return "the agent's spool was full"
	case LossCounted:
		return "the agent kept counters only"
	case LossPages:
		return "pages of mapped files could not be looked up"
	case LossRequests:
		return "too many requests to io_uring at once"
	case LossUnseen:
		return "requests to io_uring and AIO could not be seen"
	case LossBlocks:
		return "too many requests to block devices at once"
	case LossLocked:
		return "the ring was locked for too long"
	case LossHung:
		return "the recorder could not read content in time"
	case LossStalled:
		return "the output accepted nothing"
	}
	return fmt.Sprintf("reason %d", r)
}

// Piece flags.
const (
	PieceMissing   uint8 = 1 << 0 // Len bytes could not be read; none follow
	PieceOmitted   uint8 = 1 << 1 // Len bytes were not wanted; none follow
	PieceShape     uint8 = 1 << 2 // the bytes are the iovec array, not content
	PieceTruncated uint8 = 1 << 3 // a string went on past its limit
	// the bytes are an event.Digest of Len bytes, which begin at a multiple of event.HashBytes
	PieceHash uint8 = 1 << 4
	// with PieceOmitted, of mmap_pread: an earlier one of the same range of the file has the bytes
	PieceBefore uint8 = 1 << 5
	// with PieceShape: the bytes are Buf.Sketch of the part whose hash is before, not content
	PieceSketch uint8 = 1 << 6
	// with PieceMissing: the bytes were masked, because they look secret
	PieceMasked uint8 = 1 << 7
)

// Sizes of the fixed parts, in bytes. They are part of the stream format and
// asserted on the C side.
const (
	recPrefixBytes = 16
	recCallBytes   = 104
	recDelayBytes  = 8 // behind that, with CallDelays
	recDataBytes   = 32
	recTaskBytes   = 64
	recTaskLong    = 72 // with NSPID and NSTID, which older streams lack
	recWakeBytes   = 32
	recForkBytes   = 40
	recExitBytes   = 32
	recLossBytes   = 40
	recPlainBytes  = 32
	objectBytes    = 64
	pieceBytes     = 16

	// MaxPieceBytes limits the bytes that one record carries.
	MaxPieceBytes = 4 << 20
)

// Object is what the kernel knew of a descriptor's open file after a call.
type Object struct {
	Ino   uint64
	Size  int64
	Pos   int64
	Dev   uint32 // kernel encoding: major<<20 | minor
	Rdev  uint32 // likewise
	Mode  uint32
	Flags uint32
	Nlink uint32
	UID   uint32
	GID   uint32
	FD    int32
	Arg   int8   // argument index, -1 for the result
	Open  uint32 // RecFile: descriptors with the same number, if it is not 0, share one open file
	// RecCall: 1 + how far past Pos the position was when the call returned, by others
	// who moved it; 0 if it is not known where the call began, and Pos is what was seen
	// when it returned.
	Past uint32
}

// Piece is a part of the memory of one argument.
type Piece struct {
	Arg   uint8
	Flags uint8
	Len   uint32 // bytes that the piece stands for
	Off   uint64 // position within the argument's bytes
	Data  []byte // Len bytes, or a digest, or nil when missing or omitted
}

// dataBytes returns how many bytes follow the piece's head, without padding.
func (p *Piece) dataBytes() uint64 {
	switch {
	case p.Flags&(PieceMissing|PieceOmitted) != 0:
		return 0
	case p.Flags&PieceHash != 0:
		return uint64(len(event.Digest{}))
	}
	return uint64(p.Len)
}

// Record is one record of a stream. Which fields count depends on Type. After
// Decode, Data slices point into the decoded bytes.
type Record struct {
	Type     RecordType
	Op       uint16 // operation number (RecCall); 0 when the operation table lacks the call
	PID, TID uint32
	Flags    uint32

	Enter, Exit, CPU uint64 // RecCall: ns. Other types have their one time in Exit; RecData and RecEnter repeat Enter
	Ret              int64  // RecCall: raw result, -errno on failure. RecExit: wait status
	Args             [6]uint64
	NR               uint32
	// RecCall with CallDelays: how long the thread waited for a processor, ns, between
	// the call before and this one, and during this one; 2^32-1 is that or more.
	DelayBefore, DelayWithin uint32
	Objects                  []Object
	Pieces                   []Piece

	PPID, PGID, SID, UID, GID uint32   // RecTask
	Comm                      [16]byte // RecTask
	// RecTask: the numbers that the process and the thread have in their own pid
	// namespace; 0 if that is the recorder's.
	NSPID, NSTID uint32

	// RecFork: process and thread id of the child. RecWake: of who woke the thread; 0: an interrupt
	Child, ChildTID uint32
	Share           uint64 // RecFork: ShareVM …

	Count  uint64 // RecLoss: records lost
	Reason uint32 // RecLoss
	Umask  uint32 // RecStart
}

// Decode reads one record body into r, reusing its slices.
func (r *Record) Decode(b []byte) error {
	objs, pieces := r.Objects[:0], r.Pieces[:0]
	*r = Record{}
	r.Objects, r.Pieces = objs, pieces
	if len(b) < recPrefixBytes {
		return fmt.Errorf("record of %d bytes: %w", len(b), ErrCorrupt)
	}
	le := binary.LittleEndian
	r.Type = RecordType(le.Uint16(b))
	r.Op = le.Uint16(b[2:])
	r.PID, r.TID, r.Flags = le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])
	need, ok := fixedBytes[r.Type]
	if !ok {
		return nil // unknown to this version: the caller skips it
	}
	if len(b) < need {
		return fmt.Errorf("record type %d of %d bytes, wants %d: %w", r.Type, len(b), need, ErrCorrupt)
	}
	rest, nobj, npieces := b[need:], 0, 0
	switch r.Type {
	case RecCall:
		r.Enter, r.Exit, r.CPU, r.Ret = le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:]),
			int64(le.Uint64(b[40:]))
		for i := range r.Args {
			r.Args[i] = le.Uint64(b[48+8*i:])
		}
		r.NR, nobj, npieces = le.Uint32(b[96:]), int(b[100]), int(le.Uint16(b[102:]))
		if r.Flags&CallDelays != 0 {
			if len(rest) < recDelayBytes {
				return fmt.Errorf("record of a call of %d bytes without its delays: %w", len(b), ErrCorrupt)
			}
			r.DelayBefore, r.DelayWithin, rest = le.Uint32(rest), le.Uint32(rest[4:]), rest[recDelayBytes:]
		}
	case RecData, RecEnter, RecStack:
		r.Enter, npieces = le.Uint64(b[16:]), int(le.Uint16(b[24:]))
	case RecProcess:
		r.Exit, npieces = le.Uint64(b[16:]), int(le.Uint16(b[24:]))
	case RecTask:
		r.Exit = le.Uint64(b[16:])
		r.PPID, r.PGID, r.SID, r.UID, r.GID = le.Uint32(b[24:]), le.Uint32(b[28:]), le.Uint32(b[32:]),
			le.Uint32(b[36:]), le.Uint32(b[40:])
		copy(r.Comm[:], b[48:64])
		if len(b) >= recTaskLong {
			r.NSPID, r.NSTID = le.Uint32(b[44:]), le.Uint32(b[64:])
		}
	case RecWake:
		r.Exit, r.Child, r.ChildTID = le.Uint64(b[16:]), le.Uint32(b[24:]), le.Uint32(b[28:])
	case RecFork:
		r.Exit, r.Child, r.ChildTID, r.Share = le.Uint64(b[16:]), le.Uint32(b[24:]), le.Uint32(b[28:]),
			le.Uint64(b[32:])
	case RecExit:
		r.Exit, r.Ret = le.Uint64(b[16:]), int64(int32(le.Uint32(b[24:])))
	case RecLoss:
		r.Exit, r.Count, r.Reason = le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint32(b[32:])
	case RecFile, RecNote, RecStart, RecLink, RecSignal:
		r.Exit, nobj, npieces, r.Umask = le.Uint64(b[16:]), int(b[24]), int(le.Uint16(b[26:])), le.Uint32(b[28:])
	}
	var err error
	if rest, err = r.decodeObjects(rest, nobj); err != nil {
		return err
	}
	return r.decodePieces(rest, npieces)
}

var fixedBytes = map[RecordType]int{
	RecCall: recCallBytes, RecData: recDataBytes, RecEnter: recDataBytes, RecTask: recTaskBytes, RecFork: recForkBytes,
	RecExit: recExitBytes, RecWake: recWakeBytes, RecLoss: recLossBytes, RecFile: recPlainBytes, RecNote: recPlainBytes, RecStart: recPlainBytes,
	RecLink: recPlainBytes, RecSignal: recPlainBytes, RecStack: recDataBytes, RecProcess: recDataBytes,
}

func (r *Record) decodeObjects(b []byte, n int) ([]byte, error) {
	if len(b) < n*objectBytes {
		return nil, fmt.Errorf("record with %d objects in %d bytes: %w", n, len(b), ErrCorrupt)
	}
	le := binary.LittleEndian
	for range n {
		o := Object{
			Ino: le.Uint64(b), Size: int64(le.Uint64(b[8:])), Pos: int64(le.Uint64(b[16:])),
			Dev: le.Uint32(b[24:]), Rdev: le.Uint32(b[28:]), Mode: le.Uint32(b[32:]), Flags: le.Uint32(b[36:]),
			Nlink: le.Uint32(b[40:]), UID: le.Uint32(b[44:]), GID: le.Uint32(b[48:]), FD: int32(le.Uint32(b[52:])),
			Arg: int8(b[56]),
		}
		if r.Type == RecCall {
			o.Past = le.Uint32(b[60:])
		} else {
			o.Open = le.Uint32(b[60:])
		}
		r.Objects = append(r.Objects, o)
		b = b[objectBytes:]
	}
	return b, nil
}

func (r *Record) decodePieces(b []byte, n int) error {
	le := binary.LittleEndian
	for range n {
		if len(b) < pieceBytes {
			return fmt.Errorf("record ends within its pieces: %w", ErrCorrupt)
		}
		p := Piece{Arg: b[0], Flags: b[1], Len: le.Uint32(b[4:]), Off: le.Uint64(b[8:])}
		b = b[pieceBytes:]
		if p.Flags&(PieceMissing|PieceOmitted) == 0 {
			n := p.dataBytes()
			padded := (n + 7) &^ 7
			if padded > uint64(len(b)) {
				return fmt.Errorf("piece of %d bytes in a record with %d left: %w", n, len(b), ErrCorrupt)
			}
			p.Data = b[:n:n]
			b = b[padded:]
		}
		r.Pieces = append(r.Pieces, p)
	}
	return nil
}

// Append encodes the record body, padded to 8 bytes.
func (r *Record) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, uint16(r.Type))
	b = le.AppendUint16(b, r.Op)
	b = le.AppendUint32(b, r.PID)
	b = le.AppendUint32(b, r.TID)
	b = le.AppendUint32(b, r.Flags)
	switch r.Type {
	case RecCall:
		b = le.AppendUint64(b, r.Enter)
		b = le.AppendUint64(b, r.Exit)
		b = le.AppendUint64(b, r.CPU)
		b = le.AppendUint64(b, uint64(r.Ret))
		for _, a := range r.Args {
			b = le.AppendUint64(b, a)
		}
		b = le.AppendUint32(b, r.NR)
		b = append(b, byte(len(r.Objects)), 0)
		b = le.AppendUint16(b, uint16(len(r.Pieces)))
		if r.Flags&CallDelays != 0 {
			b = le.AppendUint32(b, r.DelayBefore)
			b = le.AppendUint32(b, r.DelayWithin)
		}
	case RecData, RecEnter, RecStack:
		b = le.AppendUint64(b, r.Enter)
		b = le.AppendUint16(b, uint16(len(r.Pieces)))
		b = append(b, 0, 0, 0, 0, 0, 0)
	case RecProcess:
		b = le.AppendUint64(b, r.Exit)
		b = le.AppendUint16(b, uint16(len(r.Pieces)))
		b = append(b, 0, 0, 0, 0, 0, 0)
	case RecTask:
		b = le.AppendUint64(b, r.Exit)
		for _, v := range [...]uint32{r.PPID, r.PGID, r.SID, r.UID, r.GID, r.NSPID} {
			b = le.AppendUint32(b, v)
		}
		b = append(b, r.Comm[:]...)
		b = le.AppendUint32(b, r.NSTID)
		b = le.AppendUint32(b, 0)
	case RecWake:
		b = le.AppendUint64(b, r.Exit)
		b = le.AppendUint32(b, r.Child)
		b = le.AppendUint32(b, r.ChildTID)
	case RecFork:
		b = le.AppendUint64(b, r.Exit)
		b = le.AppendUint32(b, r.Child)
		b = le.AppendUint32(b, r.ChildTID)
		b = le.AppendUint64(b, r.Share)
	case RecExit:
		b = le.AppendUint64(b, r.Exit)
		b = le.AppendUint32(b, uint32(r.Ret))
		b = le.AppendUint32(b, 0)
	case RecLoss:
		b = le.AppendUint64(b, r.Exit)
		b = le.AppendUint64(b, r.Count)
		b = le.AppendUint32(b, r.Reason)
		b = le.AppendUint32(b, 0)
	case RecFile, RecNote, RecStart, RecLink, RecSignal:
		b = le.AppendUint64(b, r.Exit)
		b = append(b, byte(len(r.Objects)), 0)
		b = le.AppendUint16(b, uint16(len(r.Pieces)))
		b = le.AppendUint32(b, r.Umask)
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		b = le.AppendUint64(b, o.Ino)
		b = le.AppendUint64(b, uint64(o.Size))
		b = le.AppendUint64(b, uint64(o.Pos))
		for _, v := range [...]uint32{o.Dev, o.Rdev, o.Mode, o.Flags, o.Nlink, o.UID, o.GID, uint32(o.FD)} {
			b = le.AppendUint32(b, v)
		}
		b = append(b, byte(o.Arg), 0, 0, 0)
		b = le.AppendUint32(b, o.Open|o.Past) // one of them
	}
	for i := range r.Pieces {
		p := &r.Pieces[i]
		b = append(b, p.Arg, p.Flags, 0, 0)
		b = le.AppendUint32(b, p.Len)
		b = le.AppendUint64(b, p.Off)
		if p.Flags&(PieceMissing|PieceOmitted) == 0 {
			b = append(b, p.Data...)
			for len(b)%8 != 0 {
				b = append(b, 0)
			}
		}
	}
	return b
}
