// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"fmt"
	"io"

	"github.com/iotape/iotape/event"
)

// Given gives the events of a tape in an order that a Stage found before. It is used like a Stage.
type Given struct {
	next  func(*event.Event) error
	arch  event.Arch
	order orderReader
	held  map[uint64]*slot // read, and not yet given
	given *slot            // whose memory the last event has
	pool  []*slot
}

// NewGiven returns a Given. next is as for New, and gives the events of the tape that the order is of.
func NewGiven(next func(*event.Event) error, arch event.Arch, o *Order) *Given {
	return &Given{next: next, arch: arch, order: orderReader{b: o.runs}, held: map[uint64]*slot{}}
}

// Unexplained returns which parts of the last event's result are not explained.
func (g *Given) Unexplained() Unexplained { return g.order.unexplained }

// Next is as Stage.Next.
func (g *Given) Next(ev *event.Event) error {
	if g.given != nil {
		g.pool, g.given = append(g.pool, g.given), nil
	}
	if len(g.order.b) == 0 && g.order.left == 0 {
		if err := g.next(ev); err != nil {
			return err
		}
		return fmt.Errorf("event %d is not in it: %w", ev.Seq, ErrOrder)
	}
	if err := g.order.read(); err != nil {
		return err
	}
	if err := g.find(ev); err != nil {
		return err
	}
	switch g.order.part {
	case partOpen:
		return g.split(ev)
	case partLink:
		if len(ev.Paths) > 0 {
			ev.Paths[0].Raw, ev.Paths[0].Abs = g.order.name, g.order.name
		}
	}
	return nil
}

// find exchanges ev with the event whose turn it is, and reads those before it.
func (g *Given) find(ev *event.Event) error {
	seq := g.order.seq
	if sl := g.held[seq]; sl != nil {
		delete(g.held, seq)
		*ev, sl.ev = sl.ev, *ev
		g.given = sl
		return nil
	}
	for {
		if err := g.next(ev); err == io.EOF {
			return fmt.Errorf("event %d is in it, and not in the tape: %w", seq, ErrOrder)
		} else if err != nil {
			return err
		}
		if ev.Seq == seq {
			return nil
		}
		if len(g.held) > maxAhead {
			return fmt.Errorf("event %d is far from its place: %w", seq, ErrOrder)
		}
		sl := g.slot()
		*ev, sl.ev = sl.ev, *ev
		sl.copyBuffers()
		g.held[sl.ev.Seq] = sl
	}
}

func (g *Given) slot() *slot {
	n := len(g.pool)
	if n == 0 {
		return &slot{}
	}
	sl := g.pool[n-1]
	g.pool = g.pool[:n-1]
	sl.inline = sl.inline[:0]
	return sl
}

// split leaves what an open emptied for its own place.
func (g *Given) split(ev *event.Event) error {
	if !ev.OK() || ev.Kind != event.Call || ev.Spec().Arg("flags") < 0 || ev.FileArg(event.ResultArg) == nil {
		return fmt.Errorf("event %d is at two places: %w", ev.Seq, ErrOrder)
	}
	sl := g.slot()
	splitOpen(ev, &sl.ev, g.arch)
	g.held[ev.Seq] = sl
	return nil
}
