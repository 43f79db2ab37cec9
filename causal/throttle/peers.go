// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Peers connects the parts of a run that are watched on several hosts with who decides for
// all of them how long a call is held: nodes are stuck only as long as nothing moves
// anywhere.
type Peers struct {
	// Tell is called by the watchdog when something has changed, while a call is held.
	Tell func(*State)
	// Told is what was decided.
	Told <-chan *Order
}

// State is what one host's part of a run is at.
type State struct {
	Epoch uint64         `json:"epoch"`           // of the last Order that it counts from
	Moved bool           `json:"moved,omitempty"` // a node did something since the last State
	Free  bool           `json:"free,omitempty"`  // all nodes have ended or are stuck
	On    string         `json:"on,omitempty"`    // who is not
	Hold  int            `json:"hold,omitempty"`  // which hold is under way here, from 1; 0: none
	Next  map[string]int `json:"next,omitempty"`  // as in Hold
	Asked bool           `json:"asked,omitempty"` // it answers an Order that asked
}

// Order is what a part of a run is told.
type Order struct {
	Look    bool           `json:"look,omitempty"`  // tell how the nodes are; count from now on
	Epoch   uint64         `json:"epoch,omitempty"` // of that
	Rest    bool           `json:"rest,omitempty"`  // no call is held any more
	Ask     bool           `json:"ask,omitempty"`   // tell it at once
	Release int            `json:"release,omitempty"`
	Next    map[string]int `json:"next,omitempty"`       // with Release: of all other hosts' nodes
	Until   string         `json:"gave_up_on,omitempty"` // with Release: as in Hold
}

// peers is what a watch knows of its Peers. It is used with the watch's lock.
type peers struct {
	looking bool
	epoch   uint64
	own     uint64 // moves here
	told    uint64 // of these, how many the last State told of
	last    State
	free    uint64 // moves here when all nodes were free last
}

// told does what an Order says.
func (w *watch) told(o *Order) {
	w.mu.Lock()
	p := &w.peers
	switch {
	case o.Look:
		p.looking, p.epoch = true, o.Epoch
		w.progress++
		w.last = now()
	case o.Rest:
		p.looking = false
	case o.Release > 0 && len(w.held) > 0 && o.Release == len(w.run.Holds)+1:
		th, progress := w.held[0], w.progress
		if o.Until != "" || p.own == p.free {
			w.mu.Unlock()
			w.settled(func() { w.release(th, progress, o.Until, o.Next) })
			return
		}
	}
	w.mu.Unlock()
	if o.Ask {
		w.report(true)
	}
}

// report looks at all nodes, and tells how they are if that has changed, or if asked.
func (w *watch) report(asked bool) {
	w.mu.Lock()
	p := &w.peers
	if len(w.held) == 0 && !p.looking && p.last.Hold == 0 && !asked {
		w.sample()
		w.mu.Unlock()
		return
	}
	s := State{Epoch: p.epoch, Moved: p.own != p.told, Asked: asked, Next: w.next(nil)}
	if len(w.held) > 0 {
		s.Hold = len(w.run.Holds) + 1
		s.Next = w.next(w.held[0])
	}
	s.Free, s.On = w.free()
	if on := w.missing(); s.Free && on != "" {
		s.Free, s.On = false, on
	}
	if s.Free {
		p.free = p.own
	}
	same := s.Epoch == p.last.Epoch && s.Free == p.last.Free && s.On == p.last.On && s.Hold == p.last.Hold &&
		maps.Equal(s.Next, p.last.Next)
	p.told, p.last = p.own, s
	w.mu.Unlock()
	if asked || s.Moved || !same {
		w.o.Peers.Tell(&s)
	}
}

// missing names a node that is still to be made, while there is somebody who may be about
// to: the command has not begun, or one of its processes computes.
func (w *watch) missing() string {
	busy := len(w.threads) == 0
	for _, th := range w.threads {
		busy = busy || th.watched.busy
	}
	if !busy {
		return ""
	}
	for _, name := range slices.SortedFunc(maps.Keys(w.want), byName) {
		if w.names[name] == nil {
			return name
		}
	}
	return ""
}

// next returns of each node but one the call that it has not done yet, if it has not ended.
func (w *watch) next(but *thread) map[string]int {
	next := map[string]int{}
	for name, other := range w.names {
		if other != but && !other.ended {
			next[name] = other.calls()
			if other.inCall {
				next[name]--
			}
		}
	}
	for name := range w.want { // those that are still to be made
		if w.names[name] == nil {
			next[name] = 0
		}
	}
	return next
}

// hostMark is between the name of a host and that of a node on it.
const hostMark = ":"

// OnHost returns what a node of a host is called among those of all hosts.
func OnHost(host, node string) string {
	if host == "" || strings.Contains(node, hostMark) {
		return node
	}
	return host + hostMark + node
}

// HostOf is the inverse of OnHost.
func HostOf(name string) (host, node string) {
	if i := strings.LastIndex(name, hostMark); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

// Part returns what a run showed on one host: what Known is to be there.
func (r *Run) Part(host string) *Run {
	part := &Run{Version: r.Version, Serial: r.Serial, Command: r.Command, Held: r.Held, Period: r.Period,
		Abandoned: r.Abandoned}
	if h, node := HostOf(r.Held); h == host {
		part.Held = node
	}
	for _, n := range r.Nodes {
		if h, node := HostOf(n.Name); h == host {
			c := *n
			c.Name = node
			part.Nodes = append(part.Nodes, &c)
		}
	}
	return part
}

// Host is a part of a run on one host, of several.
type Host struct {
	Name string
	Run  *Run
	// Ahead is what is to be added to times of this host's clock, for that of all; Slack is
	// by how much that may be wrong.
	Ahead, Slack time.Duration
}

// Join puts the parts of a run together. Held is the node that was held, with its host.
func Join(parts []Host, held string) *Run {
	all := &Run{Version: runVersion, Held: held}
	for _, p := range parts {
		r := p.Run
		all.Serial, all.Command, all.Period = r.Serial, r.Command, max(all.Period, r.Period)
		all.Elapsed, all.Slack = max(all.Elapsed, r.Elapsed), max(all.Slack, 2*p.Slack.Nanoseconds())
		if all.Exit == 0 && all.Signal == 0 {
			all.Exit, all.Signal = r.Exit, r.Signal
		}
		if r.Abandoned != "" {
			if all.Abandoned != "" {
				all.Abandoned += "; "
			}
			all.Abandoned += "on " + p.Name + ": " + r.Abandoned
		}
		shift := p.Ahead.Nanoseconds()
		for _, n := range r.Nodes {
			n.Name = OnHost(p.Name, n.Name)
			for i := range n.Calls {
				c := &n.Calls[i]
				c.Enter += shift
				if c.Exit != 0 {
					c.Exit += shift
				}
			}
			all.Nodes = append(all.Nodes, n)
		}
		for _, h := range r.Holds {
			next := map[string]int{}
			for name, call := range h.Next {
				next[OnHost(p.Name, name)] = call
			}
			h.From, h.Till, h.Next = h.From+shift, h.Till+shift, next
			all.Holds = append(all.Holds, h)
		}
	}
	slices.SortFunc(all.Nodes, func(a, b *Node) int { return byName(a.Name, b.Name) })
	slices.SortFunc(all.Holds, func(a, b Hold) int { return cmp.Compare(a.Call, b.Call) })
	return all
}
