// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// Path is where content went, or came from.
type Path struct {
	Start []int  // moves that were asked for
	Moves []int  // all that it leads through, in causal order
	Edges []Edge // between them, by To and From
	More  bool   // it goes on: there were too many
}

// MaxPath is how many moves a path has at most.
const MaxPath = 20_000

// Select returns the moves that a text stands for: an event (12, or 2:12 of the second
// tape), a file by its path or the end of it, or a connection by its address or a part of
// its name; "host:" may stand in front of names.
func (f *Flow) Select(what string) ([]int, error) {
	if tape, seq, ok := f.eventNumber(what); ok {
		k := slices.Index(f.given, tape)
		if k < 0 || seq >= f.tapes[k].Manifest().Counts.Events {
			return nil, fmt.Errorf("%s: there is no such event", what)
		}
		at := uint32(f.order.Position(k, seq))
		var out []int
		for i := range f.moves {
			if f.moves[i].event == at && f.moves[i].at != reset {
				out = append(out, i)
			}
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("event %s moved no content", what)
		}
		return out, nil
	}
	fits := []func(name string) bool{
		func(name string) bool { return name == what },
		func(name string) bool { return strings.HasSuffix(name, "/"+what) },
		func(name string) bool { return leads(name, what) },
		func(name string) bool { return strings.Contains(name, what) },
	}
	for n, fit := range fits {
		var out []int
		for i := range f.objects {
			o := &f.objects[i]
			if n >= 2 && o.Kind == File {
				continue
			}
			if !fit(o.Name) && !fit(f.name(o)) {
				continue
			}
			for _, m := range f.byObject.of(uint32(i)) {
				if f.moves[m].at != reset {
					out = append(out, int(m))
				}
			}
		}
		if len(out) > 0 {
			slices.Sort(out)
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s: no file or connection of that name moved content", what)
}

// leads reports whether a stream's name, which says both ends, is that of one "to" or "from" an
// address.
func leads(name, what string) bool {
	if to, ok := strings.CutPrefix(what, "to "); ok {
		return strings.HasSuffix(name, "->"+to)
	}
	from, ok := strings.CutPrefix(what, "from ")
	return ok && (strings.HasPrefix(name, from+"->") || strings.Contains(name, ":"+from+"->"))
}

// eventNumber reads SEQ or TAPE:SEQ.
func (f *Flow) eventNumber(s string) (tape int, seq uint64, ok bool) {
	if first, rest, both := strings.Cut(s, ":"); both {
		n, err := strconv.Atoi(first)
		if err != nil {
			return 0, 0, false
		}
		tape, s = n-1, rest
	}
	seq, err := strconv.ParseUint(s, 10, 63)
	return tape, seq, err == nil
}

// EventName is how an event is called: its number, with that of its tape if there are
// several.
func (f *Flow) EventName(position int) string {
	tape, seq := f.Locate(position)
	if len(f.tapes) == 1 {
		return strconv.FormatUint(seq, 10)
	}
	return fmt.Sprintf("%d:%d", tape+1, seq)
}

// ObjectName returns the name of an object, with its host's if there are several.
func (f *Flow) ObjectName(o *Object) string { return f.name(o) }

// Same returns the moves of the same content as others have, in causal order.
func (f *Flow) Same(ids []int) (out []int) {
	for _, id := range ids {
		if c := f.moves[id].class; c != 0 {
			for _, k := range f.byClass.of(c) {
				out = append(out, int(k))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Path returns where the content of moves went; of nil, where that of others came from;
// of both, the ways between them.
func (f *Flow) Path(ctx context.Context, from, to []int) (*Path, error) {
	p := &Path{Start: from}
	var ahead, back map[int][]Edge
	var err error
	if len(from) > 0 {
		if ahead, err = f.walk(ctx, from, f.After, func(e *Edge) int { return e.To }, p); err != nil {
			return nil, err
		}
	}
	if len(to) > 0 {
		if back, err = f.walk(ctx, to, f.Before, func(e *Edge) int { return e.From }, p); err != nil {
			return nil, err
		}
	}
	keep := func(id int) bool {
		_, a := ahead[id]
		_, b := back[id]
		return (a || ahead == nil) && (b || back == nil)
	}
	if len(from) == 0 {
		p.Start = to
	}
	for _, m := range []map[int][]Edge{ahead, back} {
		for id, edges := range m {
			if keep(id) {
				p.Moves = append(p.Moves, id)
			}
			for _, e := range edges {
				if keep(e.From) && keep(e.To) {
					p.Edges = append(p.Edges, e)
				}
			}
		}
	}
	slices.Sort(p.Moves)
	p.Moves = slices.Compact(p.Moves)
	slices.SortFunc(p.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.To, b.To),
			cmp.Compare(a.From, b.From))
	})
	p.Edges = slices.CompactFunc(p.Edges, func(a, b Edge) bool { return a.To == b.To && a.From == b.From })
	for i := range p.Edges {
		f.check(&p.Edges[i])
	}
	return p, f.damage
}

// walk goes from moves to the next ones, and returns the edges of each.
func (f *Flow) walk(ctx context.Context, start []int, next func(int) []Edge, end func(*Edge) int,
	p *Path) (map[int][]Edge, error) {
	out := map[int][]Edge{}
	work := slices.Clone(start)
	for _, id := range start {
		out[id] = nil
	}
	for len(work) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		id := work[0]
		work = work[1:]
		edges := next(id)
		out[id] = edges
		for i := range edges {
			k := end(&edges[i])
			if _, ok := out[k]; ok {
				continue
			}
			if len(out) >= MaxPath {
				p.More = true
				continue
			}
			out[k] = nil
			work = append(work, k)
		}
	}
	return out, nil
}

// Event reads the event of a move. It is valid until the next call.
func (f *Flow) Event(id int) (*event.Event, error) {
	tape, seq := f.order.Event(int(f.moves[id].event))
	for len(f.readers) <= tape {
		f.readers = append(f.readers, f.tapes[len(f.readers)].NewEventReader())
	}
	if err := f.readers[tape].Seek(seq); err != nil {
		return nil, err
	}
	return &f.now, f.readers[tape].Next(&f.now)
}
