// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// File is where the stream of a part goes.
type File interface {
	io.Writer
	// Cut makes the file as long as that; writing goes on there.
	Cut(length int64) error
	// Settled is told that what was written up to a length will not be cut.
	Settled(length int64) error
}

// Options say when a part is full, and where parts go.
type Options struct {
	Bytes int64         // of a part, about; 0: no limit
	Every time.Duration // between the beginnings of two parts, by the recording's clock; 0: no limit
	// Open makes the file of a part; the parts are numbered from 1.
	Open func(part int) (File, error)
	// Full is told of a part that has its end, when the next one has its beginning. The last part is not full.
	Full  func(part int) error
	Files posix.FileSystem // as in seal.Options
	Now   func() (clock, wall int64)
}

// Splitter divides a stream. It is an io.Writer that takes each frame in two writes, header and payload, as
// trace.NewStreamWriter makes them. Not safe for concurrent use.
type Splitter struct {
	o        Options
	id       string // of the recording
	follower *seal.Follower
	head     *trace.Head
	part     int
	file     File
	out      *trace.StreamWriter
	began    uint64 // Until of the first frame of the part
	records  bool   // the part has frames beside the state
	header   []byte
	queue    []*frame // that have events which are not applied, oldest first
	base     uint64   // of the next frame, in the numbering of the follower
	lost     uint64   // records, that frames said so far
	before   uint64   // of them, in parts that are full
}

// frame is a frame of records with events that may belong to the next part.
type frame struct {
	trace.Frame
	own  []byte // what the present part has
	rest []byte // the same without the records of events that were applied
	base uint64 // of its payload
	off  int64  // in the file
	live int    // events that are not applied
}

// New returns a Splitter that has got nothing.
func New(o *Options) *Splitter {
	s := &Splitter{o: *o, id: fmt.Sprintf("%016x", trace.NewStreamID())}
	s.follower = seal.NewPatientFollower(s.applied, o.Files)
	return s
}

// Part returns the number of the part that is written, 0 before the first.
func (s *Splitter) Part() int { return s.part }

// LostBefore returns how many lost records the parts that are full say.
func (s *Splitter) LostBefore() uint64 { return s.before }

// Write implements io.Writer.
func (s *Splitter) Write(b []byte) (int, error) {
	if s.header == nil {
		s.header = bytes.Clone(b)
		return len(b), nil
	}
	fr := trace.NewFrameReader(io.MultiReader(bytes.NewReader(s.header), bytes.NewReader(b)))
	s.header = nil
	f, payload, err := fr.Next()
	if err == nil {
		err = s.frame(&f, payload)
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *Splitter) frame(f *trace.Frame, payload []byte) (err error) {
	switch f.Kind {
	case trace.FrameHead:
		if s.head, err = trace.ReadHead(payload); err != nil {
			return err
		}
		return s.begin(&trace.Rotation{Recording: s.id, Part: 1}, nil)
	case trace.FrameEnd:
		end, err := trace.ReadEnd(payload)
		if err != nil {
			return err
		}
		end.Lost -= min(end.Lost, s.before)
		return s.out.Close(end)
	case trace.FrameRecords:
		if s.out == nil {
			return errors.New("records before the head of a stream")
		}
		return s.add(f, payload)
	}
	return nil // no recording has others
}

// begin makes the next part and its head.
func (s *Splitter) begin(r *trace.Rotation, w *trace.Window) error {
	file, err := s.o.Open(r.Part)
	if err != nil {
		return err
	}
	head := *s.head
	head.Rotation, head.Window = r, w
	out, err := trace.NewStreamWriter(file, trace.NewStreamID(), &head)
	if err != nil {
		return err
	}
	s.part, s.file, s.out, s.began, s.records = r.Part, file, out, 0, false
	return nil
}

// add takes a frame of records.
func (s *Splitter) add(f *trace.Frame, payload []byte) error {
	if s.full(f, len(payload)) {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	if s.began == 0 {
		s.began = f.Until
	}
	s.records = true
	p := &frame{Frame: *f, own: bytes.Clone(payload), rest: bytes.Clone(payload), base: s.base, off: s.out.Bytes()}
	s.base += uint64(len(payload)) + 8
	s.lost += f.Lost + lossRecords(payload)
	if err := s.out.WriteRecords(*f, payload); err != nil {
		return err
	}
	s.queue = append(s.queue, p)
	n, err := s.follower.Frame(f, p.rest, p.base)
	if err != nil {
		return err
	}
	p.live += n
	done := 0
	for done < len(s.queue) && s.queue[done].live == 0 {
		done++
	}
	s.queue = slices.Delete(s.queue, 0, done)
	if len(s.queue) > 0 {
		return s.file.Settled(s.queue[0].off)
	}
	return s.file.Settled(s.out.Bytes())
}

// lossRecords returns how many lost records the records of a payload say.
func lossRecords(payload []byte) (n uint64) {
	var rec trace.Record
	for body := range trace.Records(payload) {
		if trace.TypeOf(body) == trace.RecLoss && rec.Decode(body) == nil {
			n += rec.Count
		}
	}
	return n
}

// full reports whether a frame belongs to the next part.
func (s *Splitter) full(f *trace.Frame, n int) bool {
	if !s.records || s.follower.Time() == 0 {
		return false
	}
	waiting := int64(0) // what the next part begins with
	for _, p := range s.queue {
		waiting += int64(len(p.rest))
	}
	return s.o.Bytes > 0 && s.out.Bytes()+int64(n) > s.o.Bytes && s.out.Bytes() > 2*waiting ||
		s.o.Every > 0 && s.began > 0 && f.Until >= s.began+uint64(s.o.Every)
}

// applied is told that an event was applied: its record is not for the next part.
func (s *Splitter) applied(at uint64) {
	i := sort.Search(len(s.queue), func(i int) bool { return s.queue[i].base > at }) - 1
	p := s.queue[i]
	p.live--
	trace.Discard(p.rest, int(at-p.base))
}

// rotate begins the next part with the state of now, and ends the present one. What belongs to both is in both until
// the present one is cut: so it is lost at no time.
func (s *Splitter) rotate() error {
	since := s.follower.Time()
	old, oldFile := s.out, s.file
	err := s.begin(&trace.Rotation{Recording: s.id, Part: s.part + 1, StateNS: int64(s.follower.StateTime()),
		Opens: s.follower.Identities()}, &trace.Window{SinceNS: int64(since), Reason: "the part before was full"})
	if err != nil {
		return err
	}
	f := trace.Frame{Shard: uint32(s.head.Shards), Until: since}
	if len(s.queue) > 0 {
		f.Round = s.queue[0].Round
	}
	if err := writeState(s.out, f, s.follower.AppendState(nil)); err != nil {
		return err
	}
	past := s.divide(since)
	s.before = s.lost
	for _, p := range s.queue { // they say it in the next part
		s.before -= min(s.before, p.Lost+lossRecords(p.rest))
	}
	for _, p := range s.queue {
		p.off = s.out.Bytes()
		if err := s.out.WriteRecords(p.Frame, p.rest); err != nil {
			return err
		}
		p.own = bytes.Clone(p.rest)
	}
	if err := cut(oldFile, old, past); err != nil {
		return err
	}
	clock, wall := s.o.Now()
	if err := old.Close(&trace.End{Running: true, ClockNS: clock, WallNS: wall}); err != nil {
		return err
	}
	return s.o.Full(s.part - 1)
}

// divide leaves in the frames of the queue what is for the next part, and returns them with what is for the present
// one.
func (s *Splitter) divide(since uint64) []frame {
	next := map[call]bool{} // that are not applied
	var rec trace.Record
	for _, p := range s.queue {
		for body := range trace.Records(p.rest) {
			if trace.TypeOf(body) == trace.RecCall && rec.Decode(body) == nil {
				next[call{rec.TID, rec.Enter}] = true
			}
		}
	}
	past := make([]frame, len(s.queue))
	for i, p := range s.queue {
		past[i] = *p
		for off := 0; off < len(p.own); {
			body, end, err := trace.NextRecord(p.own, off)
			if err != nil {
				break // the follower would have said so
			}
			if body != nil {
				divideRecord(p, off, body, &rec, next, since)
			}
			off = end
		}
		if p.Until > since { // the mark of the loss has this time
			past[i].Lost = 0
		} else {
			p.Lost = 0
		}
	}
	return past
}

// call is a call of a thread.
type call struct {
	tid   uint32
	enter uint64
}

// divideRecord discards a record in the part that it does not belong to.
func divideRecord(p *frame, off int, body []byte, rec *trace.Record, next map[call]bool, since uint64) {
	switch trace.TypeOf(body) {
	case trace.RecTask, trace.RecEnter, trace.RecLink, trace.RecStack: // they make no events
	case trace.RecData:
		if rec.Decode(body) == nil && next[call{rec.TID, rec.Enter}] {
			trace.Discard(p.own, off)
		}
	case trace.RecLoss:
		if rec.Decode(body) == nil && rec.Exit <= since {
			trace.Discard(p.rest, off)
		} else {
			trace.Discard(p.own, off)
		}
	default:
		if waiting, _, err := trace.NextRecord(p.rest, off); err == nil && waiting != nil {
			trace.Discard(p.own, off)
		}
	}
}

// cut writes the end of a part anew, from the first frame on that is divided.
func cut(file File, out *trace.StreamWriter, past []frame) error {
	if len(past) == 0 {
		return nil
	}
	if err := file.Cut(past[0].off); err != nil {
		return err
	}
	for i := range past {
		if err := out.WriteRecords(past[i].Frame, past[i].own); err != nil {
			return err
		}
	}
	return nil
}

// writeState writes the records of a state, in frames of a good size.
func writeState(out *trace.StreamWriter, f trace.Frame, state []byte) error {
	start := 0
	for off := 0; off < len(state); {
		_, next, err := trace.NextRecord(state, off)
		if err != nil {
			return err
		}
		if next-start > trace.MaxFrameBytes/2 {
			if err := out.WriteRecords(f, state[start:off]); err != nil {
				return err
			}
			start = off
		}
		off = next
	}
	if start == len(state) {
		return nil
	}
	return out.WriteRecords(f, state[start:])
}
