// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"

	"github.com/iotape/iotape/event"
)

// A record of type RecStack has two pieces. That of argument 0 is the frames, 16 bytes each: u64 Offset,
// u32 the number of the module from 1 (0: none), u32 flags. That of argument 1 is the modules: u16 bytes of the
// build-id, u16 bytes of the path, both of them. A stream that is made of a tape has a third piece, of argument 2,
// the names of each frame: u64 Delta, u32 Line, u16 bytes of Function, u16 bytes of File, both of them.
const (
	stackFrameBytes = 16
	stackExact      = 1 << 0
	stackFramesArg  = 0
	stackModulesArg = 1
	stackNamesArg   = 2
	stackNameBytes  = 16
	maxModuleText   = 1<<16 - 1
)

// StackRecord returns the record of the stack of a call that begins at enter. It has no names of
// functions, which are looked up when the stream is sealed.
func StackRecord(pid, tid uint32, enter uint64, s *event.Stack) Record {
	le := binary.LittleEndian
	var frames, modules []byte
	type module struct{ path, id string }
	numbers := map[module]uint32{}
	for i := range s.Frames {
		f := &s.Frames[i]
		n, flags := uint32(0), uint32(0)
		if f.Exact {
			flags |= stackExact
		}
		if f.Module != "" {
			m := module{f.Module[:min(len(f.Module), maxModuleText)], f.BuildID[:min(len(f.BuildID), maxModuleText)]}
			if n = numbers[m]; n == 0 {
				n = uint32(len(numbers) + 1)
				numbers[m] = n
				modules = le.AppendUint16(modules, uint16(len(m.id)))
				modules = le.AppendUint16(modules, uint16(len(m.path)))
				modules = append(append(modules, m.id...), m.path...)
			}
		}
		frames = le.AppendUint64(frames, f.Offset)
		frames = le.AppendUint32(frames, n)
		frames = le.AppendUint32(frames, flags)
	}
	return Record{Type: RecStack, PID: pid, TID: tid, Flags: uint32(s.End), Enter: enter, Pieces: []Piece{
		{Arg: stackFramesArg, Len: uint32(len(frames)), Data: frames},
		{Arg: stackModulesArg, Len: uint32(len(modules)), Data: modules},
	}}
}

// NamedStackRecord is StackRecord with the names of functions as they are in s, known or not.
func NamedStackRecord(pid, tid uint32, enter uint64, s *event.Stack) Record {
	le := binary.LittleEndian
	r := StackRecord(pid, tid, enter, s)
	var names []byte
	for i := range s.Frames {
		f := &s.Frames[i]
		function, file := f.Function[:min(len(f.Function), maxModuleText)], f.File[:min(len(f.File), maxModuleText)]
		names = le.AppendUint64(names, f.Delta)
		names = le.AppendUint32(names, uint32(f.Line))
		names = le.AppendUint16(names, uint16(len(function)))
		names = le.AppendUint16(names, uint16(len(file)))
		names = append(append(names, function...), file...)
	}
	r.Pieces = append(r.Pieces, Piece{Arg: stackNamesArg, Len: uint32(len(names)), Data: names})
	return r
}

// Stack returns the stack of a record of type RecStack, and whether its functions have their names.
func (r *Record) Stack() (s *event.Stack, named bool, err error) {
	s, err = r.frames()
	if err != nil {
		return nil, false, err
	}
	for i := range r.Pieces {
		if r.Pieces[i].Arg == stackNamesArg {
			if err := nameFrames(s, r.Pieces[i].Data); err != nil {
				return nil, false, err
			}
			return s, true, nil
		}
	}
	return s, false, nil
}

// nameFrames takes the names of the frames.
func nameFrames(s *event.Stack, names []byte) error {
	le := binary.LittleEndian
	for i := range s.Frames {
		if len(names) < stackNameBytes {
			return fmt.Errorf("stack whose names end early: %w", ErrCorrupt)
		}
		f := &s.Frames[i]
		f.Delta, f.Line = le.Uint64(names), int(le.Uint32(names[8:]))
		function, file := int(le.Uint16(names[12:])), int(le.Uint16(names[14:]))
		if names = names[stackNameBytes:]; function+file > len(names) {
			return fmt.Errorf("stack whose names end early: %w", ErrCorrupt)
		}
		f.Function, f.File = string(names[:function]), string(names[function:function+file])
		names = names[function+file:]
	}
	return nil
}

// frames returns the stack without names.
func (r *Record) frames() (*event.Stack, error) {
	var frames, modules []byte
	for i := range r.Pieces {
		switch p := &r.Pieces[i]; p.Arg {
		case stackFramesArg:
			frames = p.Data
		case stackModulesArg:
			modules = p.Data
		}
	}
	le := binary.LittleEndian
	type module struct{ path, id string }
	var list []module
	for len(modules) > 0 {
		if len(modules) < 4 {
			return nil, fmt.Errorf("stack whose modules end early: %w", ErrCorrupt)
		}
		id, path := int(le.Uint16(modules)), int(le.Uint16(modules[2:]))
		if modules = modules[4:]; id+path > len(modules) {
			return nil, fmt.Errorf("stack whose modules end early: %w", ErrCorrupt)
		}
		list = append(list, module{string(modules[id : id+path]), string(modules[:id])})
		modules = modules[id+path:]
	}
	if len(frames)%stackFrameBytes != 0 || len(frames) > maxStackDepth*stackFrameBytes {
		return nil, fmt.Errorf("stack of %d bytes: %w", len(frames), ErrCorrupt)
	}
	s := &event.Stack{End: event.ParseStackEnd(uint64(r.Flags))}
	for ; len(frames) > 0; frames = frames[stackFrameBytes:] {
		n := le.Uint32(frames[8:])
		if n > uint32(len(list)) {
			return nil, fmt.Errorf("frame of module %d of %d: %w", n, len(list), ErrCorrupt)
		}
		f := event.Frame{Offset: le.Uint64(frames), Exact: le.Uint32(frames[12:])&stackExact != 0}
		if n > 0 {
			f.Module, f.BuildID = list[n-1].path, list[n-1].id
		}
		s.Frames = append(s.Frames, f)
	}
	return s, nil
}
