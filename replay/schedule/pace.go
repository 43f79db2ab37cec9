// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
)

// laggingNS is how late a call is at least that counts as late.
const laggingNS = int64(time.Millisecond)

// Timebase is what all threads of a replay have in common about time.
type Timebase struct {
	pace  options.Pace
	speed float64
	sleep bool // in place of computing
	// first is the recorded time of the first event, ns, and start is when it is here.
	first, start int64
	halted       *atomic.Bool // all waits end
}

// paced reports whether calls have times of their own.
func (b *Timebase) paced() bool { return b.pace != options.PaceAFAP }

// scale returns how long a recorded time is here, ns.
func (b *Timebase) scale(ns int64) int64 { return int64(float64(ns) / b.speed) }

// timeOf returns when a recorded time is.
func (b *Timebase) timeOf(ns int64) int64 { return b.start + b.scale(ns-b.first) }

// waitUntil waits for a time: asleep first, and then awake, so as not to be late.
func (b *Timebase) waitUntil(ns int64) {
	for !b.halted.Load() {
		t := now()
		if t >= ns {
			return
		}
		if ns-t > spinNS {
			ts := unix.NsecToTimespec(epochNS + min(ns-spinNS, t+napNS))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
		}
	}
}

// Pacer makes the calls of one thread when they are due, and measures them. Times are in ns.
type Pacer struct {
	base           *Timebase
	clock          threadClock
	step           StepTime // of the present step
	calls          uint64
	done           int64 // when the last call was done here; 0: there was none
	used           int64 // what the thread's CPU clock showed then; only where it computes
	returned       int64 // when the step's call was done; 0: not yet
	begin, end     int64 // of the first call that was made, of the last one
	lagSum, lagMax int64
	lagging        uint64
}

// Paced reports whether calls have times of their own.
func (p *Pacer) Paced() bool { return p.base.paced() }

// waitForStep waits until a step is due. Other steps may keep it waiting for longer.
func (p *Pacer) waitForStep(s *plan.Step) {
	switch p.base.pace {
	case options.PaceRecorded:
		if s.Task == nil || s.Task.Action != plan.Emulate {
			p.base.waitUntil(p.base.timeOf(p.step.due))
		}
	case options.PaceThink:
		if p.done == 0 {
			return
		}
		think := p.base.scale(p.step.think)
		if p.base.sleep {
			p.base.waitUntil(p.done + think)
		} else {
			p.clock.compute(think, p.done, p.used, p.base.halted)
		}
	}
}

// BeginCall notes that the step's call is about to be made, and returns the time.
func (p *Pacer) BeginCall() int64 {
	t := now()
	p.returned = 0
	if p.calls++; p.calls == 1 {
		p.begin = t
	}
	if p.base.pace == options.PaceRecorded {
		late := max(t-p.base.timeOf(p.step.due), 0)
		p.lagSum += late
		p.lagMax = max(p.lagMax, late)
		if late >= laggingNS {
			p.lagging++
		}
	}
	return t
}

// EndCall notes that the step's call is done, and returns the time.
func (p *Pacer) EndCall() int64 {
	p.EndStep()
	p.end, p.returned = p.done, p.done
	return p.done
}

// Returned returns when the step's call was done: now, if EndCall was not called since
// BeginCall, because the step was more than one call.
func (p *Pacer) Returned() int64 {
	if p.returned == 0 {
		p.EndCall()
	}
	return p.returned
}

// EndStep notes that a step is done. What its thread does from here on, like comparing what
// the call gave, is a part of what it computes before the next.
func (p *Pacer) EndStep() {
	p.done = p.clock.elapsed()
	if p.base.pace == options.PaceThink && !p.base.sleep {
		p.used = p.clock.cpu()
	}
}

// Merge adds what the pacer of another thread measured.
func (p *Pacer) Merge(o *Pacer) {
	if o.calls == 0 {
		return
	}
	if p.calls == 0 {
		p.begin = o.begin
	}
	p.begin, p.end = min(p.begin, o.begin), max(p.end, o.end)
	p.calls += o.calls
	p.lagSum += o.lagSum
	p.lagMax = max(p.lagMax, o.lagMax)
	p.lagging += o.lagging
}

// Timing returns the times of the calls of all threads, whose pacers were merged into total.
func (b *Timebase) Timing(total *Pacer) *result.Timing {
	t := &result.Timing{
		Pace: b.pace, Speed: b.speed, ReplayedNS: total.end - total.begin, LagMaxNS: total.lagMax,
		Lagging: total.lagging,
	}
	if total.calls > 0 {
		t.LagMeanNS = total.lagSum / int64(total.calls)
	}
	return t
}

// Began returns when the first call was made, ns from the moment when calls might be.
func (b *Timebase) Began(total *Pacer) int64 { return max(total.begin-b.start, 0) }
