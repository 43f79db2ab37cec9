// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"cmp"
	"slices"
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
	late     bool // but not on both sides: one was there at the start, and may have moved bytes before
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

// stream makes a stream.
func (b *Builder) stream(host uint32, messages bool, name string) *stream {
	s := &stream{from: host, to: host, messages: messages, begun: true, name: name}
	b.all = append(b.all, s)
	return s
}

// Flags of pipe2 and types of sockets (fcntl.h, linux/net.h).
const (
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
	var files []*event.File
	for i := range ev.Files {
		if f := &ev.Files[i]; f.Arg == event.MemoryArg && f.Open != 0 {
			ends, files = append(ends, f.Open), append(files, f)
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
		if n := b.nameOf(ev.Host, files[0].Path); n.connected { // for who inherits one
			b.byName[n.key] = append(b.byName[n.key], &connection{there: there, back: back})
		}
		return
	}
	s := b.stream(ev.Host, ev.Op == event.OpPipe2 && ev.Args[1]&event.OpenDirect != 0, "pipe")
	b.streams[end{ev.Host, ends[0], false}], b.streams[end{ev.Host, ends[1], true}] = s, s
	if f := files[0]; f.Ino != 0 {
		b.fifos[fifo{b.machine(ev.Host), f.Dev, f.Ino}] = s
	}
}

// of returns the stream that a file is an end of, nil if it is none that is known.
func (b *Builder) of(ev *event.Event, f *event.File, write bool) *stream {
	e := end{ev.Host, f.Open, write}
	s := b.streams[e]
	if s != nil {
		return s
	}
	if event.FileType(f.Mode) == event.TypeFIFO && f.Ino != 0 {
		return b.fifo(ev.Host, f)
	}
	return b.namedStream(ev, f, write)
}

// fifo returns the stream of a pipe that the trace did not see made. One with a name holds
// nothing before it is first opened; another one is known by the kernel's number of it.
func (b *Builder) fifo(host uint32, f *event.File) *stream {
	k := fifo{b.machine(host), f.Dev, f.Ino}
	s := b.fifos[k]
	if s == nil {
		s = b.stream(host, false, f.Path)
		s.begun = strings.HasPrefix(f.Path, "/")
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
