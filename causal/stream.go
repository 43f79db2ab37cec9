// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// stream is what is written to one end and read from another: bytes, or messages that
// are each read whole or not at all.
type stream struct {
	from, to uint32 // hosts of the writers and the readers
	messages bool
	broken   bool // what comes now is at an unknown position
	begun    bool // its beginning is in the trace
	logged   bool // or counts as that: a log has all
	name     string
	writes   []move
	reads    []move
}

// move is a call that wrote or read.
type move struct {
	event       uint32
	enter, exit int64 // ns
	n           int64 // bytes or messages
}

// fifo is a pipe that has a name.
type fifo struct {
	host     uint32
	dev, ino uint64
}

// channel is one direction of a connection.
type channel struct {
	protocol, from, to string
	host               uint32 // of addresses that are each host's own, plus 1
}

// stream makes a stream.
func (b *Builder) stream(host uint32, messages bool, name string) *stream {
	s := &stream{from: host, to: host, messages: messages, begun: true, name: name}
	b.all = append(b.all, s)
	return s
}

// Flags of pipe2 and types of sockets (fcntl.h, linux/net.h).
const (
	oDirect    = 0o40000
	sockType   = 0xf
	sockStream = 1
	msgPeek    = 2
)

// pair notes the two ends that a call made.
func (b *Builder) pair(ev *event.Event) {
	if !ev.OK() {
		return
	}
	var ends []event.OpenID
	for i := range ev.Files {
		if f := &ev.Files[i]; f.Arg == event.MemoryArg && f.Open != 0 {
			ends = append(ends, f.Open)
		}
	}
	if len(ends) != 2 {
		return
	}
	if ev.Op == event.OpSocketpair {
		messages := ev.Args[1]&sockType != sockStream
		there, back := b.stream(ev.Host, messages, "socketpair"), b.stream(ev.Host, messages, "socketpair")
		b.streams[end{ev.Host, ends[0], true}], b.streams[end{ev.Host, ends[1], false}] = there, there
		b.streams[end{ev.Host, ends[1], true}], b.streams[end{ev.Host, ends[0], false}] = back, back
		return
	}
	s := b.stream(ev.Host, ev.Op == event.OpPipe2 && ev.Args[1]&oDirect != 0, "pipe")
	b.streams[end{ev.Host, ends[0], false}], b.streams[end{ev.Host, ends[1], true}] = s, s
}

// connection notes the two directions of a connection whose name says its ends.
func (b *Builder) connection(ev *event.Event) {
	f := ev.FileArg(0)
	if f == nil || !ev.OK() {
		return
	}
	c, ok := parseName(f.Path, b.machine(ev.Host))
	if !ok {
		return
	}
	messages := c.protocol != "TCP"
	for _, way := range []channel{c, c.reverse()} {
		s := b.byName[way]
		// What the other side did may have been added before, but not what this one did:
		// that was another connection, for addresses can be used again.
		if s == nil || s.begun || s.from == ev.Host && len(s.writes) > 0 || s.to == ev.Host && len(s.reads) > 0 {
			s = b.stream(ev.Host, messages, way.text())
			b.byName[way] = s
		}
		s.begun = true
	}
}

// named notes the connections whose ends are named: who asked for them, and who took
// them.
func (b *Builder) named(i int, ev *event.Event) {
	f := ev.FileArg(0)
	if f == nil || !ev.OK() {
		return
	}
	switch ev.Op {
	case event.OpConnect:
		if c, ok := parseName(f.Path, b.machine(ev.Host)); ok {
			b.made = append(b.made, attempt{event: uint32(i), at: address{c.host, c.from + ">" + c.to}})
		}
	case event.OpAccept, event.OpAccept4:
		protocol, local, ok := strings.Cut(strings.TrimSuffix(f.Path, "]"), ":[")
		m := ev.BufArg(1)
		if !ok || m == nil {
			return
		}
		if peer := addressText(m.Inline); peer != "" {
			c, _ := parseName(protocol+":["+peer+"->"+local+"]", b.machine(ev.Host))
			b.taken = append(b.taken, attempt{event: uint32(i), at: address{c.host, c.from + ">" + c.to}})
		}
	}
}

// pairNamed orders connects before accepts of the same connection. Where addresses were
// used again, the first goes with the first.
func (b *Builder) pairNamed() {
	asked := map[address][]uint32{}
	for _, a := range b.made {
		asked[a.at] = append(asked[a.at], a.event)
	}
	for _, a := range b.taken {
		if q := asked[a.at]; len(q) > 0 {
			b.edge(int(a.event), int(q[0]), Connect)
			asked[a.at] = q[1:]
		}
	}
	b.made, b.taken = nil, nil
}

// addressText writes a socket address as names of sockets have it, "" if it has no port.
func addressText(b []byte) string {
	if len(b) < 8 {
		return ""
	}
	port := strconv.Itoa(int(b[2])<<8 | int(b[3]))
	switch family := int(b[0]) | int(b[1])<<8; {
	case family == afInet:
		return fmt.Sprintf("%d.%d.%d.%d:%s", b[4], b[5], b[6], b[7], port)
	case family == afInet6 && len(b) >= 24:
		return "[" + ip6Text(b[8:24]) + "]:" + port
	}
	return ""
}

// ip6Text writes an address as RFC 5952 wants it.
func ip6Text(b []byte) string {
	var words [8]int
	for i := range words {
		words[i] = int(b[2*i])<<8 | int(b[2*i+1])
	}
	from, to := -1, -1 // the longest run of zeros
	for i := 0; i < 8; i++ {
		k := i
		for k < 8 && words[k] == 0 {
			k++
		}
		if k-i > max(1, to-from) {
			from, to = i, k
		}
		i = max(i, k-1)
	}
	var s strings.Builder
	for i := 0; i < 8; i++ {
		switch {
		case i == from:
			s.WriteString("::")
			i = to - 1
			continue
		case i > 0 && i != to:
			s.WriteByte(':')
		}
		s.WriteString(strconv.FormatInt(int64(words[i]), 16))
	}
	return s.String()
}

// parseName takes the name of a connected socket apart: "TCP:[local->peer]".
func parseName(name string, host uint32) (c channel, ok bool) {
	protocol, rest, ok := strings.Cut(name, ":[")
	local, peer, arrow := strings.Cut(strings.TrimSuffix(rest, "]"), "->")
	if !ok || !arrow {
		return c, false
	}
	c = channel{protocol: protocol, from: local, to: peer}
	if strings.HasPrefix(local, "127.") || strings.HasPrefix(local, "[::1]") {
		c.host = host + 1
	}
	return c, true
}

// text writes the two ends.
func (c channel) text() string { return c.from + "->" + c.to }

func (c channel) reverse() channel { return channel{c.protocol, c.to, c.from, c.host} }

// of returns the stream that a file is an end of, nil if it is none that is known.
func (b *Builder) of(ev *event.Event, f *event.File, write bool) *stream {
	e := end{ev.Host, f.Open, write}
	s := b.streams[e]
	if s != nil {
		return s
	}
	if f.Mode&sIFMT == sIFIFO && strings.HasPrefix(f.Path, "/") {
		return b.fifo(ev.Host, f)
	}
	c, ok := parseName(f.Path, b.machine(ev.Host))
	if !ok {
		return nil
	}
	if !write {
		c = c.reverse()
	}
	if s = b.byName[c]; s == nil {
		s = b.stream(ev.Host, c.protocol != "TCP", c.text())
		s.begun = false
		b.byName[c] = s
	}
	if f.Open != 0 {
		b.streams[e] = s
		if write {
			s.from = ev.Host
		} else {
			s.to = ev.Host
		}
	}
	return s
}

// Types of files in st_mode (inode(7)).
const (
	sIFMT   = 0o170000
	sIFSOCK = 0o140000
	sIFREG  = 0o100000
	sIFBLK  = 0o060000
	sIFDIR  = 0o040000
	sIFLNK  = 0o120000
	sIFIFO  = 0o010000
)

// fifo returns the stream of a pipe with a name, which holds nothing before it is first
// opened.
func (b *Builder) fifo(host uint32, f *event.File) *stream {
	k := fifo{b.machine(host), f.Dev, f.Ino}
	s := b.fifos[k]
	if s == nil {
		s = b.stream(host, false, f.Path)
		b.fifos[k] = s
	}
	return s
}

// move notes what a call wrote and read.
func (b *Builder) move(i int, ev *event.Event) {
	io := ev.Traffic()
	m := move{event: uint32(i), enter: ev.Enter, exit: ev.Exit}
	if io.To != nil {
		s := b.of(ev, io.To, true)
		switch {
		case s == nil || s.broken:
		case ev.Flags&event.Interrupted != 0:
			s.broken = true // it may have written
		default:
			s.writes = s.add(s.writes, m, io.Written)
		}
	}
	if io.From != nil && !keeps(ev) {
		if s := b.of(ev, io.From, false); s != nil && !s.broken {
			s.reads = s.add(s.reads, m, io.Read)
		}
	}
}

// keeps reports whether what a call reads can be read again.
func keeps(ev *event.Event) bool {
	switch ev.Op {
	case event.OpTee:
		return true
	case event.OpRecvfrom:
		return ev.Args[3]&msgPeek != 0
	case event.OpRecvmsg:
		return ev.Args[2]&msgPeek != 0
	}
	return false
}

func (s *stream) add(list []move, m move, n int64) []move {
	if n <= 0 {
		return list
	}
	if m.n = n; s.messages {
		m.n = 1
	}
	return append(list, m)
}

// group is moves that overlapped in time: where each of them was is unknown, but not
// where all were together.
type group struct {
	moves    []move
	from, to int64 // position in the stream
}

// groups puts moves in the order of the stream.
func groups(list []move) (all []group) {
	slices.SortStableFunc(list, func(a, b move) int { return cmp.Compare(a.enter, b.enter) })
	var until, at int64
	for i, m := range list {
		if len(all) == 0 || m.enter >= until {
			all = append(all, group{moves: list[i:i], from: at, to: at})
		}
		g := &all[len(all)-1]
		g.moves = g.moves[:len(g.moves)+1]
		until = max(until, m.exit)
		at += m.n
		g.to = at
	}
	return all
}

// edges adds those from writes to reads. A read proves a write that was all of its group,
// if it has a byte of it, and of a larger group all writes, if it has the last byte.
func (s *stream) edges(b *Builder) {
	writes, reads := groups(s.writes), groups(s.reads)
	b.faults.note(s, writes, reads)
	w := 0
	for _, r := range reads {
		for w < len(writes) && writes[w].to <= r.from {
			w++
		}
		if len(r.moves) > 1 {
			continue // whose bytes they were is open
		}
		for _, g := range writes[w:] {
			if g.from >= r.to {
				break
			}
			if len(g.moves) > 1 && g.to > r.to {
				break
			}
			for _, m := range g.moves {
				// Of one clock: else the bytes came from elsewhere.
				if s.from != s.to || m.enter <= r.moves[0].exit {
					b.edge(int(r.moves[0].event), int(m.event), Bytes)
				}
			}
		}
	}
}
