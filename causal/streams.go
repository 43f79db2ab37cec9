// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"encoding/binary"

	"github.com/iotape/iotape/event/socket"
)

// Stream is one direction of a connection, a pipe or a pair of sockets: what was written
// to one end and read from the other.
type Stream struct{ s *stream }

// Move is a call that wrote to a stream or read from it.
type Move struct {
	Event uint32
	// At is the position in the stream of the first byte (of messages: which one it is),
	// N how many there are.
	At, N int64
	// Loose is set if calls overlapped in time, so that any of them may have been where
	// this one is said to be.
	Loose bool
}

// KeepStreams makes the Graph have the streams, with the position of each call.
func (b *Builder) KeepStreams() { b.keep = true }

// Machine says that two hosts are the same machine, recorded twice: their addresses of
// their own, such as 127.0.0.1, are the same. It is called before the first Add of host.
func (b *Builder) Machine(host, same uint32) { b.machines[host] = same }

// machine returns the number of the machine that a host is.
func (b *Builder) machine(host uint32) uint32 {
	if m, ok := b.machines[host]; ok {
		return m
	}
	return host
}

// Name says what the stream is: the address that was connected to or both ends, a pipe.
func (s Stream) Name() string { return s.s.name }

// From and To return the hosts of the writers and of the readers. Where one side is in
// no trace, it has the other's.
func (s Stream) From() uint32 { return s.s.from }

// To returns the host of the readers.
func (s Stream) To() uint32 { return s.s.to }

// Messages reports whether positions count messages, not bytes.
func (s Stream) Messages() bool { return s.s.messages }

// Known reports whether positions are those from the stream's beginning: it is in the
// trace, and nothing of it was lost. Else each side counts for itself.
func (s Stream) Known() bool { return !s.s.broken && (s.s.begun && !s.s.late || s.s.logged) }

// Writes calls f with what was written, in the order of the stream.
func (s Stream) Writes(f func(Move)) { visit(s.s.writes, f) }

// Reads calls f with what was read, in the order of the stream.
func (s Stream) Reads(f func(Move)) { visit(s.s.reads, f) }

func visit(list []move, f func(Move)) {
	at, until := int64(0), int64(0)
	for i, m := range list {
		loose := i > 0 && m.enter < until || i+1 < len(list) && list[i+1].enter < max(until, m.exit)
		f(Move{Event: m.event, At: at, N: m.n, Loose: loose})
		at, until = at+m.n, max(until, m.exit)
	}
}

// text writes an address for people: 127.0.0.1:80, [::1]:80, or a path.
func (a address) text() string {
	if a.name == "" {
		return ""
	}
	if a.name[0] == afUnix {
		return a.name[1:]
	}
	b := []byte(a.name)
	return socket.Text(b[3:], binary.BigEndian.Uint16(b[1:]))
}
