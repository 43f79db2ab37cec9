// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// The state afterwards has the content of what the events do not tell all of.
func TestFinalContent(t *testing.T) {
	const appends, reads = syscall.O_WRONLY | syscall.O_APPEND, syscall.O_RDONLY
	dir := t.TempDir()
	file := func(name string, flags uint32, size int64) event.File {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("some text"), 0o644); err != nil {
			t.Fatal(err)
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		return event.File{Known: true, Path: path, Dev: st.Dev, Ino: st.Ino, Mode: st.Mode, Nlink: 1, Flags: flags,
			Size: size}
	}
	open := func(f event.File) event.Event { return event.Event{Kind: event.Inherited, Files: []event.File{f}} }
	named := func(f event.File, ev event.Event) event.Event {
		ev.Paths = []event.Path{{Raw: f.Path, Abs: f.Path}}
		return ev
	}
	as := func(f event.File, arg int8) event.File { f.Arg = arg; return f }
	log, read := file("log", appends, 4), file("read", reads, 9)
	dup := file("dup", appends|event.OpenCreat, 4)
	source, target := file("source", reads, 9), file("target", syscall.O_RDWR, 0)
	for _, c := range []struct {
		name   string
		of     string
		stored bool
		events []event.Event
	}{
		{"open before, with something in it", "log", true, []event.Event{open(log)}},
		{"open before, and empty", "empty", false, []event.Event{open(file("empty", appends, 0))}},
		{"open before, for reading", "read", false, []event.Event{open(read)}},
		{"a duplicate of what had made its file before", "dup", true, []event.Event{open(dup), {Op: event.OpDup, Files: []event.File{as(dup, 0), as(dup, event.ResultArg)}}}},
		{"cloned", "source", true, []event.Event{
			named(source, event.Event{Op: event.OpOpen, Files: []event.File{as(source, event.ResultArg)}}),
			{Op: event.OpIoctl, Args: [6]uint64{4, event.FiClone, 3}, Files: []event.File{target, as(source, 2)}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			touched := newTouched()
			for i := range c.events {
				touched.see(&c.events[i])
			}
			for _, content := range []bool{true, false} {
				tw, err := trace.CreateTape(filepath.Join(t.TempDir(), "x.tape"))
				if err != nil {
					t.Fatal(err)
				}
				defer tw.Abort()
				m, err := Final(t.Context(), tw, &touched, content)
				if err != nil {
					t.Fatal(err)
				}
				e := m.Lookup(filepath.Join(dir, c.of)[1:])
				if e == nil || len(e.Chunks) > 0 != (c.stored && content) ||
					c.stored && e.Has(tree.KnownHash) != content {
					t.Errorf("where content is kept (%v): %+v", content, e)
				}
			}
		})
	}
}

// What the recorder itself wrote to is not determined by the recording.
func TestFinalLeaves(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	again := f.Name() + "-too"
	if err := os.Link(f.Name(), again); err != nil {
		t.Fatal(err)
	}
	touched := newTouched()
	touched.see(&event.Event{Op: event.OpStat, Paths: []event.Path{{Abs: f.Name()}}})
	touched.see(&event.Event{Op: event.OpStat, Paths: []event.Path{{Abs: again}}})
	touched.Leave(f)
	tw, err := trace.CreateTape(filepath.Join(t.TempDir(), "x.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	m, err := Final(t.Context(), tw, &touched, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{f.Name(), again} {
		if m.Lookup(p[1:]) != nil {
			t.Errorf("%s is in the state afterwards", p)
		}
	}
}
