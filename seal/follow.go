package seal

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// Follower applies a stream to the model as Seal does, but keeps no events: only
// the state of processes and descriptors, which it can write as the records that a
// stream begins with. So a stream can be cut and still be sealed as if all of it
// had been there.
//
// Events are applied in their order, which may be some frames after their records
// were read. Until then the records are still needed.
type Follower struct {
	s       sealer
	applied func(at uint64)
	facts   *posix.Facts
}

// followSlackNS is slackNS for a Follower, for which less time is less memory. What
// back ends say of their clocks (trace.Frame.Until) is exact by itself.
const followSlackNS = 2e6

// noRecord is where the record of an event is that has none.
const noRecord = ^uint64(0)

// NewFollower returns a Follower that has seen nothing. applied is told when an
// event was applied: where its record was, as passed to Frame.
func NewFollower(applied func(at uint64)) *Follower {
	f := &Follower{applied: applied, facts: posix.NewFacts()}
	f.s = sealer{
		slack: followSlackNS, model: posix.New(), stats: &Stats{Head: &trace.Head{}, nLosses: map[uint32]uint64{}},
		threads: map[uint32]*thread{}, requests: map[callKey]request{}, open: map[callKey]*item{}, positions: newPositions(),
		applied: f.apply,
	}
	return f
}

// Frame reads the next frame of records, whose payload begins at a place of the
// caller's numbering. It returns how many events it will report as applied.
func (f *Follower) Frame(h *trace.Frame, payload []byte, at uint64) (events int, err error) {
	f.s.at = noRecord
	if err := f.s.begin(h); err != nil {
		return 0, err
	}
	for off := 0; off < len(payload); {
		body, next, err := trace.NextRecord(payload, off)
		if err != nil {
			return events, err
		}
		if body != nil {
			before := f.s.order
			f.s.at = at + uint64(off)
			if err := f.s.rec.Decode(body); err != nil {
				return events, err
			}
			if err := f.s.record(&f.s.rec); err != nil {
				return events, err
			}
			f.s.at = noRecord
			if f.s.rec.Type != trace.RecLoss {
				events += int(f.s.order - before)
			}
		}
		off = next
	}
	return events, nil
}

// Flush applies events that were read until none is left whose record is before a
// place. If records of the same time are still to come, those are out of order.
func (f *Follower) Flush(before uint64) error {
	until := uint64(0)
	for _, it := range f.s.queue.h {
		if it.at < before {
			until = max(until, it.key)
		}
	}
	return f.s.emit(until, true)
}

// apply follows an event that the model has applied.
func (f *Follower) apply(it *item, released []event.OpenID) {
	f.facts.See(&it.ev, released)
	if it.at != noRecord && it.ev.Kind != event.LossMark {
		f.applied(it.at)
	}
}
