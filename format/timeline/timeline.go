// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/model/history"
	"github.com/iotape/iotape/trace"
)

// Process is a process of the host.
type Process struct {
	ID             uint64 // in one Walk, from 1; shared with tracks
	PID, PPID, UID uint32
	Name           string   // of the program that it runs
	Argv           []string // as given to the last exec; nil if none was seen
	Start          int64    // ns; of its fork or first event
}

// Track is a line of slices: a thread, or a lane of one.
type Track struct {
	ID      uint64 // in one Walk, from 1; shared with processes
	Process *Process
	TID     uint32
	Name    string // of the thread
	Lane    int    // 0: the thread itself; from 1: requests beside its calls
	Thread  *Track // that a lane belongs to; nil of a thread
}

// Slice is a call or request on its track. Times are ns of the host's clock.
type Slice struct {
	Track       *Track
	Begin, End  int64
	Name, Class string
	Args        []Arg
	Out, In     []uint64 // arrows that leave it and lead to it
	// Received are arrows that lead to its return: it began before what they come from.
	Received []uint64
}

// Mark is something without a duration.
type Mark struct {
	Track *Track // nil: of the whole host
	Time  int64
	Name  string
	Args  []Arg
	In    []uint64 // arrows that lead to it
}

// Arg is a detail of a slice or mark: a text, or else a number.
type Arg struct {
	Name, Text string
	Number     int64
}

// Counter is what a Count is of. All are sums of a process.
type Counter uint8

// The counters.
const (
	BytesRead    Counter = iota // since the process was first seen
	BytesWritten                // likewise
	// that the process opened and nobody has closed yet; one however many descriptors there are of it
	OpenFiles
	NumCounters
)

func (c Counter) String() string {
	return [...]string{"bytes read", "bytes written", "open files"}[c]
}

// Count is the value of a counter from a time on.
type Count struct {
	Process *Process
	Counter Counter
	Time    int64
	Value   int64
	First   bool // of this counter
}

// Sink takes what Walk tells. A process or track is told before what is on it, and
// again when its name has changed. What the pointers point to is Walk's; a Slice or
// Mark and their lists are reused.
type Sink interface {
	Process(p *Process) error
	Track(t *Track) error
	Slice(s *Slice) error
	Mark(m *Mark) error
	Count(c *Count) error
}

// maxLanes is how many requests of a thread are shown at a time.
const maxLanes = 1 << 12

// Walk tells the events of one of a tape's hosts, in the tape's order, which is that of
// returns. It counts the calls in done.Records.
func Walk(ctx context.Context, t *trace.Tape, host uint32, sink Sink, done *format.Done) error {
	w := &walk{tape: t, sink: sink, done: done, processes: map[*history.Process]*process{},
		threads: map[uint32]*thread{},
		open:    map[*history.Open]bool{}, arrows: newArrows()}
	if t.Host(host).Arch == event.ARM64.String() {
		w.arch = event.ARM64
	}
	for m, err := range history.Events(t) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if m.Host != host {
			continue
		}
		if err := w.step(m); err != nil {
			return err
		}
	}
	return nil
}

type walk struct {
	tape      *trace.Tape
	sink      Sink
	done      *format.Done
	arch      event.Arch
	ids       uint64
	processes map[*history.Process]*process
	threads   map[uint32]*thread
	open      map[*history.Open]bool
	arrows    *arrows
	slice     Slice
	text      []byte
}

type process struct {
	Process
	counts [NumCounters]int64
	told   [NumCounters]bool
}

type thread struct {
	of    *process
	lanes []*lane // the first is the thread's own
}

// lane is a track with its last slices, of which none is within another.
type lane struct {
	Track
	last      []span
	forgotten int64 // end of the last one that is no longer among them
}

// maxLast is how many slices a call can have within it, such as the accesses to mapped
// memory that the kernel made for it. One with more goes to another lane.
const maxLast = 64

// take adds a slice, unless it overlaps with another. Slices come by their ends, so that
// those within one come before it.
func (l *lane) take(begin, end int64) bool {
	n := len(l.last)
	for n > 0 && l.last[n-1].enter > begin { // it is within the new one
		n--
	}
	if n > 0 && l.last[n-1].exit > begin || begin < l.forgotten {
		return false
	}
	if n == maxLast {
		l.forgotten = l.last[0].exit
		n = copy(l.last, l.last[1:])
	}
	l.last = append(l.last[:n], span{enter: begin, exit: end})
	return true
}

func (w *walk) id() uint64 {
	w.ids++
	return w.ids
}

func (w *walk) step(m *history.EventContext) error {
	switch m.Kind {
	case event.LossMark:
		return w.sink.Mark(&Mark{Time: m.Exit, Name: "events lost",
			Args: []Arg{{Name: "events", Number: int64(m.Loss().Records)}}})
	case event.Forked:
		w.arrows.fork(m.Event)
		return nil
	case event.Started, event.Inherited:
		return w.opened(m)
	}
	p, err := w.process(m.Process)
	if err != nil {
		return err
	}
	th, err := w.thread(m, p)
	if err != nil {
		return err
	}
	switch m.Kind {
	case event.Call:
		if err := w.call(m, th); err != nil {
			return err
		}
		if err := w.traffic(m, p); err != nil {
			return err
		}
		return w.opened(m)
	case event.Woken:
		var in []uint64
		if w.threads[m.Child] != nil {
			in = w.arrows.wake(m.Event)
		}
		return w.sink.Mark(&Mark{Track: &th.lanes[0].Track, Time: m.Exit, Name: "woken", In: in,
			Args: []Arg{{Name: "by thread", Number: int64(m.Child)}, {Name: "in", Text: m.Wakeup().In.String()}}})
	case event.Signalled:
		sig, action := m.Signal()
		return w.sink.Mark(&Mark{Track: &th.lanes[0].Track, Time: m.Exit, Name: event.SignalName(sig),
			Args: []Arg{{Name: "action", Text: action.String()}}})
	case event.NoteMark:
		return w.sink.Mark(&Mark{Track: &th.lanes[0].Track, Time: m.Exit, Name: "note",
			Args: []Arg{{Name: "text", Text: w.note(m.Event)}}})
	case event.Exited:
		err := w.sink.Mark(&Mark{Track: &th.lanes[0].Track, Time: m.Exit, Name: "exited",
			Args: []Arg{{Name: "wait status", Number: int64(m.ExitStatus())}}})
		if err == nil {
			err = w.opened(m)
		}
		w.arrows.exit(m.TID)
		delete(w.threads, m.TID)
		if m.Process.Ended {
			delete(w.processes, m.Process)
		}
		return err
	}
	return nil
}

// process returns what is known of a process, and tells of it if that is new.
func (w *walk) process(h *history.Process) (*process, error) {
	p := w.processes[h]
	name := h.Comm
	if h.Exe != "" && len(h.Argv) > 0 && h.Argv[0] != "" {
		name = h.Argv[0]
	}
	if p == nil {
		p = &process{Process: Process{ID: w.id(), PID: h.PID, PPID: h.PPID, UID: h.UID, Start: h.StartNS}}
		w.processes[h] = p
	} else if p.Name == name && sameList(p.Argv, h.Argv) {
		return p, nil
	}
	p.Name, p.Argv = name, h.Argv
	return p, w.sink.Process(&p.Process)
}

// sameList reports whether two lists are the same one; they are replaced, not changed.
func sameList(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// thread returns who made an event, and tells of the thread if it is new or renamed.
func (w *walk) thread(m *history.EventContext, p *process) (*thread, error) {
	th := w.threads[m.TID]
	if th == nil || th.of != p {
		th = &thread{of: p, lanes: []*lane{newLane(Track{ID: w.id(), Process: &p.Process, TID: m.TID})}}
		w.threads[m.TID] = th
	} else if m.Comm == "" || th.lanes[0].Name == m.Comm {
		return th, nil
	}
	th.lanes[0].Name = m.Comm
	return th, w.sink.Track(&th.lanes[0].Track)
}

// lane returns the track of a thread on which a slice fits, nil if there are too many.
func (w *walk) lane(m *history.EventContext, th *thread) (*lane, error) {
	first := 0
	if request(m.Op) {
		first = 1
	}
	for _, l := range th.lanes[first:] {
		if l.Lane > 0 && len(l.last) > 0 && l.last[len(l.last)-1].exit > m.Enter {
			continue // requests are not parts of one another
		}
		if l.take(m.Enter, m.Exit) {
			return l, nil
		}
	}
	n := len(th.lanes)
	if n == maxLanes {
		return nil, nil
	}
	own := &th.lanes[0].Track
	l := newLane(Track{ID: w.id(), Process: &th.of.Process, TID: m.TID, Name: own.Name, Lane: n, Thread: own})
	l.take(m.Enter, m.Exit)
	th.lanes = append(th.lanes, l)
	return l, w.sink.Track(&l.Track)
}

// request reports whether an operation goes on beside the calls of its thread.
func request(op event.Op) bool { return op.IsUring() || op.IsAIO() }

func newLane(t Track) *lane { return &lane{Track: t, forgotten: math.MinInt64} }

func (w *walk) call(m *history.EventContext, th *thread) error {
	l, err := w.lane(m, th)
	if err != nil {
		return err
	}
	if l == nil {
		w.done.LeftOut("requests, of which a thread had too many at a time", 1)
		return nil
	}
	w.done.Records++
	s := &w.slice
	*s = Slice{Track: &l.Track, Begin: m.Enter, End: m.Exit, Name: w.name(m.Event), Class: m.Spec().Class.String(),
		Args: s.Args[:0], Out: s.Out[:0], In: s.In[:0], Received: s.Received[:0]}
	w.args(m, s)
	w.arrows.of(m, s)
	return w.sink.Slice(s)
}

// name returns the name of a call, be it in the operation table or not.
func (w *walk) name(ev *event.Event) string {
	if ev.Op != event.OpUnknown {
		return ev.Spec().Name
	}
	if n := stracetext.CallName(w.arch, ev.NR); n != "" {
		return n
	}
	return fmt.Sprintf("syscall_%d", ev.NR)
}

// args lists what a viewer shows of a call.
func (w *walk) args(m *history.EventContext, s *Slice) {
	num := func(name string, v int64) { s.Args = append(s.Args, Arg{Name: name, Number: v}) }
	text := func(name, v string) {
		if v != "" {
			s.Args = append(s.Args, Arg{Name: name, Text: v})
		}
	}
	io := m.Traffic()
	f := m.Subject()
	text("path", m.Name())
	if f != nil {
		num("fd", int64(f.FD))
	}
	for i := range m.Paths {
		if p := &m.Paths[i]; i > 0 || f != nil && f.Path != "" && f.Path != p.Abs {
			name := "path"
			if args := m.Spec().Args; int(p.Arg) < len(args) { // not so of an operation of a newer version
				name = args[p.Arg].Name
			}
			text(name, cmp.Or(p.Abs, p.Raw))
		}
	}
	if io.From != nil && io.To != nil {
		text("from", io.From.Name())
		text("to", io.To.Name())
	}
	if io.Reads || io.Writes {
		num("bytes", io.Bytes())
	}
	if m.Count >= 0 {
		num("asked", m.Count)
	}
	if m.Offset >= 0 {
		num("offset", m.Offset)
	}
	switch {
	case m.Flags&event.Interrupted != 0:
		text("result", "none seen")
	case m.Errno != 0:
		text("errno", event.ErrnoName(m.Errno))
	default:
		num("result", m.Ret)
	}
	if m.Flags&event.Untimed != 0 {
		text("duration", "not known")
	}
	num("event", int64(m.Seq))
}

// traffic tells what a call adds to its process's sums.
func (w *walk) traffic(m *history.EventContext, p *process) error {
	io := m.Traffic()
	if err := w.add(p, BytesRead, io.Read, m.Exit); err != nil {
		return err
	}
	return w.add(p, BytesWritten, io.Written, m.Exit)
}

// opened tells how an event changed what is open.
func (w *walk) opened(m *history.EventContext) error {
	for i := range m.Files {
		o := m.OpenOf(&m.Files[i])
		if o == nil || w.open[o] {
			continue
		}
		p, err := w.process(o.Opener)
		if err != nil {
			return err
		}
		w.open[o] = true
		w.arrows.opened(o)
		if err := w.add(p, OpenFiles, 1, m.Exit); err != nil {
			return err
		}
	}
	for _, o := range m.Ended {
		if !w.open[o] {
			continue
		}
		delete(w.open, o)
		w.arrows.closed(o)
		if p := w.processes[o.Opener]; p != nil { // or it has ended, and shows no more
			if err := w.add(p, OpenFiles, -1, m.Exit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) add(p *process, c Counter, n, time int64) error {
	if n == 0 {
		return nil
	}
	p.counts[c] += n
	first := !p.told[c]
	p.told[c] = true
	return w.sink.Count(&Count{&p.Process, c, time, p.counts[c], first})
}

// maxNote is how much of a note is shown, in bytes.
const maxNote = 4096

func (w *walk) note(ev *event.Event) string {
	if len(ev.Bufs) == 0 || ev.Bufs[0].Len > maxNote {
		return ""
	}
	b, _, err := w.tape.ContentZero(&ev.Bufs[0], w.text[:0])
	if err != nil {
		return ""
	}
	w.text = b
	return string(b)
}
