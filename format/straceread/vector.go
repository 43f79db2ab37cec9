// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/format"
)

// vector rebuilds an iovec array and what it points to.
func (x *importer) vector(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field) {
	if t.Kind != layout.ToldItems {
		x.lost(c, spec, a.Name)
		return
	}
	left := min(c.Ret, maxMoved)
	if a.Len == event.LenVecAll {
		left = maxMoved
	}
	lens, spans, _ := x.spans(nil, nil, t.Parts, left)
	if _, ok := unsaid(t.Comment); ok {
		for j := range spans {
			spans[j].Data = nil
		}
	}
	if t.Cut {
		x.lost(c, spec, a.Name+"'s rest")
	}
	if len(lens) == 0 {
		return
	}
	c.Shape(i, lens)
	if c.Ret > 0 || a.Len == event.LenVecAll {
		c.Spans(i, spans...)
	}
}

// spans returns the lengths of iovec elements, and what of their content was moved,
// which is at most left bytes.
func (x *importer) spans(lens []int64, spans []format.Span, parts []field, left int64) ([]int64, []format.Span, int64) {
	for j := range parts {
		var base *field
		size := int64(-1)
		for k := range parts[j].Parts {
			switch p := &parts[j].Parts[k]; p.Name {
			case "iov_base":
				base = p
			case "iov_len":
				v, _ := event.ParseNumber(p.Text)
				size = max(int64(v), 0)
			}
		}
		if el := parts[j].Parts; base == nil && len(el) == 2 && el[0].Name == "" { // without names before strace 4.12
			base = &el[0]
			v, _ := event.ParseNumber(el[1].Text)
			size = max(int64(v), 0)
		}
		if base == nil || size < 0 {
			continue
		}
		lens = append(lens, size)
		moved := min(size, left)
		left -= moved
		data := base.Data[:min(int64(len(base.Data)), moved)]
		if base.Kind == layout.ToldText && !base.Cut && moved > int64(len(data)) {
			moved = int64(len(data)) // it says all that there was
		}
		spans = append(spans, format.Span{Data: data, Len: moved})
	}
	return lens, spans, left
}

// message rebuilds a struct msghdr and what it points to.
func (x *importer) message(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field) {
	m, ok := layout.EncodeMessage(t)
	if !ok {
		x.lost(c, spec, a.Name)
		return
	}
	if m.Lost > 0 {
		x.lost(c, spec, a.Name+"'s fields")
	}
	c.Bytes(i, m.Head, 0)
	x.parts(c, i, m.Name, m.Control)
	if m.NameWas != nil {
		x.was(c, i, m.NameWas)
	}
	lens, spans, _ := x.spans(nil, nil, m.Vector, max(min(c.Ret, maxMoved), 0))
	if len(lens) > 0 {
		c.Shape(event.PartData.Of(i), lens)
		if c.Ret > 0 {
			c.Spans(event.PartData.Of(i), spans...)
		}
	}
	passed(c, m.FDs)
}

// messages rebuilds an array of struct mmsghdr.
func (x *importer) messages(c *format.Call, spec *event.Spec, a *event.Arg, i int, t *field) {
	if t.Kind != layout.ToldItems {
		x.lost(c, spec, a.Name)
		return
	}
	var heads, names, controls []byte
	var lens []int64
	var spans []format.Span
	for j := range t.Parts {
		var head, n *field
		for k := range t.Parts[j].Parts {
			switch p := &t.Parts[j].Parts[k]; p.Name {
			case "msg_hdr":
				head = p
			case "msg_len":
				n = p
			}
		}
		if head == nil {
			x.lost(c, spec, a.Name)
			return
		}
		m, ok := layout.EncodeMessage(head)
		if !ok || m.Lost > 0 {
			x.lost(c, spec, a.Name+"'s fields")
			if !ok {
				return
			}
		}
		moved := uint64(0)
		if n != nil {
			moved, _ = event.ParseNumber(n.Text)
		}
		heads = append(heads, m.Head...)
		heads = append(heads, byte(moved), byte(moved>>8), byte(moved>>16), byte(moved>>24), 0, 0, 0, 0)
		names, controls = append(names, m.Name...), append(controls, m.Control...)
		lens, spans, _ = x.spans(lens, spans, m.Vector, int64(moved&(1<<32-1)))
		passed(c, m.FDs)
	}
	c.Bytes(i, heads, 0)
	x.parts(c, i, names, controls)
	if len(lens) > 0 {
		c.Shape(event.PartData.Of(i), lens)
		c.Spans(event.PartData.Of(i), spans...)
	}
}

func (x *importer) parts(c *format.Call, i int, name, control []byte) {
	if name != nil {
		c.Bytes(event.PartName.Of(i), name, 0)
	}
	if control != nil {
		c.Bytes(event.PartControl.Of(i), control, 0)
	}
}

// passed adds the descriptors that a message carries.
func passed(c *format.Call, fds []field) {
	for j := range fds {
		fd, ok := event.ParseNumber(fds[j].Text)
		if !ok || len(c.Objects) >= event.MaxPassed {
			continue
		}
		o, name := object(fds[j].Note)
		o.FD, o.Arg = int32(fd), event.MemoryArg
		c.Objects = append(c.Objects, o)
		c.Socket(name)
	}
}
