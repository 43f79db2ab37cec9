// SPDX-License-Identifier: Apache-2.0

package posix_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/iotape/iotape/event"
)

// request is a request to the ring that is descriptor fd.
func request(op event.Op, ring int32, flags uint8, fileIndex uint32, ret int64, args ...uint64) *event.Event {
	h := make([]byte, event.RequestBytes)
	h[1] = flags
	binary.LittleEndian.PutUint32(h[44:], fileIndex)
	binary.LittleEndian.PutUint64(h[event.HeadBytes:], uint64(int64(ring)))
	ev := call(op, 1, ret, args...)
	ev.Bufs = []event.Buf{{Arg: event.RequestArg, Kind: event.KindStruct, Inline: h}}
	return ev
}

// slots is what registers descriptors from a slot on.
func slots(first uint32, fds ...int32) event.Buf {
	b := binary.LittleEndian.AppendUint32(nil, first)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(fds)))
	for _, fd := range fds {
		b = binary.LittleEndian.AppendUint32(b, uint32(fd))
	}
	return event.Buf{Arg: 2, Kind: event.KindStruct, Inline: b}
}

// uses returns the open file of a write to a slot, or to a descriptor.
func (s *script) uses(ring int32, flags uint8, fd uint64) (event.OpenID, string) {
	ev := request(event.OpUringWrite, ring, flags, 0, 1, fd, 0, 1)
	ev.Files = []event.File{{Arg: 0, FD: int32(fd)}}
	s.apply(ev)
	return ev.Files[0].Open, ev.Files[0].Path
}

func TestFilesOfARing(t *testing.T) {
	s := start(t)
	s.apply(call(event.OpIoUringSetup, 1, 9))
	data, more := s.open(1, "data", 3, 0), s.open(1, "more", 4, 0)

	register := call(event.OpIoUringRegister, 1, 0, 9, 2)
	register.Bufs = []event.Buf{slots(0, 3, -1, 4)}
	s.apply(register)
	s.apply(call(event.OpClose, 1, 0, 3))
	if id, path := s.uses(9, event.SQEFixedFile, 0); id != data || path != "/home/data" {
		t.Errorf("slot 0 is %d, %q, want %d: its descriptor was closed, it was not", id, path, data)
	}
	if id, _ := s.uses(9, 0, 4); id != more {
		t.Errorf("descriptor 4 is %d, want %d", id, more)
	}
	if id, _ := s.uses(9, event.SQEFixedFile, 1); id != 0 {
		t.Errorf("slot 1, which is empty, is %d", id)
	}

	// An open into a slot has no descriptor.
	open := request(event.OpUringOpenat, 9, 0, 1+1, 0)
	open.Paths = []event.Path{{Arg: 1, Raw: "/direct"}}
	at := int64(event.AtFDCWD)
	open.Args[0] = uint64(at)
	s.apply(open)
	if id, path := s.uses(9, event.SQEFixedFile, 1); id == 0 || path != "/direct" {
		t.Errorf("slot 1 is %d, %q", id, path)
	}
	if id, path := s.lookup(1, 0); id != 0 {
		t.Errorf("descriptor 0 is %d, %q", id, path)
	}

	// A slot gets a descriptor, and ends without it.
	s.apply(request(event.OpUringFixedFDInstall, 9, event.SQEFixedFile, 0, 7, 0))
	if id, _ := s.lookup(1, 7); id != data {
		t.Errorf("descriptor 7 is %d, want %d", id, data)
	}
	if closed := s.apply(request(event.OpUringClose, 9, 0, 0+1, 0)); len(closed) != 0 {
		t.Errorf("closing slot 0 ended %v, which descriptor 7 stands for", closed)
	}
	if closed := s.apply(request(event.OpUringClose, 9, 0, 0, 0, 7)); !slices.Equal(closed, []event.OpenID{data}) {
		t.Errorf("closing descriptor 7 ended %v, want %d", closed, data)
	}

	// With the ring go its files.
	s.apply(call(event.OpClose, 1, 0, 4))
	closed := s.apply(call(event.OpClose, 1, 0, 9))
	if len(closed) != 3 || !slices.Contains(closed, more) {
		t.Errorf("closing the ring ended %v, want it, %d and the file of slot 1", closed, more)
	}
}

// A ring that the trace did not see being made is known by its number, or not at all.
func TestStrayRing(t *testing.T) {
	for _, ring := range []int32{12, -1} {
		s := start(t)
		ev := request(event.OpUringRead, ring, event.SQEFixedFile, 0, 1, 5)
		ev.Files = []event.File{{Arg: 0, FD: 5, Known: true, Ino: 8, Dev: 1}}
		s.apply(ev)
		first := ev.Files[0].Open
		if first == 0 {
			t.Fatalf("ring %d: slot 5 is unknown, although the kernel told of it", ring)
		}
		if id, _ := s.uses(ring, event.SQEFixedFile, 5); id != first {
			t.Errorf("ring %d: slot 5 is %d, then %d", ring, first, id)
		}
	}
}

// TestRequestWithoutHead: the first argument of a request is the address of the list, and no descriptor of a ring.
func TestRequestWithoutHead(t *testing.T) {
	s := start(t)
	update := call(event.OpUringFilesUpdate, 1, 1, 30, 1)
	update.Bufs = []event.Buf{slots(0, 3)}
	s.apply(update)
	closed := call(event.OpClose, 1, 0, 30)
	s.apply(closed)
	if f := closed.FileArg(0); f != nil {
		t.Errorf("descriptor 30 is %+v, want none", *f)
	}
}
