// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// bytesOf puts numbers and texts into little-endian memory.
func bytesOf(parts ...any) (b []byte) {
	for _, p := range parts {
		switch v := p.(type) {
		case string:
			b = append(b, v...)
		case int: // so many zeros
			b = append(b, make([]byte, v)...)
		default:
			b, _ = binary.Append(b, binary.LittleEndian, v)
		}
	}
	return b
}

// TestStructures checks of each structure that holds something what is replaced and what
// stays, and that it comes back. Secrets are the texts and numbers that must be gone.
func TestStructures(t *testing.T) {
	stat := bytesOf(uint64(0xfe00), uint64(123456), uint64(1), uint32(0o100644), uint32(1000), uint32(100), uint32(0),
		uint64(0), int64(4321), int64(4096), int64(8),
		int64(1_700_000_001), int64(7), int64(1_700_000_002), int64(8), int64(1_700_000_003), int64(9), 24)
	dirents := bytesOf(uint64(123456), int64(1), uint16(32), uint8(8), "alice.txt\x00PIN", uint64(2), int64(2),
		uint16(24), uint8(4), "..\x00", 2)
	inet := bytesOf(uint16(2), uint8(0x30), uint8(0x39), uint8(192), uint8(168), uint8(1), uint8(77), 8)
	head := bytesOf(uint64(0x7000), uint32(16), 4, uint64(0x8000), uint64(1), uint64(0x9000), uint64(32), 8)
	creds := bytesOf(uint64(28), uint32(1), uint32(2), uint32(4711), uint32(1000), uint32(100), 4)
	acl := bytesOf(uint32(2), uint16(1), uint16(6), uint32(0xffffffff), uint16(2), uint16(6), uint32(1000),
		uint16(8), uint16(4), uint32(100))
	siginfo := bytesOf(uint32(17), uint32(0), uint32(1), 4, uint32(4711), uint32(1000), uint32(3), 100)
	uname := append(bytesOf("Linux", 60, "alice-pc", 57, "6.18.44", 58), make([]byte, 195)...)
	for _, c := range []struct {
		name    string
		op      event.Op
		arg     int
		kind    event.Kind
		args    [event.MaxArgs]uint64
		bytes   []byte
		more    []event.Buf // other memory of the call
		secrets []any
		stays   []any
	}{
		{name: "stat", op: event.OpStat, arg: 1, kind: event.KindStruct, bytes: stat, secrets: []any{uint64(123456), uint32(1000), uint32(100), int64(1_700_000_001), int64(1_700_000_002), int64(1_700_000_003)}, stays: []any{uint32(0o100644), int64(4321)}},
		{name: "getdents64", op: event.OpGetdents64, arg: 1, kind: event.KindBuf, bytes: dirents, secrets: []any{"alice", uint64(123456), "PIN"}, stays: []any{"..\x00", int64(1), uint16(32)}},
		{name: "getdents", op: event.OpGetdents, arg: 1, kind: event.KindBuf, bytes: bytesOf(uint64(123456), int64(1), uint16(32), "alice.txt\x00PIN\x08"), secrets: []any{"alice", uint64(123456), "PIN"}, stays: []any{uint16(32), "\x08"}},
		{name: "connect", op: event.OpConnect, arg: 1, kind: event.KindStruct, bytes: inet, secrets: []any{"\x30\x39", "\xc0\xa8\x01\x4d"}, stays: []any{uint16(2)}},
		{name: "loopback", op: event.OpConnect, arg: 1, kind: event.KindStruct, bytes: bytesOf(uint16(2), uint8(0x30), uint8(0x39), uint8(127), uint8(0), uint8(0), uint8(1), 8), secrets: []any{"\x30\x39"}, stays: []any{"\x7f\x00\x00\x01"}},
		{name: "IPv6", op: event.OpBind, arg: 1, kind: event.KindStruct, bytes: bytesOf(uint16(10), uint16(80), uint32(0), "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x12\x34", uint32(0)), secrets: []any{"\x20\x01\x0d\xb8"}, stays: []any{uint16(10)}},
		{name: "local socket", op: event.OpBind, arg: 1, kind: event.KindStruct, bytes: bytesOf(uint16(1), "/tmp/alice/sock\x00alice's stack", 70), secrets: []any{"alice", "sock"}, stays: []any{"/tmp/"}},
		{name: "abstract socket", op: event.OpConnect, arg: 1, kind: event.KindStruct, bytes: bytesOf(uint16(1), "\x00alice-bus"), secrets: []any{"alice"}},
		{name: "unknown family", op: event.OpConnect, arg: 1, kind: event.KindStruct, bytes: bytesOf(uint16(31), "alice's phone"), secrets: []any{"alice"}},
		{name: "addresses of messages", op: event.OpSendmsg, arg: event.PartName.Of(1), kind: event.KindStruct, bytes: inet, more: []event.Buf{{Arg: 1, Kind: event.KindStruct, Inline: head}}, secrets: []any{"\xc0\xa8\x01\x4d"}, stays: []any{uint16(2)}},
		{name: "credentials", op: event.OpRecvmsg, arg: event.PartControl.Of(1), kind: event.KindStruct, bytes: creds, more: []event.Buf{{Arg: 1, Kind: event.KindStruct, Inline: head}}, secrets: []any{uint32(4711), uint32(1000), uint32(100)}, stays: []any{uint64(28)}},
		{name: "SO_PEERCRED", op: event.OpGetsockopt, arg: 3, kind: event.KindStruct, args: [6]uint64{3, 1, 17}, bytes: bytesOf(uint32(4711), uint32(1000), uint32(100)), secrets: []any{uint32(4711), uint32(1000), uint32(100)}},
		{name: "uname", op: event.OpUname, arg: 0, kind: event.KindStruct, bytes: uname, secrets: []any{"alice"}, stays: []any{"Linux", "6.18.44"}},
		{name: "siginfo", op: event.OpWaitid, arg: 2, kind: event.KindStruct, bytes: siginfo, secrets: []any{uint32(4711), uint32(1000)}, stays: []any{uint32(17)}},
		{name: "groups", op: event.OpGetgroups, arg: 1, kind: event.KindStruct, bytes: bytesOf(uint32(100), uint32(0), uint32(4242)), secrets: []any{uint32(100), uint32(4242)}},
		{name: "clock", op: event.OpClockGettime, arg: 1, kind: event.KindStruct, args: [6]uint64{1}, bytes: bytesOf(int64(98765), int64(5)), secrets: []any{int64(98765)}},
		{name: "deadline", op: event.OpTimerfdSettime, arg: 2, kind: event.KindStruct, args: [6]uint64{3, 1}, bytes: bytesOf(int64(60), int64(0), int64(98765), int64(5)), secrets: []any{int64(98765)}, stays: []any{int64(60)}},
		{name: "duration", op: event.OpNanosleep, arg: 0, kind: event.KindStruct, bytes: bytesOf(int64(98765), int64(5)), stays: []any{int64(98765)}},
		{name: "UTIME_NOW", op: event.OpUtimensat, arg: 2, kind: event.KindStruct, bytes: bytesOf(int64(0), int64(1<<30-1), int64(1_700_000_001), int64(3)), secrets: []any{int64(1_700_000_001)}, stays: []any{int64(1<<30 - 1)}},
		{name: "arguments", op: event.OpExecve, arg: 1, kind: event.KindStrings, bytes: []byte("mail\x00-s\x00hello alice\x00"), secrets: []any{"mail", "alice", "hello"}, stays: []any{"\x00"}},
		{name: "name of a thread", op: event.OpPrctl, arg: 1, kind: event.KindText, args: [6]uint64{15}, bytes: []byte("alice-worker\x00"), secrets: []any{"alice"}},
		{name: "target of a link", op: event.OpSymlink, arg: 0, kind: event.KindText, bytes: []byte("../alice/notes"), secrets: []any{"alice", "notes"}, stays: []any{"../"}},
		{name: "readlink", op: event.OpReadlink, arg: 1, kind: event.KindBuf, bytes: []byte("/home/alice"), secrets: []any{"alice", "home"}},
		{name: "getcwd", op: event.OpGetcwd, arg: 0, kind: event.KindBuf, bytes: []byte("/tmp/alice\x00"), secrets: []any{"alice"}, stays: []any{"/tmp/"}},
		{name: "name of an attribute", op: event.OpSetxattr, arg: 1, kind: event.KindText, bytes: []byte("user.alice.rating\x00"), secrets: []any{"alice", "rating"}, stays: []any{"user."}},
		{name: "value of an attribute", op: event.OpSetxattr, arg: 2, kind: event.KindBuf, bytes: []byte("five stars"), secrets: []any{"star"}},
		{name: "access-control list", op: event.OpSetxattr, arg: 2, kind: event.KindBuf, bytes: acl, more: []event.Buf{{Arg: 1, Kind: event.KindText, Inline: []byte("system.posix_acl_access\x00")}}, secrets: []any{uint32(1000), uint32(100)}, stays: []any{uint32(0xffffffff), uint32(2)}},
		{name: "list of attributes", op: event.OpListxattr, arg: 1, kind: event.KindBuf, bytes: []byte("security.selinux\x00user.alice\x00"), secrets: []any{"alice"}, stays: []any{"security.selinux\x00user."}},
		{name: "interface", op: event.OpIoctl, arg: 2, kind: event.KindStruct, args: [6]uint64{3, 0x8915}, bytes: append(bytesOf("enx0123456789ab", 1), append(bytes.Clone(inet), make([]byte, 8)...)...), secrets: []any{"enx0123456789ab", "\xc0\xa8\x01\x4d"}},
		{name: "an unknown request", op: event.OpIoctl, arg: 2, kind: event.KindStruct, args: [6]uint64{3, 0xc0107a01}, bytes: []byte("alice's secret.."), secrets: []any{"alice", "secret"}},
		{name: "content", op: event.OpWrite, arg: 1, kind: event.KindBuf, bytes: []byte("dear alice"), secrets: []any{"alice", "dear"}},
		{name: "random numbers", op: event.OpGetrandom, arg: 0, kind: event.KindBuf, bytes: []byte("0123456789abcdef"), secrets: []any{"0123", "cdef"}},
		{name: "file handle", op: event.OpNameToHandleAt, arg: 2, kind: event.KindStruct, bytes: bytesOf(uint32(8), uint32(1), uint32(123456), uint32(99)), secrets: []any{uint32(123456)}, stays: []any{uint32(8)}},
		{name: "poll", op: event.OpPoll, arg: 0, kind: event.KindStruct, bytes: bytesOf(uint32(3), uint16(1), uint16(1)), stays: []any{uint32(3), uint16(1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			there, back := mappers(AllFields, &trace.Anonymised{Content: trace.ContentEncrypted})
			ev := &event.Event{Op: c.op, Args: c.args, Offset: -1, Count: -1,
				Bufs: append([]event.Buf{{Arg: int8(c.arg), Kind: c.kind, Len: int64(len(c.bytes)),
					Inline: bytes.Clone(c.bytes)}}, c.more...)}
			if err := (&rewriter{m: *there}).buffers(ev); err != nil {
				t.Fatal(err)
			}
			got := ev.Bufs[0].Inline
			for _, s := range c.secrets {
				if b := bytesOf(s); bytes.Contains(got, b) {
					t.Errorf("has %v:\n%q\n%q", s, c.bytes, got)
				} else if !bytes.Contains(c.bytes, b) {
					t.Errorf("the test looks for %v, which is not there", s)
				}
			}
			for _, s := range c.stays {
				if !bytes.Contains(got, bytesOf(s)) {
					t.Errorf("lacks %v:\n%q\n%q", s, c.bytes, got)
				}
			}
			if len(c.secrets) == 0 && !bytes.Equal(got, c.bytes) {
				t.Errorf("was %q, is %q", c.bytes, got)
			}
			if err := (&rewriter{m: *back}).buffers(ev); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(ev.Bufs[0].Inline, c.bytes) {
				t.Errorf("was %q, comes back as %q", c.bytes, ev.Bufs[0].Inline)
			}
		})
	}
}

// TestArguments checks values that stand in arguments and results.
func TestArguments(t *testing.T) {
	minus := func(n int64) uint64 { return uint64(-n) }
	for _, c := range []struct {
		name    string
		ev      event.Event
		changed []int // arguments; event.ResultArg
	}{
		{"kill", event.Event{Op: event.OpKill, Args: [6]uint64{4711, 9}}, []int{0}},
		{"kill a group", event.Event{Op: event.OpKill, Args: [6]uint64{minus(4711), 9}}, []int{0}},
		{"kill all", event.Event{Op: event.OpKill, Args: [6]uint64{minus(1), 9}}, nil},
		{"chown", event.Event{Op: event.OpChown, Args: [6]uint64{0x7000, 1000, 100}}, []int{1, 2}},
		{"chown to root", event.Event{Op: event.OpChown, Args: [6]uint64{0x7000, 0, minus(1)}}, nil},
		{"setresuid", event.Event{Op: event.OpSetresuid, Args: [6]uint64{1000, 1000, 0}}, []int{0, 1}},
		{"getuid", event.Event{Op: event.OpGetuid, Ret: 1000}, []int{event.ResultArg}},
		{"getgid", event.Event{Op: event.OpGetgid, Ret: 1000}, []int{event.ResultArg}},
		{"getpid", event.Event{Op: event.OpGetpid, Ret: 4711}, []int{event.ResultArg}},
		{"fork in the child", event.Event{Op: event.OpFork, Ret: 0}, nil},
		{"wait for a descriptor", event.Event{Op: event.OpWaitid, Args: [6]uint64{3, 5}}, nil},
		{"F_SETOWN", event.Event{Op: event.OpFcntl, Args: [6]uint64{3, 8, 4711}}, []int{2}},
		{"F_SETFL", event.Event{Op: event.OpFcntl, Args: [6]uint64{3, 4, 2048}}, nil},
		{"priority of a user", event.Event{Op: event.OpGetpriority, Args: [6]uint64{2, 1000}, Ret: 20}, []int{1}},
		{"time", event.Event{Op: event.OpTime, Ret: 1_700_000_000}, []int{event.ResultArg}},
		{"read", event.Event{Op: event.OpRead, Args: [6]uint64{3, 0x7000, 4711}, Ret: 1000}, nil},
	} {
		there, back := mappers(AllFields, &trace.Anonymised{})
		ev := c.ev
		there.event(&ev)
		for i := range ev.Args {
			want := bytes.IndexByte(bytesOf(int64s(c.changed)...), byte(i)) >= 0
			if (ev.Args[i] != c.ev.Args[i]) != want {
				t.Errorf("%s: argument %d of %d is %d", c.name, i, int64(c.ev.Args[i]), int64(ev.Args[i]))
			}
		}
		if want := len(c.changed) > 0 && c.changed[0] == event.ResultArg; (ev.Ret != c.ev.Ret) != want {
			t.Errorf("%s: the result of %d is %d", c.name, c.ev.Ret, ev.Ret)
		}
		back.event(&ev)
		if ev.Args != c.ev.Args || ev.Ret != c.ev.Ret {
			t.Errorf("%s: comes back as %+v", c.name, ev)
		}
	}
}

// int64s gives the numbers as bytes, for bytesOf.
func int64s(list []int) (parts []any) {
	for _, n := range list {
		parts = append(parts, int8(n))
	}
	return parts
}
