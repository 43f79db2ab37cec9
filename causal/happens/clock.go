// SPDX-License-Identifier: Apache-2.0

package happens

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Clock puts the events of a tape of several hosts on one clock. The clock of a tape of one host
// is the host's own.
type Clock struct {
	First, Last int64 // of all events, corrected, ns
	shift       []int64
}

// NewClock reads the order of a tape of several hosts. Of a tape of one host it reads nothing.
func NewClock(t *trace.Tape) (*Clock, error) {
	m := t.Manifest()
	c := &Clock{First: m.FirstNS, Last: m.LastNS}
	if len(m.Hosts) < 2 {
		return c, nil
	}
	o, err := Load([]*trace.Tape{t})
	if err != nil {
		return nil, err
	}
	host := func(i int) uint32 { return o.Lines()[o.Line(i)].Host }
	firsts := make([]First, len(m.Hosts))
	lasts := make([]int64, len(m.Hosts))
	for i := range o.Len() {
		h := host(i)
		from, to := o.Wall(i)-m.Hosts[h].Wall(0), o.Exit(i)-m.Hosts[h].Wall(0)
		if f := &firsts[h]; !f.Known || from < f.NS {
			*f = First{from, true}
		}
		lasts[h] = max(lasts[h], to)
	}
	c.shift = Align(m.Hosts, firsts, o.Skews())
	c.First, c.Last = 0, 0
	for h := range firsts {
		if firsts[h].Known {
			c.First, c.Last = min(c.First, firsts[h].NS+c.shift[h]), max(c.Last, lasts[h]+c.shift[h])
		}
	}
	return c, nil
}

// Correct puts an event of the tape on the clock.
func (c *Clock) Correct(ev *event.Event) {
	if int(ev.Host) < len(c.shift) {
		ev.Enter += c.shift[ev.Host]
		ev.Exit += c.shift[ev.Host]
	}
}
