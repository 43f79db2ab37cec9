// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/iotape/iotape/event"
)

// ErrOrder is wrapped by errors of an order that does not fit its events.
var ErrOrder = errors.New("the stored order of the events is damaged")

// Order is an order that a Stage found, in a form that can be stored. A Given gives the events in it.
//
//	order   = run*
//	run     = n<<1(uvarint) step(varint)           n events, one after the other as the tape has them, all explained
//	        | 1(uvarint) step(varint) mark(8 bits) [length(uvarint) name]
//	mark    = Unexplained | part<<5
//	step    = number of the run's first event, less that of the event before the run and 1
//
// The name is that by which a link finds its file, if part is partLink.
type Order struct {
	runs   []byte
	start  uint64 // of the present run, and the number behind it
	next   uint64
	before uint64 // number behind the last run in runs
	full   bool   // it grew too long to be of use
}

// part is what of an event stands at a place of the order.
type part uint8

const (
	partWhole part = iota
	partOpen       // an open, without what it emptied
	partRest       // the rest of it
	partLink       // a link by another name of the file that it found
	numParts
)

const partShift = 5

// MaxOrderBytes bounds an order, as it is stored and held in memory.
const MaxOrderBytes = 256 << 20

// maxAhead is how many events may be held until the order has them.
const maxAhead = DefaultMaxWindow

// add appends an event.
func (o *Order) add(seq uint64, un Unexplained, p part, name string) {
	if un == 0 && p == partWhole && seq == o.next && o.next > o.start {
		o.next++
		return
	}
	o.flush()
	if o.full = o.full || len(o.runs) > MaxOrderBytes; o.full {
		return
	}
	if o.start, o.next = seq, seq+1; un == 0 && p == partWhole {
		return
	}
	o.runs = binary.AppendUvarint(o.runs, 1)
	o.runs = binary.AppendVarint(o.runs, int64(seq-o.before))
	o.runs = append(o.runs, byte(un)|byte(p)<<partShift)
	if p == partLink {
		o.runs = binary.AppendUvarint(o.runs, uint64(len(name)))
		o.runs = append(o.runs, name...)
	}
	o.before, o.start = o.next, o.next
}

func (o *Order) flush() {
	if n := o.next - o.start; n > 0 {
		o.runs = binary.AppendUvarint(o.runs, n<<1)
		o.runs = binary.AppendVarint(o.runs, int64(o.start-o.before))
		o.before, o.start = o.next, o.next
	}
}

// Bytes returns the order as it is stored, nil if it grew too long for that.
func (o *Order) Bytes() []byte {
	if o.flush(); o.full {
		return nil
	}
	return o.runs
}

// ParseOrder returns a stored order of a tape with so many events. It has every event once, and none far from where
// the tape has it; more is not known of an order from elsewhere.
func ParseOrder(b []byte, events uint64) (*Order, error) {
	wrong := func(seq uint64) (*Order, error) {
		return nil, fmt.Errorf("event %d: %w", seq, ErrOrder)
	}
	r := orderReader{b: b}
	held := map[uint64]part{} // behind low: given already
	low := uint64(0)
	for len(r.b) > 0 || r.left > 0 {
		if err := r.read(); err != nil {
			return nil, err
		}
		if r.left > 0 && len(held) == 0 && r.seq == low { // the rest of the run at once
			if r.left > events-low-1 {
				return wrong(r.seq)
			}
			low, r.next, r.left = low+r.left+1, r.next+r.left, 0
			continue
		}
		was, given := held[r.seq]
		if r.seq < low || r.seq >= events || r.seq-low > maxAhead || given && was != partOpen ||
			given != (r.part == partRest) {
			return wrong(r.seq)
		}
		held[r.seq] = r.part
		for p, ok := held[low]; ok && p != partOpen; p, ok = held[low] {
			delete(held, low)
			low++
		}
	}
	if low != events {
		return wrong(low)
	}
	return &Order{runs: b}, nil
}

// orderReader reads an order, event by event.
type orderReader struct {
	b    []byte
	left uint64 // of the present run
	next uint64 // the event behind the last one

	seq         uint64
	part        part
	unexplained Unexplained
	name        string
}

// read goes on to the next event, of which there is one.
func (r *orderReader) read() error {
	r.part, r.unexplained, r.name = partWhole, 0, ""
	if r.left > 0 {
		r.left--
		r.seq = r.next
		r.next++
		return nil
	}
	wrong := fmt.Errorf("behind event %d: %w", r.next, ErrOrder)
	word, n := binary.Uvarint(r.b)
	if n <= 0 || word == 0 || word&1 != 0 && word != 1 {
		return wrong
	}
	step, m := binary.Varint(r.b[n:])
	if m <= 0 {
		return wrong
	}
	r.b = r.b[n+m:]
	r.seq = r.next + uint64(step)
	r.next = r.seq + 1
	if word&1 == 0 {
		r.left = word>>1 - 1
		return nil
	}
	if len(r.b) == 0 || r.b[0]>>partShift >= byte(numParts) {
		return wrong
	}
	r.unexplained, r.part = Unexplained(r.b[0]&(1<<partShift-1)), part(r.b[0]>>partShift)
	if r.b = r.b[1:]; r.part != partLink {
		return nil
	}
	length, n := binary.Uvarint(r.b)
	if n <= 0 || length > event.MaxPath || length > uint64(len(r.b)-n) {
		return wrong
	}
	r.name, r.b = string(r.b[n:n+int(length)]), r.b[n+int(length):]
	return nil
}
