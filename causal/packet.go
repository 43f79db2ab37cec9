// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"

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
func (b *Builder) packet(i int, ev *event.Event, s *socketState) {
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

// sentTo is datagrams with the address that they were sent to.
type sentTo struct {
	to   address
	list []packet
}

// pairPackets finds for each datagram that was received the first one that was sent
// there, has its bytes and has not been received. Datagrams can be lost.
func (b *Builder) pairPackets() {
	type key struct {
		content uint64
		n       int64
	}
	type waitingPacket struct {
		packet
		to   address
		done bool
	}
	byPort := map[address][]sentTo{} // for sockets that are bound to all addresses
	for to, box := range b.sockets.packets {
		if p, ok := to.port(); ok && len(box.sent) > 0 {
			byPort[p] = append(byPort[p], sentTo{to, box.sent})
		}
	}
	for at, box := range b.sockets.packets {
		sent := []sentTo{{at, box.sent}}
		if p, ok := at.port(); ok && at.unspecified() {
			sent = byPort[p]
		}
		waiting := map[key][]*waitingPacket{}
		for _, s := range sent {
			for _, p := range s.list {
				k := key{p.content, p.n}
				waiting[k] = append(waiting[k], &waitingPacket{packet: p, to: s.to})
			}
		}
		for _, q := range waiting {
			slices.SortStableFunc(q, func(x, y *waitingPacket) int { return cmp.Compare(x.enter, y.enter) })
		}
		for _, r := range box.got {
			k := key{r.content, r.n}
			looked := 0
			for _, w := range waiting[k] {
				if looked++; looked > maxBacklog {
					break
				}
				later := b.machine(w.host) == b.machine(r.host) && w.enter >= r.exit
				if w.done || later || at.unspecified() && b.has(r.host, w.to) == no {
					continue
				}
				b.edge(int(r.event), int(w.event), Bytes)
				w.done = true
				break
			}
			for q := waiting[k]; len(q) > 0 && q[0].done; q = waiting[k] {
				waiting[k] = q[1:]
			}
		}
	}
}
