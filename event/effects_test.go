// SPDX-License-Identifier: Apache-2.0

package event

import "testing"

// Calls that do the same have one effect, requests that of the call that they are like, and events that are no calls
// none. What a call is about is found by name, whichever argument it is.
func TestEffect(t *testing.T) {
	name := func(arg int) Buf {
		return Buf{Arg: int8(arg), Kind: KindText, Len: 7, Inline: []byte("user.a\x00")}
	}
	for _, c := range []struct {
		name   string
		ev     Event
		effect Effect
		mode   uint64
		xattr  string
		at     bool // at the position of the descriptor
	}{
		{"openat2", Event{Op: OpOpenat2}, EffectOpen, 0, "", false},
		{"a request to open", Event{Op: OpUringOpenat, Args: [MaxArgs]uint64{0, 0, 0, 0o640}}, EffectOpen, 0o640, "", false},
		{"fchmodat2", Event{Op: OpFchmodat2, Args: [MaxArgs]uint64{0, 0, 0o600, 1}}, EffectChmod, 0o600, "", false},
		{"chmod", Event{Op: OpChmod, Args: [MaxArgs]uint64{0, 0o604}}, EffectChmod, 0o604, "", false},
		{"unlinkat", Event{Op: OpUnlinkat}, EffectUnlink, 0, "", false},
		{"unlinkat of a directory", Event{Op: OpUnlinkat, Args: [MaxArgs]uint64{0, 0, 0x200}}, EffectRmdir, 0, "", false},
		{"setxattr", Event{Op: OpSetxattr, Bufs: []Buf{name(1)}}, EffectSetXattr, 0, "user.a", false},
		{"setxattrat", Event{Op: OpSetxattrat, Bufs: []Buf{name(3)}}, EffectSetXattr, 0, "user.a", false},
		{"removexattrat", Event{Op: OpRemovexattrat, Bufs: []Buf{name(3)}}, EffectRemoveXattr, 0, "user.a", false},
		{"listxattr", Event{Op: OpListxattr, Bufs: []Buf{name(1)}}, EffectListXattr, 0, "", false},
		{"read", Event{Op: OpRead}, EffectRead, 0, "", true},
		{"pread64", Event{Op: OpPread64, Args: [MaxArgs]uint64{0, 0, 0, 7}}, EffectRead, 0, "", false},
		{"preadv2 at -1", Event{Op: OpPreadv2, Args: [MaxArgs]uint64{0, 0, 0, anyBit}}, EffectRead, 0, "", true},
		{"a request at -1", Event{Op: OpUringWrite, Args: [MaxArgs]uint64{0, 0, 0, anyBit}}, EffectWrite, 0, "", true},
		{"a mark", Event{Kind: Exited, Op: OpOpen}, EffectNone, 0, "", false},
		{"of a newer version", Event{Op: 0xfff0}, EffectNone, 0, "", false},
	} {
		if c.ev.Kind == 0 {
			c.ev.Kind = Call
		}
		if got := c.ev.Effect(); got != c.effect {
			t.Errorf("%s: effect %d, want %d", c.name, got, c.effect)
		}
		if got := c.ev.Named("mode"); got != c.mode {
			t.Errorf("%s: mode %#o, want %#o", c.name, got, c.mode)
		}
		if got := c.ev.XattrName(); got != c.xattr {
			t.Errorf("%s: attribute %q, want %q", c.name, got, c.xattr)
		}
		if got := c.ev.AtPosition(); got != c.at {
			t.Errorf("%s: at the position: %v, want %v", c.name, got, c.at)
		}
	}
}

// Both sides of a copy begin where the offset after it says, or the position of the descriptor.
func TestCopySides(t *testing.T) {
	after := func(arg int, off byte) Buf {
		return Buf{Arg: int8(arg), Kind: KindStruct, Len: 8, Inline: []byte{off, 0, 0, 0, 0, 0, 0, 0}}
	}
	file := func(arg int, pos int64) File { return File{Arg: int8(arg), Known: true, Pos: pos} }
	for _, c := range []struct {
		name     string
		ev       Event
		from, to int64
	}{
		{"copy_file_range at offsets", Event{Op: OpCopyFileRange, Ret: 7, Args: [MaxArgs]uint64{3, 1, 4, 1},
			Bufs: []Buf{after(1, 17), after(3, 27)}}, 10, 20},
		{"splice at positions", Event{Op: OpSplice, Ret: 7, Files: []File{file(0, 9), file(2, 8)}}, 2, 1},
		{"sendfile at an offset", Event{Op: OpSendfile, Ret: 7, Args: [MaxArgs]uint64{3, 4, 1},
			Bufs: []Buf{after(2, 17)}, Files: []File{file(0, 9), file(1, 50)}}, 10, 2},
		{"unknown", Event{Op: OpSendfile, Ret: 7}, -1, -1},
	} {
		from, to := c.ev.CopySides()
		if got := from.Start(&c.ev); got != c.from {
			t.Errorf("%s: from %d, want %d", c.name, got, c.from)
		}
		if got := to.Start(&c.ev); got != c.to {
			t.Errorf("%s: to %d, want %d", c.name, got, c.to)
		}
	}
}
