// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// maxHandles bounds the file handles that are remembered.
const maxHandles = 1 << 14

// handled learns which file a handle stands for (name_to_handle_at(2)).
func (m *Model) handled(_ *Thread, ev *event.Event) {
	key := handleKey(ev, 2)
	if !ev.OK() || key == "" || len(ev.Paths) == 0 || len(m.handles) >= maxHandles {
		return
	}
	if ev.Paths[0].Abs != "" {
		m.handles[key] = nameOf(ev.Paths[0].Abs, ev.Paths[0].Real)
	} else if f := ev.FileArg(0); f != nil { // AT_EMPTY_PATH
		m.handles[key] = nameOf(f.Path, f.Real)
	}
}

// handleKey returns the handle that argument i of an event has: a length in bytes, a type, and so
// many bytes; "" if it was not recorded.
func handleKey(ev *event.Event, i int) string {
	const head = 8
	b := ev.BufArg(i)
	if b == nil || len(b.Inline) < head {
		return ""
	}
	n := uint64(binary.LittleEndian.Uint32(b.Inline)) + head
	if uint64(len(b.Inline)) < n {
		return ""
	}
	return string(b.Inline[:n])
}
