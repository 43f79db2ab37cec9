// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"bytes"
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
	Events  int            `json:"events"`    // that were looked at
	Bytes   int64          `json:"bytes"`     // that were read
	All     bool           `json:"all"`       // that is all of the tapes
	CutFrom int64          `json:"cut_bytes"` // how long contents are that were looked at only in part; 0 if none was
	Found   []SimilarEvent `json:"found"`     // the most similar first
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
	f.content = f.bytes(s.tapes[tape].Tape, b)
	f.signature = f.signer.Sign(nil, f.content)
	if f.origins, err = similar.NewOrigins(nil, func(uint32) []byte { return f.content }); err != nil {
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
	content   []byte
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
	for range 2 * similarEvents {
		if err := r.Next(&ev); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			continue // a damaged block: it goes on behind it
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.out.Events++
		b := contentBuf(&ev)
		if b == nil || k == notTape && ev.Seq == notSeq {
			continue
		}
		if f.out.Bytes > similarTotal {
			f.out.All = false
			return nil
		}
		v := f.judge(k, b)
		if !v.equal && v.jaccard < leastJaccard && v.shared == 0 {
			continue
		}
		io := ev.Traffic()
		f.out.Found = append(f.out.Found,
			SimilarEvent{EventRef: EventRef{Tape: k, Seq: ev.Seq, AtNS: ev.Enter + t.shift(ev.Host)},
				Equal: v.equal, Jaccard: v.jaccard, Shared: v.shared, Bytes: b.Len,
				Work: report.WorkOf(&ev, &io).String()})
	}
	return nil
}

// judge compares content, once however often it comes.
func (f *finding) judge(tape int, b *event.Buf) *verdict {
	key := binary.AppendUvarint(nil, uint64(tape))
	for _, r := range b.Refs {
		key = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(key, r.Chunk), uint64(r.Off)),
			uint64(r.Len))
	}
	key = append(key, b.Inline...)
	v := f.known[string(key)]
	if v != nil {
		return v
	}
	v = &verdict{}
	f.known[string(key)] = v
	data := f.bytes(f.s.tapes[tape].Tape, b)
	if v.equal = bytes.Equal(data, f.content); v.equal {
		v.jaccard, v.shared = 1, len(data)
		return v
	}
	f.scratch = f.signer.Sign(f.scratch[:0], data)
	if len(f.scratch) == len(f.signature) && len(f.scratch) > 0 {
		v.jaccard = similar.Estimate(f.scratch, f.signature)
	}
	f.matches = f.origins.Find(f.matches[:0], data)
	v.shared = similar.Cover(f.matches)
	return v
}
