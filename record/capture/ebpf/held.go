// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

const (
	ownFrameBytes = 4 << 20
	dataBytes     = 1 << 20 // of one RecData record
	iovecBytes    = 16
	maxIovecs     = 1024
)

// Kinds of pending work (bpf/record.h).
const (
	partNone     = 0
	partBytes    = 1
	partVector   = 2
	partString   = 3
	partMoved    = 4
	partMessages = 5 // all that an array of struct mmsghdr points to, and itself
	partMsgData  = 6 // content of such an array

	partMapping = 7  // a mapping that can be stored to (stores.go)
	partPages   = 8  // pages of a file that are read through a mapping
	partPagesAt = 9  // and where and when they were, the next part
	partStored  = 10 // what was stored to a file

	partVector32 = 11 // a vector of a 32-bit program
)

// readPending reads what the programs left for a held thread and writes it as
// RecData records. Its RecCall is in the stream already.
func (d *drain) readPending(h *heldThread) {
	d.serving = h
	defer func() { d.serving = nil }()
	for n := uint32(0); ; n++ {
		var p iotapePending
		if err := d.p.Pendings.LookupAndDelete([2]uint32{uint32(h.tid), n}, &p); err != nil {
			d.loseLate(int(n))
			return // it was held only because its ring was full, or this was all
		}
		d.readParts(h.tid, &p)
	}
}

// pendingBefore reports whether something is left to be done for a call that ended before
// a time.
func (d *drain) pendingBefore(time uint64) bool {
	var key [2]uint32
	var p iotapePending
	for it := d.p.Pendings.Iterate(); it.Next(&key, &p); {
		if p.Exit < time {
			return true
		}
	}
	return false
}

func (d *drain) readParts(tid int, p *iotapePending) {
	for i := range p.Parts[:min(int(p.Nparts), len(p.Parts))] {
		q := &p.Parts[i]
		w := dataWriter{d: d, p: p, arg: q.Arg, off: q.Off}
		switch q.Kind {
		case partBytes:
			w.memory(tid, q.Addr, q.Len)
		case partVector:
			w.vector(tid, q.Addr, int(q.Count), iovecBytes, q.Off, q.Len)
		case partVector32:
			w.vector(tid, q.Addr, int(q.Count), event.Iovec32Bytes, q.Off, q.Len)
		case partString:
			w.text(tid, q.Addr)
		case partMoved:
			w.moved(tid, q.Len)
		case partMessages:
			w.messages(tid, q.Addr, int(q.Count))
		case partMsgData:
			w.messageData(tid, q.Addr, q.Off, q.Len)
		case partPages:
			d.stores.pages(tid, p, i)
		case partMapping, partStored:
			d.stores.serve(tid, p, q)
		case partNone: // a vector that the program has changed meanwhile
			w.put(trace.PieceMissing, q.Len, nil)
		}
	}
	d.addOwn(&trace.Record{Type: trace.RecData, Op: p.Op, PID: p.Pid, TID: p.Tid, Enter: p.Enter,
		Flags: trace.DataLast})
	d.flushOwn()
}

func (d *drain) addOwn(r *trace.Record) {
	if len(d.own) >= ownFrameBytes {
		d.flushOwn()
	}
	d.own = trace.AppendRecord(d.own, r)
}

func (d *drain) flushOwn() {
	d.writeOwn(d.own)
	d.own = d.own[:0]
}

// dataWriter writes the bytes of one argument.
type dataWriter struct {
	d   *drain
	p   *iotapePending
	arg uint8
	off uint64
	buf []byte
}

// put writes one piece.
func (w *dataWriter) put(flags uint8, n uint64, data []byte) {
	if n == 0 && flags == 0 {
		return
	}
	w.d.addOwn(&trace.Record{
		Type: trace.RecData, Op: w.p.Op, PID: w.p.Pid, TID: w.p.Tid, Enter: w.p.Enter,
		Pieces: []trace.Piece{{Arg: w.arg, Flags: flags, Len: uint32(n), Off: w.off, Data: data}},
	})
	w.off += n
}

// room returns space for up to n bytes of one record.
func (w *dataWriter) room(n uint64) []byte {
	if w.buf == nil {
		w.buf = make([]byte, dataBytes)
	}
	return w.buf[:min(n, dataBytes)]
}

// memory writes n bytes at an address of the held thread.
func (w *dataWriter) memory(tid int, addr, n uint64) {
	for n > 0 {
		b := w.room(n)
		got := uint64(w.d.read(tid, addr, b))
		if w.d.tooLate() {
			w.put(trace.PieceMissing, n, nil)
			return
		}
		w.put(0, got, b[:got])
		addr, n = addr+got, n-got
		if got == uint64(len(b)) {
			continue
		}
		skip := min(n, pageBytes-addr%pageBytes)
		w.put(trace.PieceMissing, skip, nil)
		addr, n = addr+skip, n-skip
	}
}

// vector writes n bytes of an iovec array's elements, each of width bytes, from a
// position on.
func (w *dataWriter) vector(tid int, addr uint64, count, width int, skip, n uint64) {
	shape := make([]byte, min(count, maxIovecs)*width)
	shape = shape[:w.d.read(tid, addr, shape)]
	for ; len(shape) >= width && n > 0; shape = shape[width:] {
		base, size := capture.Iovec(shape[:width])
		if skip >= size {
			skip -= size
			continue
		}
		m := min(size-skip, n)
		w.memory(tid, base+skip, m)
		n -= m
		skip = 0
	}
	if n > 0 {
		w.put(trace.PieceMissing, n, nil)
	}
}

// messages writes an array of struct mmsghdr and all that it points to.
func (w *dataWriter) messages(tid int, addr uint64, count int) {
	arg := w.arg
	data, total := uint8(event.PartData.Of(int(arg))), uint64(0)
	keep := uint64(w.d.content.Of(event.Lookup(event.Op(w.p.Op)), int(data)).Bytes())
	w.memory(tid, addr, uint64(count*capture.MmsghdrBytes))
	for _, r := range messagesOf(addr, count).Ranges(w.d.reader(tid)) {
		w.arg, w.off = uint8(r.Part.Of(int(arg))), r.Pos
		switch {
		case r.Shape && r.Data == nil:
			w.put(trace.PieceShape|trace.PieceMissing, r.Len, nil)
		case r.Shape:
			w.put(trace.PieceShape, r.Len, r.Data)
		case r.Part == event.PartData:
			w.memory(tid, r.Addr, min(r.Len, keep-min(keep, r.Pos)))
			total = r.Pos + r.Len
		default:
			w.memory(tid, r.Addr, r.Len)
		}
	}
	if total > keep {
		w.arg, w.off = data, keep
		w.put(trace.PieceOmitted, total-keep, nil)
	}
}

// messageData writes n bytes of the content of a call's messages, from a position on.
func (w *dataWriter) messageData(tid int, addr, skip, n uint64) {
	for _, r := range messagesOf(addr, int(max(w.p.Ret, 0))).Ranges(w.d.reader(tid)) {
		if r.Part != event.PartData || r.Shape || r.Pos+r.Len <= skip || n == 0 {
			continue
		}
		done := max(skip, r.Pos) - r.Pos
		m := min(r.Len-done, n)
		w.memory(tid, r.Addr+done, m)
		n -= m
	}
	if n > 0 {
		w.put(trace.PieceMissing, n, nil)
	}
}

func messagesOf(addr uint64, count int) *capture.Messages {
	return &capture.Messages{Addr: addr, Count: count, Stride: capture.MmsghdrBytes, Room: math.MaxUint64}
}

func (d *drain) reader(tid int) capture.Read {
	return func(addr uint64, b []byte) int { return d.read(tid, addr, b) }
}

// read is readMemory of a thread that is held.
func (d *drain) read(tid int, addr uint64, b []byte) int {
	n := readMemory(tid, addr, b)
	if d.tooLate() {
		return 0
	}
	return n
}

// text writes a string without its NUL.
func (w *dataWriter) text(tid int, addr uint64) {
	b := w.room(event.MaxPath)
	b = b[:w.d.read(tid, addr, b)]
	n := bytes.IndexByte(b, 0)
	switch {
	case n > 0:
		w.put(0, uint64(n), b[:n])
	case n < 0 && len(b) == event.MaxPath:
		w.put(trace.PieceTruncated, event.MaxPath, b)
	case n < 0:
		w.put(trace.PieceMissing, 0, nil)
	}
}

// moved writes the bytes that a call moved inside the kernel: read from the file
// that they came from, or, if that is a pipe or socket, from the file that they
// went to.
func (w *dataWriter) moved(tid int, n uint64) {
	src, dst := movedSides(event.Op(w.p.Op))
	for _, side := range []movedSide{src, dst} {
		fd, off := w.openMoved(tid, side)
		if fd < 0 {
			continue
		}
		defer unix.Close(fd)
		off -= w.p.Ret
		for n > 0 {
			b := w.room(n)
			got, err := unix.Pread(fd, b, off)
			if err != nil || got <= 0 || w.d.tooLate() {
				break // it was cut short meanwhile
			}
			w.put(0, uint64(got), b[:got])
			off, n = off+int64(got), n-uint64(got)
		}
		break
	}
	if n > 0 {
		w.put(trace.PieceMissing, n, nil)
	}
}

// movedSide is one end of a call that moves content inside the kernel.
type movedSide struct {
	object int // index into the call's objects
	fd     int // argument
	offset int // argument that points to the file offset, -1 if none
}

func movedSides(op event.Op) (src, dst movedSide) {
	if op == event.OpSendfile {
		return movedSide{1, 1, 2}, movedSide{0, 0, -1}
	}
	return movedSide{0, 0, 1}, movedSide{1, 2, 3}
}

// openMoved opens a side that is a regular file, and returns the file offset at
// which the call ended; -1 if it cannot.
func (w *dataWriter) openMoved(tid int, s movedSide) (fd int, off int64) {
	if w.p.Mode[s.object]&unix.S_IFMT != unix.S_IFREG {
		return -1, 0
	}
	off = int64(w.p.Pos[s.object])
	if s.offset >= 0 && w.p.Args[s.offset] != 0 {
		var b [8]byte
		if readMemory(tid, w.p.Args[s.offset], b[:]) != len(b) {
			return -1, 0
		}
		off = int64(binary.LittleEndian.Uint64(b[:]))
	}
	path := "/proc/" + strconv.Itoa(tid) + "/fd/" + strconv.Itoa(int(int32(w.p.Args[s.fd])))
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOATIME, 0)
	if err != nil {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return -1, 0
	}
	return fd, off
}

const pageBytes = 4096

// readMemory reads a thread's memory and returns how much of it there is.
func readMemory(tid int, addr uint64, b []byte) int {
	got := 0
	for got < len(b) {
		local := []unix.Iovec{{Base: &b[got]}}
		local[0].SetLen(len(b) - got)
		n, err := unix.ProcessVMReadv(tid, local,
			[]unix.RemoteIovec{{Base: uintptr(addr) + uintptr(got), Len: len(b) - got}}, 0)
		if err != nil || n <= 0 {
			break
		}
		got += n
	}
	return got
}
