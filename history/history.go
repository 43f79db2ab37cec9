package history

import (
	"iter"
	"slices"
	"strings"

	"iotape/event"
	"iotape/posix"
	"iotape/trace"
)

// Moment is an event with its history. It and its Event are reused by the iteration;
// its Process and open files live on and change.
type Moment struct {
	*event.Event
	Process *Process // that made the event
	// Ended are the open files whose last descriptor or mapping the event ended: their
	// counters are final.
	Ended []*Open

	opens []*Open // of the event's Files
}

// Open returns the open file of the event's subject (event.Event.Subject), nil if it
// has none.
func (m *Moment) Open() *Open { return m.OpenOf(m.Subject()) }

// OpenOf returns the open file of one of the event's Files, nil if it was not open.
func (m *Moment) OpenOf(f *event.File) *Open {
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
	ID   event.OpenID // in the tape
	Path string       // absolute, at the time of open, best known; "" if unknown
	Host uint32
	// Opener made it: by the call By, which is event Seq of the tape. Both are 0 if it
	// was open before the recording began, and the Opener is then whose descriptor was
	// seen first.
	Opener   *Process
	By       event.Op
	Seq      uint64
	Flags    uint32 // of open(2), as last seen
	Mode     uint32 // type and permissions; 0 if unknown
	Dev, Ino uint64
	// OpenedNS and EndedNS are the returns of the calls that made and ended it,
	// monotonic on its host; 0 if it was not seen.
	OpenedNS, EndedNS int64
	FirstSize, Size   int64 // of the file, when first and last seen; -1 if unknown

	Calls                   uint64 // that used it in any way
	Reads, Writes, Seeks    uint64 // calls
	ReadBytes, WrittenBytes int64
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
func Events(t *trace.Tape) iter.Seq2[*Moment, error] {
	return func(yield func(*Moment, error) bool) {
		w := &walk{tape: t, hosts: map[uint32]*host{}}
		for ev, err := range t.Events() {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !yield(w.step(ev), nil) {
				return
			}
		}
	}
}

type walk struct {
	tape   *trace.Tape
	hosts  map[uint32]*host
	moment Moment
	ids    []event.OpenID
	buf    []byte
}

// host is the state of one host.
type host struct {
	model     *posix.Model
	opens     map[event.OpenID]*Open // by the model's number
	processes map[uint32]*Process
}

func (w *walk) step(ev *event.Event) *Moment {
	h := w.hosts[ev.Host]
	if h == nil {
		h = &host{model: posix.New(), opens: map[event.OpenID]*Open{}, processes: map[uint32]*Process{}}
		w.hosts[ev.Host] = h
	}
	m := &w.moment
	*m = Moment{Event: ev, Process: w.process(h, ev), Ended: m.Ended[:0], opens: m.opens[:0]}

	// The model numbers open files in its own way, which is not the tape's where that
	// was sliced or merged.
	w.ids = w.ids[:0]
	for i := range ev.Files {
		w.ids = append(w.ids, ev.Files[i].Open)
	}
	ended := h.model.Apply(ev)
	for i := range ev.Files {
		f := &ev.Files[i]
		var o *Open
		if i < len(w.ids) && f.Open != 0 {
			if o = h.opens[f.Open]; o == nil {
				o = &Open{ID: w.ids[i], Host: ev.Host, Opener: m.Process, FirstSize: -1, Size: -1}
				if ev.Kind == event.Call && (f.Arg == event.ResultArg || f.Arg == event.MemoryArg) {
					o.By, o.Seq, o.OpenedNS = ev.Op, ev.Seq, ev.Exit
				}
				h.opens[f.Open] = o
			}
			o.see(f)
			f.Open = w.ids[i]
		}
		m.opens = append(m.opens, o)
	}
	m.count()
	for _, id := range ended {
		if o := h.opens[id]; o != nil {
			o.EndedNS = ev.Exit
			m.Ended = append(m.Ended, o)
			delete(h.opens, id)
		}
	}
	return m
}

// see takes over what an event says of an open file.
func (o *Open) see(f *event.File) {
	if f.Path != "" && o.Path == "" {
		o.Path = f.Path
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
func (m *Moment) count() {
	if m.Kind != event.Call {
		return
	}
	io := m.Traffic()
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
		}
		if f == io.To {
			o.Writes++
			o.WrittenBytes += io.Written
		}
		if m.Op == event.OpLseek {
			o.Seeks++
		}
	}
}

// process returns the process of an event, and applies the event to it.
func (w *walk) process(h *host, ev *event.Event) *Process {
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
		if pid := uint32(ev.Ret); pid == ev.PID {
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
			p.Status = ev.Ret
		}
	case ev.Kind == event.Call && (ev.Op == event.OpExecve || ev.Op == event.OpExecveat) && ev.OK():
		w.exec(p, ev)
	}
	return p
}

// start makes a process with one thread.
func (h *host) start(ev *event.Event, pid, ppid uint32, ns int64) *Process {
	p := &Process{Host: ev.Host, PID: pid, PPID: ppid, UID: ev.UID, GID: ev.GID, Comm: ev.Comm, StartNS: ns, EndNS: ns, threads: 1}
	if parent := h.processes[ppid]; parent != nil && ppid != pid {
		p.Parent = parent
	}
	h.processes[pid] = p
	return p
}

// maxArgv is the most memory that is read for a process's arguments, in bytes.
const maxArgv = 1 << 20

// exec notes what a process has become. Its other threads are gone.
func (w *walk) exec(p *Process, ev *event.Event) {
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
