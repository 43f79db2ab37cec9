// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// FuzzNames checks that names and texts of any bytes come back, and keep their length and
// their slashes.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"/home/alice/notes.txt", "/proc/4711/fd/7", "pipe:[4711]", "/memfd:x (deleted)",
		"a\x00b", "0", "..", "\xff\xfe/", "fd/63", "memfd:memfd:", " (deleted)"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	var theres, backs [2]*mapper
	theres[0], backs[0] = mappers(AllFields, &trace.Anonymised{})
	theres[1], backs[1] = mappers(AllFields, &trace.Anonymised{KeepExtensions: true})
	f.Fuzz(func(t *testing.T, b []byte, keep bool) {
		if len(b) > 4096 {
			return
		}
		there, back := theres[0], backs[0]
		if keep {
			there, back = theres[1], backs[1]
		}
		to := there.path(string(b))
		if again := back.path(to); again != string(b) || len(to) != len(b) ||
			bytes.Count([]byte(to), []byte("/")) != bytes.Count(b, []byte("/")) {
			t.Fatalf("path %q becomes %q and comes back as %q", b, to, again)
		}
		text := there.string(Arg, string(b))
		if again := back.string(Arg, text); again != string(b) ||
			bytes.IndexByte([]byte(text), 0) >= 0 != (bytes.IndexByte(b, 0) >= 0) {
			t.Fatalf("text %q becomes %q and comes back as %q", b, text, again)
		}
		if again := back.json(Arg, there.json(Arg, string(b))); again != string(b) {
			t.Fatalf("%q comes back from JSON as %q", b, again)
		}
	})
}

// FuzzMemory checks that the memory of any call comes back, whatever bytes stand there.
func FuzzMemory(f *testing.F) {
	for _, op := range []event.Op{event.OpStat, event.OpStatx, event.OpGetdents64, event.OpConnect, event.OpSendmsg,
		event.OpIoctl, event.OpSetsockopt, event.OpWaitid, event.OpUname, event.OpTimerfdSettime, event.OpSetxattr} {
		f.Add(uint16(op), uint8(1), uint64(1), bytes.Repeat([]byte{2, 0, 0, 80, 127, 1, 2, 3, 9}, 30))
	}
	there, back := mappers(AllFields, &trace.Anonymised{Content: trace.ContentEncrypted})
	f.Fuzz(func(t *testing.T, op uint16, arg uint8, value uint64, b []byte) {
		if !event.Op(op).Known() || len(b) > 1<<16 {
			return
		}
		// There and back, for which a structure that was mapped has to be read as before.
		made := func() *event.Event {
			ev := &event.Event{Op: event.Op(op), Offset: -1, Count: -1,
				Args: [event.MaxArgs]uint64{value, value, value, value, value, value}}
			a := ev.Spec().Args
			if int(arg) < len(a) {
				kind := ev.Spec().Argument(int(arg), &ev.Args).Kind
				if !kind.IsMemory() {
					kind = event.KindBuf
				}
				ev.Bufs = []event.Buf{{Arg: int8(arg), Kind: kind, Len: int64(len(b)), Inline: bytes.Clone(b)}}
			}
			return ev
		}
		ev := made()
		if len(ev.Bufs) == 0 {
			return
		}
		for _, m := range []*mapper{there, back} {
			x := rewriter{m: *m}
			if err := x.buffers(ev); err != nil {
				t.Fatal(err)
			}
			if len(ev.Bufs[0].Inline) != len(b) {
				t.Fatalf("%d bytes become %d", len(b), len(ev.Bufs[0].Inline))
			}
		}
		if !bytes.Equal(ev.Bufs[0].Inline, b) {
			t.Fatalf("%s, argument %d:\n%x\n%x", ev.Op, arg, b, ev.Bufs[0].Inline)
		}
	})
}

// FuzzKeys checks that what is read as keys is written as the same.
func FuzzKeys(f *testing.F) {
	f.Add(testKeys().encode())
	f.Add([]byte("# nothing\npath 00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := ParseKeys(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := ParseKeys(bytes.NewReader(keys.encode()))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(keys) {
			t.Fatalf("%v comes back as %v, %v", keys, again, err)
		}
	})
}
