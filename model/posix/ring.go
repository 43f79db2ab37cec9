// SPDX-License-Identifier: Apache-2.0

package posix

import "github.com/iotape/iotape/event"

// An io_uring has a table of open files of its own (io_uring_register(2)), whose
// slots requests name in place of descriptors. It ends with the ring.

// noRing is the number under which a table has the files of rings of which it is not
// known how they are called.
const noRing = -1

// tableOf returns the table in which a descriptor of an event stands: the thread's
// own, or a ring's.
func (m *Model) tableOf(t *Thread, ev *event.Event, arg int) *Table {
	if r, ok := ev.Request(); ok && r.InSlot(&ev.Args, arg) {
		return m.ring(t, int32(r.Queue), ev.Enter)
	}
	return t.Table
}

// ring returns the files of the ring that a thread's descriptor stands for.
func (m *Model) ring(t *Thread, fd int32, now int64) *Table {
	if fd < 0 {
		fd = noRing
	}
	d := t.Table.Lookup(fd)
	if d == nil { // made where the trace did not see it
		m.open(t.Table, &event.File{FD: fd}, now)
		d = t.Table.Lookup(fd)
	}
	if d.Open.files == nil {
		d.Open.files = &Table{slots: map[int32]*Descriptor{}, users: 1, ring: true}
	}
	return d.Open.files
}

// resultTable returns the table and the number that a call's new descriptor has.
func (m *Model) resultTable(t *Thread, ev *event.Event) (*Table, int32) {
	if r, ok := ev.Request(); ok {
		if slot, ok := r.Slot(ev.Ret); ok {
			return m.ring(t, int32(r.Queue), ev.Exit), slot
		}
	}
	return t.Table, int32(ev.Ret)
}

// Operations of io_uring_register about files (linux/io_uring.h).
const (
	unregisterFiles = 3
	filesSkip       = -2 // IORING_REGISTER_FILES_SKIP
)

// registered fills a ring's table.
func (m *Model) registered(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	ring := int32(noRing) // of a request whose head is not in the trace
	if r, ok := ev.Request(); ok {
		ring = int32(r.Queue)
	} else if ev.Op == event.OpIoUringRegister {
		ring = int32(ev.Args[0])
	}
	tab := m.ring(t, ring, ev.Exit)
	if ev.Op == event.OpIoUringRegister && ev.Args[1] == unregisterFiles {
		m.clear(tab)
		return
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Arg == event.RequestArg || b.Kind != event.KindStruct || len(b.Inline) < 8 {
			continue
		}
		first := le32(b.Inline)
		for j, list := int32(0), b.Inline[8:]; len(list) >= 4; j, list = j+1, list[4:] {
			fd := le32(list)
			if fd == filesSkip {
				continue
			}
			m.drop(tab, first+j)
			if d := t.Table.Lookup(fd); d != nil {
				m.install(tab, first+j, d.Open, false, ev.Exit)
			}
		}
	}
}

// installed gives a slot's open file a descriptor.
func (m *Model) installed(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	const noCloexec = 1 // IORING_FIXED_FD_NO_CLOEXEC
	if d := m.tableOf(t, ev, 0).Lookup(int32(ev.Args[0])); d != nil {
		m.install(t.Table, int32(ev.Ret), d.Open, ev.Args[1]&noCloexec == 0, ev.Exit)
		stands(ev, int32(ev.Ret), d.Open)
	}
}

// closedSlot empties a slot of a ring's table.
func (m *Model) closedSlot(t *Thread, ev *event.Event, r *event.Request, slot int32) {
	if ev.OK() {
		m.drop(m.ring(t, int32(r.Queue), ev.Exit), slot)
	}
}
