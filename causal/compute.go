// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"math"

	"github.com/iotape/iotape/event"
)

// tickNS is how far a thread's CPU clock may be behind: the kernel brings it up to date
// when the thread is switched out, and at each tick (CONFIG_HZ=250).
const tickNS = 4_000_000

// cpuClock tells a thread's computing from time in which it did not run, where nothing
// else does: from its waiting for a processor, if its calls do not tell that
// (event.Delays), and from being stopped between them.
//
// What a thread could have used (the time between calls, and in calls that did not
// sleep) less what its clock says that it used is its delay so far, and up to a tick
// more. So that difference moves within a band as wide as a tick. It leaves the band
// upwards only because the thread was runnable and did not run, and downwards because
// calls that slept computed, too, which nobody counted.
type cpuClock struct {
	begun bool
	used  int64 // ns that the thread could have used
	top   int64 // of the band
}

// start begins at a time when the clock said cpu.
func (c *cpuClock) start(cpu int64) { c.begun, c.used, c.top = true, 0, tickNS-cpu }

// gap takes the time between two calls and what the clock says at its end, and returns
// how much of it the thread waited for a processor: only what is certain.
func (c *cpuClock) gap(ns, cpu int64) (delay int64) {
	if !c.begun {
		c.start(cpu)
		return 0
	}
	c.used += ns
	switch behind := c.used - cpu; {
	case behind > c.top:
		delay = min(behind-c.top, ns)
		c.top = behind
	case behind < c.top-tickNS:
		c.top = behind + tickNS
	}
	return delay
}

// ran takes the time of a call that did not sleep.
func (c *cpuClock) ran(ns int64) { c.used += ns }

// delayed returns how much of the time before a call its thread did not run.
func (a *annotator) delayed(n *node, ev *event.Event, i int, gap int64) (delay int64) {
	switch {
	case ev.TellsDelays():
		n.measured = true
		delay = a.told(n, ev, gap)
		// What it slept meanwhile (held by the recorder, waiting for a page) is not told.
		// There is nothing of that where wake-ups were recorded and it got none.
		if slept := n.clock.gap(gap-delay, ev.CPU); n.lastWakeup > n.lastEnd || a.sum.Woken == 0 {
			delay += slept
		}
	case n.measured: // the next call that tells it tells it for this one, too
		n.unattributed = append(n.unattributed, timeAt{uint32(i), gap})
		n.clock.gap(gap, ev.CPU)
	case ev.Spec().NoCall:
		delay = n.clock.gap(gap, ev.CPU)
		n.unattributed, n.guessed = append(n.unattributed, timeAt{uint32(i), gap - delay}), n.guessed+delay
	default:
		delay = n.clock.gap(gap, ev.CPU)
		n.unattributed, n.guessed = n.unattributed[:0], 0
	}
	n.cpu = ev.CPU
	return delay
}

// told takes what a call says of the time since the one before that said it. What is more
// than the time right before the call was before the events in between, which say nothing:
// accesses to mapped files.
func (a *annotator) told(n *node, ev *event.Event, gap int64) (delay int64) {
	left := int64(ev.DelayBefore)
	if ev.DelayBefore == math.MaxUint32 { // that, or more
		left = max(left, gap-max(ev.CPU-n.cpu, 0))
	}
	left = max(left-n.guessed, 0)
	delay = min(left, gap)
	left -= delay
	for k := len(n.unattributed) - 1; k >= 0 && left > 0; k-- {
		u := n.unattributed[k]
		ns := min(left, u.ns)
		a.compute[u.event] -= ns
		n.total.Compute -= ns
		n.total.Delay += ns
		left -= ns
	}
	n.unattributed, n.guessed = n.unattributed[:0], 0
	return delay
}

// delayWithin returns how long a call's thread waited for a processor while the call took
// ns; 0 if that is not known.
func delayWithin(ev *event.Event, ns int64) int64 {
	if !ev.TellsDelays() {
		return 0
	}
	return min(int64(ev.DelayWithin), ns)
}

// blockedNS is how long a call has to take to be one that slept, where wake-ups were not
// recorded.
const blockedNS = 100_000

// storage reports whether a call is the storage system's matter: a replay makes it, and
// how long it takes is what is to be found out. All others it only models.
func storage(ev *event.Event) bool {
	spec := ev.Spec()
	if spec.NoCall {
		return true
	}
	if spec.Replay != event.Native || spec.Class == event.Lock || isLock(ev) {
		return false
	}
	f := ev.Subject()
	if f == nil {
		switch spec.Class {
		case event.Data, event.Meta, event.Namespace, event.Sync, event.Descriptor:
			return len(ev.Paths) > 0 || spec.Class == event.Sync
		}
		return false
	}
	if !f.Known {
		return f.Path != "" && f.Path[0] == '/' || len(ev.Paths) > 0
	}
	switch event.FileType(f.Mode) {
	case event.TypeRegular, event.TypeDir, event.TypeBlock, event.TypeSymlink:
		return true
	}
	return false
}

// canSleep reports whether a call that is not the storage system's may wait for
// somebody, or for a time.
func canSleep(ev *event.Event) bool {
	switch ev.Spec().Class {
	case event.Wait, event.Socket, event.Lock, event.Data:
		return true
	case event.Process:
		return ev.Effect() == event.EffectWait || ev.Op == event.OpVfork
	}
	return isLock(ev) || ev.Effect() == event.EffectOpen
}

// timed reports whether a call returned because its time was over.
func timed(ev *event.Event) bool {
	const eAGAIN, eTIMEDOUT = 11, 110
	switch ev.Op {
	case event.OpNanosleep, event.OpClockNanosleep:
		return ev.OK()
	case event.OpRtSigtimedwait:
		return ev.Errno == eAGAIN
	}
	return ev.Errno == eTIMEDOUT || isPoll(ev.Op) && ev.OK() && ev.Ret == 0
}

// isPoll reports whether a call waits until something can be read or written, and does
// neither.
func isPoll(op event.Op) bool {
	switch op {
	case event.OpPoll, event.OpPpoll, event.OpSelect, event.OpPselect6, event.OpEpollWait, event.OpEpollPwait,
		event.OpEpollPwait2:
		return true
	}
	return false
}
