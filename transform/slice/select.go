// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/predicate"
)

type process struct{ host, pid uint32 }

// selection is what a filter picks, and what that needs.
type selection struct {
	filter    *predicate.Graph
	matcher   *predicate.Matcher // of the present reading of the tape
	processes map[process]bool   // whose life is told
	parents   map[process]uint32
	opens     map[event.OpenID]bool // whose descriptors are told
	positions map[event.OpenID]bool // whose position is told as well
	everyone  bool                  // it was too much to find out: all that Changes
}

func newSelection(filter *predicate.Graph) *selection {
	return &selection{filter: filter, processes: map[process]bool{}, parents: map[process]uint32{},
		opens: map[event.OpenID]bool{}, positions: map[event.OpenID]bool{}}
}

// maxRounds bounds how often the tape is read to find what is needed by what is needed.
const maxRounds = 8

// choose finds out what the picked calls need.
func (c *slicer) choose() error {
	ch := c.chosen
	ch.matcher = ch.filter.NewMatcher()
	err := c.events("selecting", func(ev *event.Event, in bool) error {
		ch.follow(ev)
		if picked := ch.picks(ev); in && ev.Kind == event.Call && picked {
			ch.tell(ev)
		}
		return nil
	})
	for round := 0; err == nil; round++ {
		if round == maxRounds {
			ch.everyone = true
			return nil
		}
		processes, opens := len(ch.processes), len(ch.opens)+len(ch.positions)
		err = c.events("selecting", func(ev *event.Event, in bool) error {
			if in && ev.Kind == event.Call && ch.needs(ev) {
				ch.tell(ev)
			}
			return nil
		})
		if len(ch.processes) == processes && len(ch.opens)+len(ch.positions) == opens {
			break
		}
	}
	return err
}

// follow keeps who made which process.
func (c *selection) follow(ev *event.Event) {
	if ev.Kind != event.Forked {
		return
	}
	if pid := ev.Fork().PID; pid != ev.PID {
		c.parents[process{ev.Host, pid}] = ev.PID
	}
}

// tell makes everything about an event needed.
func (c *selection) tell(ev *event.Event) {
	for p := (process{ev.Host, ev.PID}); !c.processes[p]; {
		c.processes[p] = true
		parent, ok := c.parents[p]
		if !ok {
			break
		}
		p.pid = parent
	}
	moves := movesPosition(ev)
	for i := range ev.Files {
		if id := ev.Files[i].Open; id != 0 {
			c.opens[id] = true
			if moves && positioned(&ev.Files[i]) {
				c.positions[id] = true
			}
		}
	}
}

// picks reports whether an event is wanted. It has to see all events.
func (c *selection) picks(ev *event.Event) bool {
	if c == nil {
		return true
	}
	fits := c.matcher.Match(ev)
	switch ev.Kind {
	case event.LossMark, event.NoteMark:
		return true
	case event.Call, event.Woken, event.Signalled:
		return fits
	}
	return false // they are told of whom it matters
}

// needs reports whether an event says what others mean.
func (c *selection) needs(ev *event.Event) bool {
	if c == nil {
		return true
	}
	if ev.Kind == event.Call && !posix.Changes(ev) {
		return movesPosition(ev) && !replaceable(ev) &&
			slices.ContainsFunc(ev.Files, func(f event.File) bool { return c.positions[f.Open] })
	}
	if c.everyone {
		return true
	}
	p := process{ev.Host, ev.PID}
	switch ev.Kind {
	case event.Exited, event.Started, event.Described:
		return c.processes[p]
	case event.Forked:
		return c.processes[process{ev.Host, ev.Fork().PID}]
	case event.Call, event.Inherited:
	default:
		return false
	}
	switch ev.Effect() {
	case event.EffectChdir, event.EffectChroot, event.EffectExecute:
		return c.processes[p]
	}
	switch ev.Op {
	case event.OpGetcwd, event.OpUmask, event.OpUnshare, event.OpCloseRange:
		return c.processes[p]
	}
	for i := range ev.Files {
		if c.opens[ev.Files[i].Open] {
			return true
		}
	}
	return false
}
