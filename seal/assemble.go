// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// assembler is the first stage: it joins the records of each event, and gives the events
// to the next stage when they are complete and in their order.
type assembler struct {
	store store                     // content of events that are being assembled
	next  func(*item) error         // takes each event, which is its own until it returns
	link  func(name, target string) // takes what the stream says of a symbolic link
	slack uint64                    // ns; see slackNS

	arch      event.Arch
	at        uint64 // where the record at hand is
	threads   map[uint32]*thread
	requests  map[callKey]request // under way
	open      map[callKey]*item   // calls whose RecData records are still to come
	queue     queue
	positions positions
	stacks    *stacks
	order     uint64 // of arrival, to keep equal times stable
	flags     uint32 // of the record at hand: RecordLate and RecordBehind
	last      uint64 // time of the last item that was made
	round     uint32
	until     uint64 // clock of the present round
	sealed    uint64 // everything that returned before this is out
	late      uint64 // events that came out of order
	losses    losses
	rec       trace.Record
	batch     []*item
	free      []*item
}

func newAssembler(slack uint64, store store, r *resolver) *assembler {
	return &assembler{
		store: store, next: r.resolve, link: r.model.Link, slack: slack,
		threads: map[uint32]*thread{}, requests: map[callKey]request{}, open: map[callKey]*item{},
		positions: newPositions(), losses: losses{}, stacks: &r.stacks,
	}
}

// thread is what is known of a thread between its records.
type thread struct {
	ppid, pgid, sid, uid, gid uint32
	nspid, nstid              uint32
	comm                      string
	identified                bool    // the above is from its own RecTask
	entries                   []entry // from RecEnter, for its next call
	unfinished                uint64  // when its last call began, whose content may still come; 0: none
}

type entry struct {
	time   uint64
	pieces []trace.Piece
}

// request is what was read when a request was submitted (RecEnter).
type request struct {
	pid    uint32
	op     uint16
	pieces []trace.Piece
}

type callKey struct {
	tid   uint32
	enter uint64
}

// slackNS is how long after its return a call's record may still be on its way
// into a ring.
const slackNS = 50e6

// maxQueue bounds the events that wait for their order; beyond it, the oldest go
// out as they are.
const maxQueue = 1 << 20

// losses counts records that were lost, by reason.
type losses map[uint32]uint64

func (l losses) total() (n uint64) {
	for _, k := range l {
		n += k
	}
	return n
}

// records takes the payload of a frame of records.
func (a *assembler) records(payload []byte) error {
	for body, err := range trace.Records(payload) {
		if err == nil {
			err = a.rec.Decode(body)
		}
		if err == nil {
			err = a.record(&a.rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin takes the header of a frame of records.
func (a *assembler) begin(f *trace.Frame) error {
	a.flags = 0
	if f.Round != a.round {
		// All shards were drained up to the last round's clock.
		if err := a.emit(a.until-min(a.until, a.slack), false); err != nil {
			return err
		}
		a.round = f.Round
	}
	a.until = max(a.until, f.Until)
	if f.Lost > 0 {
		a.lost(f.Until, f.Lost, trace.LossRing)
	}
	return nil
}

// lost puts a mark into the trace and counts.
func (a *assembler) lost(at, n uint64, reason uint32) {
	a.losses[reason] += n
	it := a.newItem(at)
	it.ev = event.Event{Enter: int64(at), Exit: int64(at), Offset: -1, Count: -1, Flags: it.ev.Flags}
	it.ev.SetLoss(event.Loss{Records: n, Reason: reason})
	a.queue.push(it)
}

// newItem returns an empty item that is due at a time.
func (a *assembler) newItem(key uint64) *item {
	it := &item{}
	if n := len(a.free); n > 0 {
		it = a.free[n-1]
		a.free = a.free[:n-1]
		ev := event.Event{Files: it.ev.Files[:0], Paths: it.ev.Paths[:0], Bufs: it.ev.Bufs[:0]}
		*it = item{ev: ev}
	}
	if a.flags&trace.RecordBehind != 0 {
		key = max(key, a.last)
	}
	if a.flags&trace.RecordLate != 0 {
		it.ev.Flags = event.Late
		a.late++
	}
	a.order++
	a.last = key
	it.key, it.arrival, it.at = key, a.order, a.at
	it.ev.Offset, it.ev.Count = -1, -1
	return it
}

// emit passes on, in order, what returned up to a time. Nothing overtakes an event
// whose content is not complete, unless all is to go.
func (a *assembler) emit(until uint64, all bool) error {
	a.batch = a.batch[:0]
	for a.queue.len() > 0 {
		it := a.queue.top()
		if it.key > until && a.queue.len() < maxQueue {
			break
		}
		if it.pending && !all && a.queue.len() < maxQueue {
			break
		}
		a.batch = append(a.batch, a.queue.pop())
	}
	a.positions.order(a.batch)
	for _, it := range a.batch {
		a.complete(it)
		if err := a.next(it); err != nil {
			return err
		}
		a.free = append(a.free, it)
	}
	return nil
}

// complete readies an event that has its place in the order.
func (a *assembler) complete(it *item) {
	if it.pending {
		a.partial(it)
	}
	if it.key < a.sealed {
		it.ev.Flags |= event.Late
		a.late++
	}
	a.sealed = max(a.sealed, it.key)
	a.stacks.give(&it.ev)
	a.stacks.settle(&it.ev)
	slices.SortStableFunc(it.ev.Bufs, byArgument)
}

// byArgument orders an event's memory: the order of pieces is that of their way into
// the stream.
func byArgument(a, b event.Buf) int {
	return cmp.Or(cmp.Compare(a.Arg&15, b.Arg&15), cmp.Compare(a.Arg, b.Arg))
}
