// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/socket"
	"github.com/iotape/iotape/trace"
)

// Call is a system call as a foreign trace tells it.
type Call struct {
	Op          event.Op // 0: one that the operation table lacks
	NR          uint32   // its number, if Op is 0
	PID, TID    uint32
	Enter, Exit uint64 // ns
	CPU         uint64 // ns of CPU time that the thread had used, if known
	Ret         int64  // raw result: -errno on failure
	Interrupted bool   // no return was seen
	Untimed     bool   // the trace does not say how long the call took; Exit may be 0
	Args        [event.MaxArgs]uint64
	Unknown     uint32 // arguments of which the trace does not say the value, by bits; see NotKnown
	// of calls that make threads: what the child shares, in clone(2)'s bits; clone's own flags count too
	Share   uint64
	Objects []trace.Object
	pieces  []trace.Piece
}

// address is what stands for the unknown address of memory whose content is known.
const address = 1

// Bytes adds memory behind an argument of which the trace has the first bytes: data of
// total. What is missing is marked as not kept by the foreign recorder's choice. No call
// moves more than trace.MaxContentBytes: what a file says beyond that is not believed.
func (c *Call) Bytes(arg int, data []byte, total int64) {
	c.Spans(arg, Span{data, total})
}

// NotKnown says that the trace does not have the value of an argument. A replay takes what Args has if it
// is a set of flags or permissions, and does not make the call otherwise.
func (c *Call) NotKnown(arg int) { c.Unknown |= 1 << arg }

// Known says that the value of an argument is known, after NotKnown.
func (c *Call) Known(arg int) { c.Unknown &^= 1 << arg }

// Moved says how many bytes a call of reading or writing moved, of which the trace has none.
func (c *Call) Moved(spec *event.Spec) {
	if c.Ret <= 0 || spec.Result != event.KindSize || spec.Class != event.Data && spec.Class != event.Socket {
		return
	}
	for i := range spec.Args {
		if spec.Args[i].Kind == event.KindBuf {
			c.Bytes(i, nil, c.Ret)
			return
		}
	}
}

// Socket says what the name of a socket, the last of Objects, says of its ends. Of other names it
// says nothing.
func (c *Call) Socket(name string) {
	e, ok := socket.Parse(name)
	if !ok || len(c.Objects) == 0 {
		return
	}
	b := socket.Encode(&e, e.Local.Sockaddr(e.Family), e.Peer.Sockaddr(e.Family))
	c.pieces = append(c.pieces, trace.Piece{
		Arg: uint8(event.PartSocket.Of(0)), Off: uint64(len(c.Objects) - 1), Len: uint32(len(b)), Data: b,
	})
}

// Span is a part of an argument's memory of which the trace has the first bytes.
type Span struct {
	Data []byte
	Len  int64 // at least that of Data
}

// Spans adds memory behind an argument that is one span behind the other. What is
// missing in front of other bytes is marked as not read, which keeps its place.
func (c *Call) Spans(arg int, spans ...Span) {
	c.point(arg)
	at := int64(0)
	last := 0 // span with data
	for i := range spans {
		if len(spans[i].Data) > 0 {
			last = i
		}
	}
	for i, s := range spans {
		gap := trace.PieceOmitted
		if i < last {
			gap = trace.PieceMissing
		}
		end := at + max(min(s.Len, trace.MaxContentBytes-at), int64(len(s.Data)))
		for data := s.Data; len(data) > 0; {
			d := data[:min(len(data), maxPiece)]
			c.pieces = append(c.pieces, trace.Piece{Arg: uint8(arg), Off: uint64(at), Len: uint32(len(d)), Data: d})
			data, at = data[len(d):], at+int64(len(d))
		}
		for at < end {
			n := min(end-at, math.MaxUint32)
			c.pieces = append(c.pieces, trace.Piece{Arg: uint8(arg), Off: uint64(at), Len: uint32(n), Flags: gap})
			at += n
		}
	}
	if at == 0 {
		c.pieces = append(c.pieces, trace.Piece{Arg: uint8(arg)})
	}
}

// maxPiece leaves room for a record's other parts.
const maxPiece = trace.MaxPieceBytes / 2

// maxPieces is how many one record of a call has; it counts them in 16 bits.
const maxPieces = 1 << 14

// Text adds a string, such as a path; truncated says that the trace has only its
// beginning.
func (c *Call) Text(arg int, s string, truncated bool) {
	c.point(arg)
	p := trace.Piece{Arg: uint8(arg), Len: uint32(len(s)), Data: []byte(s)}
	if truncated {
		p.Flags = trace.PieceTruncated
	}
	c.pieces = append(c.pieces, p)
}

// Strings adds an array of strings, such as argv.
func (c *Call) Strings(arg int, list []string) { c.Text(arg, strings.Join(list, "\x00"), false) }

// Shape adds the lengths of a vector's elements; the elements' content is that of
// Bytes, one behind the other.
func (c *Call) Shape(arg int, lengths []int64) {
	c.point(arg)
	b := make([]byte, 0, 16*len(lengths))
	for _, n := range lengths {
		b = binary.LittleEndian.AppendUint64(b, address)
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	c.pieces = append(c.pieces, trace.Piece{Arg: uint8(arg), Flags: trace.PieceShape, Len: uint32(len(b)), Data: b})
}

// point gives an argument an address if it has none.
func (c *Call) point(arg int) {
	if _, i := event.SplitPart(arg); i < len(c.Args) && c.Args[i] == 0 {
		c.Args[i] = address
	}
}

// Call writes a call, and what it did to processes: an exit_group ends its process, a
// fork that succeeded makes one.
func (w *Writer) Call(c *Call) error {
	c.Objects = slices.DeleteFunc(c.Objects, func(o trace.Object) bool {
		return o.Arg == event.ResultArg && o.FD < 0 // what a file says is no descriptor
	})
	r := trace.Record{
		Type: trace.RecCall, Op: uint16(c.Op), NR: c.NR, PID: c.PID, TID: c.TID,
		Enter: c.Enter, Exit: max(c.Exit,
			c.Enter), CPU: c.CPU, Ret: c.Ret, Args: c.Args, Objects: c.Objects, Pieces: c.pieces,
	}
	if c.Op != 0 {
		r.NR = uint32(max(event.Number(event.AMD64, c.Op), 0))
	}
	if c.Interrupted {
		r.Flags |= trace.CallInterrupted
		r.Ret = 0 // nobody saw it
	}
	if c.Untimed && !c.Interrupted {
		r.Flags |= trace.CallUntimed
	}
	r.Flags |= c.Unknown & (1<<event.MaxArgs - 1) * trace.CallUnknownArg
	switch c.Op {
	case event.OpExecve, event.OpExecveat:
		// The program that called is gone when the call returns.
		enter := trace.Record{Type: trace.RecEnter, Op: r.Op, PID: r.PID, TID: r.TID, Enter: r.Enter, Pieces: r.Pieces}
		r.Pieces = nil
		if err := w.add(&enter, r.Exit); err != nil {
			return err
		}
	case event.OpFork, event.OpVfork, event.OpClone, event.OpClone3:
		if c.Ret > 0 {
			if err := w.fork(&r, c.Share); err != nil {
				return err
			}
		}
	case event.OpExitGroup:
		r.Ret = 0
		if err := w.large(&r); err != nil {
			return err
		}
		return w.Record(&trace.Record{Type: trace.RecExit, PID: r.PID, TID: r.TID, Exit: r.Exit,
			Ret: int64(r.Args[0]&0xff) << 8})
	}
	return w.large(&r)
}

// fork says that the thread which a call's result names was made. The child runs
// before its maker returns.
func (w *Writer) fork(r *trace.Record, share uint64) error {
	child := uint32(r.Ret)
	if event.Op(r.Op) == event.OpClone {
		share |= r.Args[0]
	}
	share &= trace.ForkFlags
	pid := child
	if share&trace.ShareThread != 0 {
		pid = r.PID
	}
	return w.Record(&trace.Record{Type: trace.RecFork, PID: r.PID, TID: r.TID, Exit: r.Enter, Child: pid,
		ChildTID: child, Share: share})
}

// Whole writes the record of a call as it is, with nothing made up; content beyond a
// record's size goes into more of them.
func (w *Writer) Whole(r *trace.Record) error { return w.large(r) }

// large writes a call; content beyond a record's size goes into more of them.
func (w *Writer) large(r *trace.Record) error {
	total, keep := 0, len(r.Pieces)
	for i := range r.Pieces {
		if total += len(r.Pieces[i].Data); (total > maxPiece || i == maxPieces) && i > 0 {
			keep = i
			break
		}
	}
	rest := r.Pieces[keep:]
	r.Pieces = r.Pieces[:keep]
	if len(rest) > 0 {
		r.Flags |= trace.CallMore
	}
	if err := w.add(r, r.Exit); err != nil {
		return err
	}
	for i, p := range rest {
		data := trace.Record{Type: trace.RecData, Op: r.Op, PID: r.PID, TID: r.TID, Enter: r.Enter,
			Pieces: []trace.Piece{p}}
		if i == len(rest)-1 {
			data.Flags = trace.DataLast
		}
		if err := w.add(&data, r.Exit); err != nil {
			return err
		}
	}
	return nil
}

// Task is who a thread is.
type Task struct {
	PID, TID, PPID, PGID, SID, UID, GID uint32
	Comm                                string // at most 15 bytes of it are kept
}

// Task says who a thread is from a time on, ns: to be called before its first call and
// after each change.
func (w *Writer) Task(t *Task, time uint64) error {
	r := trace.Record{Type: trace.RecTask, PID: t.PID, TID: t.TID, PPID: t.PPID, PGID: t.PGID, SID: t.SID, UID: t.UID,
		GID: t.GID, Exit: time}
	copy(r.Comm[:len(r.Comm)-1], t.Comm)
	return w.Record(&r)
}

// Thread says that a process has one more thread, from a time on, ns: to be called
// before its first call if no call that made it is in the trace. It shares all that the
// process has.
func (w *Writer) Thread(pid, tid uint32, time uint64) error {
	return w.Record(&trace.Record{Type: trace.RecFork, PID: pid, TID: pid, Exit: time, Child: pid, ChildTID: tid,
		Share: trace.ShareVM | trace.ShareFS | trace.ShareFiles | trace.ShareThread})
}

// Start says what a process's working directory and umask were at the start.
func (w *Writer) Start(pid uint32, dir string, umask uint32, time uint64) error {
	return w.Record(&trace.Record{Type: trace.RecStart, PID: pid, TID: pid, Umask: umask, Exit: time,
		Pieces: []trace.Piece{{Len: uint32(len(dir)), Data: []byte(dir)}}})
}

// Open says that a descriptor was open before a time, ns, without a call that is in
// the trace. The file's name is path, and o says what else is known of it. A negative number is no descriptor.
func (w *Writer) Open(pid uint32, o trace.Object, path string, time uint64) error {
	if o.FD < 0 {
		return nil
	}
	return w.Record(&trace.Record{Type: trace.RecFile, PID: pid, TID: pid, Exit: time, Flags: trace.FileOwn,
		Objects: []trace.Object{o},
		Pieces:  []trace.Piece{{Len: uint32(len(path)), Data: []byte(path)}}})
}

// Note writes a text that belongs to no call, or to the thread's last one.
func (w *Writer) Note(pid, tid uint32, text []byte, time uint64) error {
	return w.Record(&trace.Record{Type: trace.RecNote, PID: pid, TID: tid, Exit: time,
		Pieces: []trace.Piece{{Len: uint32(len(text)), Data: text}}})
}

// Exit says that a thread ended, with the status that wait(2) shows. Call does so for
// exit_group.
func (w *Writer) Exit(pid, tid uint32, status int64, time uint64) error {
	return w.Record(&trace.Record{Type: trace.RecExit, PID: pid, TID: tid, Exit: time, Ret: status})
}

// Sockaddr adds a socket's address, which the kernel filled in if size is an argument
// that points to its length, as in accept and recvfrom; else size is the length.
func (c *Call) Sockaddr(arg, size int, b []byte) {
	if len(b) == 0 {
		return
	}
	c.Bytes(arg, b, 0)
	if event.Lookup(c.Op).Args[size].Kind.IsMemory() {
		c.Bytes(size, binary.LittleEndian.AppendUint32(nil, uint32(len(b))), 0)
	} else {
		c.Args[size] = uint64(len(b))
	}
}
