// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"cmp"
	"encoding/binary"
	"math"
	"os"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

const (
	maxBytes = math.MaxInt32 // of one argument
	maxCount = 1 << 20       // elements of an array
)

// planArg adds the memory of argument i to the plan, by the operation table's rule.
func (r *Recorder) planArg(th *thread, i int, ret int64) {
	c := &th.call
	a := &c.spec.Args[i]
	if c.args[i] == 0 || !a.Cond.Holds(&c.args) {
		return
	}
	arg := uint8(i)
	switch {
	case a.Kind == event.KindStrings:
		r.planStrings(th, arg, c.args[i], int(cmp.Or(a.Const, 8)))
	case a.Len == event.LenVec || a.Len == event.LenVecAll:
		r.planVector(th, arg, a, ret)
	case a.Len == event.LenSlots:
		r.planSlots(th, arg, ret)
	case a.Len == event.LenMsg || a.Len == event.LenMsgs:
		r.planMessages(th, arg, a, ret)
	case a.Len == event.LenCommand:
		if cmd, _, ok := event.CommandArg(c.spec.Op, c.args[a.LenArg]); ok && cmd.Kind.IsMemory() {
			r.planRule(th, arg, &cmd, ret)
		}
	default:
		r.planRule(th, arg, a, ret)
	}
}

// planRule adds memory whose length is a number.
func (r *Recorder) planRule(th *thread, arg uint8, a *event.Arg, ret int64) {
	c := &th.call
	addr := c.args[arg]
	if a.Len == event.LenNUL {
		r.planString(th, arg, addr)
		return
	}
	if failed(ret) && (a.Len == event.LenRet || a.Dir == event.Out && a.Len != event.LenInterrupted) {
		return
	}
	v, n := uint64(0), uint64(0)
	if a.LenArg < event.MaxArgs {
		v = c.args[a.LenArg]
	}
	bytes := uint64(a.Bytes(r.arch))
	switch a.Len {
	case event.LenConst, event.LenRef:
		n = bytes
	case event.LenArg:
		n = v + uint64(a.Const)
	case event.LenRet, event.LenRetArray, event.LenPositive, event.LenInterrupted:
		n = returnedBytes(a, bytes, v, ret)
	case event.LenArray:
		n = min(uint64(uint32(v)), maxCount) * bytes
	case event.LenBits:
		n = bitsBytes(v)
	case event.LenPages:
		page := uint64(os.Getpagesize())
		n = (v + page - 1) / page
	case event.LenPtr:
		if v != 0 {
			n = min(r.number(th, v, 4), c.offered, bytes)
		}
	case event.LenTail:
		n = bytes
		if !failed(ret) {
			n += r.tailCount(th, a, addr) * uint64(a.Tail.Elem)
		}
	}
	r.planMemory(th, segment{arg: arg, n: n, addr: addr}, ret)
	if a.Len == event.LenRef {
		r.planTarget(th, arg, a, addr, ret)
	}
}

// returnedBytes returns the length of memory that the result says: in bytes, in elements of
// some bytes, or whether there is anything. limit is the value of the argument LenArg.
func returnedBytes(a *event.Arg, bytes, limit uint64, ret int64) uint64 {
	n := uint64(ret)
	switch a.Len {
	case event.LenRet:
		if a.LenArg != event.NoArg {
			n = min(n, limit)
		}
		return n + uint64(a.Const)
	case event.LenRetArray:
		if a.LenArg != event.NoArg {
			n = min(n, uint64(uint32(limit)))
		}
		return n * bytes
	case event.LenPositive:
		if ret > 0 {
			return bytes
		}
	case event.LenInterrupted:
		const eintr, restartBlock = -4, -516
		if ret == eintr || ret == restartBlock {
			return bytes
		}
	}
	return 0
}

// planMemory adds n bytes, or less of a length that the kernel refused.
func (r *Recorder) planMemory(th *thread, s segment, ret int64) {
	if failed(ret) && s.n > failedBytes {
		s.n, s.flags = failedBytes, trace.PieceTruncated
	}
	s.n = min(s.n, maxBytes)
	r.planContent(th.call.spec, s)
}

// planTarget adds what a structure points to.
func (r *Recorder) planTarget(th *thread, arg uint8, a *event.Arg, addr uint64, ret int64) {
	n := r.tailCount(th, a, addr) * uint64(a.Tail.Elem)
	if a.Dir == event.Out {
		n = min(n, uint64(ret))
	}
	if p := r.number(th, addr+uint64(a.Tail.Ptr), 8); p != 0 {
		r.planMemory(th, segment{arg: uint8(event.PartTarget.Of(int(arg))), n: n, addr: p}, ret)
	}
}

// planMessages adds messages and what they point to.
func (r *Recorder) planMessages(th *thread, arg uint8, a *event.Arg, ret int64) {
	m := r.messages(th, int(arg), a, ret)
	if m.Count == 0 || failed(ret) && a.Dir == event.Out {
		return
	}
	r.planBytes(segment{arg: arg, n: uint64(m.Count * m.Stride), addr: m.Addr})
	data, total := event.PartData.Of(int(arg)), uint64(0)
	keep := uint64(r.o.Content.Of(th.call.spec, data).Bytes())
	for _, g := range m.Ranges(th.read) {
		s := segment{arg: uint8(g.Part.Of(int(arg))), pos: g.Pos, n: g.Len, addr: g.Addr}
		switch {
		case g.Shape && g.Data == nil:
			s.flags = trace.PieceShape | trace.PieceMissing
			r.plan = append(r.plan, s)
		case g.Shape:
			s.flags, s.data = trace.PieceShape, g.Data
			r.plan = append(r.plan, s)
		case g.Part == event.PartData:
			r.planElement(s, keep)
			total = s.pos + s.n
		default:
			r.planBytes(s)
		}
	}
	r.planOmitted(uint8(data), 0, keep, total)
}

// messages says where the messages of an argument are.
func (r *Recorder) messages(th *thread, arg int, a *event.Arg, ret int64) *capture.Messages {
	c := &th.call
	m := &capture.Messages{Addr: c.args[arg], Count: 1, Stride: capture.MsghdrBytes, Moved: uint64(max(ret, 0)),
		Room: math.MaxUint64, Failed: failed(ret)}
	if a.Len == event.LenMsg {
		if a.Dir == event.Out {
			m.Room = c.offered
		}
		return m
	}
	m.Stride = capture.MmsghdrBytes
	switch {
	case !failed(ret):
		m.Count = int(ret)
	case c.args[a.LenArg] == 0:
		m.Count = 0
	}
	return m
}

func (th *thread) read(addr uint64, b []byte) int { return readMemory(th.t.TID, addr, b) }

// number reads an unsigned number of 2, 4 or 8 bytes; 0 if it cannot.
func (r *Recorder) number(th *thread, addr uint64, width int) uint64 {
	var b [8]byte
	if th.read(addr, b[:width]) != width {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// tailCount is how many elements a head counts.
func (r *Recorder) tailCount(th *thread, a *event.Arg, addr uint64) uint64 {
	n := min(r.number(th, addr+uint64(a.Tail.Off), int(a.Tail.Width)), maxCount)
	if a.Tail.Max != 0 {
		n = min(n, r.number(th, addr+uint64(a.Tail.Max), 4))
	}
	return n
}

func bitsBytes(bits uint64) uint64 {
	return (min(uint64(uint32(bits)), maxCount) + 63) / 64 * 8
}

// noteOffer remembers how much room a call was told of.
func (r *Recorder) noteOffer(th *thread) {
	c := &th.call
	c.offered = math.MaxUint64
	if c.spec.ValueResultArg == 0 {
		return
	}
	addr := c.args[c.spec.ValueResultArg-1]
	if addr == 0 {
		return
	}
	if c.spec.Args[c.spec.ValueResultArg-1].Len == event.LenMsg {
		addr += 8 // msg_namelen
	}
	var b [4]byte
	if th.read(addr, b[:]) == len(b) {
		c.offered = uint64(binary.LittleEndian.Uint32(b[:]))
	}
}

// planOffer adds that, of a call that overwrote it.
func (r *Recorder) planOffer(th *thread, ret int64) {
	c := &th.call
	if c.spec.ValueResultArg == 0 || c.offered == math.MaxUint64 || failed(ret) {
		return
	}
	r.plan = append(r.plan, segment{
		arg: uint8(event.PartBefore.Of(int(c.spec.ValueResultArg - 1))), n: 4,
		data: binary.LittleEndian.AppendUint32(nil, uint32(c.offered)),
	})
}

// planBefore adds what the call will overwrite.
func (r *Recorder) planBefore(th *thread, i int) {
	c := &th.call
	a := &c.spec.Args[i]
	n := uint64(a.Bytes(r.arch))
	if a.Len == event.LenBits {
		n = bitsBytes(c.args[a.LenArg])
	}
	if c.args[i] == 0 || n == 0 {
		return
	}
	const limit = 4096 // as in the eBPF programs
	b := make([]byte, min(n, limit))
	arg := uint8(event.PartBefore.Of(i))
	got := th.read(c.args[i], b)
	if got < len(b) {
		got = 0
	}
	if got > 0 {
		r.plan = append(r.plan, segment{arg: arg, n: uint64(got), data: b})
	}
	if rest := n - uint64(got); rest > 0 {
		r.plan = append(r.plan, segment{arg: arg, flags: trace.PieceMissing, pos: uint64(got), n: rest})
	}
}
