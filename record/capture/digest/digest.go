// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/similar"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// maxOpen bounds the calls whose content is not complete. There are as many as
// threads, unless data records are being lost.
const maxOpen = 1 << 14

// Rewriter replaces content by hashes. It is not safe for concurrent use.
type Rewriter struct {
	hashed []arguments // by operation
	signed []arguments // of these
	sign   similar.Digester
	any    []bool // by operation
	open   map[callKey]*call
	free   []*call

	rec    trace.Record
	pieces []trace.Piece // of the record being written
	sums   []event.Digest
	sketch []byte // of the parts of the record
	out    []byte
}

type callKey struct {
	tid   uint32
	enter uint64
}

// call is what is not yet hashed of a call's content.
type call struct {
	op    uint16
	parts []part
}

// part is a part of an argument's bytes that is not complete.
type part struct {
	arg, flags uint8
	signed     bool   // it gets a signature, not a hash
	missing    bool   // a byte of it could not be read
	off        uint64 // of its first byte
	n          uint32 // bytes of it so far
	data       []byte // of these, the last ones, in the record at hand
	hash       *blake3.Hasher
	hashed     bool   // hash has bytes
	early      []byte // of a part that is signed: its bytes of the records before
}

// arguments are those of an operation whose content is hashed: bit i is argument i,
// in data of the messages that it points to.
type arguments struct{ whole, data uint8 }

// note puts an argument in whose rule is one of some.
func (a *arguments) note(arg int, whole, data capture.Rule, rules ...capture.Rule) {
	if slices.Contains(rules, whole) {
		a.whole |= 1 << arg
	}
	if slices.Contains(rules, data) {
		a.data |= 1 << arg
	}
}

func (a arguments) has(arg uint8) bool {
	switch part, i := event.SplitPart(int(arg)); part {
	case event.PartWhole:
		return a.whole>>i&1 != 0
	case event.PartData:
		return a.data>>i&1 != 0
	}
	return false
}

// New returns a Rewriter for a policy, nil if it hashes nothing.
func New(c capture.Content) *Rewriter {
	if !c.Hashes() {
		return nil
	}
	specs := event.Specs()
	ops := 0
	for i := range specs {
		ops = max(ops, int(specs[i].Op)+1)
	}
	w := &Rewriter{hashed: make([]arguments, ops), signed: make([]arguments, ops), any: make([]bool, ops),
		open: map[callKey]*call{}}
	for i := range specs {
		s := &specs[i]
		h, g := &w.hashed[s.Op], &w.signed[s.Op]
		for arg := range min(len(s.Args), event.MaxArgs) {
			h.note(arg, c.Of(s, arg).Rule, c.Of(s, event.PartData.Of(arg)).Rule, capture.KeepHash,
				capture.KeepSignature)
			g.note(arg, c.Of(s, arg).Rule, c.Of(s, event.PartData.Of(arg)).Rule, capture.KeepSignature)
		}
		w.any[s.Op] = h.whole|h.data != 0
	}
	return w
}

// Payload returns a frame's payload with hashes in place of content, valid until
// the next call. A nil Rewriter returns it as it is.
func (w *Rewriter) Payload(payload []byte) []byte {
	if w == nil || len(payload) == 0 {
		return payload
	}
	w.out = w.out[:0]
	for body, err := range trace.Records(payload) {
		if err != nil {
			break // no recorder writes such
		}
		if !w.rewrite(body) {
			w.copy(body)
		}
	}
	return w.out
}

// copy writes a record as it is.
func (w *Rewriter) copy(body []byte) {
	w.out = binary.LittleEndian.AppendUint64(w.out, uint64(len(body)))
	w.out = append(w.out, body...)
	for len(w.out)%8 != 0 {
		w.out = append(w.out, 0)
	}
}

// rewrite writes a record with hashes. It returns false, and has written nothing,
// if the record has no content to hash.
func (w *Rewriter) rewrite(body []byte) bool {
	if len(body) < 4 {
		return false
	}
	typ, op := trace.RecordType(binary.LittleEndian.Uint16(body)), binary.LittleEndian.Uint16(body[2:])
	if int(op) >= len(w.any) || !w.any[op] || typ != trace.RecCall && typ != trace.RecData ||
		w.rec.Decode(body) != nil {
		return false
	}
	r := &w.rec
	key := callKey{r.TID, r.Enter}
	c := w.open[key]
	last := r.Flags&trace.DataLast != 0
	if typ == trace.RecCall {
		last = r.Flags&trace.CallMore == 0
		if c == nil {
			c = w.newCall(op)
		}
	}
	w.pieces, w.sums, w.sketch = w.pieces[:0], w.sums[:0], w.sketch[:0]
	for i := range r.Pieces {
		p := &r.Pieces[i]
		switch {
		// PieceHash: by another Rewriter
		case !w.hashed[op].has(p.Arg) || p.Flags&(trace.PieceShape|trace.PieceOmitted|trace.PieceHash) != 0:
			w.pieces = append(w.pieces, *p)
		case c != nil: // else its call was lost
			w.add(c, p)
		}
	}
	switch {
	case c == nil:
	case last:
		w.finish(c)
		delete(w.open, key)
		w.free = append(w.free, c)
	default:
		c.absorb()
		if len(w.open) >= maxOpen {
			clear(w.open)
		}
		w.open[key] = c
	}
	kept := r.Pieces
	r.Pieces = w.pieces
	w.out = trace.AppendRecord(w.out, r)
	r.Pieces = kept
	return true
}

func (w *Rewriter) newCall(op uint16) *call {
	if n := len(w.free); n > 0 {
		c := w.free[n-1]
		w.free = w.free[:n-1]
		c.op, c.parts = op, c.parts[:0]
		return c
	}
	return &call{op: op}
}

// of returns the part that an argument's next bytes belong to.
func (c *call) of(p *trace.Piece) *part {
	for i := range c.parts {
		if c.parts[i].arg == p.Arg {
			return &c.parts[i]
		}
	}
	if n := len(c.parts); n < cap(c.parts) { // with a hasher that was used before
		c.parts = c.parts[:n+1]
	} else {
		c.parts = append(c.parts, part{})
	}
	a := &c.parts[len(c.parts)-1]
	*a = part{arg: p.Arg, hash: a.hash, early: a.early[:0]}
	return a
}

// add takes a piece, and writes the parts that it completes.
func (w *Rewriter) add(c *call, p *trace.Piece) {
	a := c.of(p)
	a.signed = w.signed[c.op].has(p.Arg)
	a.flags |= p.Flags & trace.PieceTruncated
	data := p.Data
	for left := p.Len; left > 0; {
		n := min(left, event.HashBytes-a.n)
		if p.Flags&trace.PieceMissing != 0 {
			a.missing = true
		} else {
			a.absorb()
			a.data, data = data[:n], data[n:]
		}
		a.n += n
		left -= n
		if a.n == event.HashBytes {
			w.complete(a)
		}
	}
}

// absorb hashes what the part has of the record at hand.
func (a *part) absorb() {
	if len(a.data) == 0 {
		return
	}
	if a.signed {
		a.early = append(a.early, a.data...)
	} else if !a.missing {
		if a.hash == nil {
			a.hash = blake3.New()
		} else if !a.hashed {
			a.hash.Reset()
		}
		a.hash.Write(a.data)
		a.hashed = true
	}
	a.data = nil
}

func (c *call) absorb() {
	for i := range c.parts {
		c.parts[i].absorb()
	}
}

// complete writes the hash of a part, and begins the next.
func (w *Rewriter) complete(a *part) {
	p := trace.Piece{Arg: a.arg, Flags: a.flags | trace.PieceHash, Len: a.n, Off: a.off}
	var sketch []byte
	switch {
	case a.missing:
		p.Flags |= trace.PieceMissing
	case a.signed:
		content := a.data
		if len(a.early) > 0 {
			a.absorb()
			content = a.early
		}
		at := len(w.sketch)
		var sum similar.Digest
		sum, w.sketch = w.sign.Sign(w.sketch, content)
		sketch = w.sketch[at:]
		w.sums = append(w.sums, event.Digest(sum))
	case a.hashed:
		a.absorb()
		w.sums = append(w.sums, event.Digest{})
		a.hash.Sum(w.sums[len(w.sums)-1][:0])
	default: // all in one piece
		w.sums = append(w.sums, blake3.Sum256(a.data))
	}
	if !a.missing {
		p.Data = w.sums[len(w.sums)-1][:]
	}
	w.pieces = append(w.pieces, p)
	if len(sketch) > 0 {
		w.pieces = append(w.pieces, trace.Piece{Arg: a.arg, Flags: trace.PieceShape | trace.PieceSketch,
			Len: uint32(len(sketch)), Off: a.off, Data: sketch})
	}
	*a = part{arg: a.arg, flags: a.flags, signed: a.signed, off: a.off + uint64(a.n), hash: a.hash, early: a.early[:0]}
}

// finish writes the last parts of a call.
func (w *Rewriter) finish(c *call) {
	for i := range c.parts {
		if c.parts[i].n > 0 {
			w.complete(&c.parts[i])
		}
	}
}
