// SPDX-License-Identifier: Apache-2.0

package order

import (
	"encoding/binary"
	"testing"

	"github.com/iotape/iotape/event"
)

// btrfs tells stat another device than the one that open files are known to be on: what
// stat says of a name is of the file that was written all the same.
func TestSubvolume(t *testing.T) {
	const file, tells = 1, 40 // devices
	stat := func(a act) *event.Event {
		ev := a.event(0, 0, 0)
		b := make([]byte, 144) // struct stat of x86-64
		binary.LittleEndian.PutUint64(b, tells)
		binary.LittleEndian.PutUint64(b[8:], 5)
		ev.Bufs = append(ev.Bufs, event.Buf{
			Arg: 1, Dir: event.Out, Kind: event.KindStruct, Len: int64(len(b)), Inline: b,
		})
		return ev
	}
	lstat := func() *event.Event {
		ev := stat(on(event.OpLstat, "/f"))
		ev.Files = nil
		return ev
	}
	o := New(Resource)
	var writer Ref
	for _, ev := range []*event.Event{
		create("/f", 5, 3).event(1, 0, 1), stat(act{op: event.OpFstat, open: 3}), lstat(),
		at(event.OpWrite, 5, 3, 0, 10, 10).event(1, 0, 1),
	} {
		writer, _ = o.Place(0, ev, true, nil)
	}
	_, deps := o.Place(1, lstat(), true, nil)
	if len(deps) != 1 || deps[0] != writer {
		t.Errorf("the other thread's lstat waits for %v, want %v, the write", deps, writer)
	}
}
