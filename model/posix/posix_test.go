// SPDX-License-Identifier: Apache-2.0

package posix_test

import (
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
)

// script applies events and keeps the clock.
type script struct {
	t     *testing.T
	m     *posix.Model
	clock int64
}

func start(t *testing.T) *script {
	s := &script{t: t, m: posix.New()}
	s.apply(&event.Event{Kind: event.Started, PID: 1, TID: 1, Paths: []event.Path{{Abs: "/home"}}})
	return s
}

func (s *script) apply(ev *event.Event) []event.OpenID {
	if ev.Enter == 0 {
		s.clock += 10
		ev.Enter, ev.Exit = s.clock, s.clock+5
	}
	return s.m.Apply(ev)
}

func (s *script) open(tid uint32, path string, fd int32, flags uint32) event.OpenID {
	ev := &event.Event{Op: event.OpOpenat, PID: tid, TID: tid, Ret: int64(fd), Paths: []event.Path{{Arg: 1, Raw: path}},
		Files: []event.File{{Arg: event.ResultArg, FD: fd, Flags: flags, Known: true, Ino: 100 + uint64(fd),
			Mode: syscall.S_IFREG}}}
	at := int64(event.AtFDCWD)
	ev.Args[0] = uint64(at)
	s.apply(ev)
	return ev.Files[0].Open
}

// lookup returns what a descriptor of a thread stands for.
func (s *script) lookup(tid uint32, fd int32) (event.OpenID, string) {
	d := s.m.Thread(tid, tid).Table.Lookup(fd)
	if d == nil {
		return 0, ""
	}
	return d.Open.ID, d.Open.Path
}

func call(op event.Op, tid uint32, ret int64, args ...uint64) *event.Event {
	ev := &event.Event{Op: op, PID: tid, TID: tid, Ret: ret}
	copy(ev.Args[:], args)
	return ev
}

func TestDescriptorsShareAnOpenFile(t *testing.T) {
	s := start(t)
	id := s.open(1, "data", 3, 0)
	if _, p := s.lookup(1, 3); p != "/home/data" {
		t.Errorf("path of descriptor 3 = %q, want /home/data", p)
	}
	s.apply(call(event.OpDup, 1, 4, 3))
	s.apply(call(event.OpDup2, 1, 9, 3, 9))
	s.apply(call(event.OpFcntl, 1, 10, 3, 1030, 10))
	for _, fd := range []int32{3, 4, 9, 10} {
		if got, _ := s.lookup(1, fd); got != id {
			t.Errorf("descriptor %d is open file %d, want %d", fd, got, id)
		}
	}
	s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: 2, Ret: 2})
	s.apply(call(event.OpExecve, 2, 0))
	if got, _ := s.lookup(2, 10); got != 0 {
		t.Error("a close-on-exec descriptor survived execve")
	}
	if got, _ := s.lookup(2, 4); got != id {
		t.Error("a plain descriptor did not survive execve")
	}
	var released []event.OpenID
	for _, fd := range []uint64{3, 4, 9, 10} {
		released = append(released, s.apply(call(event.OpClose, 1, 0, fd))...)
	}
	if len(released) != 0 {
		t.Errorf("released %v while the child has it open", released)
	}
	if released = s.apply(&event.Event{Kind: event.Exited, PID: 2, TID: 2}); len(released) != 1 || released[0] != id {
		t.Errorf("the last process's end released %v, want %d", released, id)
	}
}

func TestThreadsShareATableAndForksDoNot(t *testing.T) {
	s := start(t)
	s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: 2, Ret: 1,
		Args: [6]uint64{event.ShareVM | event.ShareFS | event.ShareFiles | event.ShareThread}})
	s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: 3, Ret: 3})
	id := s.open(2, "x", 5, 0)
	if got, _ := s.lookup(1, 5); got != id {
		t.Error("a thread's open is not seen by the other thread")
	}
	if got, _ := s.lookup(3, 5); got != 0 {
		t.Error("a thread's open is seen by a forked process")
	}
	s.apply(&event.Event{Op: event.OpChdir, PID: 2, TID: 2, Paths: []event.Path{{Raw: "/srv"}}})
	if got := s.m.Thread(1, 1).FS.Cwd; got != "/srv" {
		t.Errorf("working directory of the sharing thread = %q", got)
	}
	if got := s.m.Thread(3, 3).FS.Cwd; got != "/home" {
		t.Errorf("working directory of the forked process = %q", got)
	}
}

// A close may return after another thread got the same number from an open.
func TestCloseThatReturnsLate(t *testing.T) {
	s := start(t)
	old := s.open(1, "old", 3, 0)
	open := &event.Event{Op: event.OpOpenat, PID: 1, TID: 2, Ret: 3, Enter: 1000, Exit: 1010,
		Paths: []event.Path{{Arg: 1, Raw: "/new"}},
		Files: []event.File{{Arg: event.ResultArg, FD: 3}}}
	s.apply(open)
	late := call(event.OpClose, 1, 0, 3)
	late.Enter, late.Exit = 990, 1020
	s.apply(late)
	if got, p := s.lookup(1, 3); got == 0 || got == old || p != "/new" {
		t.Errorf("descriptor 3 is open file %d %q, want the new one", got, p)
	}
}

func TestFailedCallsChangeNothing(t *testing.T) {
	s := start(t)
	id := s.open(1, "x", 3, 0)
	for _, ev := range []*event.Event{
		{Op: event.OpClose, PID: 1, TID: 1, Errno: syscall.EBADF, Ret: -1, Args: [6]uint64{3}},
		{Op: event.OpChdir, PID: 1, TID: 1, Errno: syscall.ENOENT, Ret: -1, Paths: []event.Path{{Raw: "/nowhere"}}},
		{Op: event.OpExecve, PID: 1, TID: 1, Errno: syscall.ENOENT, Ret: -1},
		{Op: event.OpDup2, PID: 1, TID: 1, Errno: syscall.EBADF, Ret: -1, Args: [6]uint64{77, 3}},
	} {
		s.apply(ev)
	}
	if got, _ := s.lookup(1, 3); got != id {
		t.Error("descriptor 3 changed")
	}
	if got := s.m.Thread(1, 1).FS.Cwd; got != "/home" {
		t.Errorf("working directory = %q", got)
	}
	// Linux frees the number also when close reports a write error.
	s.apply(&event.Event{Op: event.OpClose, PID: 1, TID: 1, Errno: syscall.EIO, Ret: -1, Args: [6]uint64{3}})
	if got, _ := s.lookup(1, 3); got != 0 {
		t.Error("descriptor 3 is still open after close failed with EIO")
	}
}

func TestChroot(t *testing.T) {
	s := start(t) // in /home
	s.apply(&event.Event{Op: event.OpChroot, PID: 1, TID: 1, Paths: []event.Path{{Raw: "../srv/./root/"}}})
	th := s.m.Thread(1, 1)
	abs := func(name, want string) {
		t.Helper()
		if got := th.Abs(event.AtFDCWD, name); got != want {
			t.Errorf("%s in %s is %s, want %s", name, th.FS.Cwd, got, want)
		}
	}
	abs("/etc/x", "/srv/root/etc/x")
	abs("/../x", "/srv/root/x")
	abs("x", "/home/x") // it has not gone there
	s.apply(&event.Event{Op: event.OpChdir, PID: 1, TID: 1, Paths: []event.Path{{Raw: "/"}}})
	abs("../../x", "/srv/root/x")
	abs(".", "/srv/root")
	s.apply(&event.Event{Op: event.OpGetcwd, PID: 1, TID: 1, Ret: 5, Bufs: []event.Buf{{Inline: []byte("/tmp\x00")}}})
	abs("x", "/srv/root/tmp/x")
	s.apply(&event.Event{Op: event.OpChroot, PID: 1, TID: 1, Paths: []event.Path{{Raw: "/inner"}}})
	abs("/x", "/srv/root/inner/x")
}

func TestNamesThroughDescriptors(t *testing.T) {
	s := start(t)
	s.open(1, "/srv/db", 7, 0)
	for name, want := range map[string]string{
		"/proc/self/fd/7":     "/srv/db",
		"/proc/1/fd/7/log":    "/srv/db/log",
		"/dev/fd/7":           "/srv/db",
		"/proc/2/fd/7":        "/proc/2/fd/7", // another process's
		"/proc/self/fd/8":     "/proc/self/fd/8",
		"/proc/self/fd/7x":    "/proc/self/fd/7x",
		"/proc/self/fd/-7":    "/proc/self/fd/-7",
		"../x":                "/x",
		"a/./b":               "/home/a/b",
		"/proc/self/fd/99999": "/proc/self/fd/99999",
	} {
		ev := call(event.OpChmod, 1, 0)
		ev.Paths = []event.Path{{Raw: name}}
		s.apply(ev)
		if got := ev.Paths[0].Abs; got != want {
			t.Errorf("%s resolved to %q, want %q", name, got, want)
		}
	}
	ev := call(event.OpReadlink, 1, 7)
	ev.Paths = []event.Path{{Raw: "/proc/self/fd/7"}}
	if s.apply(ev); ev.Paths[0].Abs != "/proc/self/fd/7" {
		t.Errorf("readlink is about the link, not about %q", ev.Paths[0].Abs)
	}
}

// A trace may begin after its processes did, or have gaps.
func TestKernelFactsAreBelieved(t *testing.T) {
	s := start(t)
	first := s.open(1, "x", 3, 0)
	read := call(event.OpRead, 1, 10, 3, 0, 10)
	read.Files = []event.File{{Arg: 0, FD: 3, Known: true, Ino: 999, Mode: syscall.S_IFREG, Pos: 30}}
	s.apply(read)
	if read.Files[0].Open == first || read.Files[0].Open == 0 {
		t.Errorf("descriptor with another inode is open file %d, the first was %d", read.Files[0].Open, first)
	}
	if read.Offset != 20 || read.Count != 10 {
		t.Errorf("offset %d, count %d, want 20 and 10", read.Offset, read.Count)
	}
}

// passing returns a call that carries one descriptor in its memory.
func passing(op event.Op, tid uint32, fd int32, ino uint64) *event.Event {
	ev := call(op, tid, 1)
	ev.Files = []event.File{{Arg: event.MemoryArg, FD: fd, Known: true, Ino: ino, Mode: syscall.S_IFREG}}
	return ev
}

func TestPassedDescriptorsAreTheSendersOpenFile(t *testing.T) {
	s := start(t)
	s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: 2, Ret: 2})
	id := s.open(1, "a", 3, 0)
	s.apply(call(event.OpDup, 1, 4, 3))
	s.apply(passing(event.OpSendmsg, 1, 3, 103))
	if gone := append(s.apply(call(event.OpClose, 1, 0, 3)), s.apply(call(event.OpClose, 1, 0, 4))...); len(gone) != 0 {
		t.Errorf("released %v while a message has it", gone)
	}
	s.apply(passing(event.OpRecvmsg, 2, 9, 103))
	if got, p := s.lookup(2, 9); got != id || p != "/home/a" {
		t.Errorf("received open file %d %q, want %d", got, p, id)
	}
	if gone := s.apply(call(event.OpClose, 2, 0, 9)); len(gone) != 1 || gone[0] != id {
		t.Errorf("the receiver's close released %v", gone)
	}
}

// The receiver may return before the sender does.
func TestDescriptorReceivedBeforeItsSendReturned(t *testing.T) {
	s := start(t)
	s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: 2, Ret: 2})
	id := s.open(1, "a", 3, 0)
	received := passing(event.OpRecvmsg, 2, 9, 103)
	received.Enter, received.Exit = 100, 120
	s.apply(received)
	sent := passing(event.OpSendmsg, 1, 3, 103)
	sent.Enter, sent.Exit = 110, 130
	s.apply(sent)
	if got, _ := s.lookup(2, 9); got != id {
		t.Fatalf("received open file %d, want %d", got, id)
	}
	s.clock = 200
	s.apply(call(event.OpClose, 1, 0, 3))
	if gone := s.apply(call(event.OpClose, 2, 0, 9)); len(gone) != 1 {
		t.Errorf("the last close released %v: the message is still counted", gone)
	}
}

func TestPidfdGetfd(t *testing.T) {
	s := start(t)
	s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: 2, Ret: 2})
	s.open(1, "a", 3, 0)
	id := s.open(1, "b", 4, 0)
	s.apply(call(event.OpPidfdOpen, 2, 5, 1))
	s.apply(call(event.OpPidfdGetfd, 2, 6, 5, 4))
	if got, p := s.lookup(2, 6); got != id || p != "/home/b" {
		t.Errorf("fetched open file %d %q, want %d", got, p, id)
	}
}
