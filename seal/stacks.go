// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/unwind"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// Bounds of what is remembered: stacks, and those of a thread whose calls have not come yet.
const (
	mostStacks  = 1 << 17
	mostWaiting = 1 << 12
)

// stacks gives events their stacks. Its zero value is ready to use; nil gives none.
type stacks struct {
	symbols unwind.Symbolizer
	known   map[string]*event.Stack // by the record's frames and modules
	waiting map[uint32][]stackAt    // of calls that have not come yet, by thread
	wanted  *predicate.Matcher      // of the events that have a stack; nil: all
	follows bool                    // it has to see all events
}

// stackAt is the stack of the call that begins at a time.
type stackAt struct {
	enter uint64
	stack *event.Stack
}

// configure takes what the head says of stacks.
func (s *stacks) configure(h *trace.Head, arch event.Arch) error {
	if h.Stacks == nil || h.Stacks.Filter == "" {
		return nil
	}
	x, err := predicate.Parse(h.Stacks.Filter)
	if err != nil {
		return fmt.Errorf("the filter of the stacks: %w", err)
	}
	wall := h.WallNS - h.ClockNS
	g, err := predicate.Compile(x, &predicate.Options{StartNS: h.WallNS,
		Hosts: []predicate.Host{{Name: h.Host, Arch: arch, WallNS: wall}}})
	if err != nil {
		return fmt.Errorf("the filter of the stacks: %w", err)
	}
	s.wanted, s.follows = g.NewMatcher(), g.Follows()
	return nil
}

// take takes a record.
func (s *stacks) take(r *trace.Record) error {
	if s == nil {
		return nil
	}
	key := binary.LittleEndian.AppendUint32(nil, r.Flags)
	for i := range r.Pieces {
		key = append(append(key, r.Pieces[i].Arg), r.Pieces[i].Data...)
	}
	st := s.known[string(key)]
	if st == nil {
		var named bool
		var err error
		if st, named, err = r.Stack(); err != nil {
			return err
		}
		if !named {
			s.symbols.Stack(st)
		}
		if s.known == nil || len(s.known) >= mostStacks {
			s.known = map[string]*event.Stack{}
		}
		s.known[string(key)] = st
	}
	if s.waiting == nil {
		s.waiting = map[uint32][]stackAt{}
	}
	list := s.waiting[r.TID]
	if len(list) >= mostWaiting {
		list = list[1:]
	}
	s.waiting[r.TID] = append(list, stackAt{r.Enter, st})
	return nil
}

// give gives a call its stack, if it is there: its record may come before the call's or, from another
// shard, after it.
func (s *stacks) give(ev *event.Event) {
	if s == nil || ev.Kind != event.Call || ev.Stack != nil {
		return
	}
	list := s.waiting[ev.TID]
	i := slices.IndexFunc(list, func(x stackAt) bool { return x.enter == uint64(ev.Enter) })
	if i < 0 {
		return
	}
	ev.Stack = list[i].stack
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(s.waiting, ev.TID)
	} else {
		s.waiting[ev.TID] = list
	}
}

// settle forgets the stacks of the thread's calls up to one that has its place in the order.
func (s *stacks) settle(ev *event.Event) {
	if s == nil || len(s.waiting[ev.TID]) == 0 {
		return
	}
	list := s.waiting[ev.TID]
	switch ev.Kind {
	case event.Exited:
		list = nil
	case event.Call:
		list = slices.DeleteFunc(list, func(x stackAt) bool { return x.enter <= uint64(ev.Enter) })
	}
	if len(list) == 0 {
		delete(s.waiting, ev.TID)
	} else {
		s.waiting[ev.TID] = list
	}
}

// pick takes the stack from an event that is not to have one.
func (s *stacks) pick(ev *event.Event) {
	if s.wanted != nil && (s.follows || ev.Stack != nil) && !s.wanted.Match(ev) {
		ev.Stack = nil
	}
}
