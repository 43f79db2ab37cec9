// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/spool"
	"github.com/iotape/iotape/fleet/staging"
)

// reserve is room in the spool that frames do not get: for beginnings and ends.
const reserve = 256 << 10

// overhead is what a batch takes in the spool beside its data.
const overhead = batch.MaxBytes - batch.MaxData + 8

// maxParts bounds the streams of one recording.
const maxParts = 1000

// stream is one that is being made, and then the next ones of the same recording. It is a
// Sink.
type stream struct {
	spool  *spool.Spool
	ledger *spool.Ledger
	block  bool                         // wait for room
	done   <-chan struct{}              // stop waiting: the recording is to end
	rotate func(staging.Reason, string) // ends the recording
	next   func(previous string, why staging.Reason) *staging.About
	size   int64 // of a stream
	whole  int64 // of all streams of the recording
	sparse bool  // most is lost because that is the level

	mu       sync.Mutex
	name     string
	parts    int
	total    int64          // bytes in all parts
	due      staging.Reason // why the stream is to change, if it is
	waiting  bool           // Put waits for room, and does not hold mu
	over     bool           // the source has ended
	batch    []byte         // whole frames, accepted
	events   uint64         // in it
	number   uint64         // of the last batch
	before   uint64         // events in batches
	bytes    int64
	losses   map[string]uint64
	lossy    bool // since the last batch that was taken
	broken   bool
	encoded  []byte
	produced uint64
}

var _ Sink = (*stream)(nil)

// Put takes a frame.
func (s *stream) Put(header, payload []byte, events uint64) (bool, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Take(events)
	s.produced += events
	n := len(header) + len(payload)
	for {
		changed := s.spool.Changed()
		if s.broken {
			return s.drop(LossBroken, events)
		}
		if s.room(n, events == 0) {
			break
		}
		if !s.block {
			return s.drop(LossSpool, events)
		}
		s.waiting = true
		s.mu.Unlock()
		stop := false
		select {
		case <-changed:
		case <-time.After(time.Second): // room on the disk comes without a word
		case <-s.done:
			stop = true
		}
		s.mu.Lock()
		s.waiting = false
		if stop {
			return s.drop(LossSpool, events)
		}
	}
	if len(s.batch)+n > batch.MaxData && !s.flush() {
		return s.drop(LossSpool, events)
	}
	s.batch = append(append(s.batch, header...), payload...)
	s.events += events
	s.bytes += int64(n)
	s.total += int64(n)
	if len(s.batch) > batch.MaxData {
		if !s.split() {
			return s.drop(LossBroken, events)
		}
	}
	if s.bytes > s.size {
		s.due = staging.ReasonSize
	}
	s.change()
	if used, max := s.spool.Bytes(); s.lossy && used < max/2 {
		s.rotate(staging.ReasonLoss, "")
	}
	return true, ""
}

// room reports whether the spool has room for the batch and n more bytes. Frames
// without events, which say how the stream is, may have half of the reserve.
func (s *stream) room(n int, small bool) bool {
	used, max := s.spool.Bytes()
	keep := int64(reserve)
	if small {
		keep /= 2
	}
	all := int64(len(s.batch) + n)
	return used+all+(all/batch.MaxData+2)*overhead <= max-keep
}

func (s *stream) drop(reason string, events uint64) (bool, string) {
	if events > 0 {
		s.losses[reason] += events
		s.ledger.Drop(events)
		s.lossy = true
	}
	return false, reason
}

// Lost counts what the source lost.
func (s *stream) Lost(reason string, events uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Take(events)
	s.produced += events
	lossy := s.lossy
	s.drop(reason, events)
	if s.sparse { // there is nothing to describe anew
		s.lossy = lossy
	}
}

// change ends the stream if that is due, and begins the next one, in which the recording
// goes on: between two frames, so nothing is missing between the streams. What has lost
// something does not go on: it is described anew.
func (s *stream) change() {
	switch {
	case s.due == "":
		return
	case stopping(s.done) || s.over || s.waiting:
		return
	case len(s.losses) > 0 || s.broken || s.total >= s.whole || s.parts >= maxParts:
		s.rotate(s.due, "")
		return
	}
	if s.goOn(s.due) == nil { // else there is no room, and it is tried again with the next frame
		s.due = ""
	}
}

func stopping(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Age says that the stream is as old as it may become.
func (s *stream) Age() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number > 0 && s.due == "" {
		s.due = staging.ReasonAge
		s.change()
	}
}

// close says that nothing more is put in: the stream is the recording's last.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// goOn puts the stream's end and the beginning of the next one into the spool, both or
// none.
func (s *stream) goOn(why staging.Reason) error {
	if !s.flush() {
		return spool.ErrFull
	}
	about := s.next(s.name, why)
	first, err := json.Marshal(about)
	if err != nil {
		return err
	}
	e := s.declare(why, "")
	e.Continued = true
	last, err := json.Marshal(e)
	if err != nil {
		return err
	}
	end := batch.Batch{Kind: batch.End, Stream: s.name, Number: s.number + 1, Before: s.before,
		Lost: s.lost(), Data: last}
	begin := batch.Batch{Kind: batch.About, Stream: about.Stream, Number: 1, Data: first}
	err = s.spool.PutAll([][]byte{end.Append(nil), begin.Append(nil)}, func() {
		s.ledger.Spooled(end.Number, end.Before, end.Lost)
		s.ledger.End()
		s.ledger.Begin(begin.Stream)
		s.ledger.Spooled(1, 0, 0)
	})
	if err != nil {
		return err
	}
	s.name, s.number, s.before, s.bytes = begin.Stream, 1, 0, 0
	s.parts++
	return nil
}

// Handed returns how many events the agent, and those before it, were given.
func (s *stream) Handed() uint64 { return s.ledger.Handed() }

// Flush makes a batch of what there is.
func (s *stream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

// flush reports whether the batch is in the spool. If not, it stays.
func (s *stream) flush() bool {
	if len(s.batch) == 0 {
		return true
	}
	if s.spoolBatch(batch.Data, 0, s.batch, s.events) != nil {
		return false
	}
	s.batch, s.events = s.batch[:0], 0
	return true
}

// split puts a frame that is larger than a batch into several. The events are in the
// last, where the frame is whole. There was room; if the disk has none all the same, the
// stream ends here.
func (s *stream) split() bool {
	all, events := s.batch, s.events
	s.batch, s.events = nil, 0
	flags := batch.More
	for part := range slices.Chunk(all, batch.MaxData) {
		n := uint64(0)
		if &part[len(part)-1] == &all[len(all)-1] {
			n, flags = events, flags&^batch.More
		}
		if s.spoolBatch(batch.Data, flags, part, n) != nil {
			s.broken = true
			s.rotate(staging.ReasonLoss, LossBroken)
			return false
		}
		flags = batch.Within | batch.More
	}
	return true
}

// spoolBatch puts a batch into the spool.
func (s *stream) spoolBatch(kind batch.Kind, flags uint8, data []byte, events uint64) error {
	p := batch.Batch{Kind: kind, Flags: flags, Stream: s.name, Number: s.number + 1, Before: s.before, Events: events,
		Lost: s.lost(), Data: data}
	s.encoded = p.Append(s.encoded[:0])
	// The ledger has it before the shipper can: else an agent that is killed in between,
	// when the batch was sent already, would be thought to have lost it.
	err := s.spool.Put(s.encoded, func() {
		s.ledger.Spooled(p.Number, p.Before+events, p.Lost)
		if kind == batch.End {
			s.ledger.End()
		}
	})
	if err != nil {
		return err
	}
	s.number, s.before = p.Number, p.Before+events
	return nil
}

func (s *stream) lost() (n uint64) {
	for _, v := range s.losses {
		n += v
	}
	return n
}

// begin puts the stream's first batch into the spool.
func (s *stream) begin(about *staging.About) error {
	b, err := json.Marshal(about)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoolBatch(batch.About, 0, b, 0)
}

// end puts the last batch into the spool. It can be tried again.
func (s *stream) end(reason staging.Reason, detail string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.flush() {
		return spool.ErrFull
	}
	e := s.declare(reason, detail)
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.spoolBatch(batch.End, 0, b, 0)
}

// declare says how the stream ends.
func (s *stream) declare(reason staging.Reason, detail string) *staging.End {
	e := &staging.End{Version: staging.Version, Reason: reason, Detail: detail, LastBatch: s.number + 1,
		Events: s.before}
	e.Complete = len(s.losses) == 0 && reason != staging.ReasonKilled && reason != staging.ReasonReboot
	for _, r := range slices.Sorted(maps.Keys(s.losses)) {
		e.Losses = append(e.Losses, staging.Loss{Reason: r, Events: s.losses[r]})
	}
	return e
}

// errEnded says that the last batch of a killed agent's stream is in the spool already.
var errEnded = errors.New("the stream has its end")

// latest returns the last batch in a spool; its kind is 0 if there is none.
func latest(sp *spool.Spool) (p batch.Batch, err error) {
	first, next := sp.Bounds()
	if next == first {
		return p, nil
	}
	b, ok, err := sp.Get(next-1, nil)
	if err != nil || !ok {
		return p, err
	}
	if p, err = batch.Decode(b); err != nil {
		return batch.Batch{}, nil // it is not sent either
	}
	return p, nil
}

// resumed returns the stream that a killed agent left, to be ended. p is the last batch in
// the spool.
func resumed(sp *spool.Spool, l *spool.Ledger, p *batch.Batch) (*stream, error) {
	st := l.State()
	s := &stream{spool: sp, ledger: l, name: st.Stream, number: st.Batches, before: st.Events,
		losses: map[string]uint64{}}
	// It may be one that the ledger has not.
	if p.Kind != 0 && p.Stream == s.name && p.Number >= s.number {
		s.number, s.before = p.Number, p.Before+p.Events
		if p.Kind == batch.End {
			return nil, errEnded
		}
	}
	if st.Dropped > 0 {
		s.losses[LossEarlier] = st.Dropped
	}
	if n := st.Taken - min(st.Taken, s.before+st.Dropped); n > 0 {
		s.losses[LossKilled] = n
	}
	return s, nil
}
