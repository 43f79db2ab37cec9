// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// Limits of what is said of an event.
const (
	maxCauses    = 50
	maxLookAhead = 1 << 20 // events that are looked at for what comes after one
	// MaxContent is how many bytes of content one answer has at most.
	MaxContent = 4096
	// lineBytes is how many bytes of each buffer stand in a line.
	lineBytes = 48
)

// ErrNoEvent says that there is no such event.
var ErrNoEvent = errors.New("there is no such event")

// Detail is all that is known of an event.
type Detail struct {
	EventRef
	Fields   json.RawMessage `json:"fields"` // as iotape print --json has them
	Row      int             `json:"row"`    // -1: it is on none
	FromNS   int64           `json:"from_ns"`
	ToNS     int64           `json:"to_ns"`
	Untimed  bool            `json:"untimed,omitempty"` // ToNS is not known: it is for the order alone
	Work     string          `json:"work"`
	Previous *uint64         `json:"previous,omitempty"` // of its thread
	Next     *uint64         `json:"next,omitempty"`
	Contents []Content       `json:"contents"`
	Before   []Cause         `json:"before"` // in other threads
	After    []Cause         `json:"after"`
	Ordered  bool            `json:"ordered"` // Before and After are known
}

// EventRef names an event.
type EventRef struct {
	Tape int    `json:"tape"`
	Seq  uint64 `json:"seq"`
	Line string `json:"line"` // as iotape print has it
	AtNS int64  `json:"at_ns"`
}

// Content is memory of an event.
type Content struct {
	Index   int    `json:"index"` // to ask for it
	Name    string `json:"name"`  // of the argument
	Out     bool   `json:"out"`   // the kernel wrote it
	Bytes   int64  `json:"bytes"`
	Kept    int64  `json:"kept"`
	Missing int64  `json:"missing"`
	Omitted bool   `json:"omitted"`
}

// Cause is an event that comes before another one.
type Cause struct {
	EventRef
	Why string `json:"why"`
}

// read reads an event.
func (s *Scene) read(tape int, seq uint64) (*event.Event, error) {
	if tape < 0 || tape >= len(s.tapes) || seq >= s.tapes[tape].Manifest().Counts.Events {
		return nil, ErrNoEvent
	}
	r := s.tapes[tape].NewEventReader()
	if err := r.Seek(seq); err != nil {
		return nil, err
	}
	ev := new(event.Event)
	if err := r.Next(ev); err != nil {
		return nil, err
	}
	if ev.Seq != seq {
		return nil, fmt.Errorf("event %d is in a damaged part of the tape: %w", seq, trace.ErrCorrupt)
	}
	return ev, nil
}

// printer returns a printer of a tape's events.
func (s *Scene) printer(t *tape) *stracetext.Printer {
	var scratch []byte
	m := t.Manifest()
	return stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, MaxBytes: lineBytes, Hosts: m.Hosts,
		Content: func(b *event.Buf, n int) []byte {
			scratch, _ = t.ContentRange(b, 0, n, scratch[:0])
			return scratch
		}})
}

// maxLine bounds a line, in bytes: a call may have very many arguments.
const maxLine = 2000

// ref describes an event in a line.
func (s *Scene) ref(tape int, ev *event.Event) EventRef {
	t := s.tapes[tape]
	line := s.printer(t).Append(nil, ev)
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	more := ""
	if len(line) > maxLine {
		line, more = line[:maxLine], "…"
	}
	return EventRef{tape, ev.Seq, strings.ToValidUTF8(string(line), "\ufffd") + more, ev.Enter + t.shift(ev.Host)}
}

// Event returns all that is known of an event.
func (s *Scene) Event(tape int, seq uint64) (*Detail, error) {
	ev, err := s.read(tape, seq)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, io := s.tapes[tape], ev.Traffic()
	d := &Detail{EventRef: s.ref(tape, ev), Fields: s.printer(t).AppendJSON(nil, ev), Row: -1,
		Untimed: ev.Flags&event.Untimed != 0,
		FromNS:  ev.Enter + t.shift(ev.Host), ToNS: ev.Exit + t.shift(ev.Host), Work: report.WorkOf(ev, &io).String(),
		Contents: []Content{}, Before: []Cause{}, After: []Cause{}}
	if l, ok := t.laneOf(ev); ok && l < t.index.Lines() {
		d.Row = t.rows[l]
		before, _, after, ok, err := t.index.Near(l, seq)
		if err != nil {
			return nil, err
		}
		if ok[0] {
			d.Previous = &before.ID
		}
		if ok[2] {
			d.Next = &after.ID
		}
	}
	spec := ev.Spec()
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		name := fmt.Sprintf("argument %d", b.Arg)
		if b.Arg >= 0 && int(b.Arg) < len(spec.Args) {
			name = spec.Args[b.Arg].Name
		}
		d.Contents = append(d.Contents, Content{i, name, b.Dir == event.Out, b.Len, b.Kept(), b.Missing, b.Omitted})
	}
	if s.order != nil {
		d.Ordered = true
		if err := s.causes(d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// laneOf returns the lane of an event.
func (t *tape) laneOf(ev *event.Event) (lane int, ok bool) {
	for i := range t.Lanes {
		if l := &t.Lanes[i]; l.Host == ev.Host && l.TID == ev.TID && l.First <= ev.Seq {
			lane, ok = i, true
		}
	}
	if !ok && t.Others {
		return maxLanes, true
	}
	return lane, ok
}

// causes finds what comes right before an event, and right after it, in other threads.
func (s *Scene) causes(d *Detail) error {
	i := s.order.Position(d.Tape, d.Seq)
	from, why := s.order.Before(i)
	for k := range from[:min(len(from), maxCauses)] {
		c, err := s.cause(int(from[k]), why[k].String())
		if err != nil {
			return err
		}
		d.Before = append(d.Before, c)
	}
	// Events after it that name it: those soon after, and in all tapes.
	for tape := range s.tapes {
		start := s.order.Position(tape, 0)
		if tape == d.Tape {
			start = i
		}
		end := min(start+maxLookAhead, s.order.Position(tape, s.tapes[tape].Manifest().Counts.Events))
		for j := start; j < end && len(d.After) < maxCauses; j++ {
			from, why := s.order.Before(j)
			for k := range from {
				if int(from[k]) != i {
					continue
				}
				c, err := s.cause(j, why[k].String())
				if err != nil {
					return err
				}
				d.After = append(d.After, c)
			}
		}
	}
	return nil
}

func (s *Scene) cause(i int, why string) (Cause, error) {
	tape, seq := s.order.Event(i)
	ev, err := s.read(tape, seq)
	if err != nil {
		return Cause{}, err
	}
	return Cause{s.ref(tape, ev), why}, nil
}

// Bytes are some of the bytes of an event's memory.
type Bytes struct {
	Offset  int64  `json:"offset"`
	Total   int64  `json:"total"` // that the tape has, or could have
	Missing int    `json:"missing"`
	Data    []byte `json:"data"` // base64 in JSON; zeros where they are missing
}

// Content returns up to MaxContent bytes of an event's memory from an offset on.
func (s *Scene) Content(tape int, seq uint64, index int, offset int64) (*Bytes, error) {
	ev, err := s.read(tape, seq)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(ev.Bufs) || offset < 0 {
		return nil, ErrNoEvent
	}
	b := &ev.Bufs[index]
	total := int64(len(b.Inline))
	if len(b.Refs) > 0 {
		total = 0
	}
	for _, r := range b.Refs {
		total += int64(r.Len)
	}
	data, missing := s.tapes[tape].ContentRange(b, offset, MaxContent, []byte{})
	return &Bytes{offset, total, missing, data}, nil
}
