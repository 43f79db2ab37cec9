// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Options for Load. Zero values are the defaults.
type Options struct {
	// Threshold is the part of the bytes, 0 to 1, from which on content that is not the
	// same counts as the same that was changed. 0 is 0.8.
	Threshold float64
	// Encrypted are files and connections in which nothing may be read: parts of their
	// names. Connections that begin with a TLS handshake count as such without.
	Encrypted []string
	// Decode has content that is compressed with gzip, zstd, snappy (framed) or lz4 (framed) compared as
	// what it was before.
	Decode bool
	// Progress, if it is not nil, hears of each step.
	Progress func(step string)
}

// Flow is what moved, in causal order.
type Flow struct {
	o         Options
	tapes     []*trace.Tape // in an order of their own, see arrange
	given     []int         // of each of them: where it stands in the order in which they were given
	order     *happens.Order
	moves     []move // in causal order
	objects   []Object
	ends      []fileEnd // in causal order
	process   []uint32  // of each line of the order
	execs     []uint32  // events by which processes began another program, in order of number
	procs     []Process
	contents  contents
	relation  relations
	byObject  groups                 // of stream objects: what was written, then what was read, by position
	byClass   groups                 // within one, by process
	byProcess groups                 // made when it is asked for
	compared  map[uint32]*comparison // by process
	packets   map[uint32][]uint32    // a datagram that was sent: who received it
	changed   map[uint32]change      // content that a process gave out changed
	changedBy map[uint32][]uint32    // by what it had taken in
	places    map[uint32]*places     // of files that were asked for
	found     []Finding
	totals    map[string]int64 // of each kind of finding, all of them
	kept      map[Problem]int  // findings of each kind
	sight     sight
	damage    error                // the first content that could not be read
	readers   []*trace.EventReader // for Event
	now       event.Event
	notes     []string
	stats     Stats
}

// Stats sums up what was looked at.
type Stats struct {
	Events, Moves  int
	Bytes          int64  // moved
	Unknown        int    // moves whose content is not in the tapes
	Signed         int    // moves of which there is a signature or hash only
	Contents       int    // different ones
	ContentBytes   int64  // of these
	Related        int    // pairs of different contents that have bytes in common
	Skipped        uint64 // places and pairs of contents that were not looked at: too many are alike
	Objects, Hosts int
	Streams, Loose int // connections and pipes; those whose beginning is not in the tapes
	OneSided       int // streams with one side only
	Contradictions int // receipts of what nobody sent, and events before themselves
}

// move is a side of an event that moved content.
type move struct {
	at     int64  // offset in the file or stream; -1 if it is not known
	event  uint32 // position in the order
	object uint32
	class  uint32 // 0: content that is not known
	n      uint32 // bytes, below 2^31; writes is set for those that gave content out
}

const (
	writes = 1 << 31
	reset  = -2 // at: the file from n on is no more what it was
)

func (m *move) write() bool  { return m.n&writes != 0 }
func (m *move) bytes() int64 { return int64(m.n &^ writes) }
func (m *move) end() int64   { return m.at + m.bytes() }

// Kind says what an object is.
type Kind uint8

// The kinds of objects.
const (
	File   Kind = iota
	Stream      // one direction of a connection or a pipe
	Socket      // datagrams, and streams whose other side nothing tells
)

func (k Kind) String() string { return [...]string{"file", "stream", "socket"}[k] }

// Object is where content is kept or goes through.
type Object struct {
	Kind Kind
	Name string // path, or address
	Host uint32 // index into the order's hosts
	// Known is set if positions in a stream are those from its beginning.
	Known    bool
	Messages bool      // positions of a stream count messages
	OneSided bool      // a stream of which one side is in no tape
	Encoding string    // by which its content is compressed or encrypted: "TLS", "gzip"; "" if none is known
	Decoded  bool      // positions and content are those of what was decoded
	ends     [2]uint32 // number of moves that write, that read
	secret   bool      // it begins with a TLS handshake
	vague    bool      // a file that may have been cut off by a call whose arguments are not known
}

// Process is a process of a host.
type Process struct {
	Host uint32
	PID  uint32
	Comm string
}

// Load reads tapes and finds out what moved. The tapes have to stay open.
func Load(ctx context.Context, tapes []*trace.Tape, o *Options) (*Flow, error) {
	f := &Flow{packets: map[uint32][]uint32{}, changed: map[uint32]change{},
		changedBy: map[uint32][]uint32{}, places: map[uint32]*places{},
		compared: map[uint32]*comparison{}}
	if o != nil {
		f.o = *o
	}
	if f.o.Threshold == 0 {
		f.o.Threshold = 0.8
	}
	if f.o.Threshold < 0 || f.o.Threshold > 1 {
		return nil, fmt.Errorf("threshold %v: a part of 1 is possible", f.o.Threshold)
	}
	if f.o.Progress == nil {
		f.o.Progress = func(string) {}
	}
	f.o.Progress("order")
	f.arrange(tapes)
	var err error
	if f.order, err = happens.LoadStreams(f.tapes); err != nil {
		return nil, err
	}
	f.o.Progress("moves")
	f.moves = make([]move, 0, f.order.Len())
	f.findProcesses()
	if err := f.scan(ctx); err != nil {
		return nil, err
	}
	f.o.Progress("contents")
	if err := f.resolve(ctx); err != nil {
		return nil, err
	}
	f.byClass = group(len(f.contents.classes), len(f.moves), func(i int) uint32 { return f.moves[i].class })
	for c := 1; c < len(f.contents.classes); c++ {
		list := f.byClass.of(uint32(c))
		slices.SortStableFunc(list, func(a, b uint32) int { return int(f.processOf(a)) - int(f.processOf(b)) })
	}
	f.o.Progress("findings")
	if err := f.find(ctx); err != nil {
		return nil, err
	}
	f.note()
	f.o.Progress("")
	return f, nil
}

// arrange takes the tapes in an order that follows of what is in them, so that all that is decided by
// which came first (the first clock, events at the same time) is decided alike however they are given.
// Heads do not count: they have clocks and names, which may be wrong.
func (f *Flow) arrange(tapes []*trace.Tape) {
	for i := range tapes {
		f.given = append(f.given, i)
	}
	slices.SortStableFunc(f.given, func(a, b int) int {
		x, y := tapes[a].Manifest(), tapes[b].Manifest()
		return cmp.Compare(x.Files[trace.EventsName].BLAKE3, y.Files[trace.EventsName].BLAKE3)
	})
	for _, i := range f.given {
		f.tapes = append(f.tapes, tapes[i])
	}
}

// Locate returns in which tape an event is, of those that were given, and its number there.
func (f *Flow) Locate(position int) (tape int, seq uint64) {
	tape, seq = f.order.Event(position)
	return f.given[tape], seq
}

// findProcesses numbers the processes of the threads.
func (f *Flow) findProcesses() {
	type key struct{ host, pid uint32 }
	known := map[key]uint32{}
	for _, l := range f.order.Lines() {
		k := key{f.order.Machine(l.Host), l.PID}
		id, ok := known[k]
		if !ok {
			id = uint32(len(f.procs))
			known[k] = id
			f.procs = append(f.procs, Process{Host: l.Host, PID: l.PID, Comm: l.Comm})
		}
		if l.TID == l.PID && l.Comm != "" {
			f.procs[id].Comm = l.Comm
		}
		f.process = append(f.process, id)
	}
}

// processOf returns the process of a move.
func (f *Flow) processOf(m uint32) uint32 { return f.process[f.order.Line(int(f.moves[m].event))] }

// Order returns the order of the events.
func (f *Flow) Order() *happens.Order { return f.order }

// Stats returns what was looked at.
func (f *Flow) Stats() Stats { return f.stats }

// Notes returns what the tapes lack, in words: each a sentence without its full stop.
func (f *Flow) Notes() []string { return f.notes }

// A Move is one side of an event that moved content.
type Move struct {
	ID      int // in causal order, from 0
	Event   int // position in the order
	Write   bool
	Bytes   int64
	At      int64 // offset in the object, -1 if it is not known
	Object  *Object
	Process *Process
	Content Class // 0: not in the tapes
}

// Move returns a move.
func (f *Flow) Move(id int) Move {
	m := &f.moves[id]
	return Move{id, int(m.event), m.write(), m.bytes(), m.at, &f.objects[m.object], &f.procs[f.processOf(uint32(id))],
		Class(m.class)}
}

// Len returns how many moves there are.
func (f *Flow) Len() int { return len(f.moves) }

// Bytes returns the content of a move; nil if it is not in the tapes.
func (f *Flow) Bytes(id int) ([]byte, error) { return f.contents.bytes(f.moves[id].class) }

// groups are those of moves, by what they have in common.
type groups struct {
	first []uint32
	list  []uint32
}

// of returns the members of a group.
func (g *groups) of(i uint32) []uint32 { return g.list[g.first[i]:g.first[i+1]] }

// group puts numbers below n into groups, in their order.
func group(many, n int, of func(i int) uint32) groups {
	g := groups{first: make([]uint32, many+2), list: make([]uint32, n)}
	for i := range n {
		g.first[of(i)+2]++
	}
	for i := 2; i < len(g.first); i++ {
		g.first[i] += g.first[i-1]
	}
	for i := range n {
		k := of(i) + 1
		g.list[g.first[k]] = uint32(i)
		g.first[k]++
	}
	g.first = g.first[:many+1]
	return g
}

// noteDoubtful says of how many streams the other side was not taken, because its bytes are others.
func (f *Flow) noteDoubtful() {
	for host, h := range f.order.Hosts() {
		if n := f.order.Faults().Doubtful[uint32(host)]; n > 0 {
			f.notes = append(f.notes, fmt.Sprintf("doubtful: %d streams of %s could not be paired: what would be "+
				"their other side has different bytes", n, h.Host))
		}
	}
}

// note says what the tapes lack.
func (f *Flow) note() {
	s := &f.stats
	say := func(n int, one, many, text string) {
		if n == 1 {
			f.notes = append(f.notes, "1 "+one+" "+text)
		} else if n > 0 {
			f.notes = append(f.notes, fmt.Sprintf("%d %s %s", n, many, text))
		}
	}
	switch {
	case s.Moves == 0:
		f.notes = append(f.notes, "nothing moved content")
	case s.Unknown == s.Moves:
		f.notes = append(f.notes, "the tapes have no content: what follows is order only, by bytes of streams "+
			"and files")
	default:
		say(s.Unknown, "move", "moves", "of which the tapes have no content, but the place in streams and files")
		say(s.Signed, "move", "moves", "of which the tapes have signatures or hashes only: similarity is "+
			"estimated, and no bytes are shown")
	}
	say(s.OneSided, "stream", "streams",
		"with one side only: the other is on a host, or in a process, that is in no tape")
	say(s.Loose, "stream", "streams", "whose beginning is not in the tapes: where in it bytes stand is not "+
		"known, and content alone connects its sides")
	f.noteDoubtful()
	say(s.Contradictions, "contradiction", "contradictions", "in the order of events (iotape order names them)")
	say(int(min(s.Skipped, 1<<40)), "comparison", "comparisons", "of contents left out, because too many are alike")
	f.noteClocks()
}

// noteClocks says which clocks no messages relate.
func (f *Flow) noteClocks() {
	hosts := f.order.Hosts()
	var far []string
	for i, k := range f.order.Skews() {
		switch {
		case k.Drift:
			f.notes = append(f.notes, fmt.Sprintf("no difference of the clocks of %s fits all messages", hosts[i].Host))
		case i > 0 && !k.Bounded():
			far = append(far, hosts[i].Host)
		}
	}
	if len(far) == 0 {
		return
	}
	slices.Sort(far)
	names := "that of " + far[0]
	if len(far) > 1 {
		names = "those of " + strings.Join(far[:min(len(far), 8)], ", ")
	}
	if more := len(far) - 8; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	f.notes = append(f.notes, fmt.Sprintf("how far the clock of %s is from %s is not known: no messages both ways",
		hosts[0].Host, names))
}
