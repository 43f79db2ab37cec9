// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"iter"
	"maps"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/model/posix"
)

// priorState follows what comes before a slice.
type priorState struct {
	hosts     map[uint32]*host
	ids       []event.OpenID
	described facts.Tracker
}

// host is the state of one host.
type host struct {
	model   *posix.Model
	facts   *posix.Facts
	opens   map[event.OpenID]event.OpenID // the tape's numbers by the model's
	threads map[uint32]identity
	running map[uint32]bool // processes, of those that are described
}

// identity is what events say of who made them.
type identity struct {
	ppid, pgid, sid, uid, gid, nspid, nstid uint32
	comm                                    string
}

func newBefore() *priorState { return &priorState{hosts: map[uint32]*host{}} }

func (b *priorState) see(ev *event.Event) {
	h := b.hosts[ev.Host]
	if h == nil {
		h = &host{model: posix.New(), facts: posix.NewFacts(), opens: map[event.OpenID]event.OpenID{},
			threads: map[uint32]identity{}, running: map[uint32]bool{}}
		b.hosts[ev.Host] = h
	}
	if ev.Kind == event.LossMark || ev.Kind == event.NoteMark {
		return
	}
	h.identify(ev)
	b.described.See(ev)
	b.ids = b.ids[:0]
	for i := range ev.Files {
		b.ids = append(b.ids, ev.Files[i].Open)
	}
	released := h.model.Apply(ev)
	for i, id := range b.ids {
		if f := &ev.Files[i]; f.Open != 0 && id != 0 {
			h.opens[f.Open] = id
		}
	}
	h.facts.See(ev, released)
	for _, id := range released {
		delete(h.opens, id)
	}
}

// identify notes who a thread is.
func (h *host) identify(ev *event.Event) {
	me := identity{ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID, ev.NSPID, ev.NSTID, ev.Comm}
	switch ev.Kind {
	case event.Exited:
		delete(h.threads, ev.TID)
		if ev.TID == ev.PID {
			delete(h.running, ev.PID)
		}
		return
	case event.Forked:
		fork := ev.Fork()
		h.running[fork.PID] = true
		child := me
		child.nspid, child.nstid = 0, 0
		if !fork.IsThread() {
			child.ppid = ev.PID
		}
		if _, known := h.threads[ev.Child]; !known {
			h.threads[ev.Child] = child
		}
	}
	h.threads[ev.TID] = me
	h.running[ev.PID] = true
}

// unknownOpen marks the numbers of open files that the tape has none for.
const unknownOpen = 1 << 63

// state iterates over the events of all hosts' states. They have no times.
func (b *priorState) state() iter.Seq[*event.Event] {
	return func(yield func(*event.Event) bool) {
		for _, n := range slices.Sorted(maps.Keys(b.hosts)) {
			h := b.hosts[n]
			for ev := range h.model.State(h.facts) {
				ev.Host = n
				h.sign(ev)
				for i := range ev.Files {
					f := &ev.Files[i]
					if id, ok := h.opens[f.Open]; ok {
						f.Open = id
					} else {
						f.Open |= unknownOpen | event.OpenID(n)<<40
					}
				}
				if !yield(ev) {
					return
				}
			}
			if !b.processes(n, h, yield) {
				return
			}
		}
	}
}

// sign says of an event who its thread is.
func (h *host) sign(ev *event.Event) {
	if me, ok := h.threads[ev.TID]; ok {
		ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID = me.ppid, me.pgid, me.sid, me.uid, me.gid
		ev.NSPID, ev.NSTID, ev.Comm = me.nspid, me.nstid, me.comm
	}
}

// processes yields what is said of the processes that run.
func (b *priorState) processes(n uint32, h *host, yield func(*event.Event) bool) bool {
	for _, pid := range slices.Sorted(maps.Keys(h.running)) {
		d := b.described.Of(n, pid)
		if d == nil {
			continue
		}
		ev := &event.Event{Host: n, PID: pid, TID: pid}
		h.sign(ev)
		facts.Describe(ev, d.Process, d.Env, d.Args)
		if !yield(ev) {
			return false
		}
	}
	return true
}
