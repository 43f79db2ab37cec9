// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// Order places tasks. It is used by one goroutine.
type Order struct {
	mode  Mode
	self  Ref // the task that is being placed
	deps  []Ref
	slots []slot

	root     name
	names    int // in the tree below root
	enough   int // of them, to forget some
	devices  effect.Devices
	moved    uint64
	byPath   map[string]cached
	files    map[effect.Inode]*file
	opens    map[event.OpenID]*open
	pipes    map[effect.Inode]*pipe
	everyone syncPoint // the last sync
	interval interval
	closing  []event.OpenID
	unlocks  bool
}

// slot is what is known of one line of tasks.
type slot struct {
	placed uint64   // tasks so far
	done   uint64   // of these, as far as Done said
	seen   []uint64 // of each other slot, the last task that one of this slot waits for
}

// New returns an order in which nothing is placed yet.
func New(m Mode) *Order {
	o := &Order{
		mode: m, enough: maxNames, devices: effect.Devices{}, byPath: map[string]cached{},
		files: map[effect.Inode]*file{}, opens: map[event.OpenID]*open{},
		pipes: map[effect.Inode]*pipe{},
	}
	o.root.label = "/"
	return o
}

// Link says that a symbolic link is there before the first task.
func (o *Order) Link(path, target string) {
	if n := o.lookup(path, false, nil); n != nil {
		n.target = target
	}
}

// Place adds the next task of a slot, and returns its number and what it must wait
// for beyond the earlier tasks of its slot, appended to deps: at most one task of each
// slot. made says that the task does what ev says, so that the resources of ev count.
// ev is in the form of effect.AsCall.
func (o *Order) Place(slotNumber uint32, ev *event.Event, made bool, deps []Ref) (Ref, []Ref) {
	for uint32(len(o.slots)) <= slotNumber {
		o.slots = append(o.slots, slot{})
	}
	s := &o.slots[slotNumber]
	s.placed++
	o.self, o.deps = Ref{slotNumber, s.placed}, deps[:0]
	if o.mode == Recorded {
		return o.self, o.deps
	}
	for _, id := range o.closing {
		if p := o.opens[id]; p != nil && p.file != nil && p.file.locked {
			p.file.access(o, locks, accessWrite)
		}
	}
	if o.unlocks && len(ev.Files) > 0 {
		if f := o.fileOf(&ev.Files[0]); f != nil {
			f.access(o, locks, accessWrite)
		}
	}
	o.closing, o.unlocks = nil, false
	if made {
		o.uses(ev)
	}
	if o.mode == Overlap {
		o.interval.place(o, ev)
	}
	return o.self, o.deps
}

// Closing says that the next task to be placed ends open files, and with them their
// locks; unlocks that it ends the locks of its process on the file that it closes.
func (o *Order) Closing(ids []event.OpenID, unlocks bool) { o.closing, o.unlocks = ids, unlocks }

// Wait makes the task that was placed last wait for another one as well, and returns
// the whole list.
func (o *Order) Wait(r Ref) []Ref {
	if o.mode != Recorded {
		o.wait(r)
	}
	return o.deps
}

// Mode returns the order's mode.
func (o *Order) Mode() Mode { return o.mode }

// Last returns the task that a slot was given last.
func (o *Order) Last(slotNumber uint32) Ref {
	if slotNumber >= uint32(len(o.slots)) {
		return Ref{}
	}
	return Ref{slotNumber, o.slots[slotNumber].placed}
}

// Done says that the first pos tasks of a slot are done: what they did need not be
// remembered.
func (o *Order) Done(slotNumber uint32, pos uint64) {
	if slotNumber < uint32(len(o.slots)) {
		o.slots[slotNumber].done = pos
	}
}

// AllDone says that all tasks are done.
func (o *Order) AllDone() {
	for i := range o.slots {
		o.slots[i].done = o.slots[i].placed
	}
}

func (o *Order) isDone(r Ref) bool { return o.slots[r.Slot].done >= r.Pos }

func (o *Order) allDone(refs []Ref) bool {
	for _, r := range refs {
		if !o.isDone(r) {
			return false
		}
	}
	return true
}

func (o *Order) waitAll(refs []Ref) {
	for _, r := range refs {
		o.wait(r)
	}
}

// wait adds a task to those that the present one waits for, unless that is implied.
func (o *Order) wait(r Ref) {
	if r.Slot == o.self.Slot || r.Pos == 0 || o.isDone(r) {
		return
	}
	s := &o.slots[o.self.Slot]
	for uint32(len(s.seen)) <= r.Slot {
		s.seen = append(s.seen, 0)
	}
	if s.seen[r.Slot] >= r.Pos {
		return
	}
	s.seen[r.Slot] = r.Pos
	o.deps = latest(o.deps, r)
}

// syncPoint is a task after which what comes later, in time, must stay.
type syncPoint struct {
	by   Ref
	exit int64 // ns
}

// pass makes a task that began after a sync had returned stay behind it. One that
// overlapped with it may go either way.
func (p *syncPoint) pass(o *Order, ev *event.Event) {
	if p.by.Pos != 0 && ev.Enter > p.exit {
		o.wait(p.by)
	}
}

// awaitEveryone makes a task wait for all that was placed before it.
func (o *Order) awaitEveryone() {
	for i := range o.slots {
		o.wait(Ref{uint32(i), o.slots[i].placed})
	}
}
