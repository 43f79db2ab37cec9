// SPDX-License-Identifier: Apache-2.0

package posix

import "github.com/iotape/iotape/event"

// Descriptors that travel: in messages (SCM_RIGHTS, unix(7)), and from one process
// to another by pidfd_getfd(2). The receiver's number is a new one, the open file
// is the sender's. A trace does not say which message a receiver got, so the model
// goes by what the kernel said of the file on both sides: device, inode and open
// flags, and among equal ones the order of sending. Of foreign traces, which do not
// have what the kernel said, it goes by names and the order of sending.

// early is an open file that was received by a call that returned before the call
// that sent it.
type early struct {
	id   event.OpenID
	exit int64
}

// maxFlights bounds the files in messages: some are never received by a process that
// the trace follows.
const maxFlights = 4096

// sent holds the files of a message that was sent.
func (m *Model) sent(_ *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		o := m.opens[f.Open]
		if f.Arg != event.MemoryArg || o == nil || m.arrivedEarly(o.ID, ev.Enter) {
			continue
		}
		o.ref()
		m.flights = append(m.flights, o)
		if len(m.flights) > maxFlights {
			m.unref(m.flights[0])
			m.flights = m.flights[1:]
		}
	}
}

// arrivedEarly reports whether a file was received already, by a call that returned
// after this one began.
func (m *Model) arrivedEarly(id event.OpenID, enter int64) bool {
	for i, e := range m.early {
		if e.id == id && e.exit >= enter {
			m.early = append(m.early[:i], m.early[i+1:]...)
			return true
		}
	}
	return false
}

// received installs the files of a message.
func (m *Model) received(t *Thread, ev *event.Event) {
	const msgPeek = 2
	if !ev.OK() {
		return
	}
	peek := ev.Op.Like() == event.OpRecvmsg && ev.Args[2]&msgPeek != 0
	for i := range ev.Files {
		f := &ev.Files[i]
		if f.Arg != event.MemoryArg {
			continue
		}
		o := m.land(f, ev, peek)
		if o == nil {
			m.open(t.Table, f, ev.Exit)
			continue
		}
		m.install(t.Table, f.FD, o, f.Flags&event.OpenCloexec != 0, ev.Exit)
		o.describe(f)
	}
}

// land returns the open file that a descriptor of a message stands for, nil if the
// model knows none.
func (m *Model) land(f *event.File, ev *event.Event, peek bool) *OpenFile {
	for i, o := range m.flights {
		unknown := !f.Known && o.Ino == 0 && (f.Path == "" || o.Path == f.Path)
		if !unknown && !sameFile(o, f) {
			continue
		}
		if !peek {
			m.flights = append(m.flights[:i], m.flights[i+1:]...)
			o.refs-- // its descriptor's takes over
		}
		return o
	}
	o := m.find(f)
	if o != nil && !peek {
		m.early = append(m.early, early{o.ID, ev.Exit})
		if len(m.early) > maxFlights {
			m.early = m.early[1:]
		}
	}
	return o
}

// find returns the first open file that a file can be, nil if there is none.
func (m *Model) find(f *event.File) *OpenFile {
	var found *OpenFile
	for _, o := range m.opens {
		if sameFile(o, f) && (found == nil || o.ID < found.ID) {
			found = o
		}
	}
	return found
}

// sameFile reports whether an open file can be what the kernel said of a descriptor.
func sameFile(o *OpenFile, f *event.File) bool {
	const perDescriptor = event.OpenCloexec | event.OpenCreat
	return f.Known && o.Ino != 0 && o.Dev == f.Dev && o.Ino == f.Ino && (o.Flags^f.Flags)&^perDescriptor == 0
}

// fetched lets the result of pidfd_getfd stand for the other process's open file.
func (m *Model) fetched(t *Thread, ev *event.Event) {
	if !ev.OK() {
		return
	}
	f := ev.FileArg(event.ResultArg)
	if f == nil {
		ev.Files = append(ev.Files, event.File{Arg: event.ResultArg, FD: int32(ev.Ret)})
		f = &ev.Files[len(ev.Files)-1]
	}
	var o *OpenFile
	if p := t.Table.Lookup(int32(ev.Args[0])); p != nil && p.Open.PID != 0 {
		if other := m.threads[p.Open.PID]; other != nil {
			if d := other.Table.Lookup(int32(ev.Args[1])); d != nil &&
				(!f.Known || d.Open.Ino == 0 || sameFile(d.Open, f)) {
				o = d.Open
			}
		}
	}
	if o == nil {
		o = m.find(f)
	}
	if o == nil {
		m.open(t.Table, f, ev.Exit)
		return
	}
	m.install(t.Table, f.FD, o, true, ev.Exit) // always close-on-exec
	o.describe(f)
}

// openedProcess notes which process a pidfd stands for.
func (m *Model) openedProcess(t *Thread, ev *event.Event) {
	m.opened(t, ev)
	if d := t.Table.Lookup(int32(ev.Ret)); d != nil && ev.OK() {
		d.Open.PID = uint32(ev.Args[0])
	}
}
