// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
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
	assembler *assembler
	resolver  *resolver
	applied   func(at uint64)
	facts     *posix.Facts
	processes facts.Tracker
	most      int // processes in it, before those that have ended are forgotten
}

// manyProcesses is how many more processes than those that live may be remembered.
const manyProcesses = 4096

// followSlackNS is slackNS for a Follower, for which less time is less memory. What
// back ends say of their clocks (trace.Frame.Until) is exact by itself.
const followSlackNS = 2e6

// noRecord is where the record of an event is that has none.
const noRecord = ^uint64(0)

// NewFollower returns a Follower that has seen nothing. applied is told when an
// event was applied: where its record was, as passed to Frame.
func NewFollower(applied func(at uint64)) *Follower {
	f := &Follower{applied: applied, facts: posix.NewFacts()}
	f.resolver = newResolver(f)
	f.assembler = newAssembler(followSlackNS, noContent{}, f.resolver)
	f.assembler.stacks = nil
	return f
}

// NewPatientFollower returns a Follower that applies events in the very order of Seal, which costs memory for the
// records of more time. files is as in Options.
func NewPatientFollower(applied func(at uint64), files posix.FileSystem) *Follower {
	f := NewFollower(applied)
	f.assembler.slack = slackNS
	f.resolver.model.Ask(files)
	return f
}

// Identities returns how many numbers of open files were given out: see trace.Rotation.
func (f *Follower) Identities() uint64 { return f.resolver.model.Identities() }

// StateTime returns the time that the records of AppendState have, 0 before the first event.
func (f *Follower) StateTime() uint64 {
	return f.assembler.sealed - min(max(f.assembler.sealed, 1)-1, followSlackNS)
}

// Frame reads the next frame of records, whose payload begins at a place of the
// caller's numbering. It returns how many events it will report as applied.
func (f *Follower) Frame(h *trace.Frame, payload []byte, at uint64) (events int, err error) {
	a := f.assembler
	a.at = noRecord
	if err := a.begin(h); err != nil {
		return 0, err
	}
	for off := 0; off < len(payload); {
		body, next, err := trace.NextRecord(payload, off)
		if err != nil {
			return events, err
		}
		if body != nil {
			before := a.order
			a.at = at + uint64(off)
			if err := a.rec.Decode(body); err != nil {
				return events, err
			}
			if err := a.record(&a.rec); err != nil {
				return events, err
			}
			a.at = noRecord
			if a.rec.Type != trace.RecLoss {
				events += int(a.order - before)
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
	for _, it := range f.assembler.queue.h {
		if it.at < before {
			until = max(until, it.key)
		}
	}
	return f.assembler.emit(until, true)
}

// event follows an event that the model has applied.
func (f *Follower) event(it *item, closed []event.OpenID) error {
	f.facts.See(&it.ev, closed)
	f.processes.See(&it.ev)
	if f.processes.Len() > max(f.most, manyProcesses) {
		alive := f.alive()
		f.processes.Keep(0, func(pid uint32) bool { return alive[pid] })
		f.most = 2 * f.processes.Len()
	}
	if it.at != noRecord && it.ev.Kind != event.LossMark {
		f.applied(it.at)
	}
	return nil
}

// alive returns the processes that have threads.
func (f *Follower) alive() map[uint32]bool {
	alive := map[uint32]bool{}
	for _, t := range f.resolver.model.Threads() {
		alive[t.PID] = true
	}
	return alive
}

// noContent is the store of who needs no content but what stands in events.
type noContent struct{}

func (noContent) spill(b *event.Buf, _ int64) error {
	b.Inline = nil
	return nil
}

func (c noContent) add(b *event.Buf, base int64, _ *trace.Piece) error { return c.spill(b, base) }
