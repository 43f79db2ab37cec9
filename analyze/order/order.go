// SPDX-License-Identifier: Apache-2.0

package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/trace"
)

// Ordering is the order of the events of several tapes.
type Ordering struct {
	tapes []*trace.Tape
	o     *happens.Order
}

// Load finds the order of the events of tapes, which have to stay open.
func Load(tapes []*trace.Tape) (*Ordering, error) {
	o, err := happens.Load(tapes)
	if err != nil {
		return nil, err
	}
	return &Ordering{tapes: tapes, o: o}, nil
}

// Contradicts reports whether something contradicts itself: an event that comes before
// itself, or a receipt of what no event sent.
func (r *Ordering) Contradicts() bool { return r.o.Circular() > 0 || r.o.Faults().Unsents > 0 }

// HappenedBefore reports whether event a happened before event b.
func (r *Ordering) HappenedBefore(a, b int) bool { return r.o.HappenedBefore(a, b) }

// Position returns the place of an event in the order. s is its number in its tape, SEQ, or
// TAPE:SEQ with the number of the tape, from 1.
func (r *Ordering) Position(s string) (int, error) {
	tape := 1
	number := s
	if first, rest, ok := strings.Cut(s, ":"); ok {
		n, err := strconv.Atoi(first)
		if err != nil || n < 1 || n > len(r.tapes) {
			return 0, fmt.Errorf("event %s: there are %s", s, report.Plural(len(r.tapes), "tape", "tapes"))
		}
		tape, number = n, rest
	}
	seq, err := strconv.ParseUint(number, 10, 63)
	if err != nil || seq >= r.tapes[tape-1].Manifest().Counts.Events {
		return 0, fmt.Errorf("event %s: there is no such event", s)
	}
	return r.o.Position(tape-1, seq), nil
}

// name is how an event is called: its number, with that of its tape if there are several.
func (r *Ordering) name(i int) string {
	tape, seq := r.o.Event(i)
	if len(r.tapes) == 1 {
		return strconv.FormatUint(seq, 10)
	}
	return fmt.Sprintf("%d:%d", tape+1, seq)
}

// Request says what to write of an order: by default a summary.
type Request struct {
	Before []string // two events, see Position: whether the first happened before the second
	Events bool     // all events, each after all that it depends on
	JSON   bool     // one JSON object; with Events one for each event
	Print  Printer  // writes events where JSON is false
}

// A RequestError says that there cannot be what is asked for.
type RequestError struct{ err error }

func (e *RequestError) Error() string { return e.err.Error() }
func (e *RequestError) Unwrap() error { return e.err }

// Answer writes what is asked for. good is whether the first event of Before happened before
// the second, or, without Before, whether nothing contradicts itself.
func (r *Ordering) Answer(w io.Writer, q *Request) (good bool, err error) {
	switch {
	case len(q.Before) == 2:
		return r.answerBefore(w, q)
	case len(q.Before) > 0:
		return false, &RequestError{errors.New("--before needs two events, as in --before 1:200,2:40")}
	case q.Events && q.JSON:
		err = r.WriteEvents(w, nil)
	case q.Events:
		err = r.WriteEvents(w, q.Print)
	case q.JSON:
		err = r.WriteJSON(w)
	default:
		err = r.WriteText(w)
	}
	return !r.Contradicts(), err
}

func (r *Ordering) answerBefore(w io.Writer, q *Request) (before bool, err error) {
	var pair [2]int
	for i, s := range q.Before {
		if pair[i], err = r.Position(s); err != nil {
			return false, &RequestError{fmt.Errorf("--before: %w", err)}
		}
	}
	return r.HappenedBefore(pair[0], pair[1]), r.WriteRelation(w, pair[0], pair[1], q.JSON)
}

// WriteRelation says whether event a happened before event b.
func (r *Ordering) WriteRelation(w io.Writer, a, b int, asJSON bool) error {
	relation := "concurrent"
	switch {
	case r.o.HappenedBefore(a, b):
		relation = "before"
	case r.o.HappenedBefore(b, a):
		relation = "after"
	case a == b:
		relation = "same"
	}
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{"version": 1, "a": r.name(a),
			"b": r.name(b), "relation": relation})
	}
	switch relation {
	case "before", "after":
		fmt.Fprintf(w, "event %s happened %s event %s\n", r.name(a), relation, r.name(b))
	case "same":
		fmt.Fprintf(w, "they are the same event\n")
	default:
		fmt.Fprintf(w, "neither of the events %s and %s happened before the other\n", r.name(a), r.name(b))
	}
	return nil
}

type skewJSON struct {
	Host          string `json:"host"`
	NS            *int64 `json:"ahead_ns"` // null if it is not known
	MinNS         *int64 `json:"min_ns"`
	MaxNS         *int64 `json:"max_ns"`
	Contradictory bool   `json:"contradictory"`
}

// WriteJSON writes the summary as one JSON object. Fields are only ever added.
func (r *Ordering) WriteJSON(w io.Writer) error {
	o, f := r.o, r.o.Faults()
	v := struct {
		Version  int        `json:"version"`
		Events   int        `json:"events"`
		Own      int        `json:"own_events"`
		Threads  int        `json:"threads"`
		Edges    int        `json:"edges"`
		Longest  uint32     `json:"longest_chain"`
		ClockSum uint64     `json:"clock_sum"`
		Skew     []skewJSON `json:"clocks"`
		Circular int        `json:"circular"`
		Circle   []string   `json:"circle"`
		Unsent   int        `json:"receipts_without_send"`
		Dangling int        `json:"one_sided_streams"`
	}{Version: 1, Events: o.Len(), Threads: len(o.Lines()), Edges: o.Edges(), Circular: o.Circular(),
		Circle: []string{}, Unsent: f.Unsents, Dangling: f.Danglings, Skew: []skewJSON{}}
	for i := range o.Len() {
		if o.Counts(i) {
			v.Own++
			v.Longest = max(v.Longest, o.Clock(i))
			v.ClockSum += uint64(o.Clock(i))
		}
	}
	for i, s := range o.Skews() {
		h := skewJSON{Host: o.Hosts()[i].Host, Contradictory: s.Drift}
		if s.Bounded() {
			h.NS = &s.NS
		}
		if s.HasMin() {
			h.MinNS = &s.Min
		}
		if s.HasMax() {
			h.MaxNS = &s.Max
		}
		v.Skew = append(v.Skew, h)
	}
	v.Circle = append(v.Circle, r.circle()...)
	return jsonout.Object(w, v)
}

// WriteText writes the summary for people.
func (r *Ordering) WriteText(w io.Writer) error {
	o, f := r.o, r.o.Faults()
	own, longest := 0, uint32(0)
	for i := range o.Len() {
		if o.Counts(i) {
			own++
			longest = max(longest, o.Clock(i))
		}
	}
	fmt.Fprintf(w, "%s events of %s on %s; %s between threads; the longest chain has %s\n", report.Count(uint64(own)),
		report.Plural(len(o.Lines()), "thread", "threads"),
		report.Plural(len(o.Hosts()), "host", "hosts"), report.Plural(o.Edges(), "dependency", "dependencies"),
		report.Plural(uint64(longest)+1, "event", "events"))
	if len(o.Hosts()) > 1 {
		fmt.Fprintln(w)
		t := report.Table{Head: []string{"host", "clock is ahead by", "at least", "at most"}, Left: 1}
		for i, s := range o.Skews() {
			t.Add(append([]string{report.Printable(o.Hosts()[i].Host)}, clockCells(&s)...)...)
		}
		if err := t.Write(w); err != nil {
			return err
		}
		for i, s := range o.Skews() {
			if s.Drift {
				fmt.Fprintf(w,
					"no difference of the clocks of %s fits all messages: they were not taken at the same moment, or "+
						"drift\n", report.Printable(o.Hosts()[i].Host))
			}
		}
	}
	if f.Danglings > 0 {
		fmt.Fprintf(w, "\n%s of which the other side is in no tape; the first at event %s\n",
			report.Plural(f.Danglings, "stream", "streams"), r.name(f.Dangling[0].Event))
	}
	if f.Unsents > 0 {
		fmt.Fprintf(w, "\n%s of what nobody sent: events are missing\n",
			report.Plural(f.Unsents, "receipt", "receipts"))
		for _, u := range f.Unsent[:min(len(f.Unsent), 10)] {
			fmt.Fprintf(w, "  event %s: %s\n", r.name(u.Event), report.Bytes(uint64(u.Bytes)))
		}
	}
	if n := o.Circular(); n > 0 {
		fmt.Fprintf(w, "\n%s before themselves, or after such\n", report.Plural(n, "event happened", "events happened"))
		names := r.circle()
		const most = 20
		more := ""
		if len(names) > most {
			names, more = names[:most], " …"
		}
		fmt.Fprintf(w, "  a circle: each of the events %s%s comes after the next, the last after the first\n",
			strings.Join(names, ", "), more)
	}
	return nil
}

// circle names the events of a circle, without those that only say more of others.
func (r *Ordering) circle() (names []string) {
	for _, i := range r.o.Circle() {
		if r.o.Counts(int(i)) {
			names = append(names, r.name(int(i)))
		}
	}
	return names
}

// clockCells says how far a clock is ahead.
func clockCells(s *happens.Skew) []string {
	cell := func(ns int64, known bool) string {
		if !known {
			return "–"
		}
		return time.Duration(ns).String()
	}
	return []string{cell(s.NS, s.Bounded()), cell(s.Min, s.HasMin()), cell(s.Max, s.HasMax())}
}

// Printer appends an event of a tape as a line of text to dst.
type Printer func(dst []byte, t *trace.Tape, ev *event.Event) []byte

// WriteEvents writes all events, each after all that it depends on: with print as lines,
// without as JSON objects.
func (r *Ordering) WriteEvents(w io.Writer, print Printer) error {
	readers := make([]lookup, len(r.tapes))
	for i, t := range r.tapes {
		readers[i] = lookup{events: t.NewEventReader(), early: map[uint64]*event.Event{}}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	var line []byte
	for _, at := range r.o.Schedule() {
		i := int(at)
		tape, seq := r.o.Event(i)
		ev, err := readers[tape].event(seq)
		if err != nil {
			return err
		}
		if !r.o.Counts(i) {
			continue
		}
		host := r.tapes[tape].Host(ev.Host).Host
		if print == nil {
			v := eventJSON{r.name(i), r.o.Clock(i), host, ev.PID, ev.TID, ev.Spec().Name, r.o.Wall(i), []edgeJSON{}}
			from, why := r.o.Before(i)
			for k := range from {
				v.After = append(v.After, edgeJSON{r.name(int(from[k])), why[k].String()})
			}
			if err := enc.Encode(&v); err != nil {
				return err
			}
			continue
		}
		line = strconv.AppendUint(line[:0], uint64(r.o.Clock(i)), 10)
		line = append(append(line, ' '), r.name(i)...)
		line = append(line, ' ')
		if len(r.o.Hosts()) > 1 {
			line = append(append(line, report.Printable(host)...), ':')
		}
		line = print(line, r.tapes[tape], ev)
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

type eventJSON struct {
	Event  string     `json:"event"`
	Clock  uint32     `json:"clock"`
	Host   string     `json:"host"`
	PID    uint32     `json:"pid"`
	TID    uint32     `json:"tid"`
	Op     string     `json:"op"`
	WallNS int64      `json:"wall_ns"`
	After  []edgeJSON `json:"after"` // in other threads
}

type edgeJSON struct {
	Event string `json:"event"`
	Why   string `json:"why"`
}

// lookup reads the events of a tape in nearly their order.
type lookup struct {
	events *trace.EventReader
	next   uint64
	now    event.Event
	early  map[uint64]*event.Event // that were passed by, until they are wanted
}

func (l *lookup) event(seq uint64) (*event.Event, error) {
	if ev := l.early[seq]; ev != nil {
		delete(l.early, seq)
		return ev, nil
	}
	for {
		if err := l.events.Next(&l.now); err != nil {
			return nil, err
		}
		if l.next = l.now.Seq + 1; l.now.Seq == seq {
			return &l.now, nil
		}
		if l.now.Seq > seq {
			return nil, errors.New("an event was passed by twice")
		}
		l.early[l.now.Seq] = l.now.Clone()
	}
}
