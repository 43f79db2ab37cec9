// SPDX-License-Identifier: Apache-2.0

// Package tapescript makes tapes by hand, for tests: one call after the other.
package tapescript

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// Script makes a tape by hand: each call takes 10 ns, one after the other.
type Script struct {
	t     *testing.T
	w     *trace.TapeWriter
	dir   string
	Clock int64  // ns; of the last return
	Ino   uint64 // of the file that was opened last
	Size  int64  // of the file that is opened next
	dev   uint64
	from  uint32 // host of the events that come next
	Hosts []trace.Host
}

// New returns a script that begins in /work.
func New(t *testing.T) *Script {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &Script{t: t, w: w, dir: dir, Ino: 1000}
	s.Add(event.Event{Kind: event.Started, Args: [6]uint64{0o22}, Paths: []event.Path{{Raw: "/work", Abs: "/work"}}})
	return s
}

// AtFDCWD is AT_FDCWD as an argument.
func AtFDCWD() uint64 { d := int64(event.AtFDCWD); return uint64(d) }

// Modes of a file and a directory.
const (
	IsFile = syscall.S_IFREG | 0o644
	IsDir  = syscall.S_IFDIR | 0o755
)

// Handle is a descriptor of the file that was opened last.
func (s *Script) Handle(fd int32) event.File {
	return event.File{FD: fd, Known: true, Mode: IsFile, Ino: s.Ino}
}

// Shares adds an ioctl on a file that names another one, with the numbers that stand in its
// argument; none stand for FICLONE.
func (s *Script) Shares(fd int64, cmd uint64, on *event.File, other event.File, numbers ...int64) {
	s.t.Helper()
	f := s.Handle(int32(fd))
	if on != nil {
		f = *on
	}
	other.Arg = event.MemoryArg
	ev := event.Event{Op: event.OpIoctl, Args: [6]uint64{uint64(fd), cmd, 0x1000}, Offset: -1, Count: -1}
	if cmd == event.FiClone {
		other.Arg, ev.Args[2] = 2, uint64(other.FD)
	} else {
		b := event.Buf{Arg: 2, Kind: event.KindStruct}
		for _, n := range numbers {
			b.Inline = binary.LittleEndian.AppendUint64(b.Inline, uint64(n))
		}
		b.Len = int64(len(b.Inline))
		ev.Bufs = append(ev.Bufs, b)
	}
	ev.Files = []event.File{f, other}
	s.Add(ev)
}

// Opened opens what the tape says to be a file of a type.
func (s *Script) Opened(fd int64, path string, mode uint32, flags uint64) {
	s.t.Helper()
	s.Ino++
	s.Add(event.Event{Op: event.OpOpenat, Ret: fd, Args: [6]uint64{AtFDCWD(), 0x1000, flags, 0o644},
		Paths: []event.Path{{Arg: 1, Raw: path}},
		Files: []event.File{{Arg: event.ResultArg, FD: int32(fd), Known: true, Mode: mode, Ino: s.Ino, Nlink: 1,
			Flags: uint32(flags)}}})
}

// Symlink adds a symlink.
func (s *Script) Symlink(target, path string) {
	s.t.Helper()
	s.Add(event.Event{Op: event.OpSymlink, Args: [6]uint64{0x1000, 0x1000}, Paths: []event.Path{{Arg: 1, Raw: path}},
		Bufs: []event.Buf{{Arg: 0, Kind: event.KindText, Len: int64(len(target)), Inline: []byte(target)}}})
}

// On adds a call whose first argument is an open descriptor.
func (s *Script) On(op event.Op, fd int64, ret int64, errno syscall.Errno, args [6]uint64, bufs ...event.Buf) {
	s.t.Helper()
	args[0] = uint64(fd)
	s.Add(event.Event{Op: op, Ret: ret, Errno: errno, Args: args, Bufs: bufs,
		Files: []event.File{{Arg: 0, FD: int32(fd), Known: true, Mode: syscall.S_IFREG | 0o644, Ino: s.Ino}}})
}

// Store adds a tree to the tape.
func (s *Script) Store(name string, entries ...tree.Entry) {
	s.t.Helper()
	w, err := s.w.Create(name)
	if err != nil {
		s.t.Fatal(err)
	}
	m := &tree.Manifest{Root: "/", Entries: entries}
	m.Sort()
	if err := tree.Encode(w, m); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// Chunks stores pages in a script's tape, and returns a reference to each.
func (s *Script) Chunks(pages ...string) (refs []event.Ref) {
	s.t.Helper()
	for _, p := range pages {
		id, err := s.w.AddChunk([]byte(p))
		if err != nil {
			s.t.Fatal(err)
		}
		refs = append(refs, event.Ref{Chunk: id, Len: uint32(len(p))})
	}
	return refs
}

// Stored adds a read or write, of one buffer or a vector of one, of what is in chunks.
func (s *Script) Stored(op event.Op, off int64, refs ...event.Ref) {
	s.t.Helper()
	a, n := event.Lookup(op).Args[1], int64(0)
	for _, r := range refs {
		n += int64(r.Len)
	}
	ev := event.Event{Op: op, Ret: n, Offset: off, Count: n, Args: [6]uint64{3, 0x1000, uint64(n), uint64(off)},
		Files: []event.File{{Arg: 0, FD: 3, Known: true, Mode: 0o100644, Ino: s.Ino}},
		Bufs:  []event.Buf{{Arg: 1, Dir: a.Dir, Kind: a.Kind, Len: n, Refs: refs}}}
	if a.Kind == event.KindVec {
		ev.Bufs[0].Parts = []int64{n}
		ev.Args[2] = 1
	}
	s.Add(ev)
}

// Host makes the script go on on a host, of machines with these names.
func (s *Script) Host(host uint32, names ...string) *Script {
	for i, n := range names {
		s.Hosts = append(s.Hosts, trace.Host{Head: trace.Head{Host: n, BootID: strconv.Itoa(i), Arch: "amd64"}})
	}
	s.from = host
	return s
}

// File goes on with a file that has these numbers.
func (s *Script) File(dev, ino uint64, size int64) *Script {
	s.dev, s.Ino, s.Size = dev, ino-1, size
	return s
}

// TwoMachines has two processes of one number, on two machines, that use the same numbers
// for everything: descriptors, files, devices. They share /net, which is another device on
// each.
func TwoMachines(t *testing.T, a, b string) *Script {
	s := New(t).Host(1, a, b)
	s.Add(event.Event{Kind: event.Started, Args: [6]uint64{0o22}, Paths: []event.Path{{Raw: "/work", Abs: "/work"}}})
	for host, text := range []string{"old of a", "old of b"} { // two files, not two names of one
		s.Host(uint32(host)).File(8, 5, 8).Open(3, "old", 2)
		s.Move(event.OpPread64, 3, 0, text)
		s.Move(event.OpWrite, 3, 0, "new")
		s.Call(event.OpClose, 0, 0, [6]uint64{3})
	}
	s.Host(0).File(8, 7, 0).Open(3, "f", event.OpenCreat|2)
	s.Move(event.OpWrite, 3, 0, "of a")
	s.Host(1).File(8, 7, 0).Open(3, "f", event.OpenCreat|event.OpenExcl|2)
	s.Move(event.OpWrite, 3, 0, "of b alone")
	s.Host(0).Move(event.OpPread64, 3, 0, "of a")
	s.Call(event.OpUnlink, 0, 0, [6]uint64{}, "/work/f")
	s.Host(1).Symlink("../net", "/work/link")
	s.Call(event.OpUnlink, -1, syscall.ENOENT, [6]uint64{}, "g")
	s.Host(0).File(40, 9, 0).Open(4, "/net/s", event.OpenCreat|2)
	s.Move(event.OpWrite, 4, 0, "one")
	// neither says by its text alone what is shared
	for fd, name := range map[int64]string{4: "../net/s", 5: "link/s"} {
		s.Host(1).File(41, 9, 3).Open(fd, name, 2)
		s.Move(event.OpPread64, fd, 0, "one")
	}
	s.Call(event.OpRename, 0, 0, [6]uint64{}, "/net/s", "/net/t")
	s.Host(0).Call(event.OpChdir, 0, 0, [6]uint64{}, "/")
	s.File(40, 9, 3).Open(5, "net/t", 2)
	s.Move(event.OpPread64, 5, 0, "one")
	return s
}

// Kept adds a read or write of which the tape keeps the first bytes, or hashes.
func (s *Script) Kept(op event.Op, off int64, text string, head int, hash bool) {
	a := event.Lookup(op).Args[1]
	b := event.Buf{Arg: 1, Dir: a.Dir, Kind: event.KindBuf, Len: int64(len(text)), Omitted: head < len(text)}
	if head > 0 {
		b.Inline = []byte(text[:head])
	}
	if hash {
		b.Hashes = []event.Digest{blake3.Sum256([]byte(text))}
	}
	s.Add(event.Event{Op: op, Ret: int64(len(text)), Offset: off, Count: int64(len(text)),
		Args: [6]uint64{3, 0x1000, uint64(len(text)), uint64(off)},
		Files: []event.File{{Arg: 0, FD: 3, Known: true, Mode: syscall.S_IFREG | 0o644, Ino: s.Ino,
			Pos: off + int64(len(text))}},
		Bufs: []event.Buf{b}})
}

// Add adds an event. What it does not say is filled in.
func (s *Script) Add(ev event.Event) {
	s.t.Helper()
	if ev.Exit == 0 {
		ev.Enter, ev.Exit = s.Clock+10, s.Clock+20
	}
	s.Clock = max(s.Clock, ev.Exit)
	if ev.PID == 0 {
		ev.PID, ev.TID = 1, 1
	}
	ev.Host, ev.UID, ev.GID = s.from, uint32(os.Geteuid()), uint32(os.Getegid())
	if ev.Offset == 0 && ev.Kind == event.Call {
		ev.Offset, ev.Count = -1, -1
	}
	s.Write(&ev)
}

// Write adds an event as it is.
func (s *Script) Write(ev *event.Event) {
	s.t.Helper()
	if err := s.w.Write(ev); err != nil {
		s.t.Fatal(err)
	}
}

// Call adds a call with paths in the order of its path arguments.
func (s *Script) Call(op event.Op, ret int64, errno syscall.Errno, args [6]uint64, paths ...string) {
	s.t.Helper()
	ev := event.Event{Op: op, Ret: ret, Errno: errno, Args: args}
	i := 0
	for a := range ev.Spec().Args {
		if ev.Spec().Args[a].Kind == event.KindPath && i < len(paths) {
			ev.Args[a] = 0x1000 // not NULL
			ev.Paths = append(ev.Paths, event.Path{Arg: int8(a), Raw: paths[i]})
			i++
		}
	}
	s.Add(ev)
}

// Open opens a regular file as descriptor fd.
func (s *Script) Open(fd int64, path string, flags uint64) {
	s.t.Helper()
	s.Ino++
	s.Add(event.Event{Op: event.OpOpenat, Ret: fd, Args: [6]uint64{AtFDCWD(), 0x1000, flags, 0o644},
		Paths: []event.Path{{Arg: 1, Raw: path}},
		Files: []event.File{{Arg: event.ResultArg, FD: int32(fd), Open: event.OpenID(100*uint64(s.from) + uint64(fd)),
			Known: true, Mode: syscall.S_IFREG | 0o644, Dev: s.dev, Ino: s.Ino, Nlink: 1,
			Size: s.Size, Flags: uint32(flags &^ (event.OpenCreat | event.OpenTrunc)), UID: uint32(os.Geteuid()),
			GID: uint32(os.Getegid())}}})
}

// Move adds a read or write of text at an offset.
func (s *Script) Move(op event.Op, fd, off int64, text string) {
	s.t.Helper()
	a := event.Lookup(op).Args[1]
	s.Add(event.Event{Op: op, Ret: int64(len(text)), Offset: off, Count: int64(len(text)),
		Args: [6]uint64{uint64(fd), 0x1000, uint64(len(text)), uint64(off)},
		Files: []event.File{{Arg: 0, FD: int32(fd), Open: event.OpenID(100*uint64(s.from) + uint64(fd)), Known: true,
			Mode: syscall.S_IFREG | 0o644, Dev: s.dev, Ino: s.Ino, Pos: off + int64(len(text))}},
		Bufs: []event.Buf{{Arg: 1, Dir: a.Dir, Kind: event.KindBuf, Len: int64(len(text)), Inline: []byte(text)}}})
}

// Close ends the tape and opens it.
func (s *Script) Close() *trace.Tape {
	s.t.Helper()
	m := &trace.Manifest{Program: "test", Hosts: s.Hosts}
	if len(m.Hosts) == 0 {
		m.Hosts = []trace.Host{{Head: trace.Head{Host: "h", Arch: "amd64"}}}
	}
	if err := s.w.Close(m); err != nil {
		s.t.Fatal(err)
	}
	t, err := trace.Open(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { t.Close() })
	return t
}
