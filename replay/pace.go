package replay

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Pace says when a call is made that could be.
type Pace string

// The paces.
const (
	// PaceAFAP makes calls as fast as possible: at once.
	PaceAFAP Pace = "afap"
	// PaceThink computes between the calls of a thread for as long as the recorded
	// thread did: for the CPU time that it used, and at most for the time that went by.
	PaceThink Pace = "think"
	// PaceRecorded makes calls at their recorded times, counted from the first event.
	PaceRecorded Pace = "recorded"
)

// ParsePace returns the pace with a name.
func ParsePace(s string) (Pace, error) {
	switch p := Pace(s); p {
	case PaceAFAP, PaceThink, PaceRecorded:
		return p, nil
	}
	return "", fmt.Errorf("pace %q is neither afap, think nor recorded", s)
}

// Timing is how well a replay kept its pace.
type Timing struct {
	Pace  Pace    `json:"pace"`
	Speed float64 `json:"speed"`
	// RecordedNS is from the entry of the first to the return of the last call that
	// was made, as recorded; ReplayedNS the same in the replay.
	RecordedNS int64 `json:"recorded_ns"`
	ReplayedNS int64 `json:"replayed_ns"`
	// Lag is how much later than at its recorded time, divided by the speed, a call
	// was made. Only of PaceRecorded.
	LagMeanNS int64  `json:"lag_mean_ns"`
	LagMaxNS  int64  `json:"lag_max_ns"`
	Lagging   uint64 `json:"lagging"` // calls that were late by a millisecond or more
}

const laggingNS = int64(time.Millisecond)

// schedule is what all threads of a replay have in common.
type schedule struct {
	pace  Pace
	speed float64
	sleep bool // in place of computing
	// first is the recorded time of the first event, ns, and start is when it is here.
	first, start int64
	halted       *atomic.Bool // nobody waits any longer
}

// epoch and epochNS are one moment, for the two ways of reading the clock: the fast
// one, and the one that sleeping needs.
var epoch, epochNS = time.Now(), monotonic()

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// clock is the time that schedules are kept by, ns.
func clock() int64 { return int64(time.Since(epoch)) }

// spinNS is how long before its time a thread is awake: with a timer slack of 1 ns a
// sleep ends 30 to 70 µs late.
const spinNS = int64(100 * time.Microsecond)

// napNS limits how long a thread that waits does not see that the replay was stopped.
const napNS = int64(50 * time.Millisecond)

// sleepExactly makes the calling thread's sleeps end when they should (prctl(2)): by
// default the kernel adds up to 50 µs.
func sleepExactly() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// until waits for a time: asleep first, and then awake, so as not to be late.
func (s *schedule) until(ns int64) {
	for !s.halted.Load() {
		now := clock()
		if now >= ns {
			return
		}
		if ns-now > spinNS {
			ts := unix.NsecToTimespec(epochNS + min(ns-spinNS, now+napNS))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
		}
	}
}

// pacer makes the calls of one thread when they are due.
type pacer struct {
	*schedule
	clocks         clocks
	when           when // of the step at hand
	calls          uint64
	done           int64 // when the last call was done here; 0: there was none
	used           int64 // what the thread's CPU clock showed then; only where it computes
	returned       int64 // when the step's call was done; 0: not yet
	begin, end     int64 // of the first call that was made, of the last one
	lagSum, lagMax int64
	lagging        uint64
}

// at returns when a recorded time is.
func (p *pacer) at(ns int64) int64 { return p.start + int64(float64(ns-p.first)/p.speed) }

// before waits until a step is due. Other steps may keep it waiting for longer.
func (p *pacer) before(s *step) {
	switch p.pace {
	case PaceRecorded:
		if s.task == nil || s.task.action != emulate {
			p.until(p.at(p.when.due))
		}
	case PaceThink:
		if p.done == 0 {
			return
		}
		think := int64(float64(p.when.think) / p.speed)
		if p.sleep {
			p.until(p.done + think)
		} else {
			p.clocks.compute(think, p.done, p.used, p.halted)
		}
	}
}

// starts notes that the step's call is about to be made, and returns the time.
func (p *pacer) starts() int64 {
	now := clock()
	if p.calls++; p.calls == 1 {
		p.begin = now
	}
	if p.pace == PaceRecorded {
		late := max(now-p.at(p.when.due), 0)
		p.lagSum += late
		p.lagMax = max(p.lagMax, late)
		if late >= laggingNS {
			p.lagging++
		}
	}
	return now
}

// finished notes that a step's call is done, and returns the time.
func (p *pacer) finished() int64 {
	p.computes()
	p.end, p.returned = p.done, p.done
	return p.done
}

// computes notes that a step is done. What its thread does from here on, comparing what
// the call gave for one, is a part of what it computes before the next.
func (p *pacer) computes() {
	p.done = p.clocks.elapsed()
	if p.pace == PaceThink && !p.sleep {
		p.used = p.clocks.cpu()
	}
}

// merge adds what the pacer of another thread saw.
func (p *pacer) merge(o *pacer) {
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

func (p *pacer) timing(s *schedule) *Timing {
	t := &Timing{Pace: s.pace, Speed: s.speed, ReplayedNS: p.end - p.begin, LagMaxNS: p.lagMax, Lagging: p.lagging}
	if p.calls > 0 {
		t.LagMeanNS = p.lagSum / int64(p.calls)
	}
	return t
}
