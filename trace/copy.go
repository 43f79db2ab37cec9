// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"

	"github.com/iotape/iotape/event"
)

// Copier carries the content of events from a tape to one that is being written,
// whose chunks have other numbers. It remembers 4 bytes per chunk.
type Copier struct {
	// Salvage makes content that is damaged content that is missing; else it is an
	// error.
	Salvage bool
	// Lost counts the bytes that Salvage made missing.
	Lost int64

	from *Tape
	to   *TapeWriter
	ids  []uint32 // new numbers by the old ones - 1; 0 if not copied yet
}

// NewCopier returns a Copier between two tapes.
func NewCopier(from *Tape, to *TapeWriter) *Copier { return &Copier{from: from, to: to} }

// From returns the tape that is copied.
func (c *Copier) From() *Tape { return c.from }

// To returns the tape that is written.
func (c *Copier) To() *TapeWriter { return c.to }

// Chunk copies a chunk, if it was not copied yet, and returns its new number.
func (c *Copier) Chunk(id uint64) (uint64, error) {
	if id > 0 && id <= uint64(len(c.ids)) && c.ids[id-1] != 0 {
		return uint64(c.ids[id-1]), nil
	}
	data, err := c.from.Chunk(id)
	if err != nil {
		return 0, err
	}
	n, err := c.to.AddChunk(data)
	if err != nil {
		return 0, err
	}
	if id > uint64(len(c.ids)) { // it exists, so there is no more of them than of the tape's bytes
		c.ids = append(c.ids, make([]uint32, id-uint64(len(c.ids)))...)
	}
	c.ids[id-1] = uint32(n)
	return n, nil
}

// Content copies the chunks that an event refers to and makes it refer to the copies.
func (c *Copier) Content(ev *event.Event) error {
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		for k := range b.Refs {
			r := &b.Refs[k]
			if r.Chunk == 0 {
				continue
			}
			n, err := c.Chunk(r.Chunk)
			if err == nil {
				r.Chunk = n
				continue
			}
			if !c.Salvage || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) {
				return fmt.Errorf("content of event %d: %w", ev.Seq, err)
			}
			r.Chunk, r.Off = 0, 0
			b.Missing += int64(r.Len)
			ev.Flags |= event.Incomplete
			c.Lost += int64(r.Len)
		}
	}
	return nil
}
