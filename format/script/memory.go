// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/trace"
)

// address is what stands for that of memory whose content is known.
const address = 1

// maxPiece is how many bytes of memory one piece of a record has.
const maxPiece = trace.MaxPieceBytes / 2

// bytesSpan is a span as a line has it: bytes may stand in the line itself.
type bytesSpan struct {
	span
	data []byte // of the line
}

// spanOf reads one part of content.
func (c *compiler) spanOf(p *scanner, v *told) (s bytesSpan, err error) {
	if v.Kind == layout.ToldText {
		if v.Cut {
			return s, p.fail(v.at, "the string is cut (...)", "write all of it, or @OFFSET+LENGTH of the content file")
		}
		return bytesSpan{span{n: int64(len(v.Data))}, v.Data}, nil
	}
	const hint = `it is "…", @OFFSET+LENGTH, missing(BYTES) or omitted(BYTES)`
	if place, ok := strings.CutPrefix(v.Text, "@"); ok && v.Kind == layout.ToldWord {
		a, b, ok := strings.Cut(place, "+")
		at, ok1 := event.ParseNumber(a)
		n, ok2 := event.ParseNumber(b)
		if !ok || !ok1 || !ok2 || at > math.MaxInt64 || n > math.MaxInt64 {
			return s, p.fail(v.at, "a place in the content file was expected", hint)
		}
		if int64(at) > c.content.size || int64(n) > c.content.size-int64(at) {
			return s, p.fail(v.at, fmt.Sprintf("the file content has %d bytes, not %d", c.content.size, at+n), "")
		}
		return bytesSpan{span: span{at: int64(at), n: int64(n)}}, nil
	}
	if v.Kind == layout.ToldWord && len(v.Parts) == 1 {
		word, _, _ := strings.Cut(v.Text, "(")
		n, ok := event.ParseNumber(v.Parts[0].Text)
		for kind, name := range spanWords {
			if ok && name != "" && name == word && n <= trace.MaxContentBytes {
				return bytesSpan{span: span{kind: spanKind(kind), n: int64(n)}}, nil
			}
		}
	}
	return s, p.fail(v.at, "content was expected", hint)
}

// bytesOf reads content: one part, or a list of them.
func (c *compiler) bytesOf(p *scanner, v *told) ([]bytesSpan, error) {
	if v.Kind != layout.ToldItems {
		s, err := c.spanOf(p, v)
		return []bytesSpan{s}, err
	}
	var list []bytesSpan
	total := int64(0)
	for i := range v.Parts {
		s, err := c.spanOf(p, &told{v.Parts[i], v.at})
		if err != nil {
			return nil, err
		}
		if total += s.n; total > trace.MaxContentBytes {
			return nil, p.fail(v.at, "more bytes than a call can move", "")
		}
		list = append(list, s)
	}
	return list, nil
}

func length(list []bytesSpan) (n int64) {
	for i := range list {
		n += list[i].n
	}
	return n
}

// cut shortens content to n bytes.
func cut(list []bytesSpan, n int64) []bytesSpan {
	for i := range list {
		if list[i].n >= n {
			list[i].n = n
			if list[i].data != nil {
				list[i].data = list[i].data[:n]
			}
			return list[:i+1]
		}
		n -= list[i].n
	}
	return list
}

// addBytes adds content to a record.
func (c *compiler) addBytes(p *scanner, r *trace.Record, index int, v *told, list []bytesSpan) error {
	at := int64(0)
	add := func(piece trace.Piece, n int64) {
		piece.Arg, piece.Off, piece.Len = uint8(index), uint64(at), uint32(n)
		r.Pieces = append(r.Pieces, piece)
		at += n
	}
	for _, s := range list {
		for done := int64(0); done < s.n; {
			n := min(s.n-done, maxPiece)
			switch {
			case s.kind == missingSpan:
				add(trace.Piece{Flags: trace.PieceMissing}, n)
			case s.kind == omittedSpan:
				add(trace.Piece{Flags: trace.PieceOmitted}, n)
			case s.data != nil:
				add(trace.Piece{Data: s.data[done:][:n]}, n)
			default:
				b, err := c.content.get(nil, s.at+done, n)
				if err != nil {
					return p.fail(v.at, err.Error(), "")
				}
				add(trace.Piece{Data: b}, n)
			}
			done += n
		}
	}
	switch {
	case at > 0:
	case len(list) > 0 && list[0].kind == missingSpan:
		add(trace.Piece{Flags: trace.PieceMissing}, 0)
	case len(list) > 0 && list[0].kind == omittedSpan:
		add(trace.Piece{Flags: trace.PieceOmitted}, 0)
	default:
		add(trace.Piece{}, 0)
	}
	return nil
}

// addMemory adds what an argument, or a part of one, points to.
func (c *compiler) addMemory(p *scanner, call *call, a *event.Arg, i, index int, kind event.Kind, v *told) error {
	r := &call.record
	add := func(b []byte) {
		r.Pieces = append(r.Pieces, trace.Piece{Arg: uint8(index), Len: uint32(len(b)), Data: b})
	}
	switch {
	case strings.HasPrefix(v.Text, "hashes("):
		return c.addHashes(p, r, index, v)
	case kind == event.KindPath || kind == event.KindText:
		if v.Kind != layout.ToldText {
			return p.fail(v.at, a.Name+": a string was expected", "it stands in quotes")
		}
		if len(v.Data) > 1<<16 {
			return p.fail(v.at, a.Name+": the string is too long", "")
		}
		add(v.Data)
		return nil
	case kind == event.KindStrings && v.Kind == layout.ToldItems:
		var b []byte
		for j := range v.Parts {
			if v.Parts[j].Kind != layout.ToldText {
				return p.fail(v.at, fmt.Sprintf("%s: string %d is none", a.Name, j+1), "")
			}
			if j > 0 {
				b = append(b, 0)
			}
			b = append(b, v.Parts[j].Data...)
		}
		list := []bytesSpan{{span{n: int64(len(b))}, b}}
		return c.addBytes(p, r, index, v, list)
	case kind == event.KindVec:
		return c.addVector(p, r, a, index, v)
	case isStructure(&v.Told, kind):
		b, err := c.structure(p, call, a, i, index, v)
		if err != nil {
			return err
		}
		add(b)
		return nil
	}
	return c.addContent(p, call, a, i, index, v)
}

// addContent adds bytes that an argument points to, as many as the call's result says.
func (c *compiler) addContent(p *scanner, call *call, a *event.Arg, i, index int, v *told) error {
	exact := v.Kind == layout.ToldWord && strings.HasPrefix(v.Text, exactly) && len(v.Parts) == 1
	if exact {
		v = &told{v.Parts[0], v.at}
	}
	list, err := c.bytesOf(p, v)
	if err == nil && index == i && !exact {
		list, err = call.fit(p, a, i, v, list)
	}
	if err != nil {
		return err
	}
	return c.addBytes(p, &call.record, index, v, list)
}

// isContent reports whether a list is of content, and not of structures.
func isContent(v *layout.Told) bool {
	if len(v.Parts) == 0 || v.Parts[0].Kind != layout.ToldWord {
		return false
	}
	word := v.Parts[0].Text
	return strings.HasPrefix(word, "@") || strings.HasPrefix(word, "missing(") || strings.HasPrefix(word, "omitted(")
}

// structure returns the bytes of a structure that is told with its fields.
func (c *compiler) structure(p *scanner, call *call, a *event.Arg, i, index int, v *told) ([]byte, error) {
	m, ok := memory(&call.record.Args, call.op, a, i, index, c.arch)
	if !ok {
		return nil, p.fail(v.at, "bytes were expected", `write them as a string: "\x01…"`)
	}
	const maxErrno = 4095
	m.Result, m.Failed = call.record.Ret, call.record.Ret < 0 && call.record.Ret >= -maxErrno || call.interrupted
	if m.Failed {
		m.Result = 0
	}
	size := structureSize(a, &call.record.Args, c.arch, func(i int) (layout.Told, bool) {
		if i >= len(call.args) {
			return layout.Told{}, false
		}
		return call.args[i].Told, true
	})
	b, lost, ok := m.Encode(&v.Told, size)
	switch {
	case !ok:
		return nil, p.fail(v.at, a.Name+": the structure is not understood",
			`its bytes can be written as a string: "\x01…"`)
	case lost > 0:
		return nil, p.fail(v.at, fmt.Sprintf("%s: %d fields are missing or not understood", a.Name, lost),
			"write all of them, or _ for an argument that is not compared")
	}
	if lacks := lacking(m, b, &v.Told); a.Dir == event.Out && len(lacks) > 0 {
		return nil, p.fail(v.at, fmt.Sprintf("%s: the fields %s are missing", a.Name, strings.Join(lacks, ", ")),
			"write all of them, or _ for an argument that is not compared")
	}
	return b, nil
}

// lacking returns the fields of a structure that a text does not tell.
func lacking(m layout.Memory, b []byte, v *layout.Told) (list []string) {
	m.Bytes = b
	s, ok := m.Decode()
	if !ok || s.Kind != layout.Struct || v.Kind != layout.ToldFields {
		return nil
	}
	has := map[string]bool{}
	for i := range v.Parts {
		has[v.Parts[i].Field()] = true
	}
	for i := range s.Len() {
		if f := s.At(i); f.Name != "" && !has[f.Name] {
			list = append(list, f.Name)
		}
	}
	return list
}

// structureSize returns how many bytes a structure has that a text tells. argument returns what the text says of
// another argument.
func structureSize(a *event.Arg, args *[event.MaxArgs]uint64, arch event.Arch,
	argument func(i int) (layout.Told, bool),
) int64 {
	size := int64(a.Bytes(arch))
	if int(a.LenArg) >= len(args) {
		return size
	}
	switch a.Len {
	case event.LenArg, event.LenRet:
		return int64(min(args[a.LenArg], 1<<20))
	case event.LenBits:
		return int64((min(args[a.LenArg], 1<<20) + 63) / 64 * 8)
	case event.LenPtr:
		t, ok := argument(int(a.LenArg))
		if !ok || t.Kind != layout.ToldItems || len(t.Parts) != 1 {
			return size
		}
		if n, ok := event.ParseNumber(t.Parts[0].Text); ok && n <= 1<<16 {
			return min(size, int64(n))
		}
	}
	return size
}

func (c *compiler) addVector(p *scanner, r *trace.Record, a *event.Arg, index int, v *told) error {
	var data, lens *layout.Told
	for j := range v.Parts {
		switch v.Parts[j].Name {
		case "data":
			data = &v.Parts[j]
		case "lens":
			lens = &v.Parts[j]
		}
	}
	if v.Kind != layout.ToldFields || data == nil || lens == nil || lens.Kind != layout.ToldItems {
		return p.fail(v.at, a.Name+": a vector was expected", "it is {data=CONTENT, lens=[BYTES, …]}")
	}
	if len(lens.Parts) > 0 {
		b := make([]byte, 0, 16*len(lens.Parts))
		for j := range lens.Parts {
			n, ok := event.ParseNumber(lens.Parts[j].Text)
			if !ok {
				return p.fail(v.at, fmt.Sprintf("%s: length %d is no number", a.Name, j+1), "")
			}
			b = binary.LittleEndian.AppendUint64(b, address)
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		r.Pieces = append(r.Pieces, trace.Piece{Arg: uint8(index), Flags: trace.PieceShape, Len: uint32(len(b)),
			Data: b})
	}
	if strings.HasPrefix(data.Text, "hashes(") {
		return c.addHashes(p, r, index, &told{*data, v.at})
	}
	list, err := c.bytesOf(p, &told{*data, v.at})
	if err != nil {
		return err
	}
	return c.addBytes(p, r, index, v, list)
}

// sketchPrefix begins the last part of hashes: what stands in Buf.Sketch.
const sketchPrefix = "sketch:"

// addHashes adds the hashes of content that is not there.
func (c *compiler) addHashes(p *scanner, r *trace.Record, index int, v *told) error {
	const hint = "it is hashes(BYTES, 64 hexadecimal digits for each 64 KiB, …, sketch:HEX)"
	if len(v.Parts) < 1 {
		return p.fail(v.at, "hashes were expected", hint)
	}
	parts := v.Parts[1:]
	var sketch []byte
	if n := len(parts); n > 0 {
		if text, ok := strings.CutPrefix(parts[n-1].Text, sketchPrefix); ok {
			b, err := hex.DecodeString(text)
			if err != nil || len(b) == 0 {
				return p.fail(v.at, "the sketch is not understood", hint)
			}
			sketch, parts = b, parts[:n-1]
		}
	}
	total, ok := event.ParseNumber(v.Parts[0].Text)
	if !ok || total > trace.MaxContentBytes || (int64(total)+event.HashBytes-1)/event.HashBytes != int64(len(parts)) {
		return p.fail(v.at, fmt.Sprintf("%d hashes of %s bytes", len(parts), v.Parts[0].Text), hint)
	}
	left := int64(total)
	for j := range parts {
		b, err := hex.DecodeString(parts[j].Text)
		if err != nil || len(b) != len(event.Digest{}) {
			return p.fail(v.at, fmt.Sprintf("hash %d is not understood", j+1), hint)
		}
		d := event.Digest(b)
		piece := trace.Piece{Arg: uint8(index), Flags: trace.PieceHash, Off: uint64(j * event.HashBytes),
			Len: uint32(min(left, event.HashBytes)), Data: b}
		if d.Missing() {
			piece.Flags |= trace.PieceMissing
		}
		r.Pieces = append(r.Pieces, piece)
		left -= int64(piece.Len)
	}
	if sketch != nil {
		r.Pieces = append(r.Pieces, trace.Piece{Arg: uint8(index), Flags: trace.PieceShape | trace.PieceSketch,
			Len: uint32(len(sketch)), Data: sketch})
	}
	return nil
}
