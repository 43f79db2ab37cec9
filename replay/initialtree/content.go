// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"cmp"
	"slices"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// readCall learns content.
func (in *inference) readCall(ev *event.Event) {
	src, off := 0, ev.Offset
	if ev.Effect() == event.EffectCopy {
		from, _ := ev.CopySides()
		src, off = from.FD, from.Start(ev)
		in.copied(ev)
	}
	f := ev.FileArg(src)
	if !ev.OK() || f == nil {
		return
	}
	o := in.open[f.Open]
	if o != nil {
		o.data = true
	}
	if off < 0 || ev.Ret <= 0 {
		return
	}
	o.provedBytes(off + ev.Ret)
	if o != nil && o.details().appended > 0 && ev.Ret < ev.Count { // which ended with what was appended
		o.typ = cmp.Or(o.typ, tree.File)
		o.hadSize(off + ev.Ret)
	}
	content := o.before()
	if content == nil {
		return
	}
	if ev.Spec().NeedsStop && ev.BufArg(effect.ContentArg(ev.Op)) == nil { // a trace that does not say what was copied
		content.unread(off, off+ev.Ret)
	}
	for i := range ev.Bufs {
		if b := &ev.Bufs[i]; int(b.Arg) == effect.ContentArg(ev.Op) && !effect.Runs(ev) {
			content.read(off, b, func(data []byte) uint64 {
				in.result.inline = append(in.result.inline, slices.Clone(data))
				return uint64(len(in.result.inline)-1) | inlineBit
			})
		}
	}
}

// before returns what is known of the initial content of a file that is about to be read,
// nil if that does not matter.
func (o *object) before() *extents {
	if o == nil || !o.initial || o.details().entry != nil {
		return nil
	}
	d := o.detail()
	if o.known&tree.KnownSize != 0 {
		d.content.wrote(o.size, max(d.written, o.size+d.appended)) // holes that the trace made are not initial
	}
	return &d.content
}

// cloned notes that a file took over a part of another without a read of it.
func (in *inference) cloned(ev *event.Event) {
	c, ok := ev.Cloned()
	if !ok {
		return
	}
	var from *object
	if c.From != nil {
		from = in.open[c.From.Open]
	}
	if content := from.before(); content != nil && c.Bytes() >= 0 {
		content.unread(c.Off, effect.CloneEnd(&c, c.Off))
	}
	if to := in.open[c.To.Open]; to != nil {
		to.wrote(c.At, effect.CloneEnd(&c, c.At))
		to.grown = true
	}
}

// soughtCall learns which parts of a file were holes.
func (in *inference) soughtCall(ev *event.Event) {
	const seekEnd, seekData = 2, 3
	f := ev.FileArg(0)
	if f != nil && ev.Args[2] == seekEnd && ev.OK() {
		in.open[f.Open].provedSize(ev.Ret - int64(ev.Args[1]))
		return
	}
	if f == nil || ev.Args[2] != seekData || !ev.OK() && ev.Errno != syscall.ENXIO {
		return
	}
	o := in.open[f.Open]
	if o == nil || !o.initial || o.grown || o.details().entry != nil {
		return
	}
	to := ev.Ret
	if !ev.OK() {
		to = effect.WholeFile
	}
	o.detail().content.holes.Add(int64(ev.Args[1]), to)
}

// copied notes the destination of a copy inside the kernel.
func (in *inference) copied(ev *event.Event) {
	_, to := ev.CopySides()
	f := ev.FileArg(to.FD)
	if !ev.OK() || f == nil || ev.Ret <= 0 {
		return
	}
	if o := in.open[f.Open]; o != nil {
		if end := to.Start(ev) + ev.Ret; end >= ev.Ret {
			o.wrote(end-ev.Ret, end)
		}
		o.grown = true
	}
}

// wroteCall notes what is the trace's own content from now on.
func (in *inference) wroteCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	o := in.object(ev)
	if o == nil {
		return
	}
	o.data = true
	if in.appends(ev) {
		o.detail().appended += ev.Ret
		return
	}
	o.grown = o.grown || ev.Op != event.OpMmapPwrite // a store never changes the size
	switch ev.Effect() {
	case event.EffectTruncate:
		o.wrote(ev.Offset, effect.WholeFile)
	case event.EffectAllocate:
		const keepSize = 1
		if ev.Args[1]&^keepSize != 0 { // everything but plain allocation moves or clears content
			o.wrote(ev.Offset, effect.WholeFile)
		}
	default:
		if ev.Offset >= 0 {
			o.wrote(ev.Offset, ev.Offset+ev.Ret)
			if o.more != nil {
				o.more.written = max(o.more.written, ev.Offset+ev.Ret)
			}
		}
	}
}

// appends reports whether a write was at the end of a file, and the trace does not say where that was.
func (in *inference) appends(ev *event.Event) bool {
	if ev.Offset >= 0 || ev.Effect() != event.EffectWrite || !ev.AtPosition() {
		return false
	}
	f := ev.FileArg(0)
	return f != nil && (f.Flags&event.OpenAppend != 0 || in.toEnd[f.Open])
}

// wrote notes that a range is the trace's own from now on, where that matters.
func (o *object) wrote(from, to int64) {
	if (o.initial || o.details().perhaps != nil) && o.details().entry == nil {
		o.detail().content.wrote(from, to)
	}
}

// cut notes that a file ended somewhere.
func (o *object) cut(size int64) {
	o.detail().content.wrote(size, effect.WholeFile)
	o.grown = true
}
