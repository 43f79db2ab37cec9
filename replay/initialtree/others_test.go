// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"encoding/binary"
	"slices"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
)

// What others changed is found by what calls saw before and after; what a recorded call did is not.
func TestOthers(t *testing.T) {
	stat := func(name string, ino, mtime, size uint64) *event.Event {
		b := make([]byte, event.LayoutStat.Bytes(event.AMD64))
		for at, v := range map[int]uint64{0: 1, 8: ino, 16: 1, 24: syscall.S_IFREG | 0o644, 48: size, 88: mtime} {
			binary.LittleEndian.PutUint64(b[at:], v)
		}
		return &event.Event{Op: event.OpStat, Paths: []event.Path{{Abs: name, Raw: name}},
			Bufs: []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindStruct, Len: int64(len(b)), Inline: b}}}
	}
	none := func(name string) *event.Event {
		return &event.Event{Op: event.OpStat, Errno: syscall.ENOENT, Ret: -1,
			Paths: []event.Path{{Abs: name, Raw: name}}}
	}
	file := func(ino uint64, flags uint32) event.File {
		return event.File{Known: true, Dev: 1, Ino: ino, Mode: syscall.S_IFREG, Flags: flags, Path: "/f"}
	}
	write := &event.Event{Op: event.OpWrite, Ret: 1, Count: 1, Files: []event.File{file(7, syscall.O_WRONLY)}}
	read := &event.Event{Op: event.OpRead, Ret: 1, Count: 1, Files: []event.File{file(7, syscall.O_RDONLY)}}
	rename := &event.Event{Op: event.OpRename, Paths: []event.Path{{Abs: "/g", Raw: "/g"},
		{Arg: 1, Abs: "/f", Raw: "/f"}}}
	renameDir := &event.Event{Op: event.OpRename, Paths: []event.Path{{Abs: "/e", Raw: "/e"},
		{Arg: 1, Abs: "/d", Raw: "/d"}}}
	for name, c := range map[string]struct {
		events []*event.Event
		want   []string
	}{
		"nothing":                  {[]*event.Event{stat("/f", 7, 1, 5), read, stat("/f", 7, 1, 5)}, nil},
		"changed":                  {[]*event.Event{stat("/f", 7, 1, 5), read, stat("/f", 7, 2, 5)}, []string{"/f"}},
		"grown":                    {[]*event.Event{stat("/f", 7, 1, 5), stat("/f", 7, 1, 6)}, []string{"/f"}},
		"written":                  {[]*event.Event{stat("/f", 7, 1, 5), write, stat("/f", 7, 2, 6)}, nil},
		"replaced":                 {[]*event.Event{stat("/f", 7, 1, 5), stat("/f", 8, 1, 5)}, []string{"/f"}},
		"replaced by a rename":     {[]*event.Event{stat("/f", 7, 1, 5), rename, stat("/f", 8, 1, 5)}, nil},
		"in a renamed directory":   {[]*event.Event{stat("/d/f", 7, 1, 5), renameDir, stat("/d/f", 8, 1, 5)}, nil},
		"made":                     {[]*event.Event{none("/f"), stat("/f", 7, 1, 5)}, []string{"/f"}},
		"removed":                  {[]*event.Event{stat("/f", 7, 1, 5), none("/f")}, []string{"/f"}},
		"what the kernel makes up": {[]*event.Event{stat("/proc/f", 7, 1, 5), stat("/proc/f", 7, 2, 5)}, nil},
	} {
		o := newOthers()
		for _, ev := range c.events {
			o.observe(ev, event.AMD64)
		}
		if got := o.result(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
