// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// EventContext is an event with its history. It and its Event are reused by the iteration;
// its Process and open files live on and change.
type EventContext struct {
	*event.Event
	Process *Process // that made the event
	// Ended are the open files whose last descriptor or mapping the event ended: their
	// counters are final.
	Ended []*Open

	opens []*Open // of the event's Files
}

// Open returns the open file of the event's subject (event.Event.Subject), nil if it
// has none.
func (m *EventContext) Open() *Open { return m.OpenOf(m.Subject()) }

// OpenOf returns the open file of one of the event's Files, nil if it was not open.
func (m *EventContext) OpenOf(f *event.File) *Open {
	for i := range m.Files {
		if f == &m.Files[i] {
			return m.opens[i]
		}
	}
	return nil
}

// Open is an open file: what one open made, whoever shares it by dup, fork or
// SCM_RIGHTS.
type Open struct {
	ID event.OpenID // in the tape
	// absolute, at the time of open, best known; as it was passed if its directory is unknown; "" if unknown
	Path string
	Real string // the name that the kernel knew it by when it was last seen, if that is known and is not Path
	Host uint32
	// Opener made it: by the call By, which is event Seq of the tape. Both are 0 if it
	// was open before the recording began, and the Opener is then whose descriptor was
	// seen first.
	Opener   *Process
	TID      uint32 // the Opener's thread, and its name then
	Comm     string
	By       event.Op
	Seq      uint64
	Flags    uint32 // of open(2), as last seen
	Mode     uint32 // type and permissions; 0 if unknown
	Dev, Ino uint64
	// Ender ended it: its last descriptor and mapping, by the call EndedBy, which is
	// event EndedSeq of the tape; EndedBy is 0 if that was the end of the process.
	// Ender is nil while it is open.
	Ender    *Process
	EndedBy  event.Op
	EndedSeq uint64
	// OpenedNS and EndedNS are the returns of the calls that made and ended it,
	// monotonic on its host; 0 if it was not seen.
	OpenedNS, EndedNS int64
	FirstSize, Size   int64 // of the file, when first and last seen; -1 if unknown

	Calls                   uint64 // that used it in any way
	Reads, Writes, Seeks    uint64 // calls
	Closes                  uint64 // calls of close, each of one descriptor
	ReadBytes, WrittenBytes int64
	Access

	file *posix.OpenFile
}

// Shared returns how many descriptors, mappings and messages had the open file at a
// time, at most.
func (o *Open) Shared() int {
	if o.file == nil { // the call that made it also ended it
		return 1
	}
	return o.file.Shared()
}

// Access is the order of the reads and writes of an open file.
type Access struct {
	Located uint64 // reads and writes that succeeded and whose offset is known
	// Consecutive of them began where the one before ended, and Ascending ones there or
	// behind. The first is neither.
	Consecutive, Ascending uint64
	Switches               uint64 // from reading to writing, and back
	Max                    int64  // where the bytes end that lie furthest from the start

	next  int64 // where the last one ended
	wrote bool  // that it was a write
}

// Sequential reports whether each read and write began where the one before ended, as
// far as is known.
func (a *Access) Sequential() bool { return a.Located > 0 && a.Consecutive == a.Located-1 }

func (a *Access) add(offset, n int64, write bool) {
	if a.Located > 0 {
		if offset == a.next {
			a.Consecutive++
		}
		if offset >= a.next {
			a.Ascending++
		}
		if write != a.wrote {
			a.Switches++
		}
	}
	a.Located++
	a.next, a.wrote = offset+n, write
	a.Max = max(a.Max, a.next)
}

// Process is a process, from its fork to the end of its last thread. Its number may
// have been another's before.
type Process struct {
	Host, PID, PPID uint32
	UID, GID        uint32   // as last seen
	Parent          *Process // nil if it is not in the tape
	Comm            string   // as last seen
	Exe             string   // of its last exec; "" if none was seen
	Argv            []string // likewise
	// StartNS is the time of its fork or first event, EndNS of its end or last event,
	// monotonic on its host.
	StartNS, EndNS int64
	Ended          bool
	Status         int64 // wait status, once Ended

	threads int // that are alive
}

// In reports whether the process is root or one of its descendants.
func (p *Process) In(root *Process) bool {
	for ; p != nil; p = p.Parent {
		if p == root {
			return true
		}
	}
	return false
}

// Events iterates over all events of a tape in order, with their history. Errors are
// those of trace.Tape.Events; after one the history has a gap and goes on.
func Events(t *trace.Tape) iter.Seq2[*EventContext, error] {
	return func(yield func(*EventContext, error) bool) {
		h := New(t)
		for ev, err := range t.Events() {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !yield(h.Step(ev), nil) {
				return
			}
		}
	}
}

// History is the state at an event, for those who read the events themselves: Events
// is the easy way.
type History struct {
	tape   *trace.Tape
	hosts  map[uint32]*host
	moment EventContext
	told   savedFields
	buf    []byte
}

// New returns the history of a tape before its first event.
func New(t *trace.Tape) *History { return &History{tape: t, hosts: map[uint32]*host{}} }

// Opens iterates over the files that are open, in order of their numbers in the tape.
func (w *History) Opens() iter.Seq[*Open] {
	var all []*Open
	for _, h := range w.hosts {
		all = slices.AppendSeq(all, maps.Values(h.opens))
	}
	slices.SortFunc(all, func(a, b *Open) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID)) })
	return slices.Values(all)
}

// host is the state of one host.
type host struct {
	model     *posix.Model
	opens     map[event.OpenID]*Open // by the model's number
	processes map[uint32]*Process
}

// Step applies the next event and returns it with its history. What the tape says of
// the event stays as it is.
func (w *History) Step(ev *event.Event) *EventContext {
	h := w.hosts[ev.Host]
	if h == nil {
		h = &host{model: posix.New(), opens: map[event.OpenID]*Open{}, processes: map[uint32]*Process{}}
		w.hosts[ev.Host] = h
	}
	m := &w.moment
	*m = EventContext{Event: ev, Process: w.process(h, ev), Ended: m.Ended[:0], opens: m.opens[:0]}

	w.told.save(ev)
	ended := h.model.Apply(ev)
	for i := range ev.Files {
		f := &ev.Files[i]
		var o *Open
		if i < len(w.told.ids) && f.Open != 0 {
			if o = h.opens[f.Open]; o == nil {
				o = &Open{
					ID: w.told.ids[i], Host: ev.Host, Opener: m.Process, TID: ev.TID, Comm: ev.Comm,
					FirstSize: -1, Size: -1, file: h.model.Open(f.Open),
				}
				if ev.Kind == event.Call && (f.Arg == event.ResultArg || f.Arg == event.MemoryArg) {
					o.By, o.Seq, o.OpenedNS = ev.Op, ev.Seq, ev.Exit
					if len(ev.Paths) > 0 && f.Path == "" && w.told.names[i] == "" {
						o.Path = ev.Paths[0].Raw
					}
				}
				h.opens[f.Open] = o
			}
		}
		m.opens = append(m.opens, o)
	}
	w.told.restore(ev)
	m.opens = m.opens[:len(ev.Files)]
	for i, o := range m.opens {
		if o != nil {
			o.observe(&ev.Files[i])
		}
	}
	m.count()
	for _, id := range ended {
		if o := h.opens[id]; o != nil {
			o.Ender, o.EndedBy, o.EndedSeq, o.EndedNS = m.Process, ev.Op, ev.Seq, ev.Exit
			if ev.Kind != event.Call {
				o.EndedBy = 0
			}
			m.Ended = append(m.Ended, o)
			delete(h.opens, id)
		}
	}
	return m
}

// savedFields has the fields of an event that the model would overwrite with its own: it
// numbers open files anew, and does not know what happened in front of a slice.
type savedFields struct {
	ids           []event.OpenID
	names         []string // of Files, then of Paths
	reals         []string // of Files
	offset, count int64
}

func (t *savedFields) save(ev *event.Event) {
	t.ids, t.names, t.reals = t.ids[:0], t.names[:0], t.reals[:0]
	for i := range ev.Files {
		f := &ev.Files[i]
		t.ids, t.names, t.reals = append(t.ids, f.Open), append(t.names, f.Path), append(t.reals, f.Real)
	}
	for i := range ev.Paths {
		t.names = append(t.names, ev.Paths[i].Abs)
	}
	t.offset, t.count = ev.Offset, ev.Count
}

// restore makes the event what it was; names that the tape does not have are the
// model's.
func (t *savedFields) restore(ev *event.Event) {
	ev.Files = ev.Files[:min(len(ev.Files), len(t.ids))]
	for i := range ev.Files {
		f := &ev.Files[i]
		if f.Open = t.ids[i]; t.names[i] != "" {
			f.Path, f.Real = t.names[i], t.reals[i]
		}
	}
	for i, name := range t.names[len(t.ids):] {
		if name != "" {
			ev.Paths[i].Abs = name
		}
	}
	ev.Offset, ev.Count = t.offset, t.count
}

// observe updates the open file with what an event says of it.
func (o *Open) observe(f *event.File) {
	if f.Path != "" && o.Path == "" {
		o.Path = f.Path
	}
	if o.Real = f.Reached(); o.Real == o.Path {
		o.Real = ""
	}
	if !f.Known {
		return
	}
	o.Flags, o.Mode, o.Dev, o.Ino = f.Flags, f.Mode, f.Dev, f.Ino
	if o.Size = f.Size; o.FirstSize < 0 {
		o.FirstSize = f.Size
	}
}

// count adds the event to the counters of its open files.
func (m *EventContext) count() {
	if m.Kind != event.Call {
		return
	}
	io := m.Traffic()
	located := m.Offset >= 0 && m.OK() && io.Reads != io.Writes // of one file
	for i, o := range m.opens {
		f := &m.Files[i]
		if o == nil || slices.Contains(m.opens[:i], o) && f != io.From && f != io.To {
			continue
		}
		if !slices.Contains(m.opens[:i], o) {
			o.Calls++
		}
		if f == io.From {
			o.Reads++
			o.ReadBytes += io.Read
			if located {
				o.add(m.Offset, io.Read, false)
			}
		}
		if f == io.To {
			o.Writes++
			o.WrittenBytes += io.Written
			if located {
				o.add(m.Offset, io.Written, true)
			}
		}
		switch m.Op.Like() {
		case event.OpLseek:
			o.Seeks++
		case event.OpClose:
			o.Closes++
		}
	}
}

// process returns the process of an event, and applies the event to it.
func (w *History) process(h *host, ev *event.Event) *Process {
	p := h.processes[ev.PID]
	if p == nil || p.Ended && ev.Kind != event.Exited {
		p = h.start(ev, ev.PID, ev.PPID, ev.Enter)
	}
	p.EndNS = max(p.EndNS, ev.Exit)
	p.UID, p.GID = ev.UID, ev.GID
	if ev.Comm != "" {
		p.Comm = ev.Comm
	}
	if ev.PPID != 0 {
		p.PPID = ev.PPID
	}
	switch {
	case ev.Kind == event.Forked:
		if pid := ev.Fork().PID; pid == ev.PID {
			p.threads++
		} else {
			c := h.start(ev, pid, ev.PID, ev.Exit)
			c.Exe, c.Argv = p.Exe, p.Argv
		}
	case ev.Kind == event.Exited:
		if p.threads--; p.threads <= 0 {
			p.Ended = true
		}
		if ev.TID == ev.PID || p.Ended && p.Status == 0 {
			p.Status = int64(ev.ExitStatus())
		}
	case ev.Effect() == event.EffectExecute && ev.OK():
		w.exec(p, ev)
	}
	return p
}

// start makes a process with one thread.
func (h *host) start(ev *event.Event, pid, ppid uint32, ns int64) *Process {
	p := &Process{Host: ev.Host, PID: pid, PPID: ppid, UID: ev.UID, GID: ev.GID, Comm: ev.Comm, StartNS: ns, EndNS: ns,
		threads: 1}
	if parent := h.processes[ppid]; parent != nil && ppid != pid {
		p.Parent = parent
	}
	h.processes[pid] = p
	return p
}

// maxArgv is the most memory that is read for a process's arguments, in bytes.
const maxArgv = 1 << 20

// exec notes what a process has become. Its other threads are gone.
func (w *History) exec(p *Process, ev *event.Event) {
	p.threads = 1
	if len(ev.Paths) > 0 {
		if p.Exe = ev.Paths[0].Abs; p.Exe == "" {
			p.Exe = ev.Paths[0].Raw
		}
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Kind != event.KindStrings || b.Len > maxArgv {
			continue
		}
		var err error
		if w.buf, _, err = w.tape.ContentZero(b, w.buf[:0]); err == nil {
			p.Argv = strings.Split(strings.TrimSuffix(string(w.buf), "\x00"), "\x00")
		}
		return
	}
}
