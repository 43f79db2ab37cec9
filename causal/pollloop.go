// SPDX-License-Identifier: Apache-2.0

package causal

import "github.com/iotape/iotape/event"

// A thread can wait by looking again and again whether something has come, as MPI libraries
// do with sockets: it polls without waiting, or reads where that returns at once. It never
// sleeps, so nobody wakes it up, and the time between two looks seems to be computing.
//
// It was waiting if something came in the end, from another thread, that was not there when
// the first look found nothing. Who looks now and then while he computes takes longer from
// one look to the next.

// againNS is how long a thread may compute from one look to the next, and in it, if it does
// nothing else.
const againNS = 10_000

// pollLoop has the polls of a thread that found nothing, one after the other, and the one that
// found something.
type pollLoop struct {
	begin  int64 // ns, when the first was over
	again  []timeAt
	found  bool
	reader uint32 // the event that took what was found
}

// look takes a call that did not sleep, and is not the storage system's, if it is a look or
// ends them.
func (a *annotator) look(n *node, i int, ev *event.Event) {
	l := n.loop
	switch {
	case nothingYet(ev) && l == nil:
		n.loop = &pollLoop{begin: ev.Exit}
	case nothingYet(ev) && !l.found, l != nil && isPoll(ev.Op) && ev.OK():
		l.more(i, a.compute[i])
		l.found = !nothingYet(ev)
	case nothingYet(ev): // another place, in which there was nothing
	case l != nil && (ev.Spec().Class == event.Data || ev.Spec().Class == event.Socket) && ev.OK():
		if l.reader = uint32(i); !l.found { // it looked itself
			l.more(i, a.compute[i])
		}
		a.looks, n.loop = append(a.looks, l), nil
	default:
		n.loop = nil
	}
}

// more adds that the thread computed for so many ns before it looked again, if it did
// nothing else.
func (l *pollLoop) more(i int, ns int64) {
	if ns <= againNS {
		l.again = append(l.again, timeAt{uint32(i), ns})
	}
}

// nothingYet reports whether a call returned at once because there was nothing.
func nothingYet(ev *event.Event) bool {
	const eAGAIN = 11
	if isPoll(ev.Op) {
		return ev.OK() && ev.Ret == 0
	}
	return ev.Errno == eAGAIN && (ev.Spec().Class == event.Data || ev.Spec().Class == event.Socket)
}

// looked takes from the threads' computing what they waited by looking for something that
// the links say another thread sent meanwhile.
func (a *annotator) looked(links []link) {
	for _, l := range a.looks {
		for _, k := range linksTo(links, l.reader) {
			if (k.why == Bytes || k.why == Connect) && a.exit[k.from] > l.begin &&
				a.b.line[k.from] != a.b.line[l.reader] {
				a.waitedBy(l)
				break
			}
		}
	}
}

// waitedBy notes that looks were waiting.
func (a *annotator) waitedBy(l *pollLoop) {
	total := a.sum.Nodes[a.b.line[l.reader]]
	for _, t := range l.again {
		a.compute[t.event] -= t.ns
		total.Compute -= t.ns
		total.Sync += t.ns
	}
}
