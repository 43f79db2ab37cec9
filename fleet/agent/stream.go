package agent

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"iotape/fleet/parcel"
	"iotape/fleet/spool"
	"iotape/fleet/staging"
)

// reserve is room in the spool that frames do not get: for beginnings and ends.
const reserve = 256 << 10

// overhead is what a parcel takes in the spool beside its data.
const overhead = parcel.MaxBytes - parcel.MaxData + 8

// stream is one that is being made. It is a Sink.
type stream struct {
	spool  *spool.Spool
	ledger *spool.Ledger
	name   string
	block  bool            // wait for room
	done   <-chan struct{} // stop waiting
	rotate func(staging.Reason, string)
	size   int64

	mu       sync.Mutex
	batch    []byte // whole frames, accepted
	events   uint64 // in it
	number   uint64 // of the last parcel
	before   uint64 // events in parcels
	bytes    int64
	losses   map[string]uint64
	lossy    bool // since the last parcel that was taken
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
		s.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(time.Second): // room on the disk comes without a word
		case <-s.done:
			s.mu.Lock()
			return s.drop(LossSpool, events)
		}
		s.mu.Lock()
	}
	if len(s.batch)+n > parcel.MaxData && !s.flush() {
		return s.drop(LossSpool, events)
	}
	s.batch = append(append(s.batch, header...), payload...)
	s.events += events
	s.bytes += int64(n)
	if len(s.batch) > parcel.MaxData {
		if !s.split() {
			return s.drop(LossBroken, events)
		}
	}
	if s.bytes > s.size {
		s.rotate(staging.ReasonSize, "")
	}
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
	return used+all+(all/parcel.MaxData+2)*overhead <= max-keep
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
	s.drop(reason, events)
}

// Handed returns how many events the agent, and those before it, were given.
func (s *stream) Handed() uint64 { return s.ledger.Handed() }

// Flush makes a parcel of what there is.
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
	if s.parcel(parcel.Data, 0, s.batch, s.events) != nil {
		return false
	}
	s.batch, s.events = s.batch[:0], 0
	return true
}

// split puts a frame that is larger than a parcel into several. The events are in the
// last, where the frame is whole. There was room; if the disk has none all the same, the
// stream ends here.
func (s *stream) split() bool {
	all, events := s.batch, s.events
	s.batch, s.events = nil, 0
	flags := parcel.More
	for part := range slices.Chunk(all, parcel.MaxData) {
		n := uint64(0)
		if &part[len(part)-1] == &all[len(all)-1] {
			n, flags = events, flags&^parcel.More
		}
		if s.parcel(parcel.Data, flags, part, n) != nil {
			s.broken = true
			s.rotate(staging.ReasonLoss, LossBroken)
			return false
		}
		flags = parcel.Within | parcel.More
	}
	return true
}

// parcel puts one into the spool.
func (s *stream) parcel(kind parcel.Kind, flags uint8, data []byte, events uint64) error {
	p := parcel.Parcel{Kind: kind, Flags: flags, Stream: s.name, Number: s.number + 1, Before: s.before, Events: events, Lost: s.lost(), Data: data}
	s.encoded = p.Append(s.encoded[:0])
	// The ledger has it before the shipper can: else an agent that is killed in between,
	// when the parcel was sent already, would be thought to have lost it.
	err := s.spool.Put(s.encoded, func() {
		s.ledger.Spooled(p.Number, p.Before+events, p.Lost)
		if kind == parcel.End {
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

// begin puts the stream's first parcel into the spool.
func (s *stream) begin(about *staging.About) error {
	b, err := json.Marshal(about)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parcel(parcel.About, 0, b, 0)
}

// end puts the last parcel into the spool. It can be tried again.
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
	return s.parcel(parcel.End, 0, b, 0)
}

// declare says how the stream ends.
func (s *stream) declare(reason staging.Reason, detail string) *staging.End {
	e := &staging.End{Version: staging.Version, Reason: reason, Detail: detail, LastParcel: s.number + 1, Events: s.before, Complete: len(s.losses) == 0}
	for _, r := range slices.Sorted(maps.Keys(s.losses)) {
		e.Losses = append(e.Losses, staging.Loss{Reason: r, Events: s.losses[r]})
	}
	return e
}

// errEnded says that the last parcel of a killed agent's stream is in the spool already.
var errEnded = errors.New("the stream has its end")

// resumed returns the stream that a killed agent left, to be ended.
func resumed(sp *spool.Spool, l *spool.Ledger) (*stream, error) {
	st := l.State()
	s := &stream{spool: sp, ledger: l, name: st.Stream, number: st.Parcels, before: st.Events, losses: map[string]uint64{}}
	if first, next := sp.Bounds(); next > first {
		// The last parcel may be one that the ledger has not.
		b, ok, err := sp.Get(next-1, nil)
		if err != nil {
			return nil, err
		}
		if p, err := parcel.Decode(b); ok && err == nil && p.Stream == s.name && p.Number >= s.number {
			s.number, s.before = p.Number, p.Before+p.Events
			if p.Kind == parcel.End {
				return nil, errEnded
			}
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
