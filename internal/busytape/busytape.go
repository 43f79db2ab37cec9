// SPDX-License-Identifier: Apache-2.0

// Package busytape makes tapes of a busy machine that never was, of any length, for
// benchmarks of what reads tapes: eight processes at a time come and go, and open, read and
// write files of which some are more popular. The same length is the same tape.
package busytape

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// load makes the events of a busy machine: processes that come and go, of which some
// run at a time, and open, read and write files of which some are more popular.
type load struct {
	w       *trace.TapeWriter
	rnd     *rand.Rand
	popular *rand.Zipf
	files   []string
	chunks  []uint64
	now     int64
	pid     uint32
	open    event.OpenID
	ev      event.Event
}

const loadFiles, loadChunks, loadRunning = 20_000, 10_000, 8

// worker is a process.
type worker struct {
	pid   uint32
	left  int // files to open
	fd    int32
	file  event.File
	steps int // calls before the close
}

func (l *load) process() *worker {
	l.pid++
	return &worker{pid: l.pid, left: 20 + l.rnd.IntN(200)}
}

// call writes what a worker does next.
func (l *load) call(w *worker) error {
	ev := &l.ev
	l.now += 500 + l.rnd.Int64N(6000)
	*ev = event.Event{
		PID: w.pid, TID: w.pid, PPID: 1, PGID: w.pid, SID: 1, UID: 1000, GID: 1000, Comm: fmt.Sprint("job", w.pid%7),
		Enter: l.now - 300 - l.rnd.Int64N(40_000), Exit: l.now, CPU: l.now / 9, Offset: -1, Count: -1,
		Files: ev.Files[:0], Paths: ev.Paths[:0], Bufs: ev.Bufs[:0],
	}
	f := &w.file
	content := func(dir event.Dir) {
		n := int64(1+l.rnd.IntN(2)) * trace.ChunkBytes
		ev.Ret, ev.Count, ev.Offset = n, n, f.Pos
		f.Pos += n
		f.Size = max(f.Size, f.Pos)
		b := event.Buf{Arg: 1, Dir: dir, Kind: event.KindBuf, Len: n}
		for range n / trace.ChunkBytes {
			b.Refs = append(b.Refs, event.Ref{Chunk: l.chunks[l.rnd.IntN(loadChunks)], Len: trace.ChunkBytes})
		}
		ev.Args, ev.Bufs = [event.MaxArgs]uint64{uint64(w.fd), 0x7f0000000000 + l.rnd.Uint64N(1<<30), uint64(n)},
			append(ev.Bufs, b)
	}
	switch {
	case w.steps == 0 && w.left == 0:
		ev.Kind, ev.Op = event.Exited, 0
	case w.steps == 0: // open
		name := l.popular.Uint64()
		ev.Op, ev.Args = event.OpOpenat, [event.MaxArgs]uint64{^uint64(99), 0x7f0000001000}
		ev.Paths = append(ev.Paths, event.Path{Arg: 1, Raw: l.files[name], Abs: l.files[name]})
		if l.rnd.IntN(8) == 0 {
			ev.Ret, ev.Errno = -1, syscall.ENOENT
			break
		}
		l.open++
		w.fd, w.left, w.steps = 3+int32(l.rnd.IntN(5)), w.left-1, 2+l.rnd.IntN(14)
		*f = event.File{Arg: event.ResultArg, FD: w.fd, Open: l.open, Known: true, Dev: 0xfd00, Ino: 1000 + name,
			Mode: 0o100644, Flags: 2, Nlink: 1, UID: 1000, GID: 1000, Size: 4096 * int64(name%64), Path: l.files[name]}
		ev.Ret, ev.Files = int64(w.fd), append(ev.Files, *f)
		f.Arg = 0
		return l.w.Write(ev)
	case w.steps == 1:
		w.steps, ev.Op, ev.Args[0] = 0, event.OpClose, uint64(w.fd)
	default:
		w.steps--
		switch ev.Args[0] = uint64(w.fd); l.rnd.IntN(10) {
		case 0:
			ev.Op = event.OpFstat
		case 1:
			ev.Op, f.Pos = event.OpLseek, 0
		case 2, 3, 4:
			ev.Op = event.OpWrite
			content(event.In)
		default:
			ev.Op = event.OpRead
			content(event.Out)
		}
	}
	if ev.Kind == event.Call && len(ev.Paths) == 0 {
		ev.Files = append(ev.Files, *f)
	}
	return l.w.Write(ev)
}

// Write makes a tape of events in dir.
func Write(dir string, events int) error {
	w, err := trace.CreateTape(dir)
	if err != nil {
		return err
	}
	defer w.Abort()
	rnd := rand.New(rand.NewPCG(1, 2))
	l := &load{w: w, rnd: rnd, popular: rand.NewZipf(rnd, 1.1, 8, loadFiles-1), pid: 1000}
	for i := range loadFiles {
		l.files = append(l.files, fmt.Sprintf("/srv/data/part-%03d/table-%05d.sst", i%173, i))
	}
	for range loadChunks {
		var data [trace.ChunkBytes]byte
		binary.LittleEndian.PutUint64(data[:], rnd.Uint64())
		id, err := w.AddChunk(data[:])
		if err != nil {
			return err
		}
		l.chunks = append(l.chunks, id)
	}
	var running [loadRunning]*worker
	for range events {
		p := &running[rnd.IntN(loadRunning)]
		if *p == nil || (*p).left == 0 && (*p).steps == 0 && rnd.IntN(2) == 0 {
			*p = l.process()
		}
		if err := l.call(*p); err != nil {
			return err
		}
		if l.ev.Kind == event.Exited {
			*p = nil
		}
	}
	return w.Close(&trace.Manifest{Hosts: []trace.Host{{Head: trace.Head{Host: "busy", Arch: "amd64", WallNS: 1e18}}}})
}
