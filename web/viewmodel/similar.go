// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/similar"
	"github.com/iotape/iotape/trace"
)

// Limits of the search for similar content.
const (
	similarBytes  = 64 << 10 // of each content, from its beginning
	similarEvents = 20_000   // that are looked at, before and after, in each tape
	similarTotal  = 64 << 20 // bytes that are read
	maxSimilar    = 50
	leastJaccard  = 0.2
)

// Similar is what was found that resembles the content of an event.
type Similar struct {
	Events  int   `json:"events"`    // that were looked at
	Bytes   int64 `json:"bytes"`     // that were read
	All     bool  `json:"all"`       // that is all of the tapes
	CutFrom int64 `json:"cut_bytes"` // how long contents are that were looked at only in part; 0 if none was
	// By says what was compared: "bytes", "hashes", "signatures", "signatures of CAT"; "" if the
	// tape has nothing of the content.
	By      string         `json:"by"`
	Unknown int            `json:"unknown"` // contents that could not be compared: the tapes do not have them
	Found   []SimilarEvent `json:"found"`   // the most similar first
}

// SimilarEvent is an event with similar content.
type SimilarEvent struct {
	EventRef
	Equal   bool    `json:"equal"`
	Jaccard float64 `json:"jaccard"` // estimated, 0 to 1
	Shared  int     `json:"shared"`  // bytes of it that stand in the event's content, in long runs
	Bytes   int64   `json:"bytes"`
	Work    string  `json:"work"`
}

// Similar looks for content like that of an event, among the events around it. What was
// left out is said.
func (s *Scene) Similar(ctx context.Context, tape int, seq uint64) (*Similar, error) {
	ev, err := s.read(tape, seq)
	if err != nil {
		return nil, err
	}
	out := &Similar{Found: []SimilarEvent{}, All: true}
	b := contentBuf(ev)
	if b == nil {
		return out, nil
	}
	f := finding{s: s, out: out, known: map[string]*verdict{}}
	if f.signer, err = similar.NewSigner(nil); err != nil {
		return nil, err
	}
	var note []byte
	if next, err := s.read(tape, seq+1); err == nil {
		note = noteOf(next)
	}
	f.asked = f.subject(tape, ev.Host, b, note)
	if out.By = f.asked.has.String(); out.By == "" {
		return out, nil
	}
	f.signature = f.signer.Sign(nil, f.asked.bytes)
	if f.origins, err = similar.NewOrigins(nil, func(uint32) []byte { return f.asked.bytes }); err != nil {
		return nil, err
	}
	f.origins.Add(0)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k, t := range s.tapes {
		at := seq
		if k != tape {
			at = t.near(ev.Enter + s.tapes[tape].shift(ev.Host))
		}
		if err := f.look(ctx, k, at, tape, seq); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out.Found, func(a, b SimilarEvent) int {
		return cmp.Or(-cmp.Compare(a.score(), b.score()), cmp.Compare(a.AtNS, b.AtNS))
	})
	out.Found = out.Found[:min(len(out.Found), maxSimilar)]
	for i := range out.Found {
		x := &out.Found[i]
		if ev, err := s.read(x.Tape, x.Seq); err == nil {
			x.EventRef = s.ref(x.Tape, ev)
		}
	}
	return out, nil
}

func (e *SimilarEvent) score() float64 {
	if e.Equal {
		return 2
	}
	return max(e.Jaccard, float64(e.Shared)/float64(max(e.Bytes, 1)))
}

// near returns an event that returned at a time of the picture, or soon after.
func (t *tape) near(ns int64) uint64 {
	r := t.NewEventReader()
	r.SeekTime(ns - t.shift(0))
	var ev event.Event
	if r.Next(&ev) != nil {
		return t.Manifest().Counts.Events
	}
	return ev.Seq
}

// finding is one search.
type finding struct {
	s         *Scene
	out       *Similar
	asked     *subject
	digester  similar.Digester
	signer    *similar.Signer
	signature similar.Signature
	origins   *similar.Origins
	known     map[string]*verdict // by tape and what the content is made of
	scratch   similar.Signature
	matches   []similar.Match
}

type verdict struct {
	equal   bool
	jaccard float64
	shared  int
}

// bytes reads content, but not all of what is long.
func (f *finding) bytes(t *trace.Tape, b *event.Buf) []byte {
	data, _ := t.ContentRange(b, 0, similarBytes, nil)
	if b.Len > similarBytes {
		f.out.CutFrom = similarBytes
	}
	f.out.Bytes += int64(len(data))
	return data
}

// look goes through the events around one of a tape.
func (f *finding) look(ctx context.Context, k int, at uint64, notTape int, notSeq uint64) error {
	t := f.s.tapes[k]
	first := at - min(at, similarEvents)
	f.out.All = f.out.All && first == 0 && at+similarEvents >= t.Manifest().Counts.Events
	r := t.NewEventReader()
	if err := r.Seek(first); err != nil {
		return err
	}
	var ev event.Event
	var waiting *candidate
	for range 2 * similarEvents {
		if err := r.Next(&ev); errors.Is(err, io.EOF) {
			if waiting != nil {
				f.add(waiting, nil)
			}
			return nil
		} else if err != nil {
			continue // a damaged block: it goes on behind it
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.out.Events++
		if waiting != nil { // for the note that may have its signature
			f.take(waiting, f.subject(k, waiting.host, &event.Buf{Len: waiting.Bytes, Omitted: true}, noteOf(&ev)))
			waiting = nil
		}
		b := contentBuf(&ev)
		if b == nil || k == notTape && ev.Seq == notSeq {
			continue
		}
		if f.out.Bytes > similarTotal {
			f.out.All = false
			return nil
		}
		io := ev.Traffic()
		c := &candidate{host: ev.Host, SimilarEvent: SimilarEvent{
			EventRef: EventRef{Tape: k, Seq: ev.Seq, AtNS: ev.Enter + t.shift(ev.Host)}, Bytes: b.Len,
			Work: report.WorkOf(&ev, &io).String()}}
		if b.Omitted && len(b.Hashes) == 0 {
			waiting = c
			continue
		}
		f.judge(c, b)
	}
	return nil
}

// candidate is an event whose content may be like that which is asked for.
type candidate struct {
	SimilarEvent
	host uint32
}

// noteOf returns the bytes of a mark.
func noteOf(ev *event.Event) []byte {
	if ev.Kind != event.NoteMark || len(ev.Bufs) == 0 {
		return nil
	}
	return ev.Bufs[0].Inline
}

// judge compares content, once however often it comes.
func (f *finding) judge(c *candidate, b *event.Buf) {
	key := binary.AppendUvarint(nil, uint64(c.Tape))
	for _, r := range b.Refs {
		key = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(key, r.Chunk), uint64(r.Off)),
			uint64(r.Len))
	}
	key = append(key, b.Inline...)
	for i := range b.Hashes {
		key = append(key, b.Hashes[i][:]...)
	}
	if v, ok := f.known[string(key)]; ok {
		f.add(c, v)
		return
	}
	f.known[string(key)] = f.take(c, f.subject(c.Tape, c.host, b, nil))
}

// take compares a content, and keeps its event if it is alike. It returns nil if the content is
// not known.
func (f *finding) take(c *candidate, s *subject) *verdict {
	var v *verdict
	if x, ok := f.compare(s); ok {
		v = &x
	}
	f.add(c, v)
	return v
}

// add keeps an event if its content is alike.
func (f *finding) add(c *candidate, v *verdict) {
	if v == nil {
		f.out.Unknown++
		return
	}
	if v.equal || v.jaccard >= leastJaccard || v.shared > 0 {
		c.Equal, c.Jaccard, c.Shared = v.equal, v.jaccard, v.shared
		f.out.Found = append(f.out.Found, c.SimilarEvent)
	}
}
