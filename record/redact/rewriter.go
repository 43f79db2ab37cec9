// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/trace"
)

const (
	// window is how much of what a file moved before is looked at with what comes next.
	window = 8 << 10
	// maxFiles and maxOpen bound the files and the calls that are remembered.
	maxFiles = 2048
	maxOpen  = 1 << 14
)

// Sink masks the records of frames, and passes them on.
type Sink struct {
	to trace.FrameSink
	p  *Patterns

	before map[fileKey][]byte // the last bytes of a file
	open   map[callKey]fileKey

	out   []byte
	text  map[fileKey]*text // of the frame at hand
	recs  []record
	spans []span

	masked, secrets uint64
}

// NewSink returns a sink that passes frames on to another one.
func NewSink(to trace.FrameSink, p *Patterns) *Sink {
	return &Sink{to: to, p: p, before: map[fileKey][]byte{}, open: map[callKey]fileKey{}}
}

// Masked returns how many secrets, and parts of such, were masked so far, and how many bytes they have.
func (s *Sink) Masked() (secrets, bytes uint64) { return s.secrets, s.masked }

// fileKey is what a text came through: an open file's inode, or else a process's descriptor, and the direction.
type fileKey struct {
	dev, ino uint64
	pid      uint32
	fd       int32
	dir      event.Dir
}

type callKey struct {
	tid   uint32
	enter uint64
}

// record is a record of the frame with memory.
type record struct {
	rec  trace.Record
	body []byte
	// hidden are the parts of the pieces that are masked.
	hidden map[int][]span
}

// text is what a file moved in the frame, behind what it moved before.
type text struct {
	b     []byte
	parts []part
}

// part is where a piece stands in a text.
type part struct {
	at, record, piece int
}

// WriteFrame implements trace.FrameSink.
func (s *Sink) WriteFrame(f *trace.Frame, payload []byte) error {
	if f.Kind == trace.FrameRecords && len(payload) > 0 {
		payload = s.mask(payload)
	}
	return s.to.WriteFrame(f, payload)
}

// mask returns the payload without secrets. The payload itself stays as it is.
func (s *Sink) mask(payload []byte) []byte {
	s.recs, s.text = s.recs[:0], map[fileKey]*text{}
	for body, err := range trace.Records(payload) {
		if err != nil {
			break // no recorder writes such
		}
		s.recs = append(s.recs, record{body: body})
		r := &s.recs[len(s.recs)-1]
		switch trace.TypeOf(body) {
		case trace.RecCall, trace.RecData, trace.RecEnter:
			if r.rec.Decode(body) == nil {
				s.look(len(s.recs) - 1)
			}
		case trace.RecProcess:
			if r.rec.Decode(body) == nil {
				s.process(r)
			}
		}
	}
	for key, t := range s.text {
		s.search(key, t)
	}
	return s.encode()
}

// look takes the pieces of a record into the texts of their files, and masks those that are no content.
func (s *Sink) look(i int) {
	r := &s.recs[i]
	spec := event.Lookup(event.Op(r.rec.Op))
	var key fileKey
	keyed := false
	for k := range r.rec.Pieces {
		p := &r.rec.Pieces[k]
		const without = trace.PieceMissing | trace.PieceOmitted | trace.PieceShape | trace.PieceHash | trace.PieceSketch
		if p.Flags&without != 0 || len(p.Data) == 0 {
			continue
		}
		if r.rec.Type == trace.RecEnter || !isContent(spec, int(p.Arg)) {
			if !isName(spec, int(p.Arg), r.rec.Type) {
				r.hide(k, s.p.find(nil, p.Data))
			}
			continue
		}
		if !keyed {
			key, keyed = s.keyOf(&r.rec), true
		}
		own := key
		_, base := event.SplitPart(int(p.Arg))
		if base < len(spec.Args) {
			own.dir = spec.Args[base].Dir
		}
		t := s.text[own]
		if t == nil {
			t = &text{b: append([]byte(nil), s.before[own]...)}
			s.text[own] = t
		}
		t.parts = append(t.parts, part{len(t.b), i, k})
		t.b = append(t.b, p.Data...)
	}
	s.remember(&r.rec, key, keyed)
}

// process masks the environment and the arguments of a process.
func (s *Sink) process(r *record) {
	for k := range r.rec.Pieces {
		if p := &r.rec.Pieces[k]; (p.Arg == facts.PartEnv || p.Arg == facts.PartArgs) && len(p.Data) > 0 {
			r.hide(k, s.p.find(nil, p.Data))
		}
	}
}

// isContent reports whether a piece has bytes that a call moved.
func isContent(spec *event.Spec, arg int) bool {
	return spec.IsContent(arg) || spec.NeedsStop && arg == spec.MovedFrom()
}

// isName reports whether a piece is the name of a file.
func isName(spec *event.Spec, arg int, typ trace.RecordType) bool {
	part, base := event.SplitPart(arg)
	return typ != trace.RecEnter && part == event.PartWhole && base < len(spec.Args) &&
		spec.Args[base].Kind == event.KindPath
}

// keyOf returns the file of a call: of data that continues a call, as the call said.
func (s *Sink) keyOf(r *trace.Record) fileKey {
	if key, ok := s.open[callKey{r.TID, r.Enter}]; ok {
		return key
	}
	if len(r.Objects) > 0 {
		o := &r.Objects[0]
		return fileKey{dev: uint64(o.Dev), ino: o.Ino}
	}
	return fileKey{pid: r.PID, fd: int32(r.Args[0])}
}

// remember keeps the file of a call that goes on in other records.
func (s *Sink) remember(r *trace.Record, key fileKey, keyed bool) {
	call := callKey{r.TID, r.Enter}
	switch {
	case r.Type == trace.RecCall && r.Flags&trace.CallMore != 0:
		if !keyed {
			key = s.keyOf(r)
		}
		if len(s.open) >= maxOpen {
			clear(s.open)
		}
		s.open[call] = key
	case r.Type == trace.RecData && r.Flags&trace.DataLast != 0:
		delete(s.open, call)
	}
}

// search masks the secrets in a text.
func (s *Sink) search(key fileKey, t *text) {
	s.spans = s.p.tails(s.p.find(s.spans[:0], t.b), t.b)
	for _, m := range s.spans {
		first, _ := slices.BinarySearchFunc(t.parts, m.from, func(p part, at int) int { return cmp.Compare(p.at, at) })
		for _, p := range t.parts[max(first-1, 0):] {
			if p.at >= m.to {
				break
			}
			r := &s.recs[p.record]
			n := len(r.rec.Pieces[p.piece].Data)
			if from, to := max(m.from-p.at, 0), min(m.to-p.at, n); from < to {
				r.hide(p.piece, []span{{from, to}})
			}
		}
	}
	if _, ok := s.before[key]; !ok && len(s.before) >= maxFiles {
		clear(s.before)
	}
	s.before[key] = append(s.before[key][:0], t.b[max(len(t.b)-window, 0):]...)
}

func (r *record) hide(piece int, spans []span) {
	if len(spans) == 0 {
		return
	}
	if r.hidden == nil {
		r.hidden = map[int][]span{}
	}
	r.hidden[piece] = append(r.hidden[piece], spans...)
}

// encode writes the records.
func (s *Sink) encode() []byte {
	s.out = s.out[:0]
	for i := range s.recs {
		r := &s.recs[i]
		if r.hidden == nil {
			s.out = binary.LittleEndian.AppendUint64(s.out, uint64(len(r.body)))
			s.out = append(s.out, r.body...)
			for len(s.out)%8 != 0 {
				s.out = append(s.out, 0)
			}
			continue
		}
		spec := event.Lookup(event.Op(r.rec.Op))
		var pieces []trace.Piece
		for k, p := range r.rec.Pieces {
			spans := joined(r.hidden[k])
			for _, m := range spans {
				s.masked += uint64(m.to - m.from)
				s.secrets++
			}
			switch {
			case len(spans) == 0:
				pieces = append(pieces, p)
			case r.rec.Type != trace.RecEnter && r.rec.Type != trace.RecProcess && isContent(spec, int(p.Arg)):
				pieces = divide(pieces, p, spans)
			default:
				p.Data = slices.Clone(p.Data)
				for _, m := range spans {
					stars(p.Data[m.from:m.to])
				}
				pieces = append(pieces, p)
			}
		}
		r.rec.Pieces = pieces
		s.out = trace.AppendRecord(s.out, &r.rec)
	}
	return s.out
}

// joined returns parts in order, joined where they touch.
func joined(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	list := spans[:0]
	for _, m := range spans {
		if n := len(list); n > 0 && m.from <= list[n-1].to {
			list[n-1].to = max(list[n-1].to, m.to)
			continue
		}
		list = append(list, m)
	}
	return list
}

// divide appends a piece without its secret parts.
func divide(pieces []trace.Piece, p trace.Piece, spans []span) []trace.Piece {
	part := func(from, to int, flags uint8, data []byte) {
		if from < to {
			pieces = append(pieces, trace.Piece{Arg: p.Arg, Flags: p.Flags | flags, Len: uint32(to - from),
				Off: p.Off + uint64(from), Data: data})
		}
	}
	at := 0
	for _, m := range spans {
		part(at, m.from, 0, p.Data[at:m.from])
		part(m.from, m.to, trace.PieceMissing|trace.PieceMasked, nil)
		at = m.to
	}
	part(at, len(p.Data), 0, p.Data[at:])
	return pieces
}
