// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// emit writes r.rec, a RecCall, with the planned memory, in as many records as
// that needs. Memory is read here, one record's worth at a time.
func (r *Recorder) emit(th *thread) {
	left := uint64(0)
	for i := range r.plan {
		left += r.plan[i].bytes()
	}
	if left > recordBytes {
		r.rec.Flags |= trace.CallMore
	}
	r.scratch = r.scratch[:0]
	room := uint64(recordBytes)
	for i := range r.plan {
		s := r.plan[i]
		if s.bytes() == 0 {
			r.rec.Pieces = append(r.rec.Pieces, trace.Piece{Arg: s.arg, Flags: s.flags, Len: uint32(s.n), Off: s.pos})
			continue
		}
		for s.bytes() > 0 {
			if room == 0 {
				r.nextData()
				room = recordBytes
			}
			n := min(s.bytes(), room)
			r.addContent(th, &s, n)
			room -= n
			left -= n
		}
	}
	if r.rec.Type == trace.RecData {
		r.rec.Flags |= trace.DataLast
	}
	r.out.put(&r.rec)
}

// nextData writes r.rec and makes it the record that continues it.
func (r *Recorder) nextData() {
	r.out.put(&r.rec)
	r.rec = trace.Record{
		Type: trace.RecData, Op: r.rec.Op, PID: r.rec.PID, TID: r.rec.TID, Enter: r.rec.Enter,
		Objects: r.rec.Objects[:0], Pieces: r.rec.Pieces[:0],
	}
	r.scratch = r.scratch[:0]
}

// bytes returns how many bytes of the segment go into records.
func (s *segment) bytes() uint64 {
	switch {
	case s.flags&(trace.PieceMissing|trace.PieceOmitted) != 0:
		return 0
	case s.data != nil:
		return uint64(len(s.data))
	}
	return s.n
}

// addContent moves the next n bytes of a segment into r.rec.
func (r *Recorder) addContent(th *thread, s *segment, n uint64) {
	if s.data != nil {
		r.addPiece(trace.Piece{Arg: s.arg, Flags: s.flags, Len: uint32(n), Off: s.pos, Data: s.data[:n:n]})
		s.data, s.pos = s.data[n:], s.pos+n
		return
	}
	for n > 0 {
		b := r.scratch[len(r.scratch) : len(r.scratch)+int(n)]
		got := s.read(th.t.TID, b)
		if got > 0 {
			r.scratch = r.scratch[:len(r.scratch)+got]
			r.addPiece(trace.Piece{Arg: s.arg, Flags: s.flags, Len: uint32(got), Off: s.pos, Data: b[:got]})
			s.advance(uint64(got))
			n -= uint64(got)
			continue
		}
		// This page cannot be read; perhaps the next.
		skip := min(n, pageBytes-s.addr%pageBytes)
		r.addPiece(trace.Piece{Arg: s.arg, Flags: s.flags | trace.PieceMissing, Len: uint32(skip), Off: s.pos})
		s.advance(skip)
		n -= skip
	}
}

func (s *segment) advance(n uint64) {
	s.pos += n
	s.addr += n
	s.n -= n
}

func (s *segment) read(tid int, b []byte) int {
	if s.file == 0 {
		return readMemory(tid, s.addr, b)
	}
	n, err := unix.Pread(s.file-1, b, int64(s.addr))
	if err != nil {
		return 0
	}
	return n
}

// addPiece adds a piece, joined with the one before if it continues it.
func (r *Recorder) addPiece(p trace.Piece) {
	if k := len(r.rec.Pieces); k > 0 {
		last := &r.rec.Pieces[k-1]
		if last.Arg == p.Arg && last.Flags == p.Flags && last.Off+uint64(last.Len) == p.Off {
			switch {
			case p.Flags&trace.PieceMissing != 0:
				last.Len += p.Len
				return
			case cap(last.Data)-len(last.Data) >= len(p.Data) && len(p.Data) > 0 &&
				&last.Data[:len(last.Data)+1][len(last.Data)] == &p.Data[0]:
				last.Data = last.Data[:len(last.Data)+len(p.Data)]
				last.Len += p.Len
				return
			}
		}
	}
	r.rec.Pieces = append(r.rec.Pieces, p)
}

// heldFile is the file whose content a call moved inside the kernel.
type heldFile struct{ fd int }

func (h heldFile) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
	}
}

// planHeld adds the bytes that a call moved between two descriptors: read from
// the source file, or, if that is a pipe or socket, from the regular file that
// they went to.
func (r *Recorder) planHeld(th *thread, ret int64) heldFile {
	src, srcOff, dst, dstOff := 0, 1, 2, 3
	if th.call.spec.Op == event.OpSendfile {
		src, srcOff, dst, dstOff = 1, 2, 0, -1
	}
	keep := uint64(r.o.Content.Of(th.call.spec, src).Bytes())
	seg := segment{arg: uint8(src), n: min(uint64(ret), keep)}
	r.planOmitted(seg.arg, 0, keep, uint64(ret))
	if seg.n == 0 {
		return heldFile{-1}
	}
	for _, side := range [2]struct{ fd, off int }{{src, srcOff}, {dst, dstOff}} {
		if fd, off := r.openMoved(th, side.fd, side.off); fd >= 0 {
			seg.file, seg.addr = fd+1, uint64(off-ret)
			r.plan = append(r.plan, seg)
			return heldFile{fd}
		}
	}
	seg.flags = trace.PieceMissing
	r.plan = append(r.plan, seg)
	return heldFile{-1}
}

// openMoved opens the regular file of a descriptor argument for reading and
// returns the offset at which the call ended; -1 if it cannot.
func (r *Recorder) openMoved(th *thread, arg, offArg int) (fd int, off int64) {
	var o *trace.Object
	for i := range r.rec.Objects {
		if int(r.rec.Objects[i].Arg) == arg {
			o = &r.rec.Objects[i]
		}
	}
	if o == nil || o.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1, 0
	}
	off = o.Pos
	if offArg >= 0 && th.call.args[offArg] != 0 {
		var b [8]byte
		if readMemory(th.t.TID, th.call.args[offArg], b[:]) != len(b) {
			return -1, 0
		}
		off = int64(binary.LittleEndian.Uint64(b[:]))
	}
	fd, err := r.proc.open(th.t.TID, int(o.FD))
	if err != nil {
		return -1, 0
	}
	return fd, off
}
