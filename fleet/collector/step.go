// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"time"
)

// leastStep is by how much the clock of this machine has to be set for hosts' times to follow. Slewing, which is how a
// clock is kept right, is far below it.
const leastStep = 5 * time.Second

// clockStep sees that the clock of this machine was set.
type clockStep struct {
	wall   time.Time
	steady time.Duration
}

// look returns by how much the clock was set since the last look, 0 if it was not.
func (s *clockStep) look(wall time.Time, steady time.Duration) (step time.Duration) {
	if !s.wall.IsZero() {
		step = time.Duration(wall.UnixNano()-s.wall.UnixNano()) - (steady - s.steady)
	}
	s.wall, s.steady = wall, steady
	if step.Abs() < leastStep {
		return 0
	}
	return step
}

// followClock moves the times at which hosts were heard when the clock of this machine was set: how long ago that was
// has not changed. Otherwise a step forward would end the streams of all hosts as silent, and after a step back a host
// could be silent, or come with another boot, for as long as the step was without a word.
func (c *Collector) followClock() {
	step := c.step.look(c.o.Clock(), c.o.Steady())
	if step == 0 {
		return
	}
	c.o.Note(fmt.Sprintf("the clock of this machine was set by %s: the times of hosts follow it",
		step.Round(time.Second)))
	for _, h := range c.hosts {
		h.LastNS += step.Nanoseconds()
		h.dirty = true
		for _, o := range h.open {
			o.lastNS += step.Nanoseconds()
		}
	}
	d := &c.handshakes
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.hosts {
		v.lastNS += step.Nanoseconds()
	}
}
