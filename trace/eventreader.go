// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"io"
	"iter"
	"sort"

	"github.com/klauspost/compress/zstd"

	"github.com/iotape/iotape/event"
)

// EventReader reads events in order. Several may read one tape at a time.
type EventReader struct {
	file  *blockFile
	want  uint64 // events that there should be
	hosts int    // events of others are damage; negative if they are not known
	block int    // next to load
	short bool   // that events are missing at the end was reported
	raw   rawBlock
	zstd  *zstd.Decoder
	dec   blockDecoder
}

// NewEventReader returns a reader that starts at the first event.
func (t *Tape) NewEventReader() *EventReader {
	hosts := len(t.manifest.Hosts)
	if t.seal == "" {
		hosts = -1
	}
	return &EventReader{file: t.events, want: t.manifest.Counts.Events, hosts: hosts, zstd: newDecoder(1),
		dec: blockDecoder{stacks: t.stack}}
}

// Next decodes the next event into ev, reusing its slices. What ev points to is
// valid until the next call, except for strings, which stay. It returns io.EOF at
// the end. After an error for a damaged block Next goes on behind it.
func (r *EventReader) Next(ev *event.Event) error {
	for r.dec.next >= r.dec.n {
		if err := r.load(); err != nil {
			return err
		}
	}
	r.dec.event(ev)
	return nil
}

// load decodes the next block.
func (r *EventReader) load() error {
	r.dec.n, r.dec.next = 0, 0
	if r.block >= len(r.file.blocks) {
		if r.file.end != r.want && !r.short {
			r.short = true
			if r.file.cut != nil {
				return fmt.Errorf("%d events of %d: %w", r.file.end, r.want, r.file.cut)
			}
			return fmt.Errorf("%s: %d events, the manifest says %d: %w", r.file.kind.name, r.file.end, r.want,
				ErrCorrupt)
		}
		return io.EOF
	}
	i := r.block
	r.block++
	if err := r.file.read(i, &r.raw); err != nil {
		return err
	}
	if err := r.file.expand(&r.raw, r.zstd); err != nil {
		return err
	}
	e := &r.file.blocks[i]
	if err := r.dec.decode(r.raw.plain, int(e.items), e.first); err != nil {
		return r.file.at(e, err)
	}
	if r.hosts < 0 {
		return nil
	}
	for _, h := range r.dec.perEvent[colHost][:r.dec.n] {
		if h >= uint64(r.hosts) {
			r.dec.n = 0
			return r.file.at(e, fmt.Errorf("event of host %d of %d: %w", h, r.hosts, ErrCorrupt))
		}
	}
	return nil
}

// Seek makes seq the next event; the end if there is none.
func (r *EventReader) Seek(seq uint64) error {
	r.dec.n, r.dec.next = 0, 0
	i, ok := r.file.find(seq)
	if !ok {
		r.block = len(r.file.blocks)
		return nil
	}
	r.block = i
	if err := r.load(); err != nil {
		return err
	}
	for r.dec.first+uint64(r.dec.next) < seq {
		r.dec.skip()
	}
	return nil
}

// SeekTime moves to the first block with an event that returned at or after ns, a
// monotonic time; some earlier events may still come.
func (r *EventReader) SeekTime(ns int64) {
	r.dec.n, r.dec.next = 0, 0
	for r.block = 0; r.block < len(r.file.blocks) && r.file.blocks[r.block].max < ns; {
		r.block++
	}
}

// BlockOf returns the position of the block that holds an event, and its extent:
// the unit that is decoded at once.
func (t *Tape) BlockOf(seq uint64) (first, end uint64, ok bool) {
	i, ok := t.events.find(seq)
	if !ok {
		return 0, 0, false
	}
	b := &t.events.blocks[i]
	return b.first, b.first + uint64(b.items), true
}

// Split returns up to n bounds of about equal parts of the events, for readers that
// work side by side: part k goes from bounds[k] to before bounds[k+1]. Parts begin
// at blocks.
func (t *Tape) Split(n int) []uint64 {
	bounds, blocks := []uint64{0}, t.events.blocks
	for k := 1; k < n; k++ {
		want := t.events.end / uint64(n) * uint64(k)
		i := sort.Search(len(blocks), func(i int) bool { return blocks[i].first >= want })
		if i < len(blocks) && blocks[i].first > bounds[len(bounds)-1] {
			bounds = append(bounds, blocks[i].first)
		}
	}
	return append(bounds, t.events.end)
}

// Events iterates over all events in order. The event is reused: Clone what must
// live longer than the loop's body. After an error for a damaged block the
// iteration goes on behind it, unless the loop is left.
func (t *Tape) Events() iter.Seq2[*event.Event, error] {
	return func(yield func(*event.Event, error) bool) {
		var ev event.Event
		r := t.NewEventReader()
		for {
			err := r.Next(&ev)
			if err == io.EOF {
				return
			}
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !yield(&ev, nil) {
				return
			}
		}
	}
}
