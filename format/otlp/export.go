// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/model/history"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "OTLP",
	ID:       "otlp",
	Suffixes: []string{".otlp.json", ".otlp.jsonl"},
	About:    "OpenTelemetry spans of processes and open files, an OTLP request a line",
	Write:    write,
}

// spansPerLine limits a line's length.
const spansPerLine = 256

// process is what is counted of a process beside its history.
type process struct {
	calls, errors int64
}

type exporter struct {
	tape      *trace.Tape
	out       *json.Encoder
	done      *format.Done
	processes map[*history.Process]*process // that have not ended
	errors    map[*history.Open]int64       // calls that failed on what is open
	spans     map[uint32][]span             // still to be written, by host
	lastNS    map[uint32]int64              // of a host's events
}

func write(ctx context.Context, out io.Writer, t *trace.Tape, _ *format.Options) (*format.Done, error) {
	x := &exporter{tape: t, out: json.NewEncoder(out), done: &format.Done{}, processes: map[*history.Process]*process{},
		errors: map[*history.Open]int64{}, spans: map[uint32][]span{}, lastNS: map[uint32]int64{}}
	x.out.SetEscapeHTML(false)
	for m, err := range history.Events(t) {
		if err != nil {
			return nil, err
		}
		if m.Seq%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := x.moment(m); err != nil {
			return nil, err
		}
	}
	if err := x.end(); err != nil {
		return nil, err
	}
	return x.done, nil
}

// moment counts an event, and writes what it ended.
func (x *exporter) moment(m *history.EventContext) error {
	p := x.processes[m.Process]
	if p == nil {
		p = &process{}
		x.processes[m.Process] = p
	}
	x.lastNS[m.Host] = max(x.lastNS[m.Host], m.Exit)
	if m.Kind == event.Call {
		p.calls++
		if m.Errno != 0 {
			p.errors++
		}
	}
	for i := range m.Files {
		o := m.OpenOf(&m.Files[i])
		if o == nil {
			continue
		}
		if m.Kind == event.Call && m.Errno != 0 {
			x.errors[o]++
		} else if _, ok := x.errors[o]; !ok {
			x.errors[o] = 0
		}
	}
	for _, o := range m.Ended {
		if err := x.session(o); err != nil {
			return err
		}
	}
	if m.Process.Ended {
		return x.process(m.Process)
	}
	return nil
}

// end writes what is still open and running.
func (x *exporter) end() error {
	open := slices.SortedFunc(maps.Keys(x.errors),
		func(a, b *history.Open) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID)) })
	for _, o := range open {
		if err := x.session(o); err != nil {
			return err
		}
	}
	running := slices.SortedFunc(maps.Keys(x.processes), func(a, b *history.Process) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.StartNS, b.StartNS), cmp.Compare(a.PID, b.PID))
	})
	for _, p := range running {
		if err := x.process(p); err != nil {
			return err
		}
	}
	for _, host := range slices.Sorted(maps.Keys(x.spans)) {
		if err := x.flush(host); err != nil {
			return err
		}
	}
	return nil
}

// process writes the span of a process.
func (x *exporter) process(p *history.Process) error {
	counts := x.processes[p]
	delete(x.processes, p)
	s := x.span(p.Host, p.Comm, p.StartNS, p.EndNS)
	s.SpanID = processID(p)
	if p.Parent != nil {
		id := processID(p.Parent)
		s.Parent = &id
	}
	s.Attributes = append(s.Attributes, integer("process.pid", int64(p.PID)), integer("process.user.id", int64(p.UID)))
	if p.PPID != 0 {
		s.Attributes = append(s.Attributes, integer("process.parent_pid", int64(p.PPID)))
	}
	if p.Exe != "" {
		s.Attributes = append(s.Attributes, text("process.executable.path", p.Exe))
	}
	if len(p.Argv) > 0 {
		s.Attributes = append(s.Attributes, list("process.command_args", p.Argv))
	}
	s.Attributes = append(s.Attributes, integer("iotape.calls", counts.calls), integer("iotape.errors", counts.errors))
	if p.Ended {
		ws := syscall.WaitStatus(p.Status)
		if ws.Signaled() {
			s.Attributes = append(s.Attributes, integer("iotape.signal", int64(ws.Signal())))
			s.Status = &status{fmt.Sprintf("killed by signal %d", ws.Signal()), statusError}
		} else {
			s.Attributes = append(s.Attributes, integer("process.exit.code", int64(ws.ExitStatus())))
			if ws.ExitStatus() != 0 {
				s.Status = &status{fmt.Sprintf("exited with %d", ws.ExitStatus()), statusError}
			}
		}
	}
	return x.add(p.Host, s)
}

// session writes the span of an open file, of what was seen of it.
func (x *exporter) session(o *history.Open) error {
	errors := x.errors[o]
	delete(x.errors, o)
	name, from, to := "inherited", o.OpenedNS, o.EndedNS
	if o.OpenedNS != 0 {
		name = event.Lookup(o.By).Name
	} else {
		from = o.Opener.StartNS
	}
	if to == 0 {
		to = x.lastNS[o.Host]
	}
	s := x.span(o.Host, name, from, to)
	s.SpanID = openID(o)
	parent := processID(o.Opener)
	s.Parent = &parent
	if o.Path != "" {
		s.Attributes = append(s.Attributes, text("file.path", o.Path))
	}
	s.Attributes = append(s.Attributes, integer("iotape.open", int64(o.ID)))
	if o.Ino != 0 {
		s.Attributes = append(s.Attributes, integer("iotape.dev", int64(o.Dev)), integer("file.inode", int64(o.Ino)))
	}
	if o.Size >= 0 {
		s.Attributes = append(s.Attributes, integer("file.size", o.Size))
	}
	s.Attributes = append(s.Attributes, integer("iotape.calls", int64(o.Calls)), integer("iotape.errors", errors),
		integer("iotape.reads", int64(o.Reads)), integer("iotape.read_bytes", o.ReadBytes),
		integer("iotape.writes", int64(o.Writes)), integer("iotape.written_bytes",
			o.WrittenBytes), integer("iotape.seeks", int64(o.Seeks)))
	return x.add(o.Host, s)
}

// span starts a span; times are the host's monotonic ones.
func (x *exporter) span(host uint32, name string, from, to int64) span {
	h := x.tape.Host(host)
	if name == "" {
		name = "unknown"
	}
	return span{TraceID: hostID(h), Name: *stringValue(name).String, Kind: kindInternal,
		Start: nanoseconds(max(h.Wall(from), 0)), End: nanoseconds(max(h.Wall(to), h.Wall(from), 0))}
}

func (x *exporter) add(host uint32, s span) error {
	x.done.Records++
	x.spans[host] = append(x.spans[host], s)
	if len(x.spans[host]) >= spansPerLine {
		return x.flush(host)
	}
	return nil
}

// flush writes a line.
func (x *exporter) flush(host uint32) error {
	spans := x.spans[host]
	delete(x.spans, host)
	h := x.tape.Host(host)
	service := "unknown_service"
	if len(h.Command) > 0 {
		service = path.Base(h.Command[0])
	}
	r := resource{Attributes: []attribute{text("service.name", service)}}
	for _, a := range [][2]string{{"host.name", h.Host}, {"host.arch", h.Arch}, {"os.type", "linux"},
		{"os.version", h.Kernel}} {
		if a[1] != "" {
			r.Attributes = append(r.Attributes, text(a[0], a[1]))
		}
	}
	return x.out.Encode(request{[]resourceSpans{{r, []scopeSpans{{scope{"iotape"}, spans}}}}})
}

// Ids are made of what they name, so that the same tape gives the same file.

func hostID(h *trace.Host) (id traceID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%d\n%q", h.Host, h.BootID, h.ClockNS, h.WallNS, h.Command))
	copy(id[:], sum[:])
	return id
}

func processID(p *history.Process) spanID {
	return newID(0, uint64(p.Host), uint64(p.PID), uint64(p.StartNS))
}

func openID(o *history.Open) spanID { return newID(1, uint64(o.Host), uint64(o.ID), 0) }

func newID(parts ...uint64) (id spanID) {
	var b []byte
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint64(b, p)
	}
	sum := sha256.Sum256(b)
	copy(id[:], sum[:])
	id[0] |= 0x80 // zero means none
	return id
}
