// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/iotape/iotape/record/internal/bpf"
)

// tsc reads the processor's time stamp counter.
func tsc() uint64

// timer relates the time stamp counter to CLOCK_MONOTONIC.
type timer struct {
	first, last clock
}

// sample reads both clocks, as near to each other as that can be had.
func sample() (counter, ns uint64) {
	const tries = 5
	best := ^uint64(0)
	for range tries {
		a := tsc()
		t := bpf.Now()
		b := tsc()
		if b-a < best {
			best, counter, ns = b-a, a+(b-a)/2, t
		}
	}
	return counter, ns
}

func newTimer() *timer {
	const window = time.Millisecond
	t := &timer{}
	t.first.BaseTSC, t.first.BaseNS = sample()
	time.Sleep(window)
	t.renew()
	return t
}

// renew measures the counter's rate again.
func (t *timer) renew() clock {
	c, ns := sample()
	t.last = clock{BaseTSC: c, BaseNS: ns, Mult: t.last.Mult}
	if c > t.first.BaseTSC && ns > t.first.BaseNS {
		elapsed, ticks := ns-t.first.BaseNS, c-t.first.BaseTSC
		hi, lo := bits.Mul64(elapsed, 1<<32)
		if hi < ticks {
			t.last.Mult, _ = bits.Div64(hi, lo, ticks)
		}
	}
	return t.last
}

// ns converts a reading of the counter.
func (t *timer) ns(counter uint64) uint64 {
	d := int64(counter - t.last.BaseTSC)
	neg := d < 0
	if neg {
		d = -d
	}
	hi, lo := bits.Mul64(uint64(d), t.last.Mult)
	n := hi<<32 | lo>>32
	if neg {
		return t.last.BaseNS - n
	}
	return t.last.BaseNS + n
}

// publish makes a conversion the one that counts.
func (c *control) publish(k clock) {
	next := (c.Clock + 1) % clocks
	c.Clocks[next] = k
	atomic.StoreUint64(&c.Clock, next)
}
