package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// ordering is what to say of the order of events.
type ordering struct {
	events, json bool
	before       []string
	tapes        []*trace.Tape
	o            *happens.Order
}

func newOrder(c *console) *cobra.Command {
	var r ordering
	cmd := &cobra.Command{
		Use:   "order TAPE...",
		Short: "Order the events of several hosts by cause, whatever their clocks say",
		Long: `Order finds out which events of all TAPEs must have come before which: within a
thread, from fork to start, from end to wait, from connect to accept, from the bytes
that were sent to their receipt, from waker to woken. It says how far apart the clocks
of the hosts are, and what contradicts itself: receipts of what nobody sent, events
that come before themselves. A stream whose other side is in no tape is counted.

--events lists all events, each after all that it depends on, with its logical clock:
the length of the longest chain of events before it. --before A,B says whether event A
happened before event B. Events are numbers in their tape, as iotape print --json has
them; 2:1000 is event 1000 of the second TAPE.

iotape merge joins tapes by their clocks, iotape convert writes one for ShiViz.`,
		Example: `  iotape order client.tape server.tape
  iotape order zookeeper.log --events
  iotape order client.tape server.tape --before 1:200,2:40`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: exits("0  ordered, and nothing contradicts itself; with --before: it happened before", "1  something contradicts itself; with --before: it did not", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				t, err := openTape(cmd.Context(), name)
				if err != nil {
					return err
				}
				defer t.Close()
				r.tapes = append(r.tapes, t)
			}
			return r.run(c)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&r.events, "events", false, "list the events in their order")
	f.StringSliceVar(&r.before, "before", nil, "say whether event `A,B`: A happened before B")
	f.BoolVar(&r.json, "json", false, "one JSON object; with --events, one for each event")
	cmd.MarkFlagsMutuallyExclusive("events", "before")
	return cmd
}

func (r *ordering) run(c *console) error {
	var pair [2]int
	if len(r.before) > 0 {
		if len(r.before) != 2 {
			return usageError{fmt.Errorf("--before wants two events, as in --before 1:200,2:40")}
		}
	}
	var err error
	if r.o, err = happens.Load(r.tapes); err != nil {
		return err
	}
	for i, s := range r.before {
		if pair[i], err = r.position(s); err != nil {
			return usageError{err}
		}
	}
	contradicts := r.o.Circular() > 0 || r.o.Faults().Unsents > 0
	if len(r.before) > 0 {
		contradicts = !r.o.HappenedBefore(pair[0], pair[1])
	}
	err = c.print(func(w *bufio.Writer) error {
		switch {
		case len(r.before) > 0:
			return r.answer(w, pair[0], pair[1])
		case r.events:
			return r.list(w)
		case r.json:
			return r.summaryJSON(w)
		}
		return r.summary(w)
	})
	if err == nil && contradicts {
		return &statusError{Status: exitFound}
	}
	return err
}

// position reads the number of an event: SEQ, or TAPE:SEQ.
func (r *ordering) position(s string) (int, error) {
	tape := 1
	number := s
	if first, rest, ok := strings.Cut(s, ":"); ok {
		n, err := strconv.Atoi(first)
		if err != nil || n < 1 || n > len(r.tapes) {
			return 0, fmt.Errorf("--before %s: there are %s", s, report.Plural(len(r.tapes), "tape", "tapes"))
		}
		tape, number = n, rest
	}
	seq, err := strconv.ParseUint(number, 10, 63)
	if err != nil || seq >= r.tapes[tape-1].Manifest().Counts.Events {
		return 0, fmt.Errorf("--before %s: there is no such event", s)
	}
	return r.o.Position(tape-1, seq), nil
}

// name is how an event is called: its number, with that of its tape if there are several.
func (r *ordering) name(i int) string {
	tape, seq := r.o.Event(i)
	if len(r.tapes) == 1 {
		return strconv.FormatUint(seq, 10)
	}
	return fmt.Sprintf("%d:%d", tape+1, seq)
}

func (r *ordering) answer(w *bufio.Writer, a, b int) error {
	relation := "concurrent"
	switch {
	case r.o.HappenedBefore(a, b):
		relation = "before"
	case r.o.HappenedBefore(b, a):
		relation = "after"
	case a == b:
		relation = "same"
	}
	if r.json {
		return json.NewEncoder(w).Encode(map[string]any{"version": 1, "a": r.name(a), "b": r.name(b), "relation": relation})
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

func (r *ordering) summaryJSON(w *bufio.Writer) error {
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
	}{Version: 1, Events: o.Len(), Threads: len(o.Lines()), Edges: o.Edges(), Circular: o.Circular(), Circle: []string{}, Unsent: f.Unsents, Dangling: f.Danglings, Skew: []skewJSON{}}
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
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (r *ordering) summary(w *bufio.Writer) error {
	o, f := r.o, r.o.Faults()
	own, longest := 0, uint32(0)
	for i := range o.Len() {
		if o.Counts(i) {
			own++
			longest = max(longest, o.Clock(i))
		}
	}
	fmt.Fprintf(w, "%s events of %s on %s; %s between threads; the longest chain has %s\n", report.Count(uint64(own)), report.Plural(len(o.Lines()), "thread", "threads"),
		report.Plural(len(o.Hosts()), "host", "hosts"), report.Plural(o.Edges(), "dependency", "dependencies"), report.Plural(uint64(longest)+1, "event", "events"))
	if len(o.Hosts()) > 1 {
		w.WriteByte('\n')
		t := report.Table{Head: []string{"host", "clock is ahead by", "at least", "at most"}, Left: 1}
		for i, s := range o.Skews() {
			t.Add(append([]string{report.Printable(o.Hosts()[i].Host)}, clockCells(&s)...)...)
		}
		if err := t.Write(w); err != nil {
			return err
		}
		for i, s := range o.Skews() {
			if s.Drift {
				fmt.Fprintf(w, "no difference of the clocks of %s fits all messages: they were not taken at the same moment, or drift\n", report.Printable(o.Hosts()[i].Host))
			}
		}
	}
	if f.Danglings > 0 {
		fmt.Fprintf(w, "\n%s of which the other side is in no tape; the first at event %s\n", report.Plural(f.Danglings, "stream", "streams"), r.name(f.Dangling[0].Event))
	}
	if f.Unsents > 0 {
		fmt.Fprintf(w, "\n%s of what nobody sent: events are missing\n", report.Plural(f.Unsents, "receipt", "receipts"))
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
		fmt.Fprintf(w, "  a circle: each of the events %s%s comes after the next, the last after the first\n", strings.Join(names, ", "), more)
	}
	return nil
}

// circle names the events of a circle, without those that only say more of others.
func (r *ordering) circle() (names []string) {
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

// list writes the events in their order.
func (r *ordering) list(w *bufio.Writer) error {
	var scratch []byte
	var of *trace.Tape
	pr := stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, MaxBytes: 32, Content: func(b *event.Buf, n int) []byte {
		scratch = content(of, b, n, scratch[:0])
		return scratch
	}})
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
		if r.json {
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
		of = r.tapes[tape]
		line = strconv.AppendUint(line[:0], uint64(r.o.Clock(i)), 10)
		line = append(append(line, ' '), r.name(i)...)
		line = append(line, ' ')
		if len(r.o.Hosts()) > 1 {
			line = append(append(line, report.Printable(host)...), ':')
		}
		w.Write(pr.Append(line, ev))
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
