// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"strconv"

	"github.com/iotape/iotape/event"
)

// appendStack writes a stack as strace -k does, a frame a line. Of functions whose lines are known it
// writes these, too. A stack that does not reach its thread's beginning says why.
func (p *Printer) appendStack(dst []byte, s *event.Stack) []byte {
	for i := range s.Frames {
		dst = appendFrame(append(dst, " > "...), &s.Frames[i])
		dst = append(dst, '\n')
	}
	if s.End != event.StackComplete {
		dst = append(dst, " > ... ("...)
		dst = append(append(dst, s.End.String()...), ")\n"...)
	}
	return dst
}

// appendFrame writes " /lib/libc.so.6(fsync+0x17) [0x10a3c7] file.c:12".
func appendFrame(dst []byte, f *event.Frame) []byte {
	if f.Module != "" {
		dst = appendName(dst, f.Module)
		dst = append(dst, '(')
		if f.Function != "" {
			dst = appendName(dst, f.Function)
			dst = append(dst, "+0x"...)
			dst = strconv.AppendUint(dst, f.Delta, 16)
		}
		dst = append(dst, ") "...)
	}
	dst = append(dst, "[0x"...)
	dst = strconv.AppendUint(dst, f.Offset, 16)
	dst = append(dst, ']')
	if f.File != "" {
		dst = appendName(append(dst, ' '), f.File)
		dst = append(dst, ':')
		dst = strconv.AppendInt(dst, int64(f.Line), 10)
	}
	return dst
}

// jsonStack adds the field stack, an array of frames, and stack_end, if the frames are not all.
func jsonStack(dst []byte, s *event.Stack) []byte {
	dst = append(key(dst, "stack"), '[')
	for i := range s.Frames {
		f := &s.Frames[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		if f.Module != "" {
			dst = putText(dst, "module", f.Module)
		}
		if f.BuildID != "" {
			dst = putText(dst, "build_id", f.BuildID)
		}
		name := "offset"
		if f.Module == "" {
			name = "address"
		}
		dst = putUint(dst, name, f.Offset)
		if f.Exact {
			dst = putTrue(dst, "signal")
		}
		if f.Function != "" {
			dst = putText(dst, "function", f.Function)
			dst = putUint(dst, "delta", f.Delta)
		}
		if f.File != "" {
			dst = putText(dst, "file", f.File)
			dst = putInt(dst, "line", int64(f.Line))
		}
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	if s.End != event.StackComplete {
		dst = putWord(dst, "stack_end", s.End.String())
	}
	return dst
}
