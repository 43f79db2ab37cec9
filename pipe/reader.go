// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ReadOptions for NewReader. Nil and zero values are the defaults.
type ReadOptions struct {
	// OnFault, if it is not nil, is told of every fault. Reading goes on behind it if
	// it returns nil, and ends with what it returns otherwise; so it ends with the
	// first fault if there is no OnFault. Of a stream with faults a Reader returns the
	// good blocks that stand in their order.
	OnFault func(*Fault) error
	// Rest also looks at what follows the final block. Without it, reading ends there.
	Rest bool
}

// Opener makes the decoders for the layers of a stream, in their order. A nil Decoder
// is a layer that cannot be undone, for want of a key: see Reader.Discard.
type Opener func(h *Header) ([]Decoder, error)

// Reader returns what was written to a Writer. It is not safe for concurrent use.
type Reader struct {
	scan     *Scanner
	o        ReadOptions
	decoders []Decoder
	plain    []byte // of the present block, not yet read
	data     []byte
	spare    []byte
	order    order
	good     uint64
	bad      uint64
	bytes    int64
	err      error
}

// NewReader reads the header of a stream and opens its layers.
func NewReader(r io.Reader, open Opener, o *ReadOptions) (*Reader, error) {
	s, err := NewScanner(r)
	if err != nil {
		return nil, err
	}
	rd := &Reader{scan: s}
	if o != nil {
		rd.o = *o
	}
	if rd.decoders, err = open(s.head); err != nil {
		return nil, err
	}
	if len(rd.decoders) != len(s.head.Layers) {
		return nil, fmt.Errorf("%d of %d layers opened", len(rd.decoders), len(s.head.Layers))
	}
	return rd, nil
}

// Header returns the stream's header.
func (r *Reader) Header() *Header { return r.scan.head }

// Counts returns how many blocks were good so far, how many were bad (changed, removed,
// moved, replayed, of another stream), and how many plain bytes the good ones had.
func (r *Reader) Counts() (good, bad uint64, bytes int64) { return r.good, r.bad, r.bytes }

// Read returns bytes of good blocks. It returns io.EOF after the final block, and a
// *Fault where the stream is not as it was written.
func (r *Reader) Read(b []byte) (int, error) {
	if err := r.readable(); err != nil {
		return 0, err
	}
	for len(r.plain) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.plain, r.err = r.next()
	}
	n := copy(b, r.plain)
	r.plain = r.plain[n:]
	return n, nil
}

// Discard reads to the end, only to find faults. Unlike Read it can do without some of
// the keys: each block is undone down to the first layer that has no decoder.
func (r *Reader) Discard() error {
	for r.err == nil {
		_, r.err = r.next()
	}
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// readable returns an error if a layer cannot be undone.
func (r *Reader) readable() error {
	for i, d := range r.decoders {
		if d == nil {
			return fmt.Errorf("%s: no key to undo it", r.scan.head.Layers[i].Name)
		}
	}
	return nil
}

// next returns the next good block.
func (r *Reader) next() ([]byte, error) {
	for {
		if r.order.ended && !r.o.Rest {
			return nil, cmp.Or(r.order.flush(r.missing), io.EOF)
		}
		at := r.scan.Offset()
		h, payload, err := r.scan.Next()
		var garbage *Fault
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			if err := r.end(at, err); err != nil {
				return nil, err
			}
			return nil, io.EOF
		case errors.As(err, &garbage):
			garbage.Block = r.order.next
			if r.order.ended {
				garbage.Kind = Trailing
			}
			if err := r.fault(garbage); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, fmt.Errorf("read block %d: %w", r.order.next, err)
		}
		plain, deliver, err := r.block(&h, payload, at)
		if err != nil || deliver {
			return plain, err
		}
	}
}

// end judges the end of the file.
func (r *Reader) end(at int64, err error) error {
	if err := r.order.flush(r.missing); err != nil {
		return err
	}
	switch {
	case r.order.refusedFinal:
	case !r.order.ended:
		return r.fault(&Fault{Kind: Truncated, Block: r.order.next, Offset: at})
	case err == io.ErrUnexpectedEOF:
		return r.fault(&Fault{Kind: Trailing, Block: r.order.next, Offset: at,
			Detail: "the beginning of a block follows"})
	}
	return nil
}

// block undoes the layers of a block and finds out whether it is where it belongs. It
// reports whether the bytes are to be delivered.
func (r *Reader) block(h *BlockHeader, payload []byte, at int64) (plain []byte, deliver bool, err error) {
	head := r.scan.head
	if h.Serial != head.Serial {
		r.bad++
		return nil, false, r.fault(&Fault{Kind: Foreign, Block: h.Number, Offset: at,
			Detail: fmt.Sprintf("%016x", h.Serial)})
	}
	plain, fault := r.undo(h, payload)
	if fault != nil {
		fault.Block, fault.Offset = h.Number, at
		r.bad++
		r.order.refused(h.Number, h.Final, at)
		return nil, false, r.fault(fault)
	}
	switch kind := r.order.take(h.Number, h.Final, at); kind {
	case 0:
	case Removed: // at least for now: those before it are not there yet
		if r.o.OnFault == nil {
			return nil, false, r.order.flush(r.missing)
		}
	default:
		r.bad++
		return nil, false, r.fault(&Fault{Kind: kind, Block: h.Number, Offset: at})
	}
	r.good++
	r.bytes += int64(len(plain))
	return plain, true, nil
}

// missing reports blocks that did not come.
func (r *Reader) missing(g gap) error {
	r.bad += g.last - g.first + 1
	return r.fault(&Fault{Kind: Removed, Block: g.first, Last: g.last, Offset: g.at})
}

// undo returns what a block was before its layers.
func (r *Reader) undo(h *BlockHeader, payload []byte) ([]byte, *Fault) {
	head := r.scan.head
	r.data = append(r.data[:0], payload...)
	place := Place{Stream: head.Sum, Number: h.Number, Final: h.Final}
	for i := len(r.decoders) - 1; i >= 0 && r.decoders[i] != nil; i-- {
		place.Layer = uint8(i)
		var err error
		if r.spare, err = r.decoders[i].Decode(r.spare[:0], r.data, &place); err != nil {
			f := &Fault{Kind: Unreadable, Layer: head.Layers[i].Name, Detail: err.Error()}
			var refusal *Refusal
			if errors.As(err, &refusal) {
				f.Kind = refusal.Kind
			}
			return nil, f
		}
		r.data, r.spare = r.spare, r.data
		if len(r.data) > head.MaxPlain(i) {
			return nil, &Fault{Kind: Unreadable, Layer: head.Layers[i].Name,
				Detail: fmt.Sprintf("%d bytes came out of it, at most %d can", len(r.data), head.MaxPlain(i))}
		}
	}
	return r.data, nil
}

func (r *Reader) fault(f *Fault) error {
	if r.o.OnFault == nil {
		return f
	}
	return r.o.OnFault(f)
}

// order follows the numbers of good blocks.
type order struct {
	next  uint64   // number that is expected
	gaps  []gap    // numbers below next that did not come, ascending
	bad   []uint64 // numbers above next of blocks that were refused: they are there
	ended bool     // the final block has come
	// refusedFinal: the last block said that it is the final one, and was refused. If
	// others come, that was a lie.
	refusedFinal bool
}

// gap is blocks that are not there, before those at an offset.
type gap struct {
	first, last uint64
	at          int64
}

// maxGaps bounds what is kept of a stream that is in disorder. Beyond it, late blocks
// count as replayed, and refused ones as removed, too.
const maxGaps = 1 << 12

// refused takes note of a block that a layer refused, so that it does not count as
// removed, too. Its number is believed only where it is expected.
func (o *order) refused(n uint64, final bool, at int64) {
	switch {
	case n == o.next && !o.ended:
		o.next, o.refusedFinal = n+1, final
	case n < o.next:
		o.fill(n)
	case len(o.bad) < maxGaps:
		o.bad = append(o.bad, n)
	}
}

// take tells where a block stands: 0 is where it belongs, Removed after a gap.
func (o *order) take(n uint64, final bool, at int64) Kind {
	if o.ended {
		if o.fill(n) {
			return Moved
		}
		return Replayed
	}
	if n >= o.next {
		o.refusedFinal = false
	}
	switch {
	case n == o.next:
		o.next, o.ended = n+1, final
		return 0
	case n > o.next:
		if len(o.gaps) < maxGaps {
			o.gaps = append(o.gaps, gap{o.next, n - 1, at})
		}
		for _, bad := range o.bad {
			o.fill(bad)
		}
		o.bad = slices.DeleteFunc(o.bad, func(bad uint64) bool { return bad < n })
		o.next, o.ended = n+1, final
		return Removed
	case o.fill(n):
		return Moved
	}
	return Replayed
}

// fill takes a number out of the gaps. It reports whether it was in one.
func (o *order) fill(n uint64) bool {
	for i := range o.gaps {
		g := &o.gaps[i]
		if n < g.first || n > g.last {
			continue
		}
		switch {
		case g.first == g.last:
			o.gaps = append(o.gaps[:i], o.gaps[i+1:]...)
		case n == g.first:
			g.first++
		case n == g.last:
			g.last--
		default:
			o.gaps = append(o.gaps[:i+1], o.gaps[i:]...)
			o.gaps[i] = gap{g.first, n - 1, g.at}
			o.gaps[i+1].first = n + 1
		}
		return true
	}
	return false
}

// flush reports all gaps.
func (o *order) flush(missing func(gap) error) error {
	for len(o.gaps) > 0 {
		g := o.gaps[0]
		o.gaps = o.gaps[1:]
		if err := missing(g); err != nil {
			return err
		}
	}
	return nil
}
