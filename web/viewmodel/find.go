// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/web/spanindex"
)

// findTime bounds one answer of Find; who wants more asks again from where it stopped.
const findTime = 2 * time.Second

// Found is the answer of Find.
type Found struct {
	Event *EventRef `json:"event"` // nil if none was found yet
	Next  uint64    `json:"next"`  // where to go on
	End   bool      `json:"end"`   // there are no more
}

// Find returns the first event of a tape, from a number on, that fits a filter. What a
// filter asks of the past it knows from there on.
func (s *Scene) Find(ctx context.Context, tape int, from uint64, text string) (*Found, error) {
	if tape < 0 || tape >= len(s.tapes) || s.o.Filter == nil {
		return nil, ErrNoEvent
	}
	t := s.tapes[tape]
	accepts, err := s.accepts(t, text)
	if err != nil {
		return nil, err
	}
	r := t.NewEventReader()
	if err := r.Seek(from); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	out := &Found{Next: from}
	var ev event.Event
	for n := 0; ; n++ {
		if n&0xff == 0 && ctx.Err() != nil {
			return out, nil
		}
		if err := r.Next(&ev); errors.Is(err, io.EOF) {
			out.End = true
			return out, nil
		} else if err != nil {
			continue
		}
		out.Next = ev.Seq + 1
		if accepts(&ev) && ev.Kind == event.Call {
			s.mu.RLock()
			defer s.mu.RUnlock()
			ref := s.ref(tape, &ev)
			out.Event = &ref
			return out, nil
		}
	}
}

// maxList is how many calls a list has.
const maxList = 200

// Listed is a call in a list.
type Listed struct {
	Row    int    `json:"row"`
	Tape   int    `json:"tape"`
	Seq    uint64 `json:"seq"`
	AtNS   int64  `json:"at_ns"`
	TookNS *int64 `json:"took_ns,omitempty"` // nil: it is not known
	Work   uint8  `json:"work"`
	Failed bool   `json:"failed"`
	Bytes  int64  `json:"bytes"`
}

// List returns the first calls of a window's rows, by when they began, and whether there
// are more.
func (s *Scene) List(ctx context.Context, w *Window) (list []Listed, more bool, err error) {
	if err := s.check(w); err != nil {
		return nil, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	list = []Listed{}
	for _, r := range w.Rows {
		t := s.tapes[s.rows[r.Row].Tape]
		for _, l := range s.lanesOf(r) {
			if ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			if l >= t.index.Lines() {
				continue
			}
			shift := t.shift(t.Lanes[l].Host)
			err := t.index.Marks(l, spanindex.Window{From: w.FromNS - shift, To: w.ToNS - shift, Grain: -1,
				Limit: maxList}, func(m *spanindex.Mark) {
				c := Listed{Row: t.rows[l], Tape: s.rows[r.Row].Tape, Seq: m.First, AtNS: m.From + shift,
					Work: m.Kind(), Failed: m.Failed > 0, Bytes: clamp(m.Bytes)}
				if took := m.To - m.From; m.Untimed == 0 {
					c.TookNS = &took
				}
				list = append(list, c)
			})
			if more = more || errors.Is(err, spanindex.ErrLimit); err != nil && !errors.Is(err, spanindex.ErrLimit) {
				return nil, false, err
			}
		}
		if len(list) > 4*maxList {
			list = firstCalls(list)
			more = true
		}
	}
	more = more || len(list) > maxList
	return firstCalls(list), more, nil
}

func firstCalls(list []Listed) []Listed {
	slices.SortStableFunc(list, func(a, b Listed) int { return int(min(max(a.AtNS-b.AtNS, -1), 1)) })
	return list[:min(len(list), maxList)]
}
