// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"bytes"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

// maxStructs is how many bytes of structures, directory entries and control
// messages are decoded.
const maxStructs = 1 << 20

// decode returns what the memory of argument i is.
func (p *Printer) decode(e *event.Event, a *event.Arg, i int, b *event.Buf) (layout.Value, bool) {
	l := a.Layout
	switch e.Op {
	case event.OpGetdents64:
		l = event.LayoutDirents64
	case event.OpGetdents:
		l = event.LayoutDirents
	}
	message := e.Op == event.OpMsgsnd || e.Op == event.OpMsgrcv
	if a.Kind != event.KindStruct && l == event.LayoutNone && !message || b.Omitted || b.Missing > 0 {
		return layout.Value{}, false
	}
	m := &p.memory
	*m = layout.Memory{Arch: p.archOf(e), Layout: l, Op: e.Op, Arg: i, Args: &e.Args, Moved: b.Len, Failed: !e.OK(),
		One: a.Len == event.LenConst}
	if e.OK() {
		m.Result = e.Ret
	}
	switch l {
	case event.LayoutMsghdr, event.LayoutMmsghdr, event.LayoutSigsetRef, event.LayoutXattrArgs, event.LayoutFprog:
		p.parts(e, i, b)
	default:
		m.Bytes = p.content(b, maxStructs)
		if l == event.LayoutU32 {
			if was := e.BufArg(event.PartBefore.Of(i)); was != nil {
				m.Before = was.Inline
			}
		}
	}
	return m.Decode()
}

// parts collects what an argument points to, and what that points to. Content is
// limited to what is shown of it.
func (p *Printer) parts(e *event.Event, i int, whole *event.Buf) {
	m := &p.memory
	m.Bytes = p.own(whole, maxStructs)
	if b := e.BufArg(event.PartBefore.Of(i)); b != nil {
		m.Before = b.Inline
	}
	if b := e.BufArg(event.PartName.Of(i)); b != nil && b.Missing == 0 && !b.Omitted {
		m.Names = p.own(b, maxStructs)
	}
	if b := e.BufArg(event.PartControl.Of(i)); b != nil && b.Missing == 0 && !b.Omitted {
		m.Control = p.own(b, maxStructs)
	}
	if b := e.BufArg(event.PartTarget.Of(i)); b != nil && b.Missing == 0 && !b.Omitted {
		m.Target, m.Moved = p.own(b, min(p.max, maxStructs)), b.Len
		if m.Layout != event.LayoutXattrArgs {
			m.Target = p.own(b, maxStructs)
		}
	}
	if b := e.BufArg(event.PartData.Of(i)); b != nil {
		m.Lens, m.Moved = b.Parts, b.Len
		if b.Missing == 0 {
			m.Data = p.own(b, p.vecBytes(b))
		}
	}
	if m.Layout == event.LayoutMsghdr && e.OK() && e.Spec().Result == event.KindSize {
		m.Moved = e.Ret
	}
}

// own returns content that does not end with the next call of content.
func (p *Printer) own(b *event.Buf, n int) []byte {
	data := p.content(b, n)
	if b.Inline != nil {
		return data
	}
	return bytes.Clone(data)
}

// wording returns what writing a Value of a call needs.
func (p *Printer) wording(e *event.Event) wording {
	w := wording{arch: p.archOf(e), entries: briefItems, e: e}
	if isDirents(e.Op) {
		w.entries, w.quiet = briefEntries, true
	}
	return w
}

func isDirents(op event.Op) bool { return op == event.OpGetdents || op == event.OpGetdents64 }
