// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/iotape/iotape/event"
)

// Limits of the stacks of a tape. Events beyond them have none.
const (
	maxStacks     = 1 << 20
	maxFrames     = 1 << 22 // distinct ones
	maxStackDepth = 4096
	maxStackItems = 1 << 25 // frames of all stacks

	maxStacksBytes = 1 << 30
	stacksFormat   = "iotape.stacks"
	stacksVersion  = 1
)

// stacksFile is the file StacksName: the distinct stacks of a tape. Numbers of modules, frames and stacks
// count from 1.
type stacksFile struct {
	Format  string        `json:"format"`
	Version int           `json:"version"`
	Modules []moduleEntry `json:"modules"`
	Frames  []frameEntry  `json:"frames"`
	Stacks  []stackEntry  `json:"stacks"`
}

type moduleEntry struct {
	Path    string `json:"path"`
	BuildID string `json:"build_id,omitempty"`
}

type frameEntry struct {
	Module   uint32 `json:"module,omitempty"` // 0: none
	Offset   uint64 `json:"offset"`
	Exact    bool   `json:"exact,omitempty"`
	Function string `json:"function,omitempty"`
	Delta    uint64 `json:"delta,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

type stackEntry struct {
	Frames []uint32 `json:"frames"`
	End    uint8    `json:"end,omitempty"`
}

// stackTable gives numbers to the stacks of a tape that is written.
type stackTable struct {
	file    stacksFile
	modules map[moduleEntry]uint32
	frames  map[frameEntry]uint32
	stacks  map[string]uint32
	known   map[*event.Stack]uint32 // those that came lately
	items   int
}

// mostKnown bounds the stacks that are known by where they are.
const mostKnown = 1 << 16

// number returns the number of a stack, 0 if it is nil or there is no room for it.
func (t *stackTable) number(s *event.Stack) uint32 {
	if s == nil {
		return 0
	}
	if n, ok := t.known[s]; ok {
		return n
	}
	if t.known == nil {
		t.modules, t.frames = map[moduleEntry]uint32{}, map[frameEntry]uint32{}
		t.stacks = map[string]uint32{}
	}
	if t.known == nil || len(t.known) >= mostKnown {
		t.known = map[*event.Stack]uint32{}
	}
	n := t.add(s)
	t.known[s] = n
	return n
}

func (t *stackTable) add(s *event.Stack) uint32 {
	if len(s.Frames) > maxStackDepth || len(t.file.Stacks) >= maxStacks || t.items+len(s.Frames) > maxStackItems ||
		len(t.file.Frames)+len(s.Frames) > maxFrames {
		return 0
	}
	e := stackEntry{Frames: make([]uint32, len(s.Frames)), End: uint8(s.End)}
	key := []byte{e.End}
	for i := range s.Frames {
		e.Frames[i] = t.frame(&s.Frames[i])
		key = binary.LittleEndian.AppendUint32(key, e.Frames[i])
	}
	if n, ok := t.stacks[string(key)]; ok {
		return n
	}
	t.file.Stacks = append(t.file.Stacks, e)
	t.items += len(e.Frames)
	n := uint32(len(t.file.Stacks))
	t.stacks[string(key)] = n
	return n
}

func (t *stackTable) frame(f *event.Frame) uint32 {
	e := frameEntry{Offset: f.Offset, Exact: f.Exact, Function: f.Function, Delta: f.Delta, File: f.File, Line: f.Line}
	if m := (moduleEntry{f.Module, f.BuildID}); f.Module != "" {
		e.Module = t.modules[m]
		if e.Module == 0 {
			t.file.Modules = append(t.file.Modules, m)
			e.Module = uint32(len(t.file.Modules))
			t.modules[m] = e.Module
		}
	}
	n := t.frames[e]
	if n == 0 {
		t.file.Frames = append(t.file.Frames, e)
		n = uint32(len(t.file.Frames))
		t.frames[e] = n
	}
	return n
}

// writeStacks writes the file of the stacks, if there are any.
func (w *TapeWriter) writeStacks() error {
	f := &w.stacks.file
	if len(f.Stacks) == 0 {
		return nil
	}
	f.Format, f.Version = stacksFormat, stacksVersion
	out, err := w.create(StacksName)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return errors.Join(enc.Encode(f), out.Close())
}

// tapeStacks are the stacks of an open tape, read when they are asked for first.
type tapeStacks struct {
	once sync.Once
	list []event.Stack
	err  error
}

// Stacks returns the distinct stacks of the tape. They must not be changed. A tape without stacks has none.
func (t *Tape) Stacks() ([]event.Stack, error) {
	t.stacks.once.Do(func() {
		if _, ok := t.manifest.Files[StacksName]; !ok && !t.salvage {
			return
		}
		b, err := readLimited(t.dir, StacksName, maxStacksBytes)
		if errors.Is(err, fs.ErrNotExist) && t.salvage {
			return
		}
		if err == nil {
			t.stacks.list, err = parseStacks(b)
		}
		if err != nil {
			t.stacks.err = fmt.Errorf("%s: %w", StacksName, err)
		}
	})
	return t.stacks.list, t.stacks.err
}

// stack returns the stack that has a number in the events, nil if there is none.
func (t *Tape) stack(n uint64) *event.Stack {
	list, _ := t.Stacks() // a check of the tape tells of damage
	if n == 0 || n > uint64(len(list)) {
		return nil
	}
	return &list[n-1]
}

// parseStacks reads the file of the stacks.
func parseStacks(b []byte) ([]event.Stack, error) {
	var f stacksFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	switch {
	case f.Format != stacksFormat:
		return nil, fmt.Errorf("format %q: %w", f.Format, ErrCorrupt)
	case f.Version > stacksVersion:
		return nil, fmt.Errorf("version %d, this program reads up to %d: %w", f.Version, stacksVersion, ErrNewer)
	case len(f.Stacks) > maxStacks || len(f.Frames) > maxFrames:
		return nil, fmt.Errorf("%d stacks of %d frames, more than the limits: %w", len(f.Stacks), len(f.Frames),
			ErrCorrupt)
	}
	frames := make([]event.Frame, len(f.Frames))
	for i := range f.Frames {
		e := &f.Frames[i]
		frames[i] = event.Frame{Offset: e.Offset, Exact: e.Exact, Function: e.Function, Delta: e.Delta, File: e.File,
			Line: e.Line}
		if e.Module > uint32(len(f.Modules)) {
			return nil, fmt.Errorf("frame of module %d of %d: %w", e.Module, len(f.Modules), ErrCorrupt)
		}
		if e.Module > 0 {
			m := &f.Modules[e.Module-1]
			frames[i].Module, frames[i].BuildID = m.Path, m.BuildID
		}
	}
	list, items := make([]event.Stack, len(f.Stacks)), 0
	for i := range f.Stacks {
		e := &f.Stacks[i]
		if items += len(e.Frames); len(e.Frames) > maxStackDepth || items > maxStackItems {
			return nil, fmt.Errorf("stack of %d frames: %w", len(e.Frames), ErrCorrupt)
		}
		list[i] = event.Stack{Frames: make([]event.Frame, len(e.Frames)), End: event.ParseStackEnd(uint64(e.End))}
		for k, n := range e.Frames {
			if n == 0 || n > uint32(len(frames)) {
				return nil, fmt.Errorf("frame %d of %d: %w", n, len(frames), ErrCorrupt)
			}
			list[i].Frames[k] = frames[n-1]
		}
	}
	return list, nil
}
