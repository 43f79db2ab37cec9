// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
)

// Config says how a tape is planned. The zero value keeps all of the recorded order.
type Config struct {
	Layout    eventsource.Layout  // of the tape
	Tainted   []effect.FileRanges // content of the initial tree that the tape does not have
	Generated bool                // what is written is not as recorded
	Elsewhere []string            // see initialtree.Tree
	Specials  []string            // see initialtree.Tree
	Order     order.Mode
	Native    options.Native
	// Annotations of the tape; nil: they do not count.
	Annotations *Annotations
	// Team are the members of a team, nil if there is none.
	Team []string
	// Found is the order of the events, if it is known.
	Found *linearize.Order
}

// Planner turns events into tasks, in an order that explains their results.
type Planner struct {
	source      *eventsource.Reader
	events      uint64
	native      options.Native
	order       *order.Order
	annotations *Annotations // nil: not wanted
	division    *division    // among a team; nil: there is none
	loader      bufferLoader

	handles map[event.OpenID]*Handle
	threads threads
	cwds    map[uint64]*cwd
	owners  map[lockKey]*LockOwner
	tainted taintedRanges
	shared  sharedMappings
	recent  recentChanges
	// openedAtStart are names of files that were open at the start.
	openedAtStart map[string]effect.Inode
	elsewhere     names
	specials      names
	// outside are open files that are not in the tree.
	outside map[event.OpenID]bool
}

// cwd is a working directory.
type cwd struct {
	setBy     order.Ref
	published bool
}

// New returns a planner at the first event of a tape.
func New(t *trace.Tape, c *Config) (*Planner, error) {
	p := &Planner{
		source: eventsource.NewReader(t, initialtree.Arch(t), c.Layout, c.Found), native: c.Native,
		order: order.New(c.Order), annotations: c.Annotations, loader: bufferLoader{t},
		handles: map[event.OpenID]*Handle{}, threads: newThreads(c.Order == order.Recorded), cwds: map[uint64]*cwd{},
		owners: map[lockKey]*LockOwner{}, tainted: newTaintedRanges(t, c.Tainted, c.Generated),
		shared:        sharedMappings{effect.Ranges{}},
		recent:        recentChanges{in: map[string][]nameChange{}},
		openedAtStart: map[string]effect.Inode{}, elsewhere: newNames(c.Elsewhere),
		specials: newNames(c.Specials), outside: map[event.OpenID]bool{},
	}
	if c.Team == nil {
		return p, nil
	}
	var err error
	p.division, err = divide(t, c.Layout, c.Team)
	return p, err
}

// Events returns how many events were planned.
func (p *Planner) Events() uint64 { return p.events }

// OpenFiles returns how many files are open after the last event.
func (p *Planner) OpenFiles() int { return len(p.handles) }

// Tainted returns the ranges of files with content that the replay made up.
func (p *Planner) Tainted() []effect.FileRanges { return p.tainted.List() }

// Done says that the first pos tasks of a slot are done. It only saves memory and waits.
func (p *Planner) Done(slot uint32, pos uint64) { p.order.Done(slot, pos) }

// Next fills a task. It returns io.EOF after the last event.
func (p *Planner) Next(t *Task) error {
	t.reset()
	s, err := p.source.Next(&t.Event)
	if err != nil {
		return err
	}
	t.copyState(s)
	p.events++
	ev := &t.Event
	t.Op = ev.Op
	effect.AsCall(ev)
	effect.AsDone(ev)
	t.Order.Member = p.division.member(ev)
	th := p.threads.get(ev.TID, t.Order.Member)
	if p.annotations == nil {
		th.compute(ev)
	} else {
		th.computed += p.annotations.next(t)
	}
	if p.planPlain(t) {
		p.place(t, th, true)
		t.Step.Handle.users = use(t.Step.Handle.users, t.Order.Ref)
		p.tainted.observePlain(t)
		return nil
	}
	t.copyBuffers()
	p.planEvent(t)
	for _, id := range t.Released {
		if h := p.handles[id]; h != nil && h.opener.Pos > 0 {
			t.Files.Closes = append(t.Files.Closes, h)
		}
	}
	p.findReleasedLocks(t)
	t.Order.Idle = p.idle(t, th)
	if !t.Order.Idle {
		p.order.Closing(t.Released, len(t.Locks.Ends) > 0)
		p.place(t, th, t.Action != Emulate || ordersOthers(ev))
	}
	for _, id := range t.Released {
		delete(p.handles, id)
		delete(p.outside, id)
		p.order.Closed(id)
	}
	p.followThreads(t, th)
	return nil
}

// planEvent decides what is done for an event that is no plain read or write.
func (p *Planner) planEvent(t *Task) {
	ev := &t.Event
	switch ev.Kind {
	case event.Call:
		p.planCall(t)
		if ev.OK() && ev.Effect() == event.EffectChdir {
			t.Dir.Sets, t.Dir.Publish = t.CwdAfter, t.SharedCwd
		}
	case event.Started:
		if len(ev.Paths) > 0 && ev.Paths[0].Abs != "" {
			t.Action = EnterDir
		}
		t.Dir.Sets, t.Dir.Publish = t.CwdAfter, true
	case event.Inherited:
		if effect.OpenAtStart(ev, p.openedAtStart) {
			p.planOpen(t)
		} else if len(ev.Files) > 0 {
			p.simulate(&ev.Files[0])
		}
	case event.Forked:
		if c := p.cwds[t.CwdAfter]; c != nil && !c.published {
			c.published, t.Dir.Publish, t.Dir.From = true, true, t.CwdAfter
		}
	}
}

// idle reports whether there is nothing to be done for a task, or to be waited for.
func (p *Planner) idle(t *Task, th *thread) bool {
	if t.Action != Emulate || len(t.Files.Closes) > 0 || len(t.Locks.Ends) > 0 || t.Dir.Publish {
		return false
	}
	return !ordersOthers(&t.Event) && (p.annotations == nil || th.begun && p.annotations.idle(t))
}

// ordersOthers reports whether an event that is not repeated orders those that are: bytes go
// through a pipe.
func ordersOthers(ev *event.Event) bool {
	return ev.Kind == event.Call && ev.AtPosition() && len(ev.Files) > 0 &&
		event.FileType(ev.Files[0].Mode) == event.TypeFIFO
}

// followThreads follows which threads there are after an event of th.
func (p *Planner) followThreads(t *Task, th *thread) {
	ev := &t.Event
	switch ev.Kind {
	case event.Forked:
		// A new thread begins after what its maker did so far.
		child := p.threads.add(ev.Child, p.division.child(ev))
		if child.origin = th.origin; th.begun {
			child.origin = p.order.Last(th.slot)
		}
	case event.Exited:
		p.threads.remove(ev.TID, t.Order.Member)
	case event.Call:
		if ev.IsNonLeaderExec() {
			p.threads.rename(ev.TID, ev.PID, p.division.member(ev))
		}
	}
}

// AllDone says that all tasks are done.
func (p *Planner) AllDone() { p.order.AllDone() }
