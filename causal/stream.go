package causal

import (
	"cmp"
	"slices"
	"strings"

	"iotape/event"
)

// stream is what is written to one end and read from another: bytes, or messages that
// are each read whole or not at all.
type stream struct {
	from, to uint32 // hosts of the writers and the readers
	messages bool
	broken   bool // what comes now is at an unknown position
	writes   []move
	reads    []move
}

// move is a call that wrote or read.
type move struct {
	event       int
	enter, exit int64 // ns
	n           int64 // bytes or messages
}

// channel is one direction of a connection.
type channel struct {
	protocol, from, to string
	host               uint32 // of addresses that are each host's own, plus 1
}

// stream makes a stream.
func (b *Builder) stream(host uint32, messages bool) *stream {
	s := &stream{from: host, to: host, messages: messages}
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
		there, back := b.stream(ev.Host, messages), b.stream(ev.Host, messages)
		b.streams[end{ev.Host, ends[0], true}], b.streams[end{ev.Host, ends[1], false}] = there, there
		b.streams[end{ev.Host, ends[1], true}], b.streams[end{ev.Host, ends[0], false}] = back, back
		return
	}
	s := b.stream(ev.Host, ev.Op == event.OpPipe2 && ev.Args[1]&oDirect != 0)
	b.streams[end{ev.Host, ends[0], false}], b.streams[end{ev.Host, ends[1], true}] = s, s
}

// connection notes the two directions of a connection whose name says its ends.
func (b *Builder) connection(ev *event.Event) {
	f := ev.FileArg(0)
	if f == nil || !ev.OK() {
		return
	}
	c, ok := parseName(f.Path, ev.Host)
	if !ok {
		return
	}
	messages := c.protocol != "TCP"
	// Addresses can be used again, by another connection.
	b.byName[c], b.byName[c.reverse()] = b.stream(ev.Host, messages), b.stream(ev.Host, messages)
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

func (c channel) reverse() channel { return channel{c.protocol, c.to, c.from, c.host} }

// of returns the stream that a file is an end of, nil if it is none that is known.
func (b *Builder) of(ev *event.Event, f *event.File, write bool) *stream {
	e := end{ev.Host, f.Open, write}
	s := b.streams[e]
	if s != nil {
		return s
	}
	c, ok := parseName(f.Path, ev.Host)
	if !ok {
		return nil
	}
	if !write {
		c = c.reverse()
	}
	if s = b.byName[c]; s != nil && f.Open != 0 {
		b.streams[e] = s
		if write {
			s.from = ev.Host
		} else {
			s.to = ev.Host
		}
	}
	return s
}

// move notes what a call wrote and read.
func (b *Builder) move(i int, ev *event.Event) {
	io := ev.Traffic()
	m := move{event: i, enter: ev.Enter, exit: ev.Exit}
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
	for _, m := range list {
		if len(all) == 0 || m.enter >= until {
			all = append(all, group{from: at, to: at})
		}
		g := &all[len(all)-1]
		g.moves = append(g.moves, m)
		until = max(until, m.exit)
		at += m.n
		g.to = at
	}
	return all
}

// edges adds those from writes to reads. A read proves a write that was all of its group,
// if it has a byte of it, and of a larger group all writes, if it has the last byte.
func (s *stream) edges(b *Builder) {
	writes := groups(s.writes)
	w := 0
	for _, r := range groups(s.reads) {
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
				if m.enter < r.moves[0].exit { // else bytes came from elsewhere
					b.edge(r.moves[0].event, m.event, Bytes)
				}
			}
		}
	}
}
