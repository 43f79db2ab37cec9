// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

// TestDelay has two threads on one processor, by turns: what one waits for the other is
// not computing, but for what the clock's ticks leave open.
func TestDelay(t *testing.T) {
	x := &tape{t: t}
	const slice = 10 * 1000 * 1000
	var cpu, now int64
	for range 100 {
		x.storage(1, now, now+1000, event.OpPread64, func(e *event.Event) { e.CPU = cpu })
		cpu += slice
		now += 2 * slice
	}
	_, sum, err := Annotate(x.all())
	if err != nil {
		t.Fatal(err)
	}
	n := sum.Nodes[0]
	const want = 99 * slice
	if diff := n.Compute - want; diff < -tickNS || diff > tickNS {
		t.Errorf("computing %d, want %d and at most a tick more or less", n.Compute, want)
	}
	if diff := n.Delay - want; diff < -tickNS || diff > tickNS {
		t.Errorf("delay %d, want %d and at most a tick more or less", n.Delay, want)
	}
}

// delays says how long an event's thread waited for a processor.
func delays(before, within int64) func(*event.Event) {
	return func(e *event.Event) {
		e.Flags, e.DelayBefore, e.DelayWithin = event.Delays, uint32(before), uint32(within)
	}
}

// TestDelaysThatAreTold: where calls say how long their threads waited for a processor,
// computing is what went by less that, and clocks that are behind do not matter.
func TestDelaysThatAreTold(t *testing.T) {
	summed := func(x *tape, compute, storage, delay int64) {
		t.Helper()
		_, sum, err := Annotate(x.all())
		if err != nil {
			t.Fatal(err)
		}
		if n := sum.Nodes[0]; n.Compute != compute || n.Storage != storage || n.Delay != delay {
			t.Errorf("computing %d, storage %d, delay %d, want %d, %d, %d", n.Compute, n.Storage, n.Delay, compute,
				storage, delay)
		}
	}
	still := func(f func(*event.Event)) func(*event.Event) { // whose clock stands still
		return func(e *event.Event) { e.CPU = 0; f(e) }
	}
	t.Run("between calls", func(t *testing.T) {
		x := &tape{t: t}
		x.storage(1, 0, 0, event.OpPread64, still(delays(5*ms, 0)))
		x.woken(2, 3, 1, event.OpRead) // so wake-ups were recorded
		x.storage(1, 9*ms, 10*ms, event.OpPread64, still(delays(2*ms, ms/4)))
		x.storage(1, 20*ms, 21*ms, event.OpPread64, still(delays(0, 0)))
		x.storage(1, 22*ms, 23*ms, event.OpPread64, still(delays(3*ms, 5*ms))) // a few µs too much, in earnest
		x.wantAnnotated("2: compute 7ms", "3: compute 10ms")
		summed(x, 17*ms, 7*ms/4, 2*ms+ms/4+ms+ms)
	})
	t.Run("in calls that a replay does not make", func(t *testing.T) {
		x := &tape{t: t}
		x.storage(1, 0, 0, event.OpPread64, still(delays(0, 0)))
		x.woken(2, 3, 1, event.OpRead)
		x.add(1, 2*ms, 9*ms, event.OpGetpid, still(delays(ms, 4*ms)))
		x.storage(1, 10*ms, 11*ms, event.OpPread64, still(delays(0, 0)))
		x.wantAnnotated("2: compute 1ms", "3: compute 4ms")
	})
	t.Run("accesses in between say nothing", func(t *testing.T) {
		x := &tape{t: t}
		x.storage(1, 0, 0, event.OpPread64, still(delays(0, 0)))
		x.woken(2, 3, 1, event.OpRead)
		x.storage(1, 4*ms, 5*ms, event.OpMmapPread, still(func(*event.Event) {}))
		x.storage(1, 6*ms, 7*ms, event.OpPread64, still(delays(3*ms, 0)))
		x.storage(1, 8*ms, 9*ms, event.OpPread64, still(delays(0, 0)))
		x.wantAnnotated("2: compute 2ms", "4: compute 1ms")
		summed(x, 3*ms, 3*ms, 3*ms)
	})
	t.Run("more than can be told", func(t *testing.T) {
		x := &tape{t: t}
		x.storage(1, 0, 0, event.OpPread64, still(delays(0, 0)))
		x.woken(2, 3, 1, event.OpRead)
		x.storage(1, 10_000*ms, 10_001*ms, event.OpPread64, func(e *event.Event) {
			e.CPU = 3000 * ms
			delays(1<<32-1, 0)(e)
		})
		x.wantAnnotated("2: compute 3s")
	})
	t.Run("who slept between calls did not compute", func(t *testing.T) {
		x := &tape{t: t}
		x.storage(1, 0, 0, event.OpPread64, still(delays(0, 0)))
		x.woken(1, 0, 50*ms, 0) // it was held until then
		x.storage(1, 61*ms, 62*ms, event.OpPread64, func(e *event.Event) { e.CPU = 10 * ms; delays(ms, 0)(e) })
		_, sum, err := Annotate(x.all())
		if err != nil {
			t.Fatal(err)
		}
		if n := sum.Nodes[0]; n.Compute < 10*ms || n.Compute > 10*ms+tickNS || n.Compute+n.Delay != 61*ms {
			t.Errorf("computing %d, delay %d", n.Compute, n.Delay)
		}
	})
	t.Run("who had to wait did not sleep", func(t *testing.T) { // without wake-ups
		x := &tape{t: t}
		x.add(1, 0, 0, event.OpGetpid, delays(0, 0))
		x.add(1, ms, 5*ms, event.OpPoll, delays(0, 4*ms-1000))
		x.add(1, 6*ms, 10*ms, event.OpPoll, delays(0, 2*ms))
		x.add(1, 11*ms, 11*ms, event.OpGetpid, delays(0, 0))
		x.wantAnnotated("1: compute 1ms", "2: compute 1.001ms, sleep 2ms", "3: compute 1ms")
	})
}

// TestClockBehind: a clock that is behind by up to a tick takes nothing away from what
// was computed.
func TestClockBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c cpuClock
		c.start(0)
		var used, computed int64
		for range rapid.IntRange(1, 100).Draw(t, "calls") {
			ns := rapid.Int64Range(0, 20*ms).Draw(t, "ns")
			used += ns
			computed += ns - c.gap(ns, max(0, used-rapid.Int64Range(0, tickNS).Draw(t, "behind")))
		}
		if computed != used {
			t.Fatalf("%d of %d ns", computed, used)
		}
	})
}
