// SPDX-License-Identifier: Apache-2.0

package straceread

// clock makes times of what stands in front of lines. Where that is too coarse to
// order them, or nothing, each line is at least one µs after the one before it.
type clock struct {
	now   uint64
	last  int64 // ofDay: of the line before
	days  int64 // ofDay: since the first line
	began bool
	rough bool  // what the last line said does not say how long anything took
	ms    bool  // what the last line said does not order it
	back  int64 // by how much the machine's clock was set back
}

func (c *clock) at(p *prefix) uint64 {
	const step, day = 1000, 24 * 3600e9
	stamp := p.stamp
	c.rough = p.kind == noStamp || p.whole
	c.ms = c.rough || p.ms
	switch p.kind {
	case noStamp:
		c.now += step
		return c.now
	case sinceLine:
		if c.ms {
			stamp = max(stamp, step)
		}
		c.now = max(c.now+uint64(max(stamp, 0)), step)
		return c.now
	case ofDay:
		if c.began && stamp < c.last-day/2 {
			c.days++ // midnight
		}
		c.last, c.began = stamp, true
		stamp += c.days * day
	}
	now := uint64(max(stamp+c.back, step))
	if p.whole || p.ms && now+backwards > c.now {
		now = max(now, c.now+step)
	}
	c.now = now
	return now
}

// backwards is how far a thread's time must go back to be a clock that was set back, ns.
const backwards = 1e9

// setBack says that the machine's clock was set back: from the line at hand on, times are later by as much.
func (c *clock) setBack(by uint64) uint64 {
	c.back += int64(min(by, 1<<62))
	c.now += by
	return c.now
}

// passed moves a clock that is too coarse to the end of a call: what stands behind a
// call of one line came after it.
func (c *clock) passed(exit uint64) {
	if c.ms {
		c.now = max(c.now, exit)
	}
}
