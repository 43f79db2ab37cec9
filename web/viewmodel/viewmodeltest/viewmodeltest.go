// SPDX-License-Identifier: Apache-2.0

// Package viewmodeltest makes tapes for the tests of what shows them.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package viewmodeltest

import (
	"bytes"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Hostile is what a traced program may call a file, a process or a host.
const Hostile = `</script><script>document.title="owned"</script><img src=x onerror="document.title='owned'">"'&` +
	"\x1b[31m\u202e\u2028"

// Numbers in the tapes.
const (
	Parent, Thread, Child = 100, 101, 200
	StepNS                = 1000 // from one call of a thread to its next
	Record                = 300  // bytes of what is written again and again
)

// Tape makes a tape in which two threads of a process write, and a child which the first
// one made reads, rounds times. Everything that can have a name is called name.
func Tape(t testing.TB, rounds int, name string) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	page, err := w.AddChunk(bytes.Repeat([]byte(`<b>content</b> `), 300)[:trace.ChunkBytes])
	if err != nil {
		t.Fatal(err)
	}
	record := bytes.Repeat([]byte("a record of the log, "), Record)[:Record]
	at := int64(1e9)
	put := func(ev event.Event) {
		t.Helper()
		if ev.Enter == 0 {
			at += StepNS
			ev.Enter, ev.Exit = at, at+StepNS/2
		}
		ev.PGID, ev.SID, ev.UID = Parent, Parent, 1000
		if len(ev.Files) > 0 {
			ev.Args[0] = uint64(ev.Files[0].FD)
		}
		if ev.Count == 0 {
			ev.Count = -1
		}
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	file := event.File{Arg: 0, FD: 3, Open: 1, Known: true, Dev: 0x801, Ino: 7, Mode: 0o100644,
		Nlink: 1, Path: "/srv/" + name}
	put(event.Event{Op: event.OpOpenat, PID: Parent, TID: Parent, Comm: short(name), Offset: -1,
		Ret: -1, Errno: syscall.ENOENT,
		Paths: []event.Path{{Arg: 1, Raw: name, Abs: "/srv/missing " + name}}})
	put(event.Event{Kind: event.Forked, PID: Parent, TID: Parent, Child: Child, Offset: -1})
	size := int64(0)
	for i := range rounds {
		data := event.Buf{Arg: 1, Dir: event.In, Kind: event.KindBuf, Len: trace.ChunkBytes,
			Refs: []event.Ref{{Chunk: page, Len: trace.ChunkBytes}}}
		put(event.Event{Op: event.OpWrite, PID: Parent, TID: Parent, Comm: short(name), Offset: size,
			Count: trace.ChunkBytes, Ret: trace.ChunkBytes, Files: []event.File{file}, Bufs: []event.Buf{data}})
		size += trace.ChunkBytes
		small := event.Buf{Arg: 1, Dir: event.In, Kind: event.KindBuf, Len: Record,
			Inline: append([]byte{byte(i), byte(i >> 8)}, record[2:]...)}
		put(event.Event{Op: event.OpWrite, PID: Parent, TID: Thread, Comm: "log", Offset: size, Count: Record,
			Ret: Record, Files: []event.File{file}, Bufs: []event.Buf{small}})
		size += Record
		read := data
		read.Dir = event.Out
		put(event.Event{Op: event.OpRead, PID: Child, TID: Child, PPID: Parent, Comm: "reader",
			Offset: size - Record - trace.ChunkBytes, Count: trace.ChunkBytes, Ret: trace.ChunkBytes,
			Files: []event.File{file}, Bufs: []event.Buf{read}})
		if i%16 == 15 {
			put(event.Event{Op: event.OpFsync, PID: Parent, TID: Thread, Comm: "log",
				Offset: -1, Files: []event.File{file}})
		}
	}
	put(event.Event{Kind: event.Exited, PID: Child, TID: Child, PPID: Parent, Offset: -1})
	put(event.Event{Op: event.OpWait4, PID: Parent, TID: Parent, Comm: short(name), Offset: -1, Ret: Child,
		Enter: at - 10*StepNS, Exit: at + StepNS})
	m := &trace.Manifest{Program: "test",
		Hosts: []trace.Host{{Head: trace.Head{Host: name, Arch: "amd64", Command: []string{"sh", "-c", name},
			BootID: name, ClockNS: 1, WallNS: 1e18}}}}
	if err := w.Close(m); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

// short is what the kernel keeps of a thread's name.
func short(name string) string { return name[:min(len(name), 15)] }
