// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/timeline"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "Chrome JSON",
	ID:       "chrome",
	Suffixes: []string{".json"},
	About:    "Trace Event Format, for about:tracing, Perfetto and other viewers",
	Write: func(ctx context.Context, out io.Writer, t *trace.Tape, _ *format.Options) (*format.Done, error) {
		return Export(ctx, out, t)
	},
}

// hostPIDs is how far the process numbers of hosts are apart, if there are several: the
// format knows one machine. It is more than there can be (proc(5), pid_max).
const hostPIDs = 10_000_000

// Export writes a tape's trace.
func Export(ctx context.Context, out io.Writer, t *trace.Tape) (*format.Done, error) {
	m := t.Manifest()
	w := &writer{out: out, done: &format.Done{}}
	first := m.FirstNS
	if len(m.Hosts) > 0 {
		first = m.Hosts[0].Wall(first)
	}
	head, err := json.Marshal(map[string]string{"program": m.Program,
		"start": time.Unix(0, first).UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return nil, err
	}
	w.buf = fmt.Appendf(nil, `{"displayTimeUnit":"ns","otherData":%s,"traceEvents":[`, head)
	for i := range max(len(m.Hosts), 1) {
		// Times are counted from the tape's first event on the clock of each host.
		w.zero = m.FirstNS
		if len(m.Hosts) > 1 {
			h := &m.Hosts[i]
			w.zero = first - h.WallNS + h.ClockNS
			w.pids, w.host = int64(i)*hostPIDs, h.Head.Host
			w.arrows = uint64(i) << 44
		}
		if err := timeline.Walk(ctx, t, uint32(i), w, w.done); err != nil {
			return nil, err
		}
	}
	w.buf = append(w.buf, "\n]}\n"...)
	return w.done, w.flush(0)
}

// writer writes events. It is a timeline.Sink.
type writer struct {
	out    io.Writer
	buf    []byte
	some   bool // an event was written
	zero   int64
	pids   int64
	arrows uint64
	host   string
	async  uint64
	done   *format.Done
}

const flushBytes = 64 << 10

func (w *writer) flush(from int) error {
	if len(w.buf) < from {
		return nil
	}
	_, err := w.out.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// event begins an event of a kind on a thread. The caller adds members and ends it.
func (w *writer) event(ph, name, category string, p *timeline.Process, tid uint32) {
	if w.some {
		w.buf = append(w.buf, ',')
	}
	w.some = true
	w.buf = append(w.buf, "\n{\"ph\":\""...)
	w.buf = append(append(w.buf, ph...), `","name":`...)
	w.buf = appendString(w.buf, name)
	if category != "" {
		w.buf = append(w.buf, `,"cat":`...)
		w.buf = appendString(w.buf, category)
	}
	if p != nil {
		w.number("pid", w.pids+int64(p.PID))
		w.number("tid", w.pids+int64(tid))
	}
}

func (w *writer) end() error {
	w.buf = append(w.buf, '}')
	return w.flush(flushBytes)
}

func (w *writer) number(name string, v int64) {
	w.buf = append(append(append(w.buf, ',', '"'), name...), '"', ':')
	w.buf = strconv.AppendInt(w.buf, v, 10)
}

// micros adds nanoseconds as a number of microseconds.
func (w *writer) micros(name string, ns int64) {
	w.buf = append(append(append(w.buf, ',', '"'), name...), '"', ':')
	if ns < 0 {
		w.buf = append(w.buf, '-')
		ns = -ns
	}
	w.buf = strconv.AppendInt(w.buf, ns/1000, 10)
	f := ns % 1000
	w.buf = append(w.buf, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
}

func (w *writer) args(list []timeline.Arg) {
	w.buf = append(w.buf, `,"args":{`...)
	for i := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		a := &list[i]
		w.buf = append(appendString(w.buf, a.Name), ':')
		if a.Text != "" {
			w.buf = appendString(w.buf, a.Text)
		} else {
			w.buf = strconv.AppendInt(w.buf, a.Number, 10)
		}
	}
	w.buf = append(w.buf, '}')
}

// metadata writes an event that names something.
func (w *writer) metadata(what string, p *timeline.Process, tid uint32, name string) error {
	w.event("M", what, "", p, tid)
	w.args([]timeline.Arg{{Name: "name", Text: name}})
	return w.end()
}

// Process implements timeline.Sink.
func (w *writer) Process(p *timeline.Process) error {
	name := p.Name
	if w.host != "" {
		name = w.host + ": " + name
	}
	return w.metadata("process_name", p, p.PID, name)
}

// Track implements timeline.Sink.
func (w *writer) Track(t *timeline.Track) error {
	if t.Thread != nil { // asynchronous events need none
		return nil
	}
	return w.metadata("thread_name", t.Process, t.TID, t.Name)
}

// Slice implements timeline.Sink.
func (w *writer) Slice(s *timeline.Slice) error {
	if s.Track.Thread != nil {
		return w.request(s)
	}
	p, tid := s.Track.Process, s.Track.TID
	w.event("X", s.Name, s.Class, p, tid)
	w.micros("ts", s.Begin-w.zero)
	w.micros("dur", s.End-s.Begin)
	w.args(s.Args)
	if err := w.end(); err != nil {
		return err
	}
	for _, l := range []struct {
		ph   string
		list []uint64
		at   int64
	}{{"s", s.Out, s.Begin}, {"f", s.In, s.Begin}, {"f", s.Received, s.End}} {
		for _, n := range l.list {
			if err := w.arrow(l.ph, n, p, tid, l.at); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrow writes the start or the end of an arrow, which belongs to the slice around it.
func (w *writer) arrow(ph string, n uint64, p *timeline.Process, tid uint32, at int64) error {
	w.event(ph, "arrow", "arrow", p, tid)
	w.number("id", int64(w.arrows+n))
	w.micros("ts", at-w.zero)
	if ph == "f" {
		w.buf = append(w.buf, `,"bp":"e"`...)
	}
	return w.end()
}

// request writes a slice that overlaps with others of its thread.
func (w *writer) request(s *timeline.Slice) error {
	w.async++
	w.event("b", s.Name, s.Class, s.Track.Process, s.Track.TID)
	w.number("id", int64(w.async))
	w.micros("ts", s.Begin-w.zero)
	w.args(s.Args)
	if err := w.end(); err != nil {
		return err
	}
	if n := len(s.Out) + len(s.In) + len(s.Received); n > 0 {
		w.done.LeftOut("arrows to and from requests", uint64(n))
	}
	w.event("e", s.Name, s.Class, s.Track.Process, s.Track.TID)
	w.number("id", int64(w.async))
	w.micros("ts", s.End-w.zero)
	return w.end()
}

// Mark implements timeline.Sink.
func (w *writer) Mark(m *timeline.Mark) error {
	scope := "t"
	var p *timeline.Process
	var tid uint32
	if m.Track != nil {
		p, tid = m.Track.Process, m.Track.TID
	} else {
		p, scope = &timeline.Process{}, "g"
	}
	w.event("i", m.Name, "mark", p, tid)
	w.micros("ts", m.Time-w.zero)
	w.buf = append(append(append(w.buf, `,"s":"`...), scope...), '"')
	w.args(m.Args)
	if err := w.end(); err != nil {
		return err
	}
	for _, n := range m.In {
		if err := w.arrow("f", n, p, tid, m.Time); err != nil {
			return err
		}
	}
	return nil
}

// Count implements timeline.Sink.
func (w *writer) Count(c *timeline.Count) error {
	w.event("C", c.Counter.String(), "", c.Process, c.Process.PID)
	w.micros("ts", c.Time-w.zero)
	w.args([]timeline.Arg{{Name: "value", Number: c.Value}})
	return w.end()
}

// appendString appends a JSON string; bytes that are no UTF-8 are replaced.
func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...)
	}
	return append(b, q...)
}
