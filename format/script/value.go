// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/hex"
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/format/straceread"
	"github.com/iotape/iotape/format/stracetext"
)

// nothing stands for an argument that does not matter, or has its default.
const nothing = "_"

// unsaid stands before the value of an argument that the trace does not say: the value is what a replay takes.
const unsaid = '?'

// exactly stands before content of another length than the result says, and parentheses around it.
const exactly = "exactly("

// appendScalar writes the value of an argument that is no memory, in a way that reads
// back as the same; what the kernel takes as 32 bits, as those.
func appendScalar(dst []byte, a *event.Arg, arch event.Arch, v uint64) []byte {
	at := len(dst)
	switch a.Kind {
	case event.KindFD, event.KindDirFD:
		if int32(v) == event.AtFDCWD && a.Kind == event.KindDirFD {
			return append(dst, "AT_FDCWD"...)
		}
		return strconv.AppendInt(dst, int64(int32(v)), 10)
	case event.KindPID, event.KindID, event.KindSignal:
		return strconv.AppendInt(dst, int64(int32(v)), 10)
	case event.KindInt:
		if v>>31 == 1 { // an int below zero
			return strconv.AppendInt(dst, int64(int32(v)), 10)
		}
		return strconv.AppendInt(dst, int64(v), 10)
	case event.KindOff:
		return strconv.AppendInt(dst, int64(v), 10)
	case event.KindSize:
		return strconv.AppendUint(dst, v, 10)
	case event.KindMode:
		return strconv.AppendUint(append(dst, '0'), v&0xffffffff, 8)
	case event.KindFlags, event.KindEnum, event.KindHex:
		if a.Set == nil || a.Set.Open && arch != event.AMD64 {
			break
		}
		if a.Kind == event.KindFlags {
			dst = a.Set.AppendFlags(dst, v)
		} else {
			dst = a.Set.AppendEnum(dst, v)
		}
		if back, ok := a.Set.ParseValue(string(dst[at:])); ok && back == v && plain(dst[at:]) {
			return dst
		}
		dst = dst[:at]
	}
	return appendHex(dst, v)
}

func appendHex(dst []byte, v uint64) []byte {
	if v == 0 {
		return append(dst, '0')
	}
	return strconv.AppendUint(append(dst, "0x"...), v, 16)
}

// plain reports whether a text is one word of the notation.
func plain(b []byte) bool {
	for _, c := range b {
		if c != '_' && c != '|' && c != '-' && (c|32 < 'a' || c|32 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(b) > 0
}

// appendBuf writes memory: what argument i, or the part of it that b is, points to.
func (w *writer) appendBuf(dst []byte, ev *event.Event, a *event.Arg, i int, b *event.Buf) ([]byte, error) {
	if b.Len <= maxStruct && !b.Omitted && b.Missing == 0 {
		switch b.Kind {
		case event.KindStruct:
			data, err := w.tape.Content(b, w.scratch[:0])
			if err != nil {
				return dst, err
			}
			w.scratch = data
			return w.appendStruct(dst, ev, a, i, b, bytes.Clone(data)), nil
		case event.KindStrings:
			if b.Inline != nil && int64(len(b.Inline)) == b.Len {
				return appendStrings(dst, b.Inline), nil
			}
		case event.KindText:
			return stracetext.AppendQuoted(dst, bytes.TrimRight(b.Inline, "\x00")), nil
		}
	}
	if b.Kind != event.KindVec {
		return w.appendContent(dst, b)
	}
	dst, err := w.appendContent(append(dst, "{data="...), b)
	dst = append(dst, ", lens=["...)
	for j, n := range b.Parts {
		if j > 0 {
			dst = append(dst, ", "...)
		}
		dst = strconv.AppendInt(dst, n, 10)
	}
	return append(dst, "]}"...), err
}

// maxStruct is the longest memory that is written as a structure.
const maxStruct = 64 << 10

// appendStruct writes a structure with its fields if that reads back as the same bytes,
// else as these bytes.
func (w *writer) appendStruct(dst []byte, ev *event.Event, a *event.Arg, i int, b *event.Buf, data []byte) []byte {
	m, ok := memory(&ev.Args, ev.Op, a, i, int(b.Arg), w.arch)
	if !ok {
		return stracetext.AppendQuoted(dst, data)
	}
	m.Bytes, m.Moved, m.Failed = data, b.Len, !ev.OK()
	if ev.OK() {
		m.Result = ev.Ret
	}
	if v, ok := m.Decode(); ok {
		at := len(dst)
		dst = stracetext.AppendValue(dst, w.arch, &v)
		t, n, err := straceread.ParseValue(string(dst[at:]))
		if err == nil && n == len(dst)-at && isStructure(&t, a.Kind) {
			size := structureSize(a, &ev.Args, w.arch, func(i int) (layout.Told, bool) { return w.toldArgument(ev, i) })
			back, lost, ok := m.Encode(&t, size)
			if ok && lost == 0 && bytes.Equal(back, data) && len(lacking(m, back, &t)) == 0 {
				return dst
			}
		}
		dst = dst[:at]
	}
	return stracetext.AppendQuoted(dst, data)
}

// toldArgument returns what the line says of another argument of a call.
func (w *writer) toldArgument(ev *event.Event, i int) (t layout.Told, ok bool) {
	if i >= len(ev.Spec().Args) {
		return t, false
	}
	text, err := w.appendArg(nil, ev, ev.Spec(), i)
	if err == nil {
		t, _, err = straceread.ParseValue(string(text))
	}
	return t, err == nil
}

// isStructure reports whether what a text tells of memory is a structure, and not content.
func isStructure(v *layout.Told, kind event.Kind) bool {
	return v.Kind == layout.ToldFields || kind == event.KindStruct && v.Kind == layout.ToldItems && !isContent(v)
}

// memory describes a structure for package layout; ok is false for those that are parts
// of others.
func memory(args *[event.MaxArgs]uint64, op event.Op, a *event.Arg, i, index int, arch event.Arch) (m layout.Memory,
	ok bool) {
	if part, _ := event.SplitPart(index); part != event.PartWhole || index == event.RequestArg {
		return m, false
	}
	m = layout.Memory{Arch: arch, Layout: a.Layout, Op: op, Arg: i, Args: args, One: a.Len == event.LenConst}
	switch op {
	case event.OpGetdents64:
		m.Layout = event.LayoutDirents64
	case event.OpGetdents:
		m.Layout = event.LayoutDirents
	}
	return m, true
}

// appendStrings writes a vector of strings with NULs between them.
func appendStrings(dst, data []byte) []byte {
	dst = append(dst, '[')
	for i, s := range bytes.Split(data, []byte{0}) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = stracetext.AppendQuoted(dst, s)
	}
	return append(dst, ']')
}

// appendContent writes the bytes of a buffer: as a string if there are few, else as
// places in the content file, and what is missing as that.
func (w *writer) appendContent(dst []byte, b *event.Buf) ([]byte, error) {
	if len(b.Hashes) > 0 {
		dst = append(dst, "hashes("...)
		dst = strconv.AppendInt(dst, b.Len, 10)
		for i := range b.Hashes {
			dst = append(dst, ", "...)
			dst = hex.AppendEncode(dst, b.Hashes[i][:])
		}
		if len(b.Sketch) > 0 {
			dst = hex.AppendEncode(append(dst, ", "+sketchPrefix...), b.Sketch)
		}
		return append(dst, ')'), nil
	}
	if b.Len <= maxInline && b.Missing == 0 && !b.Omitted {
		data, err := w.tape.Content(b, w.scratch[:0])
		w.scratch = data
		return stracetext.AppendQuoted(dst, data), err
	}
	var s spans
	for _, r := range b.Refs {
		if r.Chunk == 0 {
			s.add(span{kind: missingSpan, n: int64(r.Len)})
			continue
		}
		at, err := w.content.chunk(w.tape, r.Chunk)
		if err != nil {
			return dst, err
		}
		s.add(span{at: at + int64(r.Off), n: int64(r.Len)})
	}
	if len(b.Inline) > 0 {
		at, err := w.content.add(b.Inline)
		if err != nil {
			return dst, err
		}
		s.add(span{at: at, n: int64(len(b.Inline))})
	}
	if rest := b.Len - s.len(); rest > 0 || b.Len == 0 {
		kind := missingSpan
		if b.Omitted {
			kind = omittedSpan
		}
		s.add(span{kind: kind, n: rest})
	}
	return s.append(dst), nil
}

type spanKind uint8

const (
	contentSpan spanKind = iota // bytes of the content file
	missingSpan                 // bytes that could not be recorded
	omittedSpan                 // bytes that were not wanted; only at the end
)

var spanWords = [...]string{missingSpan: "missing", omittedSpan: "omitted"}

// span is one part of a buffer's bytes.
type span struct {
	kind  spanKind
	at, n int64
}

type spans []span

// add appends a span, or makes the last one longer.
func (s *spans) add(x span) {
	if k := len(*s) - 1; k >= 0 && (*s)[k].kind == x.kind && (x.kind != contentSpan || (*s)[k].at+(*s)[k].n == x.at) {
		(*s)[k].n += x.n
		return
	}
	*s = append(*s, x)
}

func (s spans) len() (n int64) {
	for i := range s {
		n += s[i].n
	}
	return n
}

func (s spans) append(dst []byte) []byte {
	if len(s) != 1 {
		dst = append(dst, '[')
	}
	for i, x := range s {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if x.kind != contentSpan {
			dst = append(append(dst, spanWords[x.kind]...), '(')
			dst = append(strconv.AppendInt(dst, x.n, 10), ')')
			continue
		}
		dst = append(strconv.AppendInt(append(dst, '@'), x.at, 10), '+')
		dst = strconv.AppendInt(dst, x.n, 10)
	}
	if len(s) != 1 {
		dst = append(dst, ']')
	}
	return dst
}
