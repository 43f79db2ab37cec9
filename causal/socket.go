// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/socket"
)

// Sockets whose names do not say both ends: of tapes that lack them, and of connections whose
// addresses are changed on the way. What is connected to what follows from the calls: where a
// socket was bound, what was connected to there, and that the kernel gives out connections in the
// order in which they were made (pairing.go).

// sockets is what the calls said of them.
type sockets struct {
	known    map[openFile]*socketState
	connects []attempt // in the order of Add
	accepts  []attempt
	packets  map[address]*mailbox
}

type openFile struct {
	host uint32
	open event.OpenID
}

type socketState struct {
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
	own   address  // of a connect, its own, if known
	peer  address  // of an accept, the other side's own, if known
}

func newSockets() sockets {
	return sockets{known: map[openFile]*socketState{}, packets: map[address]*mailbox{}}
}

const (
	afUnix, afInet, afInet6 = 1, 2, 10
	sockDgram               = 2
	eINPROGRESS             = 115
	maxAddress              = 128 // bytes, struct sockaddr_storage
)

// parseAddress reads a struct sockaddr.
func parseAddress(machine uint32, b []byte) (a address, ok bool) {
	if len(b) > maxAddress {
		return a, false
	}
	end := socket.Sockaddr(b)
	a = addressOf(machine, &end)
	return a, a.name != ""
}

// addressOf returns an end as an address; empty if it is not known.
func addressOf(machine uint32, end *socket.Address) (a address) {
	switch {
	case !end.Set:
		return a
	case end.IP.IsValid():
		family, ip := byte(afInet6), end.IP.Unmap()
		if ip.Is4() {
			family = afInet
		}
		a.name = string(append(binary.BigEndian.AppendUint16([]byte{family}, uint16(end.Port)), ip.AsSlice()...))
		if end.Own() {
			a.host = machine + 1
		}
	case end.Path != "":
		a = address{machine + 1, "\x01" + end.Path}
	}
	return a
}

// ip returns an internet address without its port; "" if it is another one, or stands for all.
func (a address) ip() string {
	if len(a.name) < 4 || a.name[0] == afUnix || a.unspecified() {
		return ""
	}
	return a.name[3:]
}

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
	if ev.Op.Like() == event.OpSocket {
		f = ev.FileArg(event.ResultArg)
	}
	if !b.unnamed(ev, f) || !ev.OK() && ev.Errno != eINPROGRESS {
		return
	}
	k := openFile{ev.Host, f.Open}
	s := b.sockets.known[k]
	if s == nil {
		s = &socketState{}
		b.sockets.known[k] = s
	}
	b.fromName(ev, f, s)
	switch ev.Effect() {
	case event.EffectSocket:
		s.kind = uint8(ev.Args[1] & sockType)
	case event.EffectBind, event.EffectTellName:
		if a, ok := b.addressIn(ev); ok && !(a.unspecified() && s.local.ip() != "") {
			s.local = a
			b.owns(ev.Host, a.ip())
		}
	case event.EffectConnect:
		b.connected(i, ev, k, s)
	case event.EffectAccept:
		b.accepts(i, ev, s)
	case event.EffectSend, event.EffectReceive:
		if s.kind == sockDgram {
			b.packet(i, ev, s)
		}
	}
}

// fromName notes what the name of a socket says of it.
func (b *Builder) fromName(ev *event.Event, f *event.File, s *socketState) {
	n := b.nameOf(ev.Host, f.Path)
	if !n.ok || n.Type == 0 {
		return
	}
	s.kind = uint8(n.Type)
	if a := addressOf(b.machine(ev.Host), &n.Local); a.name != "" {
		s.local = a
		b.owns(ev.Host, a.ip())
	}
	if a := addressOf(b.machine(ev.Host), &n.Peer); a.name != "" {
		s.peer = a
	}
}

// unnamed reports whether a file is known whose name does not pair it.
func (b *Builder) unnamed(ev *event.Event, f *event.File) bool {
	if f == nil || f.Open == 0 {
		return false
	}
	n := b.nameOf(ev.Host, f.Path)
	return !n.connected || n.datagrams && f.Ino != 0
}

// addressIn returns the address that is the second argument of a call.
func (b *Builder) addressIn(ev *event.Event) (a address, ok bool) {
	if m := ev.BufArg(1); m != nil {
		return parseAddress(b.machine(ev.Host), m.Inline)
	}
	return a, false
}

// connected notes that a socket was connected.
func (b *Builder) connected(i int, ev *event.Event, k openFile, s *socketState) {
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
func (b *Builder) accepts(i int, ev *event.Event, s *socketState) {
	made := ev.FileArg(event.ResultArg)
	if !b.unnamed(ev, made) {
		return
	}
	c := openFile{ev.Host, made.Open}
	peer, _ := b.addressIn(ev)
	b.sockets.known[c] = &socketState{kind: s.kind, local: s.local, peer: peer}
	b.sockets.accepts = append(b.sockets.accepts,
		attempt{event: uint32(i), enter: ev.Enter, exit: ev.Exit, sock: c, at: s.local, peer: peer})
	b.halves(c, s.kind, "from "+s.local.text(), "to "+s.local.text())
}

// halves makes the two directions of a socket whose other side is not known yet.
func (b *Builder) halves(k openFile, kind uint8, writes, reads string) {
	for _, write := range []bool{true, false} {
		e, name := end{k.host, k.open, write}, reads
		if write {
			name = writes
		}
		if b.streams[e] == nil {
			b.streams[e] = b.stream(k.host, kind > sockStream, name)
		}
	}
}

// owned is which addresses a machine has.
type owned struct {
	ips map[string]bool
	all bool // it has no others
}

// owns notes that a host has an address.
func (b *Builder) owns(host uint32, ip string) {
	if ip == "" {
		return
	}
	host = b.machine(host)
	o := b.owned[host]
	if o == nil {
		o = &owned{ips: map[string]bool{}}
		b.owned[host] = o
	}
	o.ips[ip] = true
}

// Addresses says which addresses the interfaces of a host have, in text. It is called after
// Machine.
func (b *Builder) Addresses(host uint32, list []string) {
	for _, text := range list {
		if e, ok := socket.Parse("TCP:[" + text + ":1]"); ok {
			a := addressOf(host, &e.Local)
			b.owns(host, a.ip())
		} else if e, ok := socket.Parse("TCPv6:[[" + text + "]:1]"); ok {
			a := addressOf(host, &e.Local)
			b.owns(host, a.ip())
		}
	}
	if o := b.owned[b.machine(host)]; o != nil && len(list) > 0 {
		o.all = true
	}
}

// holds says whether a host has an address.
type holds uint8

const (
	unknown holds = iota
	yes
	no
)

// has says whether a host has an address: it was seen there, or with another host, or all of its
// addresses are known. Of namespaces of one machine each can have its own.
func (b *Builder) has(host uint32, a address) holds {
	ip := a.ip()
	if ip == "" || a.host != 0 {
		return unknown
	}
	host = b.machine(host)
	if o := b.owned[host]; o != nil {
		if o.ips[ip] {
			return yes
		}
		if o.all {
			return no
		}
	}
	for other, o := range b.owned {
		if other != host && o.ips[ip] {
			return no
		}
	}
	return unknown
}
