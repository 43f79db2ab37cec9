// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"math"
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/format/stracetext"
)

// maxFrames bounds the frames of a stack.
const maxFrames = 4096

// appendStack writes the line of a stack, the innermost frame first:
//
//	stack 1 "complete" [{module="/lib/libc.so.6", id="5f3c", at=0xfec20, function="fsync", delta=16}, …]
func appendStack(dst []byte, n uint64, s *event.Stack) []byte {
	dst = strconv.AppendUint(append(dst, "stack "...), n, 10)
	dst = stracetext.AppendQuoted(append(dst, ' '), []byte(s.End.String()))
	dst = append(dst, " ["...)
	for i := range s.Frames {
		f := &s.Frames[i]
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendHex(append(dst, "{at="...), f.Offset)
		text := func(key, value string) {
			if value != "" {
				dst = append(append(append(dst, ", "...), key...), '=')
				dst = stracetext.AppendQuoted(dst, []byte(value))
			}
		}
		number := func(key string, value uint64) {
			if value != 0 {
				dst = append(append(append(dst, ", "...), key...), '=')
				dst = strconv.AppendUint(dst, value, 10)
			}
		}
		text("module", f.Module)
		text("id", f.BuildID)
		text("function", f.Function)
		number("delta", f.Delta)
		text("file", f.File)
		number("line", uint64(f.Line))
		if f.Exact {
			number("exact", 1)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]\n"...)
}

// stack reads the line of a stack.
func (c *compiler) stack(p *scanner, _ *times) error {
	n, err := p.number("a stack's number", math.MaxUint64)
	if err != nil {
		return err
	}
	p.space()
	at := p.i
	text, err := p.text("why the stack ends")
	if err != nil {
		return err
	}
	end, ok := event.StackEndByName(text)
	if !ok {
		return p.fail(at, fmt.Sprintf("%q: no such end of a stack", first(text)),
			`it is "complete", or as in docs/stacks.md`)
	}
	v, err := p.value()
	if err != nil {
		return err
	}
	if v.Kind != layout.ToldItems || len(v.Parts) > maxFrames {
		return p.fail(v.at, fmt.Sprintf("a list of at most %d frames was expected", maxFrames), "")
	}
	s := &event.Stack{End: end}
	for i := range v.Parts {
		var f event.Frame
		for j := range v.Parts[i].Parts {
			if !frameField(&f, &v.Parts[i].Parts[j]) {
				return p.fail(v.at, fmt.Sprintf("frame %d: %s is not understood", i+1, v.Parts[i].Parts[j].Name),
					"its fields are at, module, id, function, delta, file, line and exact")
			}
		}
		s.Frames = append(s.Frames, f)
	}
	if c.stacks == nil {
		c.stacks = map[uint64]*event.Stack{}
	}
	c.stacks[n] = s
	return nil
}

// stackOf gives a call the stack of a line before.
func (c *compiler) stackOf(p *scanner, x *call, v *told) error {
	n, err := p.numberOf(v, "a stack's number", math.MaxUint64)
	if err != nil {
		return err
	}
	if x.stack = c.stacks[n]; x.stack == nil {
		return p.fail(v.at, fmt.Sprintf("stack %d is not known", n), "a line "+stackWord+" stands before its calls")
	}
	return nil
}

// frameField takes a field of a frame.
func frameField(f *event.Frame, v *layout.Told) bool {
	texts := map[string]*string{"module": &f.Module, "id": &f.BuildID, "function": &f.Function, "file": &f.File}
	if to := texts[v.Name]; to != nil {
		*to = string(v.Data)
		return v.Kind == layout.ToldText && len(v.Data) <= math.MaxUint16
	}
	n, ok := event.ParseNumber(v.Text)
	switch v.Name {
	case "at":
		f.Offset = n
	case "delta":
		f.Delta = n
	case "line":
		f.Line = int(n)
		ok = ok && n <= math.MaxInt32
	case "exact":
		f.Exact = n == 1
		ok = ok && n == 1
	default:
		return false
	}
	return ok && v.Kind == layout.ToldWord
}
