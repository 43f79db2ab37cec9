package causal

import "iotape/event"

// tickNS is how far a thread's CPU clock may be behind: the kernel brings it up to date
// when the thread is switched out, and at each tick (CONFIG_HZ=250).
const tickNS = 4_000_000

// cpuClock tells a thread's computing from its waiting for a processor.
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
	switch f.Mode & sIFMT {
	case sIFREG, sIFDIR, sIFBLK, sIFLNK:
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
		return ev.Op == event.OpWait4 || ev.Op == event.OpWaitid || ev.Op == event.OpVfork
	}
	return isLock(ev) || ev.Op == event.OpOpen || ev.Op == event.OpOpenat
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
	case event.OpPoll, event.OpPpoll, event.OpSelect, event.OpPselect6, event.OpEpollWait, event.OpEpollPwait, event.OpEpollPwait2:
		return true
	}
	return false
}
