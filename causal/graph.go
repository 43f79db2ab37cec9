// SPDX-License-Identifier: Apache-2.0

package causal

// Graph is the order that a Builder found: of the events of each thread, which come one
// after the other, and between threads. Events are numbered in the order of Add.
type Graph struct {
	Line  []uint32         // of events: index into Lines
	Lines []ThreadLifetime // the zero Line is no thread: its events have no order
	first []uint32         // of events: index into from and why; one more than there are events
	from  []uint32
	why   []Reason
	Faults
	Streams []Stream // with Builder.KeepStreams
}

// Before returns the direct predecessors of an event in other threads, and why.
func (g *Graph) Before(i int) (from []uint32, why []Reason) {
	a, b := g.first[i], g.first[i+1]
	return g.from[a:b], g.why[a:b]
}

// Edges returns how many edges there are between threads.
func (g *Graph) Edges() int { return len(g.from) }

// Graph returns what was found. The Builder must not be used any more.
func (b *Builder) Graph() *Graph {
	b.finish()
	g := &Graph{Line: b.line, Lines: b.lines, first: make([]uint32, len(b.line)+1), Faults: b.faults}
	g.from, g.why = make([]uint32, len(b.links)), make([]Reason, len(b.links))
	for i, l := range b.links {
		g.from[i], g.why[i] = l.from, l.why
		g.first[l.to+1]++
	}
	for i := range b.line {
		g.first[i+1] += g.first[i]
	}
	b.links = nil
	for _, s := range b.kept {
		g.Streams = append(g.Streams, Stream{s})
	}
	return g
}

// Faults are what a trace says of streams that cannot be all of the truth.
type Faults struct {
	// Unsent are reads of bytes that nobody wrote, though the other side is in the
	// trace: events are missing. The first MaxFaults of Unsents.
	Unsent  []Unsent
	Unsents int
	// Dangling are streams of which only one side is in the trace: the other is on a
	// host, or in a process, that was not recorded. The first MaxFaults of Danglings.
	Dangling  []Dangling
	Danglings int
	// Doubtful is how many streams of each host were not paired because what was read is not
	// what the one that they would be paired with had written.
	Doubtful map[uint32]int
}

// MaxFaults is how many faults of each kind are listed.
const MaxFaults = 1000

// Unsent is a read of bytes that nobody wrote.
type Unsent struct {
	Event int
	Bytes int64 // of it; messages, where the stream has those
}

// Dangling is one side of a stream.
type Dangling struct {
	Event  int  // the first
	Writes bool // it is the side that writes
	Bytes  int64
}

// note takes a stream whose moves are in order.
func (f *Faults) note(s *stream, writes, reads []group) {
	switch {
	case s.broken || len(writes)+len(reads) == 0:
		return
	case len(writes) == 0 || len(reads) == 0:
		f.Danglings++
		side := append(writes, reads...)
		if len(f.Dangling) < MaxFaults {
			f.Dangling = append(f.Dangling,
				Dangling{int(side[0].moves[0].event), len(writes) > 0, side[len(side)-1].to})
		}
		return
	}
	sent := writes[len(writes)-1].to
	for _, g := range reads {
		if g.to <= sent {
			continue
		}
		f.Unsents++
		if len(f.Unsent) < MaxFaults {
			f.Unsent = append(f.Unsent, Unsent{int(g.moves[len(g.moves)-1].event), g.to - max(sent, g.from)})
		}
	}
}
