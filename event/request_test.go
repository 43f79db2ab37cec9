// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/binary"
	"testing"
)

// The kernel's opcodes have no gaps, so neither have the rows.
func TestRequestRows(t *testing.T) {
	const opcodes, commands = 63, 9 // IORING_OP_LAST of Linux 6.18; IOCB_CMD_PWRITEV + 1
	for i := range 256 {
		op := UringOp(uint8(i))
		if known := op != OpUring; known != (i < opcodes) || op != OpUring && op != OpUringNop+Op(i) {
			t.Errorf("opcode %d is %v", i, op)
		}
	}
	for i := range 12 {
		if op := AIOOp(uint16(i)); (op != OpAIO) != (i < commands && i != 4) {
			t.Errorf("command %d is %v", i, op)
		}
	}
	for _, s := range Specs() {
		if !s.Op.IsUring() && !s.Op.IsAIO() {
			if s.Op.Like() != s.Op {
				t.Errorf("%s is like %v", s.Name, s.Op.Like())
			}
			continue
		}
		if Lookup(s.Op).Name != s.Name || !s.Op.Known() || ByName(s.Name) != s.Op {
			t.Errorf("row %d, %s, is not found", s.Op, s.Name)
		}
		if len(s.Fields) != len(s.Args) || len(s.Args) > MaxArgs {
			t.Errorf("%s has %d fields and %d arguments", s.Name, len(s.Fields), len(s.Args))
		}
		for i := range s.Args {
			checkArg(t, &s, &s.Args[i])
			f := s.Fields[i]
			if int(f.Off)+int(f.Size) > HeadBytes || f.Size != 0 && f.Off%min(f.Size, 4) != 0 {
				t.Errorf("%s: field %s at %d of %d bytes", s.Name, s.Args[i].Name, f.Off, f.Size)
			}
		}
		if like := s.Op.Like(); like != OpUnknown && s.Op != OpUringSplice { // whose offsets are numbers
			for i := range min(len(s.Args), len(Lookup(like).Args)) {
				if a, b := s.Args[i], Lookup(like).Args[i]; a.Name != b.Name && s.Op != OpUringFsync {
					t.Errorf("argument %d of %s is %s, of %v %s", i, s.Name, a.Name, like, b.Name)
				}
			}
		}
	}
}

func TestFields(t *testing.T) {
	head := make([]byte, HeadBytes)
	le := binary.LittleEndian
	at := -100
	le.PutUint32(head[4:], uint32(at))
	le.PutUint64(head[8:], 0x1122334455667788)
	le.PutUint32(head[24:], 0xfffffff0)
	le.PutUint16(head[44:], 28)
	for _, c := range []struct {
		f    Field
		want uint64
	}{
		{sqeFD, ^uint64(99)}, {sqeOff, 0x1122334455667788}, {sqeCmd, 0x55667788}, {sqeLen, 0xfffffff0}, {sqeDirLen, 0xfffffffffffffff0},
		{sqeAddrOrLen, 0xfffffff0}, {sqeOffOrLen, 0x1122334455667788}, {sqeUDLen, 28}, {none, 0},
	} {
		if got := c.f.Get(head); got != c.want {
			t.Errorf("%+v = %#x, want %#x", c.f, got, c.want)
		}
	}
}

func TestRequestHead(t *testing.T) {
	h := make([]byte, RequestBytes)
	h[0], h[1] = 18, SQEFixedFile|SQELink
	le := binary.LittleEndian
	le.PutUint64(h[32:], 77)
	le.PutUint32(h[44:], 5)
	le.PutUint64(h[HeadBytes:], 3)
	le.PutUint32(h[HeadBytes+8:], CQEBuffer|9<<16)
	ev := &Event{Op: OpUringOpenat, Bufs: []Buf{{Arg: RequestArg, Inline: h}}}
	r, ok := ev.Request()
	if !ok || r.UserData != 77 || r.Queue != 3 || !r.Fixed() || r.CQEFlags>>16 != 9 || r.Opcode != 18 {
		t.Errorf("head %+v, %v", r, ok)
	}
	if slot, ok := r.Slot(0); slot != 4 || !ok {
		t.Errorf("slot %d, %v", slot, ok)
	}
	r.FileIndex = ^uint32(0)
	if slot, ok := r.Slot(12); slot != 12 || !ok {
		t.Errorf("chosen slot %d, %v", slot, ok)
	}
	for _, other := range []*Event{{Op: OpOpenat, Bufs: ev.Bufs}, {Op: OpUringOpenat},
		{Op: OpUringOpenat, Bufs: []Buf{{Arg: RequestArg, Inline: h[:RequestBytes-1]}}}} {
		if _, ok := other.Request(); ok {
			t.Errorf("%v with %d buffers has a head", other.Op, len(other.Bufs))
		}
	}
}
