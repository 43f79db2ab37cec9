// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"math"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
)

// resolver is the second stage: it says of each event which files and names it was about,
// and gives it to the sink.
type resolver struct {
	sink      sink
	model     *posix.Model
	pages     pages
	processes processes
	stacks    stacks // of the events, which the assembler gives them
	blocks    blocks
	step      int64 // ns that times are rounded down to; 0 and 1: they stay
	// stateAt is the time of the events that say the state which a part of a recording begins with; 0: there are none.
	stateAt int64
}

// sink is the last stage.
type sink interface {
	// event takes an event, resolved and in its order, with the open files that it
	// closed. Both are valid until it returns.
	event(it *item, closed []event.OpenID) error
}

func newResolver(sink sink) *resolver { return &resolver{sink: sink, model: posix.New()} }

// resolve takes an event from the assembler.
func (r *resolver) resolve(it *item) error {
	ev := &it.ev
	if r.stateAt != 0 && ev.Exit > r.stateAt {
		r.stateAt = 0
		r.model.Resumed()
	}
	r.round(ev)
	if ev.Op == event.OpMmapPread {
		r.pages.see(ev, it.before)
	}
	var closed []event.OpenID
	if ev.Kind != event.LossMark && ev.Kind != event.NoteMark {
		closed = r.model.Apply(ev)
		r.processes.see(r.model, ev)
	}
	r.stacks.pick(ev)
	r.blocks.see(ev)
	return r.sink.event(it, closed)
}

// round makes an event's times as coarse as the recording is to be. Its order is found.
func (r *resolver) round(ev *event.Event) {
	if r.step <= 1 {
		return
	}
	ev.Enter -= ev.Enter % r.step
	ev.Exit -= ev.Exit % r.step
	for _, d := range [...]*uint32{&ev.DelayBefore, &ev.DelayWithin} {
		if *d != math.MaxUint32 { // which is all that is longer
			*d -= uint32(int64(*d) % r.step)
		}
	}
}
