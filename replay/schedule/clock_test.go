// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// A thread computes for as long as is wanted by its CPU clock, however the processor is
// shared, and never longer than it takes to see that; where it keeps the processor, the
// CPU clock is asked once.
func TestCompute(t *testing.T) {
	for _, tt := range []struct {
		name         string
		share        int64 // of the processor, one in so many
		before, used int64 // ns: that went by since the last call, and that the thread used
		think        int64
		asked        int
	}{
		{"alone", 1, 0, 0, 10_000, 1},
		{"after checks", 1, 4_000, 4_000, 10_000, 1},
		{"after more checks than that", 1, 40_000, 40_000, 10_000, 1},
		{"after planning", 1, 40_000, 1_000, 10_000, 2},
		{"nothing to do", 1, 0, 0, 0, 0},
		{"with another", 2, 0, 0, 10_000, 2},
		{"with three", 4, 0, 0, 1_000_000, 2},
		{"with three, after waiting", 4, 5_000, 100, 1_000_000, 2},
	} {
		now, used, asked := tt.before, tt.used, 0
		const look = 10 // what reading a clock takes
		pass := func() {
			now += look * tt.share
			used += look
		}
		c := threadClock{
			elapsed: func() int64 { pass(); return now },
			cpu:     func() int64 { pass(); asked++; return used },
		}
		c.compute(tt.think, 0, 0, new(atomic.Bool))
		want := max(tt.think, tt.used)
		if used < want || used > want+20*look {
			t.Errorf("%s: computed for %d ns, want %d or little more", tt.name, used, want)
		}
		if asked < min(tt.asked, 1) || tt.share == 1 && asked != tt.asked {
			t.Errorf("%s: asked the CPU clock %d times, want %d", tt.name, asked, tt.asked)
		}
	}
}

// Computing ends when the replay is stopped, also where the CPU clock stands still.
func TestComputeHalted(t *testing.T) {
	var halted atomic.Bool
	n := int64(0)
	c := threadClock{elapsed: func() int64 { n++; return n * 1000 }, cpu: func() int64 {
		if n > 1_000_000 {
			halted.Store(true)
		}
		return 0
	}}
	c.compute(1e6, 0, 0, &halted)
	if !halted.Load() {
		t.Error("it ended without having computed")
	}
}

// The clocks of a thread of this machine: it has used what it says that it has.
func TestThreadClocks(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const think = 3e6
	done, used := defaultThreadClock.elapsed(), defaultThreadClock.cpu()
	defaultThreadClock.compute(think, done, used, new(atomic.Bool))
	if got := defaultThreadClock.cpu() - used; got < think {
		t.Errorf("used the processor for %d ns, want %d at least", got, int64(think))
	}
	if went := defaultThreadClock.elapsed() - done; went < think {
		t.Errorf("%d ns went by, want %d at least", went, int64(think))
	}
}
