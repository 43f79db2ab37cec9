// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"encoding/binary"
	"slices"

	"github.com/iotape/iotape/event"
)

// Recordings do not name the ends of sockets. What is connected to what follows from the
// calls: where a socket was bound, what was connected to there, and that the kernel gives
// out connections in the order in which they were made.

// sockets is what the calls said of them.
type sockets struct {
	known    map[openFile]*socket
	connects []attempt // in the order of Add
	accepts  []attempt
	packets  map[address]*mailbox
}

type openFile struct {
	host uint32
	open event.OpenID
}

type socket struct {
	kind  uint8   // SOCK_STREAM and the like; 0: not seen
	local address // where it is bound
	peer  address // what it is connected to
}

// address is that of a socket, as far as it has to be the same on both sides.
type address struct {
	host uint32 // of addresses that each host has for itself, plus 1
	name string // the family, the port and the address, or the path
}

// attempt is a connection from one of its sides.
type attempt struct {
	event uint32
	enter int64 // ns
	exit  int64
	sock  openFile // the connected socket
	at    address  // the listening one's
	peer  address  // the other side's own, if known
}

func newSockets() sockets {
	return sockets{known: map[openFile]*socket{}, packets: map[address]*mailbox{}}
}

const (
	afUnix, afInet, afInet6 = 1, 2, 10
	sockDgram               = 2
	eINPROGRESS             = 115
	maxAddress              = 128 // bytes, struct sockaddr_storage
	maxBacklog              = 256 // connections to one address that are looked through
)

// parseAddress reads a struct sockaddr.
func parseAddress(host uint32, b []byte) (a address, ok bool) {
	if len(b) < 3 || len(b) > maxAddress {
		return a, false
	}
	switch family := binary.LittleEndian.Uint16(b); {
	case family == afInet && len(b) >= 8:
		a.name = string(append([]byte{afInet}, b[2:8]...))
		if b[4] == 127 {
			a.host = host + 1
		}
	case family == afInet6 && len(b) >= 24:
		a.name = string(append(append([]byte{afInet6}, b[2:4]...), b[8:24]...))
		if string(b[8:24]) == string(loopback6[:]) {
			a.host = host + 1
		}
	case family == afUnix:
		path := b[2:]
		if path[0] != 0 {
			if i := slices.Index(path, 0); i >= 0 {
				path = path[:i]
			}
		}
		a = address{host + 1, string(append([]byte{afUnix}, path...))}
	default:
		return a, false
	}
	return a, true
}

var loopback6 = [16]byte{15: 1}

// port returns what all addresses with the same port have in common, of any family: a
// socket that is bound to all addresses.
func (a address) port() (wild address, ok bool) {
	if a.name == "" || a.name[0] == afUnix {
		return a, false
	}
	return address{0, "*" + a.name[1:3]}, true
}

// unspecified reports whether a socket is bound to all addresses.
func (a address) unspecified() bool {
	if a.name == "" || a.name[0] == afUnix {
		return false
	}
	for i := 3; i < len(a.name); i++ {
		if a.name[i] != 0 {
			return false
		}
	}
	return true
}

// socket notes what a call says of sockets.
func (b *Builder) socket(i int, ev *event.Event) {
	f := ev.FileArg(0)
	if ev.Op == event.OpSocket {
		f = ev.FileArg(event.ResultArg)
	}
	if !b.unnamed(ev, f) || !ev.OK() && ev.Errno != eINPROGRESS {
		return
	}
	k := openFile{ev.Host, f.Open}
	s := b.sockets.known[k]
	if s == nil {
		s = &socket{}
		b.sockets.known[k] = s
	}
	switch ev.Op {
	case event.OpSocket:
		s.kind = uint8(ev.Args[1] & sockType)
	case event.OpBind, event.OpGetsockname:
		if a, ok := b.addressIn(ev); ok {
			s.local = a
		}
	case event.OpConnect:
		b.connected(i, ev, k, s)
	case event.OpAccept, event.OpAccept4:
		b.accepts(i, ev, s)
	case event.OpSendto, event.OpRecvfrom, event.OpSendmsg, event.OpRecvmsg:
		if s.kind == sockDgram {
			b.packet(i, ev, s)
		}
	}
}

// unnamed reports whether a file is known whose name does not pair it.
func (b *Builder) unnamed(ev *event.Event, f *event.File) bool {
	if f == nil || f.Open == 0 {
		return false
	}
	_, named := parseName(f.Path, b.machine(ev.Host))
	return !named
}

// addressIn returns the address that is the second argument of a call.
func (b *Builder) addressIn(ev *event.Event) (a address, ok bool) {
	if m := ev.BufArg(1); m != nil {
		return parseAddress(b.machine(ev.Host), m.Inline)
	}
	return a, false
}

// connected notes that a socket was connected.
func (b *Builder) connected(i int, ev *event.Event, k openFile, s *socket) {
	a, ok := b.addressIn(ev)
	if !ok {
		return
	}
	if s.peer = a; s.kind == sockDgram {
		return
	}
	b.sockets.connects = append(b.sockets.connects,
		attempt{event: uint32(i), enter: ev.Enter, exit: ev.Exit, sock: k, at: a})
	b.halves(k, s.kind, "to "+a.text(), "from "+a.text())
}

// accepts notes that a listening socket gave out a connection.
func (b *Builder) accepts(i int, ev *event.Event, s *socket) {
	made := ev.FileArg(event.ResultArg)
	if !b.unnamed(ev, made) {
		return
	}
	c := openFile{ev.Host, made.Open}
	peer, _ := b.addressIn(ev)
	b.sockets.known[c] = &socket{kind: s.kind, local: s.local, peer: peer}
	b.sockets.accepts = append(b.sockets.accepts,
		attempt{event: uint32(i), enter: ev.Enter, exit: ev.Exit, sock: c, at: s.local, peer: peer})
	b.halves(c, s.kind, "from "+s.local.text(), "to "+s.local.text())
}

// halves makes the two directions of a socket whose other side is not known yet.
func (b *Builder) halves(k openFile, kind uint8, writes, reads string) {
	for write, name := range map[bool]string{true: writes, false: reads} {
		e := end{k.host, k.open, write}
		if b.streams[e] == nil {
			b.streams[e] = b.stream(k.host, kind > sockStream, name)
		}
	}
}

// pairSockets joins the two sides of connections.
func (b *Builder) pairSockets() {
	defer func() { b.sockets = newSockets() }()
	b.pairPackets()
	// The listening sockets that are bound to all addresses, by port.
	wild := map[address]address{}
	several := map[address]bool{}
	queues := map[address][]attempt{}
	for _, a := range b.sockets.accepts {
		if a.at.name == "" {
			continue
		}
		queues[a.at] = append(queues[a.at], a)
		if p, ok := a.at.port(); ok && a.at.unspecified() {
			if old, ok := wild[p]; ok && old != a.at {
				several[p] = true
			}
			wild[p] = a.at
		}
	}
	for _, c := range b.sockets.connects {
		at := c.at
		if _, ok := queues[at]; !ok {
			p, isPort := at.port()
			if !isPort || several[p] {
				continue
			}
			at = wild[p]
		}
		q := queues[at]
		if len(q) == 0 {
			continue // of another host, or nobody accepted it
		}
		n := b.accepted(&c, q[:min(len(q), maxBacklog)])
		if n < 0 {
			continue
		}
		found := q[n]
		copy(q[1:], q[:n])
		q[0] = found
		b.join(&c, &q[0])
		queues[at] = q[1:]
	}
}

// accepted returns which of the accepts at an address took a connection: the one that was
// told its address, or else the first that may have. It is -1 if none did.
func (b *Builder) accepted(c *attempt, queue []attempt) int {
	own := b.sockets.known[c.sock].local
	first := -1
	for i := range queue {
		a := &queue[i]
		if b.machine(a.sock.host) == b.machine(c.sock.host) && a.exit < c.enter {
			continue // by one clock: it was another's
		}
		switch {
		case own.name != "" && a.peer == own:
			return i
		case first < 0 && (own.name == "" || a.peer.name == "" || own.unspecified()):
			first = i
		}
	}
	return first
}

// join makes one connection of two sides.
func (b *Builder) join(c, a *attempt) {
	b.edge(int(a.event), int(c.event), Connect)
	for _, write := range []bool{false, true} {
		from, to := b.streams[end{c.sock.host, c.sock.open, write}], b.streams[end{a.sock.host, a.sock.open, !write}]
		if from == nil || to == nil || from == to {
			continue
		}
		if !write {
			from, to = to, from
		}
		if len(from.reads) > 0 || len(to.writes) > 0 || from.broken || to.broken {
			continue // joined before, by their names
		}
		from.reads, from.to = to.reads, to.to
		to.reads = nil
	}
}
