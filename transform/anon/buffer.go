// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/trace"
)

// A meaning is how a buffer of an event is mapped.
type meaning uint8

const (
	asContent   meaning = iota
	asIs                // nothing in it identifies
	asStructure         // by its layout
	asAddresses         // of messages: mapped with their heads
	asControl           // messages' control data: likewise
	asPath              // a name, up to a NUL if there is one
	asStrings           // arguments, each with its NUL
	asText              // a string, up to a NUL, of the field that the call says
	asXattrName
	asXattrValue
	asFacts // where a process runs
)

// meaningOf says how buffer b of an event is to be mapped. The field is that of asText.
func meaningOf(ev *event.Event, b *event.Buf) (meaning, Field) {
	switch ev.Kind {
	case event.Call:
	case event.Signalled:
		return asStructure, 0
	case event.Described:
		if b.Kind == event.KindStrings {
			return asStrings, 0
		}
		return asFacts, 0
	default:
		return asText, Arg
	}
	index := int(uint8(b.Arg))
	if index == event.RequestArg {
		return asIs, 0
	}
	spec := ev.Spec()
	part, arg := event.SplitPart(index)
	if arg >= len(spec.Args) {
		return asContent, 0
	}
	a := spec.Argument(arg, &ev.Args)
	if part > event.PartWhole && part <= event.PartTarget {
		return partMeaning(part, a.Layout), 0
	}
	switch b.Kind {
	case event.KindStrings:
		return asStrings, 0
	case event.KindText, event.KindPath:
		return textMeaning(ev, a.Name)
	case event.KindStruct:
		switch a.Layout {
		case event.LayoutMsghdr, event.LayoutMmsghdr, event.LayoutXattrArgs, event.LayoutSigsetRef, event.LayoutFprog:
			return asIs, 0 // pointers and lengths
		}
		return asStructure, 0
	}
	switch op := ev.Op.Like(); op {
	case event.OpGetdents, event.OpGetdents64:
		return asStructure, 0
	case event.OpReadlink, event.OpReadlinkat, event.OpGetcwd, event.OpLookupDcookie:
		return asPath, 0
	case event.OpSethostname, event.OpSetdomainname:
		return asText, Host
	case event.OpKexecFileLoad:
		return asText, Arg
	default:
		if isXattrList(op) {
			return asStructure, 0
		}
		if a.Name == "value" && spec.Class == event.Meta {
			return asXattrValue, 0
		}
	}
	return asContent, 0
}

// partMeaning says what a part of an argument is, that is not the argument's own memory.
func partMeaning(part event.Part, l event.Layout) meaning {
	switch part {
	case event.PartBefore:
		return asIs // numbers, sets of descriptors, durations
	case event.PartName:
		return asAddresses
	case event.PartControl:
		return asControl
	case event.PartTarget:
		switch l {
		case event.LayoutXattrArgs:
			return asXattrValue
		case event.LayoutSigsetRef, event.LayoutFprog:
			return asIs
		}
	}
	return asContent
}

// textMeaning says what a string is that is an argument of a call.
func textMeaning(ev *event.Event, name string) (meaning, Field) {
	switch op := ev.Op.Like(); op {
	case event.OpSymlink, event.OpSymlinkat, event.OpMemfdCreate, event.OpMqOpen, event.OpMqUnlink,
		event.OpQuotactl, event.OpQuotactlFd:
		return asPath, 0
	case event.OpPrctl:
		return asText, Comm
	case event.OpMount:
		switch name {
		case "source":
			return asPath, 0
		case "fstype":
			return asIs, 0
		}
	case event.OpFsconfig:
		if name == "value" {
			return asPath, 0
		}
		return asIs, 0
	case event.OpFsopen, event.OpDeleteModule, event.OpSysfs:
		return asIs, 0
	case event.OpAddKey, event.OpRequestKey:
		if name == "type" {
			return asIs, 0
		}
	default:
		if ev.Spec().Class == event.Meta && name == "name" {
			return asXattrName, 0
		}
	}
	return asText, Arg
}

// buffers maps the memory of an event: structures in place, content by chunk.
func (x *rewriter) buffers(ev *event.Event) error {
	m := &x.m
	m.memory = memory{ev: ev, dir: directory(ev)}
	x.space = x.space[:0]
	xattr := ""
	for i := range ev.Bufs {
		if how, _ := meaningOf(ev, &ev.Bufs[i]); how == asXattrName { // its value depends on it
			xattr = m.attribute(ev.Bufs[i].Inline)
		}
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		how, field := meaningOf(ev, b)
		switch how {
		case asContent:
			if err := x.content(ev, b); err != nil {
				return err
			}
			continue
		case asFacts:
			m.facts(b)
			continue
		}
		data, err := x.load(b)
		if err != nil {
			return err
		}
		_, m.memory.arg = event.SplitPart(int(uint8(b.Arg)))
		m.memory.clock = clockOf(ev, m.memory.arg)
		switch how {
		case asStructure:
			m.structure(ev, b, data)
		case asAddresses:
			x.addresses(ev, data)
		case asControl:
			x.controls(ev, data)
		case asPath:
			m.pathBytes(untilNUL(data))
		case asText:
			m.stringBytes(field, untilNUL(data))
		case asStrings:
			for rest := data; len(rest) > 0; {
				s := untilNUL(rest)
				m.stringBytes(Arg, s)
				rest = rest[min(len(s)+1, len(rest)):]
			}
		case asXattrName:
			m.xattrName(untilNUL(data))
		case asXattrValue:
			m.xattrValue(xattr, data)
		}
		if err := x.store(b, data); err != nil {
			return err
		}
	}
	return nil
}

// attribute returns the name of an extended attribute as the kernel gives it a meaning:
// such names are not mapped.
func (m *mapper) attribute(b []byte) string { return string(untilNUL(b)) }

// directory says what numbers in a listing are: processes, or, as numFields, descriptors;
// else they are names.
func directory(ev *event.Event) Field {
	if len(ev.Files) == 0 || ev.Op.Effect() != event.EffectList {
		return Path
	}
	dir := ev.Files[0].Path
	switch inProc := strings.HasPrefix(dir, "/proc/"); {
	case dir == "/proc", inProc && strings.HasSuffix(dir, "/task"):
		return PID
	case inProc && (strings.HasSuffix(dir, "/fd") || strings.HasSuffix(dir, "/fdinfo")), dir == "/dev/fd":
		return numFields
	}
	return Path
}

// structure maps a structure by its layout.
func (m *mapper) structure(ev *event.Event, b *event.Buf, data []byte) {
	spec := ev.Spec()
	arg := m.memory.arg
	a := event.SignalInfo
	if ev.Kind == event.Call {
		a = spec.Argument(arg, &ev.Args)
	}
	mem := layout.Memory{
		Arch: m.archOf(ev), Layout: a.Layout, Bytes: data, Op: ev.Op, Arg: arg, Args: &ev.Args,
		One: a.Len == event.LenConst, Failed: !ev.OK(), Moved: b.Len,
	}
	switch ev.Op {
	case event.OpGetdents64:
		mem.Layout = event.LayoutDirents64
	case event.OpGetdents:
		mem.Layout = event.LayoutDirents
	}
	if mem.Layout == event.LayoutSockaddr {
		m.sockaddr(data)
		return
	}
	m.decode(&mem)
}

func (m *mapper) archOf(ev *event.Event) event.Arch {
	if int(ev.Host) < len(m.arch) {
		return m.arch[ev.Host]
	}
	return event.AMD64
}

// addresses maps the addresses of messages, which stand one after the other.
func (x *rewriter) addresses(ev *event.Event, data []byte) {
	x.messages(ev, func(head []byte) {
		const name, nameLen, longest = 0, 8, 128
		if n := uint64(binary.LittleEndian.Uint32(head[nameLen:])); binary.LittleEndian.Uint64(head[name:]) != 0 &&
			len(data) > 0 {
			one := data[:min(n, longest, uint64(len(data)))]
			x.m.sockaddr(one)
			data = data[len(one):]
		}
	})
	if len(data) > 0 {
		x.m.opaque(Address, data)
	}
}

// controls maps the control data of messages.
func (x *rewriter) controls(ev *event.Event, data []byte) {
	x.messages(ev, func(head []byte) {
		const controlLen = 40
		n := binary.LittleEndian.Uint64(head[controlLen:])
		one := data[:min(n, uint64(len(data)))]
		mem := layout.Memory{Arch: x.m.archOf(ev), Layout: event.LayoutCmsgs, Bytes: one}
		v, _ := mem.Decode()
		x.m.value(&v)
		data = data[len(one):]
	})
}

// messages calls f with each struct msghdr of a call.
func (x *rewriter) messages(ev *event.Event, f func(head []byte)) {
	const msghdr, mmsghdr = 56, 64
	b, size := ev.BufArg(1), msghdr
	if b == nil {
		return
	}
	if ev.Op.Like() == event.OpSendmmsg || ev.Op.Like() == event.OpRecvmmsg {
		size = mmsghdr
	}
	for heads := b.Inline; len(heads) >= size; heads = heads[size:] {
		f(heads)
	}
}

func untilNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// load returns a copy of the bytes of a buffer that the tape has, zeros in place of
// others.
func (x *rewriter) load(b *event.Buf) ([]byte, error) {
	at := len(x.space)
	if len(b.Refs) == 0 {
		x.space = append(x.space, b.Inline...)
		return x.space[at:len(x.space):len(x.space)], nil
	}
	part := *b
	part.Len = 0 // what the tape has, not what there was
	out, _, err := x.from.ContentZero(&part, x.space)
	if err != nil {
		return nil, fmt.Errorf("memory of a call: %w", err)
	}
	x.space = out
	return out[at:len(out):len(out)], nil
}

// store puts changed bytes where load took them from.
func (x *rewriter) store(b *event.Buf, data []byte) error {
	if len(b.Refs) == 0 {
		if b.Inline != nil {
			b.Inline = data
		}
		return nil
	}
	n := len(b.Inline)
	b.Inline, data = data[:n:n], data[n:]
	if n == 0 {
		b.Inline = nil
	}
	for k := range b.Refs {
		r := &b.Refs[k]
		piece := data[:r.Len]
		data = data[r.Len:]
		if r.Chunk == 0 {
			continue
		}
		id, err := x.to.AddChunk(piece)
		if err != nil {
			return err
		}
		r.Chunk, r.Off = id, 0
	}
	return nil
}

// content maps what a call moved.
func (x *rewriter) content(ev *event.Event, b *event.Buf) error {
	m := &x.m
	switch {
	case !m.fields.Has(Content):
	case m.content == trace.ContentRemoved:
		if kept := b.Kept(); kept > 0 || len(b.Hashes) > 0 {
			x.removed += kept
			b.Inline, b.Refs, b.Hashes, b.Sketch, b.Missing, b.Omitted = nil, nil, nil, nil, 0, true
		}
		return nil
	default:
		b.Sketch = nil // no other one would tell the same
		for i := range b.Hashes {
			if !b.Hashes[i].Missing() {
				m.opaque(Content, b.Hashes[i][:])
			}
		}
	}
	off := int64(0)
	if m.sub != nil {
		off = contentOffset(ev)
	}
	if len(b.Inline) > 0 && m.fields.Has(Content) {
		at := len(x.space)
		x.space = append(x.space, b.Inline...)
		b.Inline = x.space[at:len(x.space):len(x.space)]
		m.bytesAt(b.Inline, off)
	}
	off += int64(len(b.Inline))
	for k := range b.Refs {
		r := &b.Refs[k]
		if r.Chunk != 0 {
			id, err := x.chunk(r.Chunk, off-int64(r.Off))
			if err != nil {
				return fmt.Errorf("content of event %d: %w", ev.Seq, err)
			}
			r.Chunk = id
		}
		off += int64(r.Len)
	}
	return nil
}

// bytesAt maps content that stands at an offset of its file.
func (m *mapper) bytesAt(b []byte, off int64) {
	switch {
	case !m.fields.Has(Content):
	case m.sub != nil:
		m.sub.crypt(b, off, m.back)
	default:
		m.opaque(Content, b)
	}
}

// contentOffset returns the offset in a file that the content of a call has, 0 where there
// is none.
func contentOffset(ev *event.Event) int64 {
	spec := ev.Spec()
	if !spec.NeedsStop {
		return max(ev.Offset, 0)
	}
	file := spec.MovedFrom()
	if arg := file + 1; ev.Args[arg] != 0 && spec.Args[arg].Layout == event.LayoutOffset {
		if b := ev.BufArg(arg); b != nil && len(b.Inline) >= 8 { // as the call left it
			return int64(binary.LittleEndian.Uint64(b.Inline)) - ev.Ret
		}
		return 0
	}
	if f := ev.FileArg(file); f != nil && f.Known {
		return f.Pos - ev.Ret
	}
	return 0
}
