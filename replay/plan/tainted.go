// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/trace"
)

// taintedRanges are the ranges of files that hold, at one moment of the replay, content that
// the tape does not have: the recording kept no bytes of what was read or written there, and
// the replay has zeros. What a call reads there cannot be compared.
type taintedRanges struct {
	effect.Ranges
	generated bool // nothing that is written is as recorded
	encrypted bool // no content of the tape is what files held, byte by byte: trace.ContentEncrypted
	foreign   bool // the tape has no stores through mappings
}

func newTaintedRanges(t *trace.Tape, ranges []effect.FileRanges, generated bool) taintedRanges {
	return taintedRanges{effect.NewRanges(ranges), generated, content.AnonymisedContent(t) == trace.ContentEncrypted,
		t != nil && t.Manifest().Foreign()}
}

// mapped notes what a program can store to through a mapping without a call.
func (m taintedRanges) mapped(ev *event.Event) {
	const protWrite, mapType, mapPrivate, mapAnonymous = 2, 15, 2, 32
	if !m.foreign || ev.Op != event.OpMmap || !ev.OK() || ev.Args[2]&protWrite == 0 ||
		ev.Args[3]&mapType == mapPrivate || ev.Args[3]&mapAnonymous != 0 {
		return
	}
	if f := ev.FileArg(4); f != nil && (f.Known || effect.Nameable(f)) {
		m.Add(effect.ContentOf(f), int64(ev.Args[5]), int64(ev.Args[5]+ev.Args[1]))
	}
}

// observe notes what a task does to the content of files, and whether what it reads can
// be compared.
func (m taintedRanges) observe(t *Task) {
	ev, spec := &t.Event, t.Event.Spec()
	if !ev.OK() {
		return
	}
	if m.emptied(ev) {
		return
	}
	m.renamed(ev)
	if c, ok := ev.Cloned(); ok && t.Action == CloneRange {
		m.cloned(&c)
	}
	if spec.Class != event.Data {
		return
	}
	t.Content.Tainted = t.Content.Tainted || m.encrypted
	if spec.NeedsStop {
		m.copied(t)
		return
	}
	if f := ev.FileArg(0); f != nil && (f.Known || effect.Nameable(f)) {
		m.accessed(t, effect.ContentOf(f))
	}
}

// emptied follows an open that made or emptied a file. It reports false of other calls.
func (m taintedRanges) emptied(ev *event.Event) bool {
	f := ev.FileArg(event.ResultArg)
	if f == nil || !f.Known {
		return false
	}
	asked := effect.OpenFlags(ev) // of calls that open: duplicates have flags of the past
	if asked&event.OpenTrunc == 0 && asked&uint64(f.Flags)&event.OpenCreat == 0 {
		return false
	}
	delete(m.Ranges, effect.ContentOf(f))
	return true
}

// renamed follows a rename or a link of a file that is known by its name only. Files below a renamed directory are
// not followed.
func (m taintedRanges) renamed(ev *event.Event) {
	if len(ev.Paths) != 2 {
		return
	}
	var ends [2]effect.Inode
	for i := range ends {
		switch use, _ := ev.NameUse(i); use {
		case event.NameFrom, event.NameLink:
			ends[0] = effect.ContentByName(ev.Paths[i].Abs)
		case event.NameTo:
			ends[1] = effect.ContentByName(ev.Paths[i].Abs)
		}
	}
	from, to := ends[0], ends[1]
	if from == (effect.Inode{}) || to == (effect.Inode{}) || from == to {
		return
	}
	was, replaced := m.Ranges[from], m.Ranges[to]
	delete(m.Ranges, to)
	if was != nil {
		copied := slices.Clone(*was)
		m.Ranges[to] = &copied
	}
	switch {
	case ev.Effect() == event.EffectLink:
	case ev.Exchanges() && replaced != nil:
		m.Ranges[from] = replaced
	default:
		delete(m.Ranges, from)
	}
}

// accessed follows a call on the content of a file.
func (m taintedRanges) accessed(t *Task, id effect.Inode) {
	ev, spec := &t.Event, t.Event.Spec()
	switch ev.Op {
	case event.OpFtruncate:
		m.Remove(id, ev.Offset, effect.WholeFile)
		return
	case event.OpFallocate:
		const keepSize = 1
		if m.Ranges[id] != nil && ev.Args[1]&^keepSize != 0 { // content moves, or is cleared
			m.Add(id, ev.Offset, effect.WholeFile)
		}
		return
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if !spec.IsContent(int(b.Arg)) {
			continue
		}
		from, to := ev.Offset, ev.Offset+b.Len
		if ev.Offset < 0 {
			from, to = 0, effect.WholeFile
		}
		if b.Dir == event.Out {
			t.Content.Tainted = t.Content.Tainted || m.Overlaps(id, from, to)
		} else {
			m.wrote(id, from, to, b)
		}
	}
}

// wrote notes a write of what the tape has of b.
func (m taintedRanges) wrote(id effect.Inode, from, to int64, b *event.Buf) {
	known := content.KnownPrefix(b)
	if m.generated {
		known = 0
	}
	if to == effect.WholeFile {
		if known < b.Len {
			m.Add(id, from, to)
		}
		return
	}
	m.Remove(id, from, from+known)
	m.Add(id, from+known, to)
}

// copied follows content that moves between two descriptors.
func (m taintedRanges) copied(t *Task) {
	ev := &t.Event
	src, dst := ev.CopySides()
	in, out := ev.FileArg(src.FD), ev.FileArg(dst.FD)
	if in == nil || out == nil || ev.Ret <= 0 {
		return
	}
	from, to := src.Start(ev), dst.Start(ev)
	if out.Flags&event.OpenAppend != 0 {
		to = -1
	}
	unknown := false
	if in.Known && t.Files.FDs[src.FD] != nil {
		if from < 0 {
			unknown = m.Ranges[effect.ContentOf(in)] != nil
		} else {
			unknown = m.Overlaps(effect.ContentOf(in), from, from+ev.Ret)
		}
	}
	t.Content.Tainted = t.Content.Tainted || unknown
	if t.Files.FDs[dst.FD] == nil || !out.Known {
		return
	}
	if t.Action == CopyIn {
		unknown = t.Content.Missing
	}
	switch {
	case unknown && to < 0:
		m.Add(effect.ContentOf(out), 0, effect.WholeFile)
	case unknown:
		m.Add(effect.ContentOf(out), to, to+ev.Ret)
	case to >= 0:
		m.Remove(effect.ContentOf(out), to, to+ev.Ret)
	}
}

// cloned follows content that one file took over of another.
func (m taintedRanges) cloned(c *event.Cloned) {
	id, end := effect.ContentOf(c.To), effect.CloneEnd(c, c.At)
	switch {
	case c.From != nil && c.From.Known && !m.Overlaps(effect.ContentOf(c.From), c.Off, effect.CloneEnd(c, c.Off)):
		if end != effect.WholeFile {
			m.Remove(id, c.At, end)
		}
	case len(m.Ranges) > 0:
		m.Add(id, c.At, end)
	}
}

// observePlain is observe for a plain read or write.
func (m taintedRanges) observePlain(t *Task) {
	ev := &t.Event
	untainted := len(m.Ranges) == 0 && !m.generated && !m.encrypted
	if untainted && (t.Step.Kind == StepRead ||
		len(ev.Bufs) == 1 && content.KnownPrefix(&ev.Bufs[0]) == ev.Bufs[0].Len) {
		return
	}
	m.observe(t)
}
