// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// Options for Anonymise and Reveal.
type Options struct {
	// Fields are those to map; for Reveal those of which there is a key and that are
	// encrypted.
	Fields Fields
	Keys   Keys
	// KeepExtensions leaves the extensions of file names (Anonymise).
	KeepExtensions bool
	// Content says what becomes of it, if it is among the fields (Anonymise).
	Content trace.AnonymisedContent
	// Program is who does it, with its version, for the manifest.
	Program string
	// Progress is called now and then with events.
	Progress func(done, total uint64)
}

// Result is what Anonymise and Reveal did.
type Result struct {
	Manifest *trace.Manifest // for TapeWriter.Close
	Fields   Fields          // that were mapped
	Removed  int64           // bytes of content that were left out
	LeftOut  []string        // files of the tape that are of no known kind
	Unsigned bool            // Reveal: the tape was made without all keys, so nothing vouches for it
}

// Anonymise writes to tw what t has, with the values of fields replaced. A tape that is
// anonymised already can be anonymised in further fields.
func Anonymise(ctx context.Context, tw *trace.TapeWriter, t *trace.Tape, o *Options) (*Result, error) {
	a := &trace.Anonymised{Version: formatVersion, Fields: map[string]trace.FieldSeal{},
		KeepExtensions: o.KeepExtensions, Content: o.Content}
	if old := t.Manifest().Anonymised; old != nil {
		a = old.Unsigned()
		for _, f := range o.Fields.List() {
			if _, ok := old.Fields[f.String()]; ok {
				return nil, fmt.Errorf("%s is anonymised in %s already", t.Name(), f)
			}
		}
		if o.Fields.Has(Path) {
			a.KeepExtensions = o.KeepExtensions
		}
		if o.Fields.Has(Content) {
			a.Content = o.Content
		}
	}
	if !o.Fields.Has(Content) && t.Manifest().Anonymised == nil {
		a.Content = trace.ContentKept
	}
	for _, f := range o.Fields.List() {
		key, ok := o.Keys[f]
		if !ok {
			return nil, fmt.Errorf("there is no key for %s; leave it out of the fields, or use a new key file", f)
		}
		if f == Content && a.Content == trace.ContentRemoved {
			continue // there is nothing to open
		}
		a.Fields[f.String()] = trace.FieldSeal{Key: key.fingerprint(f)}
	}
	x := newRewriter(ctx, tw, t, o, newMapper(o.Keys, o.Fields, a, false))
	return x.run(a)
}

// Reveal writes to tw what t has, with the values of those fields put back of which there
// are keys.
func Reveal(ctx context.Context, tw *trace.TapeWriter, t *trace.Tape, o *Options) (*Result, error) {
	old := t.Manifest().Anonymised
	if old == nil {
		return nil, fmt.Errorf("%s is not anonymised", t.Name())
	}
	fields, missing, err := verify(t.Manifest(), o.Keys, o.Fields)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	if err := sound(ctx, t); err != nil {
		return nil, err
	}
	a := old.Unsigned()
	for _, f := range fields.List() {
		delete(a.Fields, f.String())
	}
	x := newRewriter(ctx, tw, t, o, newMapper(o.Keys, fields, old, true))
	if fields.Has(Content) {
		a.Content = trace.ContentKept
	}
	if len(a.Fields) == 0 && a.Content != trace.ContentRemoved {
		a = nil
	}
	res, err := x.run(a)
	if err != nil {
		return nil, err
	}
	res.Unsigned = missing
	return res, nil
}

// sound refuses a tape that is damaged.
func sound(ctx context.Context, t *trace.Tape) error {
	rep, err := t.Check(ctx, nil)
	if err != nil {
		return err
	}
	for _, d := range rep.Damage {
		if !d.Derived {
			return fmt.Errorf("%s is damaged: %s", t.Name(), d)
		}
	}
	return nil
}

// rewriter writes a tape from another.
type rewriter struct {
	ctx  context.Context
	from *trace.Tape
	to   *trace.TapeWriter
	o    *Options
	m    mapper

	chunks  []uint32          // new numbers by the old ones - 1; 0 if not written yet
	placed  map[uint64]uint32 // likewise, by number and place in its page, of what is substituted
	data    []byte            // of the chunk at hand
	space   []byte            // of the event at hand
	removed int64
}

func newRewriter(ctx context.Context, tw *trace.TapeWriter, t *trace.Tape, o *Options, m *mapper) *rewriter {
	for i := range t.Manifest().Hosts {
		arch, _ := event.ParseArch(t.Manifest().Hosts[i].Arch)
		m.arch = append(m.arch, arch)
	}
	return &rewriter{ctx: ctx, from: t, to: tw, o: o, m: *m, placed: map[uint64]uint32{}}
}

// chunk writes a chunk that stands at an offset of a file, if that was not done, and
// returns its new number.
func (x *rewriter) chunk(id uint64, off int64) (uint64, error) {
	if x.m.sub != nil {
		place := uint64(off) % trace.ChunkBytes
		key := id*trace.ChunkBytes + place
		if n, ok := x.placed[key]; ok {
			return uint64(n), nil
		}
		n, err := x.rewrite(id, int64(place))
		if err == nil {
			x.placed[key] = uint32(n)
		}
		return n, err
	}
	if id <= uint64(len(x.chunks)) && x.chunks[id-1] != 0 {
		return uint64(x.chunks[id-1]), nil
	}
	n, err := x.rewrite(id, 0)
	if err != nil {
		return 0, err
	}
	if id > uint64(len(x.chunks)) { // it exists, so there are no more of them than the tape's bytes
		x.chunks = append(x.chunks, make([]uint32, id-uint64(len(x.chunks)))...)
	}
	x.chunks[id-1] = uint32(n)
	return n, nil
}

func (x *rewriter) rewrite(id uint64, off int64) (uint64, error) {
	data, err := x.from.Chunk(id)
	if err != nil {
		return 0, err
	}
	x.data = append(x.data[:0], data...)
	x.m.bytesAt(x.data, off)
	return x.to.AddChunk(x.data)
}

func (x *rewriter) run(a *trace.Anonymised) (*Result, error) {
	if err := x.events(); err != nil {
		return nil, err
	}
	m := x.manifest()
	m.Anonymised = a
	if err := trace.WriteHeads(x.to, m.Hosts); err != nil {
		return nil, err
	}
	res := &Result{Manifest: m, Fields: x.m.fields, Removed: x.removed}
	for _, name := range slices.Sorted(maps.Keys(x.from.Manifest().Files)) {
		switch _, file := trace.SplitHostFile(name); {
		case seal.IsTree(file):
			if err := x.tree(name); err != nil {
				return nil, err
			}
		case name != trace.EventsName && name != trace.ContentName && name != trace.HeadName &&
			name != trace.StacksName:
			res.LeftOut = append(res.LeftOut, name)
		}
	}
	res.Removed = x.removed
	x.to.Sign = func(m *trace.Manifest) error { return sign(m, x.o.Keys) }
	return res, nil
}

func (x *rewriter) events() error {
	var ev event.Event
	r := x.from.NewEventReader()
	total := x.from.Manifest().Counts.Events
	for n := uint64(0); ; n++ {
		if n%4096 == 0 {
			if err := x.ctx.Err(); err != nil {
				return err
			}
			if x.o.Progress != nil {
				x.o.Progress(n, total)
			}
		}
		err := r.Next(&ev)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = x.buffers(&ev)
		}
		if err != nil {
			return err
		}
		x.m.event(&ev)
		if err := x.to.Write(&ev); err != nil {
			return err
		}
	}
}

// manifest returns the manifest of the new tape.
func (x *rewriter) manifest() *trace.Manifest {
	old, m := x.from.Manifest(), &x.m
	to := &trace.Manifest{
		Program: x.o.Program, Hosts: slices.Clone(old.Hosts), ExitStatus: old.ExitStatus, Signal: old.Signal,
		Losses: slices.Clone(old.Losses), Incomplete: old.Incomplete, Reason: m.reason(old.Reason),
	}
	for i := range to.Hosts {
		h := &to.Hosts[i]
		h.Host, h.BootID = m.json(Host, h.Host), m.json(Host, h.BootID)
		h.Command = slices.Clone(h.Command)
		for k := range h.Command {
			h.Command[k] = m.json(Arg, h.Command[k])
		}
		h.Addresses = m.addresses(h.Addresses)
		h.Target, h.Dir = m.json(Arg, h.Target), m.jsonPath(h.Dir)
		if h.UID >= 0 {
			h.UID = int(m.id(UID, uint32(h.UID)))
		}
		if h.GID >= 0 {
			h.GID = int(m.id(GID, uint32(h.GID)))
		}
		h.ClockNS, h.WallNS = m.boot(h.ClockNS), m.wallNS(h.WallNS)
		h.Rotation = nil // its parts have other keys, and other times
		if h.Window != nil {
			w := *h.Window
			if w.SinceNS != 0 {
				w.SinceNS = m.boot(w.SinceNS)
			}
			w.Reason = m.reason(w.Reason)
			h.Window = &w
		}
	}
	return to
}
