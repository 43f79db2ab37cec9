// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/iotape/iotape/event"
)

// mailbox is the datagrams to one address.
type mailbox struct {
	sent, got []packet
}

// packet is a datagram: what is in it tells it from others.
type packet struct {
	event       uint32
	host        uint32
	enter, exit int64
	content     uint64 // hash of the bytes
	n           int64  // bytes
}

var packetSeed = maphash.MakeSeed()

// packet notes a datagram that was sent or received.
func (b *Builder) packet(i int, ev *event.Event, s *socket) {
	io := ev.Traffic()
	at := s.local
	if io.Writes {
		at = s.peer
		if m := ev.BufArg(4); m != nil && ev.Op == event.OpSendto {
			if to, ok := parseAddress(b.machine(ev.Host), m.Inline); ok {
				at = to
			}
		}
	}
	if at.name == "" || io.Bytes() == 0 || keeps(ev) {
		return
	}
	p := packet{event: uint32(i), host: ev.Host, enter: ev.Enter, exit: ev.Exit, n: io.Bytes()}
	var h maphash.Hash
	h.SetSeed(packetSeed)
	for k := range ev.Bufs {
		m := &ev.Bufs[k]
		if m.Kind != event.KindBuf && m.Kind != event.KindVec {
			continue
		}
		h.Write(m.Inline)
		for _, r := range m.Refs { // the same bytes are the same chunk
			var x [16]byte
			binary.LittleEndian.PutUint64(x[:], r.Chunk)
			binary.LittleEndian.PutUint32(x[8:], r.Off)
			binary.LittleEndian.PutUint32(x[12:], r.Len)
			h.Write(x[:])
		}
		for _, d := range m.Hashes {
			h.Write(d[:])
		}
	}
	p.content = h.Sum64()
	box := b.sockets.packets[at]
	if box == nil {
		box = &mailbox{}
		b.sockets.packets[at] = box
	}
	if io.Writes {
		box.sent = append(box.sent, p)
	} else {
		box.got = append(box.got, p)
	}
}

// pairPackets finds for each datagram that was received the first one that was sent
// there, has its bytes and has not been received. Datagrams can be lost.
func (b *Builder) pairPackets() {
	type key struct {
		content uint64
		n       int64
	}
	for at, box := range b.sockets.packets {
		sent := box.sent
		if p, ok := at.port(); ok && at.unspecified() { // bound to all addresses
			for to, other := range b.sockets.packets {
				if q, ok := to.port(); ok && to != at && p == q {
					sent = append(sent[:len(sent):len(sent)], other.sent...)
				}
			}
		}
		waiting := map[key][]packet{}
		for _, p := range sent {
			waiting[key{p.content, p.n}] = append(waiting[key{p.content, p.n}], p)
		}
		for _, r := range box.got {
			k := key{r.content, r.n}
			q := waiting[k]
			if len(q) == 0 || q[0].host == r.host && q[0].enter >= r.exit {
				continue
			}
			b.edge(int(r.event), int(q[0].event), Bytes)
			waiting[k] = q[1:]
		}
	}
}
