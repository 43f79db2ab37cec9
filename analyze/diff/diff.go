// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"path"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Options for Tapes. Nil and zero values are the defaults.
type Options struct {
	Content bool          // compare the bytes that calls moved, too
	Context int           // equal calls to show around those that differ
	Classes []event.Class // the classes to compare; none means all except memory, wait and block
	// MaxCalls limits the calls in the hunks of a Report. 0 is none.
	MaxCalls int
	// Render writes an event as a line, for the hunks. It may be nil.
	Render func(t *trace.Tape, ev *event.Event) string
	// Progress is called from time to time with numbers of events. It may be nil.
	Progress func(phase string, done, total uint64)
}

// notOfPrograms are the classes that depend on the machine and on chance.
var notOfPrograms = []event.Class{event.Memory, event.Wait, event.Block}

func (o *Options) classes() *[event.NumClasses]bool {
	var want [event.NumClasses]bool
	for c := range want {
		want[c] = len(o.Classes) == 0 && !slices.Contains(notOfPrograms, event.Class(c))
	}
	for _, c := range o.Classes {
		want[c] = true
	}
	return &want
}

// Report says how two tapes differ.
type Report struct {
	A       Side         `json:"a"`
	B       Side         `json:"b"`
	Ops     []Op         `json:"ops"` // by name, those that either has
	Threads []ThreadDiff `json:"threads"`
	First   *Place       `json:"first,omitempty"` // the first call that differs in A, or in B if A has none
	OnlyA   []string     `json:"only_a"`          // names of files, as they are compared
	OnlyB   []string     `json:"only_b"`
	Hidden  uint64       `json:"hidden"` // calls that differ beyond Options.MaxCalls
}

// Same reports whether nothing differs, apart from times and the numbers of calls that are
// not compared.
func (r *Report) Same() bool {
	return !slices.ContainsFunc(r.Threads, func(t ThreadDiff) bool { return t.Removed+t.Added > 0 })
}

// Side is one of the tapes.
type Side struct {
	Name    string `json:"name"`
	Calls   uint64 `json:"calls"`
	Threads int    `json:"threads"`
}

// OpSum sums up the calls of one operation.
type OpSum struct {
	Count  uint64 `json:"count"`
	Errors uint64 `json:"errors"`
	Bytes  uint64 `json:"bytes"`
	TimeNS int64  `json:"time_ns"`
}

// Op is an operation on both sides.
type Op struct {
	Op string `json:"op"`
	A  OpSum  `json:"a"`
	B  OpSum  `json:"b"`
}

// ThreadID names a thread of one side.
type ThreadID struct {
	PID uint32 `json:"pid"`
	TID uint32 `json:"tid"`
}

// ThreadDiff is what differs between a thread and its counterpart.
type ThreadDiff struct {
	Command string    `json:"command"`     // the program of the thread in A, or in B if A has none
	A       *ThreadID `json:"a,omitempty"` // nil if it is only in B
	B       *ThreadID `json:"b,omitempty"`
	Same    int       `json:"same"` // calls
	Removed int       `json:"removed"`
	Added   int       `json:"added"`
	Coarse  bool      `json:"coarse,omitempty"` // the alignment may not be the best one
	Hunks   []Hunk    `json:"hunks,omitempty"`
}

// Hunk is a range of calls of a thread that differ, with context. Numbers count the compared
// calls of each thread, from 1.
type Hunk struct {
	StartA int    `json:"start_a"`
	CallsA int    `json:"calls_a"`
	StartB int    `json:"start_b"`
	CallsB int    `json:"calls_b"`
	Lines  []Line `json:"lines"`
}

// Line is a call in a hunk.
type Line struct {
	What string  `json:"what"`            // " ", "-" or "+"
	SeqA *uint64 `json:"seq_a,omitempty"` // event of A
	SeqB *uint64 `json:"seq_b,omitempty"`
	Text string  `json:"text,omitempty"` // of A's event, or of B's if A has none
}

// Place is where the tapes begin to differ.
type Place struct {
	Command string  `json:"command"`
	SeqA    *uint64 `json:"seq_a,omitempty"`
	SeqB    *uint64 `json:"seq_b,omitempty"`
	TextA   string  `json:"text_a,omitempty"`
	TextB   string  `json:"text_b,omitempty"`
}

// Tapes compares two tapes.
func Tapes(ctx context.Context, a, b *trace.Tape, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	progress := o.Progress
	if progress == nil {
		progress = func(string, uint64, uint64) {}
	}
	seed := maphash.MakeSeed()
	na, nb := a.Manifest().Counts.Events, b.Manifest().Counts.Events
	sa, err := read(ctx, a, o, seed, func(done uint64) { progress("reading", done, na+nb) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name(), err)
	}
	sb, err := read(ctx, b, o, seed, func(done uint64) { progress("reading", na+done, na+nb) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	c := &comparison{o: o, a: sa, b: sb, left: o.MaxCalls}
	c.r.A, c.r.B = Side{a.Name(), sa.calls, sa.threads}, Side{b.Name(), sb.calls, sb.threads}
	c.r.OnlyA, c.r.OnlyB = only(sa.files, sb.files), only(sb.files, sa.files)
	c.sums()
	done := 0
	match(sa.root, sb.root, func(p pair) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			c.compare(p)
		}
		done++
		progress("comparing", uint64(done), uint64(max(sa.threads, sb.threads)))
	})
	if err != nil {
		return nil, err
	}
	return &c.r, c.render(ctx)
}

// comparison is the state of one call of Tapes.
type comparison struct {
	o     *Options
	a, b  *side
	r     Report
	left  int // calls that hunks may still get, if MaxCalls is set
	first [2]uint64
}

// only returns the names in one set that are not in the other.
func only(a, b map[string]uint64) []string {
	list := []string{}
	for name := range a {
		if _, ok := b[name]; !ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func (c *comparison) sums() {
	c.r.Ops = []Op{}
	of := func(s *side, op event.Op) OpSum {
		if sum := s.ops[op]; sum != nil {
			return *sum
		}
		return OpSum{}
	}
	for i := range event.Specs() {
		op := event.Specs()[i].Op
		if a, b := of(c.a, op), of(c.b, op); a.Count+b.Count > 0 {
			c.r.Ops = append(c.r.Ops, Op{op.String(), a, b})
		}
	}
	slices.SortFunc(c.r.Ops, func(x, y Op) int { return cmp.Compare(x.Op, y.Op) })
}

// compare aligns the calls of two threads.
func (c *comparison) compare(p pair) {
	var d ThreadDiff
	var x, y []call
	if p.a != nil {
		x, d.A, d.Command = p.a.calls, &ThreadID{p.a.pid, p.a.tid}, p.a.command()
	}
	if p.b != nil {
		y, d.B = p.b.calls, &ThreadID{p.b.pid, p.b.tid}
		if p.a == nil {
			d.Command = p.b.command()
		}
	}
	runs, coarse := align(signatures(x), signatures(y))
	d.Coarse = coarse
	for _, r := range runs {
		d.Same += r.n
	}
	d.Removed, d.Added = len(x)-d.Same, len(y)-d.Same
	if d.Removed+d.Added > 0 {
		c.begin(&d, x, y, runs)
		c.hunks(&d, x, y, runs)
	}
	c.r.Threads = append(c.r.Threads, d)
}

// command returns the program of a thread.
func (t *thread) command() string {
	switch {
	case t.argv != "":
		return t.argv
	case t.exe != "":
		return path.Base(t.exe)
	}
	return t.comm
}

func signatures(calls []call) []uint64 {
	s := make([]uint64, len(calls))
	for i := range calls {
		s[i] = calls[i].sig
	}
	return s
}

// begin notes where the threads begin to differ, if this is the first difference so far.
func (c *comparison) begin(d *ThreadDiff, x, y []call, runs []run) {
	n := 0
	if len(runs) > 0 && runs[0].a == 0 && runs[0].b == 0 {
		n = runs[0].n
	}
	p := &Place{Command: d.Command}
	order := [2]uint64{1, 0} // those with an event of A first
	if n < len(y) {
		p.SeqB, order[1] = &y[n].seq, y[n].seq
	}
	if n < len(x) {
		p.SeqA, order = &x[n].seq, [2]uint64{0, x[n].seq}
	}
	if c.r.First == nil || slices.Compare(order[:], c.first[:]) < 0 {
		c.r.First, c.first = p, order
	}
}

// hunks makes the hunks of a thread.
func (c *comparison) hunks(d *ThreadDiff, x, y []call, runs []run) {
	endA, endB := 0, 0 // of the last run
	for _, r := range append(runs, run{len(x), len(y), 0}) {
		if r.a == endA && r.b == endB {
			endA, endB = r.a+r.n, r.b+r.n
			continue
		}
		before := min(c.o.Context, endA, endB)
		k := len(d.Hunks) - 1
		var h *Hunk
		if k >= 0 && d.Hunks[k].StartA-1+d.Hunks[k].CallsA >= endA-before {
			h = &d.Hunks[k] // its context reaches here
			before = endA - (h.StartA - 1 + h.CallsA)
		} else {
			d.Hunks = append(d.Hunks, Hunk{StartA: endA - before + 1, StartB: endB - before + 1})
			h = &d.Hunks[k+1]
		}
		cost := r.a - endA + r.b - endB
		if c.o.MaxCalls > 0 && cost > c.left {
			c.r.Hidden += uint64(cost)
			if len(h.Lines) == 0 {
				d.Hunks = d.Hunks[:len(d.Hunks)-1]
			}
			endA, endB = r.a+r.n, r.b+r.n
			continue
		}
		c.left -= cost
		for i := before; i > 0; i-- {
			h.add(&x[endA-i], &y[endB-i])
		}
		for ; endA < r.a; endA++ {
			h.add(&x[endA], nil)
		}
		for ; endB < r.b; endB++ {
			h.add(nil, &y[endB])
		}
		for i := range min(c.o.Context, r.n) {
			h.add(&x[r.a+i], &y[r.b+i])
		}
		endA, endB = r.a+r.n, r.b+r.n
	}
}

// add appends a call: a of A, b of B, or both.
func (h *Hunk) add(a, b *call) {
	l := Line{What: " "}
	if a != nil {
		l.SeqA = &a.seq
		h.CallsA++
	} else {
		l.What = "+"
	}
	if b != nil {
		l.SeqB = &b.seq
		h.CallsB++
	} else {
		l.What = "-"
	}
	h.Lines = append(h.Lines, l)
}

// render writes the events of all lines.
func (c *comparison) render(ctx context.Context) error {
	if c.o.Render == nil {
		return nil
	}
	wantA, wantB := map[uint64][]*string{}, map[uint64][]*string{}
	want := func(a, b *uint64, text *string) {
		if a != nil {
			wantA[*a] = append(wantA[*a], text)
		} else if b != nil {
			wantB[*b] = append(wantB[*b], text)
		}
	}
	for i := range c.r.Threads {
		for k := range c.r.Threads[i].Hunks {
			lines := c.r.Threads[i].Hunks[k].Lines
			for n := range lines {
				want(lines[n].SeqA, lines[n].SeqB, &lines[n].Text)
			}
		}
	}
	if p := c.r.First; p != nil {
		want(p.SeqA, nil, &p.TextA)
		want(nil, p.SeqB, &p.TextB)
	}
	if err := c.write(ctx, c.a.tape, wantA); err != nil {
		return err
	}
	return c.write(ctx, c.b.tape, wantB)
}

// write renders some events of a tape.
func (c *comparison) write(ctx context.Context, t *trace.Tape, want map[uint64][]*string) error {
	seqs := make([]uint64, 0, len(want))
	for seq := range want {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	r := t.NewEventReader()
	var ev event.Event
	at, block := uint64(0), uint64(0) // the reader's next event, and the end of its block
	for _, seq := range seqs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if seq >= block {
			if err := r.Seek(seq); err != nil {
				return fmt.Errorf("%s: %w", t.Name(), err)
			}
			at = seq
			_, block, _ = t.BlockOf(seq)
		}
		for ; at <= seq; at++ {
			if err := r.Next(&ev); err == io.EOF {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", t.Name(), err)
			}
		}
		text := c.o.Render(t, &ev)
		for _, into := range want[seq] {
			*into = text
		}
	}
	return nil
}
