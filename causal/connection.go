// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/socket"
)

// Sockets whose names say both ends (package event/socket) are paired by these: what one side
// calls local is the other's peer. Local sockets are paired by the inode of the one that connected.

// endpoints are the ends of a connection, as its one side has them.
type endpoints struct {
	host        uint32 // of addresses that are each host's own, plus 1
	messages    bool
	local, peer string
}

func (k endpoints) reverse() endpoints {
	k.local, k.peer = k.peer, k.local
	return k
}

// text writes the two ends.
func (k endpoints) text() string { return k.local + "->" + k.peer }

// connection is a connection whose ends are known.
type connection struct {
	there, back *stream // what the side writes whose name was the key, and what it reads
	asked       int     // 1 + the event that connected
	taken       int     // 1 + the event that accepted
	// The side that was seen last to ask or accept: its socket and addresses, and when it did.
	side        openFile
	local, peer address
	enter, exit int64 // ns
}

// named is what the name of a socket says.
type named struct {
	socket.Ends
	key endpoints
	// connected is set if the other end is known, datagrams if what is sent need not arrive.
	connected, datagrams, ok bool
}

// maxSocketNames bounds the names that are remembered.
const maxSocketNames = 1 << 12

type hostName struct {
	host uint32
	name string
}

// nameOf takes the name of a socket apart.
func (b *Builder) nameOf(host uint32, name string) *named {
	k := hostName{b.machine(host), name}
	n := b.names[k]
	if n == nil {
		n = parseName(name, k.host)
		if len(b.names) >= maxSocketNames {
			clear(b.names)
		}
		b.names[hostName{k.host, strings.Clone(name)}] = n
	}
	return n
}

// parseName takes apart the name of a socket of a machine. Traces of other tools have names of
// which package event/socket knows nothing.
func parseName(name string, machine uint32) *named {
	n := &named{}
	if n.Ends, n.ok = socket.Parse(name); !n.ok {
		protocol, rest, ok := strings.Cut(name, ":[")
		local, peer, arrow := strings.Cut(strings.TrimSuffix(rest, "]"), "->")
		if ok && arrow {
			n.ok, n.connected = true, true
			n.key = endpoints{messages: !strings.HasPrefix(protocol, "TCP"), local: local, peer: peer}
		}
		return n
	}
	n.connected = n.Connected()
	n.datagrams = n.Type == socket.Dgram && n.Family != socket.Unix
	n.key = endpoints{messages: !n.IsStream()}
	switch n.Family {
	case socket.Unix:
		n.key.host, n.key.local = machine+1, "unix:"+strconv.FormatUint(n.Ino, 10)
		if n.PeerIno != 0 {
			n.key.peer = "unix:" + strconv.FormatUint(n.PeerIno, 10)
		}
	default:
		n.key.local, n.key.peer = endText(&n.Local), endText(&n.Peer)
		if n.Local.Own() {
			n.key.host = machine + 1
		}
	}
	return n
}

// endText writes an address so that both sides write the same.
func endText(a *socket.Address) string {
	switch {
	case !a.Set:
		return ""
	case a.IP.IsValid():
		return a.Endpoint().String()
	}
	return "vsock:" + strconv.FormatUint(uint64(a.CID), 10) + ":" + strconv.FormatUint(uint64(a.Port), 10)
}

// connectionOf makes a connection whose ends are known by a key.
func (b *Builder) connectionOf(k endpoints, host uint32, begun bool) *connection {
	c := &connection{there: b.stream(host, k.messages, k.text()), back: b.stream(host, k.messages, k.reverse().text())}
	c.there.begun, c.back.begun = begun, begun
	b.byName[k] = append(b.byName[k], c)
	return c
}

// way is a key by which a connection may be known. It is reversed if it is the other side's.
type way struct {
	key      endpoints
	reversed bool
}

// ways returns the keys by which the connection of a socket may be known.
func (n *named) ways() []way {
	list := []way{{n.key, false}, {n.key.reverse(), true}}
	if n.Family == socket.Unix { // who connects does not know the other's before somebody accepts
		for _, w := range list[:2:2] {
			w.key.peer = ""
			list = append(list, w)
		}
	}
	return list
}

// of returns what the side that a way leads to writes and reads.
func (c *connection) of(w way) (writes, reads *stream) {
	if w.reversed {
		return c.back, c.there
	}
	return c.there, c.back
}

// fresh returns the first connection of a socket that its side has not begun yet: addresses can be
// used again. If there is none, it makes one by the key of who asks.
func (b *Builder) fresh(n *named, host uint32, asks bool) (c *connection, w way) {
	ways := n.ways()
	for _, w := range ways {
		for _, c := range b.byName[w.key] {
			writes, reads := c.of(w)
			moved := writes.from == host && len(writes.writes) > 0 || reads.to == host && len(reads.reads) > 0
			if used := asks && c.asked > 0 || !asks && c.taken > 0; !used && !moved {
				return c, w
			}
		}
	}
	if w = ways[0]; !asks {
		w = ways[1]
	}
	if n.Family == socket.Unix {
		w.key.peer = ""
	}
	return b.connectionOf(w.key, host, false), w
}

// bind makes the two directions of an open file those of a connection.
func (b *Builder) bind(host uint32, open event.OpenID, c *connection, w way) {
	if open == 0 {
		return
	}
	writes, reads := c.of(w)
	writes.from, reads.to = host, host
	b.streams[end{host, open, true}], b.streams[end{host, open, false}] = writes, reads
}

// asks notes that a socket was connected whose name says its ends. It reports whether that is so.
func (b *Builder) asks(i int, ev *event.Event) bool {
	f := ev.FileArg(0)
	if f == nil || !ev.OK() && ev.Errno != eINPROGRESS {
		return false
	}
	n := b.nameOf(ev.Host, f.Path)
	if !n.ok || n.datagrams && f.Ino != 0 || !n.connected && n.Family != socket.Unix {
		return false
	}
	if s := b.streams[end{ev.Host, f.Open, true}]; s != nil && f.Open != 0 && s.name == n.key.text() {
		return true // asked again, while the first was under way
	}
	c, w := b.fresh(n, ev.Host, true)
	if n.Family == socket.Unix && n.Peer.Path != "" {
		c.there.name, c.back.name = "to "+n.Peer.Path, "from "+n.Peer.Path
	}
	c.asked, c.there.begun, c.back.begun = i+1, true, true
	c.seen(b, ev, f.Open, n)
	b.bind(ev.Host, f.Open, c, w)
	return true
}

// takes notes that a connection was accepted, if its ends are known.
func (b *Builder) takes(i int, ev *event.Event) bool {
	f := ev.FileArg(0)
	if f == nil || !ev.OK() {
		return false
	}
	var open event.OpenID
	name := ""
	if made := ev.FileArg(event.ResultArg); made != nil {
		open, name = made.Open, made.Path
	}
	n := b.nameOf(ev.Host, name)
	if !n.connected {
		if n = b.acceptedName(ev, f.Path); n == nil {
			return false
		}
	}
	c, w := b.fresh(n, ev.Host, false)
	if n.Family == socket.Unix && n.Local.Path != "" && c.asked == 0 {
		c.there.name, c.back.name = "to "+n.Local.Path, "from "+n.Local.Path
	}
	c.taken = i + 1
	c.seen(b, ev, open, n)
	if open != 0 {
		c.there.begun, c.back.begun = true, true
	}
	b.bind(ev.Host, open, c, w)
	return true
}

// seen notes which side it was.
func (c *connection) seen(b *Builder, ev *event.Event, open event.OpenID, n *named) {
	machine := b.machine(ev.Host)
	c.side, c.enter, c.exit = openFile{}, ev.Enter, ev.Exit
	if c.local, c.peer = addressOf(machine, &n.Local), addressOf(machine, &n.Peer); open != 0 {
		c.side = openFile{ev.Host, open}
	}
	b.owns(ev.Host, c.local.ip())
}

// acceptedName makes the name of an accepted connection of that of the listening socket and of the
// peer's address, nil if they do not say it.
func (b *Builder) acceptedName(ev *event.Event, listener string) *named {
	l := b.nameOf(ev.Host, listener)
	m := ev.BufArg(1)
	if !l.ok || !l.Local.Set || m == nil {
		return nil
	}
	peer := socket.Sockaddr(m.Inline)
	if !peer.IP.IsValid() || !l.Local.IP.IsValid() || l.Local.IP.IsUnspecified() {
		return nil
	}
	n := *l
	n.Peer, n.connected = peer, true
	n.key.peer = endText(&peer)
	return &n
}

// namedStream returns a direction of the connection that a file's name says, nil if it says none.
func (b *Builder) namedStream(ev *event.Event, f *event.File, write bool) *stream {
	n := b.nameOf(ev.Host, f.Path)
	if !n.connected || n.datagrams && f.Ino != 0 {
		return nil
	}
	c, w := b.lastConnection(n, ev.Host)
	writes, reads := c.of(w)
	if b.given[openFile{ev.Host, f.Open}] {
		writes.late, reads.late = true, true
	}
	if write {
		if f.Open != 0 {
			b.streams[end{ev.Host, f.Open, true}] = writes
			writes.from = ev.Host
		}
		return writes
	}
	if f.Open != 0 {
		b.streams[end{ev.Host, f.Open, false}] = reads
		reads.to = ev.Host
	}
	return reads
}

// inherits notes the connections that the recorder found open at the start. Those of event logs have
// no inodes, and are known from their beginning.
func (b *Builder) inherits(ev *event.Event) {
	for k := range ev.Files {
		if f := &ev.Files[k]; f.Open != 0 && f.Ino != 0 && b.nameOf(ev.Host, f.Path).connected {
			b.given[openFile{ev.Host, f.Open}] = true
		}
	}
}

// lastConnection returns the last connection with the ends of a name; if there is none, it makes
// one whose beginning is not known.
func (b *Builder) lastConnection(n *named, host uint32) (*connection, way) {
	ways := n.ways()
	for _, w := range ways {
		if list := b.byName[w.key]; len(list) > 0 {
			return list[len(list)-1], w
		}
	}
	return b.connectionOf(n.key, host, false), ways[0]
}

// pairNamed orders connects before accepts of the same connection.
func (b *Builder) pairNamed() {
	for _, list := range b.byName {
		for _, c := range list {
			if c.asked > 0 && c.taken > 0 {
				b.edge(c.taken-1, c.asked-1, Connect)
			}
		}
	}
}
