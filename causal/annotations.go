// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/iotape/iotape/trace"
)

// Dependency is a WAIT: the event can be made when another one is done, and the lag has gone
// by since.
type Dependency struct {
	Event uint64 // that is waited for; always a smaller number
	// Lag is the computing of the other thread between that event and what released
	// this one: a call that had begun, but not returned. It is 0 for most.
	Lag time.Duration
}

// Annotation is what is attached to an event, in the order in which it happens: the
// thread computes, then waits for others, then sleeps, and then makes the call.
type Annotation struct {
	Compute time.Duration // CPU time since the thread's last event
	Sleep   time.Duration // the call waited for a time, or for somebody outside
	Waits   []Dependency  // in the order of their events
	// Until is the last event that waits for this one; 0 if none does. Who follows the
	// annotations need not remember any other event, and this one no longer.
	Until uint64
}

// Annotations are those of all events of a tape. They do not change, and any number of
// Cursors may read them at a time. In memory they take what they take in the file: two
// to five bytes for an event.
type Annotations struct {
	events uint64
	blocks []uint32 // where the block of event n*blockEvents begins
	data   []byte
}

// The encoding is, for each event, word(uvarint), and what its bits 0 to 2 announce:
//
//	word  = compute(ns)<<3 | is waited for<<2 | has waits<<1 | has sleep
//	sleep = ns(uvarint)
//	waits = n(uvarint), n × (distance to the event(uvarint), lag(ns, uvarint))
//	until = distance to the last event that waits for it(uvarint)
//
// In the file stands version(uvarint) events(uvarint) before it.
const (
	blockEvents    = 1024
	version        = 1
	maxWaits       = 1 << 20 // of one event
	maxNS          = 1<<61 - 1
	hasSleep       = 1
	hasWaits       = 2
	hasUntil       = 4
	maxAnnotations = math.MaxUint32 // bytes
)

// timeAt is a time that belongs to an event.
type timeAt struct {
	event uint32
	ns    int64
}

// newAnnotations encodes what was found, all sorted by event.
func newAnnotations(compute []int64, sleeps []timeAt, waits []waitFor) *Annotations {
	b := &builder{}
	until := make([]uint32, len(compute))
	for _, w := range waits {
		until[w.from] = max(until[w.from], w.to)
	}
	var an Annotation
	for i, c := range compute {
		an = Annotation{Compute: time.Duration(c), Waits: an.Waits[:0], Until: uint64(until[i])}
		if len(sleeps) > 0 && int(sleeps[0].event) == i {
			an.Sleep, sleeps = time.Duration(sleeps[0].ns), sleeps[1:]
		}
		for len(waits) > 0 && int(waits[0].to) == i {
			an.Waits = append(an.Waits, Dependency{uint64(waits[0].from), time.Duration(waits[0].lag)})
			waits = waits[1:]
		}
		b.add(&an)
	}
	return &b.notes
}

// builder encodes annotations, one event after the other.
type builder struct{ notes Annotations }

func (b *builder) add(an *Annotation) {
	n := &b.notes
	if n.events%blockEvents == 0 {
		n.blocks = append(n.blocks, uint32(len(n.data)))
	}
	word := uint64(min(max(an.Compute, 0), maxNS)) << 3
	if an.Sleep > 0 {
		word |= hasSleep
	}
	if len(an.Waits) > 0 {
		word |= hasWaits
	}
	if an.Until > 0 {
		word |= hasUntil
	}
	n.data = binary.AppendUvarint(n.data, word)
	if an.Sleep > 0 {
		n.data = binary.AppendUvarint(n.data, uint64(min(an.Sleep, maxNS)))
	}
	if len(an.Waits) > 0 {
		n.data = binary.AppendUvarint(n.data, uint64(len(an.Waits)))
		for _, w := range an.Waits {
			n.data = binary.AppendUvarint(n.data, n.events-w.Event)
			n.data = binary.AppendUvarint(n.data, uint64(min(max(w.Lag, 0), maxNS)))
		}
	}
	if an.Until > 0 {
		n.data = binary.AppendUvarint(n.data, an.Until-n.events)
	}
	n.events++
}

// Events returns how many events there are annotations of.
func (n *Annotations) Events() uint64 { return n.events }

// Before returns the events that have to be done before one, in ascending order; nil if
// there are none, or no such event. A Cursor is faster for many.
func (n *Annotations) Before(seq uint64) []uint64 {
	var list []uint64
	for _, w := range n.Cursor().At(seq).Waits {
		list = append(list, w.Event)
	}
	return list
}

// Compute returns the CPU time that the thread used before an event, since its last one.
func (n *Annotations) Compute(seq uint64) time.Duration { return n.Cursor().At(seq).Compute }

// Cursor returns a way to read the annotations one after the other.
func (n *Annotations) Cursor() *Cursor { return &Cursor{notes: n} }

// Cursor reads annotations. Going forward costs a few ns for each event; any other step
// costs up to a block.
type Cursor struct {
	notes *Annotations
	next  uint64
	off   int
	an    Annotation
}

// At returns the annotation of an event. It is valid until the next call, and empty if
// there is no such event.
func (c *Cursor) At(seq uint64) *Annotation {
	n := c.notes
	if seq >= n.events {
		c.an = Annotation{Waits: c.an.Waits[:0]}
		return &c.an
	}
	if seq < c.next || seq/blockEvents > c.next/blockEvents {
		c.next = seq / blockEvents * blockEvents
		c.off = int(n.blocks[seq/blockEvents])
	}
	for c.next <= seq {
		if err := c.step(); err != nil { // it was checked when it was read
			c.an = Annotation{Waits: c.an.Waits[:0]}
			c.next++
		}
	}
	return &c.an
}

var errCut = errors.New("the annotations break off")

func (c *Cursor) uvarint(most uint64) (uint64, error) {
	v, n := binary.Uvarint(c.notes.data[c.off:])
	if n <= 0 {
		return 0, fmt.Errorf("event %d: %w", c.next, errCut)
	}
	if v > most {
		return 0, fmt.Errorf("event %d: a number of %d, which cannot be more than %d", c.next, v, most)
	}
	c.off += n
	return v, nil
}

// step decodes the next annotation.
func (c *Cursor) step() error {
	word, err := c.uvarint(math.MaxUint64)
	if err != nil {
		return err
	}
	c.an = Annotation{Compute: time.Duration(word >> 3), Waits: c.an.Waits[:0]}
	if word&hasSleep != 0 {
		ns, err := c.uvarint(maxNS)
		if err != nil {
			return err
		}
		c.an.Sleep = time.Duration(ns)
	}
	if word&hasWaits != 0 {
		waits, err := c.uvarint(maxWaits)
		if err != nil {
			return err
		}
		for range waits {
			distance, err := c.uvarint(c.next)
			if err != nil {
				return err
			}
			if distance == 0 {
				return fmt.Errorf("event %d waits for itself", c.next)
			}
			lag, err := c.uvarint(maxNS)
			if err != nil {
				return err
			}
			c.an.Waits = append(c.an.Waits, Dependency{c.next - distance, time.Duration(lag)})
		}
	}
	if word&hasUntil != 0 {
		last := c.notes.events - 1
		distance, err := c.uvarint(last - c.next)
		if err != nil {
			return err
		}
		if distance == 0 {
			return fmt.Errorf("event %d is waited for by itself", c.next)
		}
		c.an.Until = c.next + distance
	}
	c.next++
	return nil
}

// Write stores the annotations in their tape, in place of those that it has.
func (n *Annotations) Write(t *trace.Tape) error {
	if n.events != t.Manifest().Counts.Events {
		return fmt.Errorf("annotations of %d events for a tape of %d", n.events, t.Manifest().Counts.Events)
	}
	head := binary.AppendUvarint(nil, version)
	return t.SetAnnotations(binary.AppendUvarint(head, n.events), n.data)
}

// Read reads the annotations that are stored in a tape and checks them, so that Cursors
// need not. The error wraps fs.ErrNotExist if there are none, trace.ErrCorrupt if they
// are damaged or of another state of the tape, trace.ErrNewer if a newer program made
// them.
func Read(t *trace.Tape) (*Annotations, error) {
	b, err := t.Annotations()
	if err != nil {
		return nil, err
	}
	n, err := decode(b)
	if err == nil && n.events != t.Manifest().Counts.Events {
		err = fmt.Errorf("they are of %d events, the tape has %d: %w", n.events, t.Manifest().Counts.Events,
			trace.ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("annotations of %s: %w", t.Name(), err)
	}
	return n, nil
}

// decode checks what was read.
func decode(b []byte) (*Annotations, error) {
	v, k := binary.Uvarint(b)
	switch {
	case k <= 0 || len(b) > maxAnnotations:
		return nil, fmt.Errorf("%d bytes: %w", len(b), trace.ErrCorrupt)
	case v > version:
		return nil, fmt.Errorf("version %d: %w", v, trace.ErrNewer)
	}
	events, m := binary.Uvarint(b[k:])
	n := &Annotations{data: b[k+max(m, 0):]}
	if m <= 0 || events > uint64(len(n.data)) {
		return nil, fmt.Errorf("%d events in %d bytes: %w", events, len(b), trace.ErrCorrupt)
	}
	n.events = events
	c := n.Cursor()
	for i := range events {
		if i%blockEvents == 0 {
			n.blocks = append(n.blocks, uint32(c.off))
		}
		if err := c.step(); err != nil {
			return nil, fmt.Errorf("%w: %w", err, trace.ErrCorrupt)
		}
	}
	if c.off != len(n.data) {
		return nil, fmt.Errorf("%d bytes too many: %w", len(n.data)-c.off, trace.ErrCorrupt)
	}
	return n, nil
}

// waits lists the waits of all events, in their order.
func (n *Annotations) waits() []waitFor {
	var list []waitFor
	c := n.Cursor()
	for seq := range n.events {
		for _, w := range c.At(seq).Waits {
			list = append(list, waitFor{uint32(seq), uint32(w.Event), int64(w.Lag)})
		}
	}
	return list
}
