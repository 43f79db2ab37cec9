// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/trace"
)

// A Loader takes the content of tasks and steps out of a tape. It is used by one goroutine.
type Loader struct {
	buffers bufferLoader
	hashes  *content.HashCache
	filler  *content.Filler
	compare bool // reads are compared
	// uncompared is called for each plain read that cannot be compared.
	uncompared func()
}

// NewLoader returns a Loader. compare says that reads are compared; uncompared is called for
// each plain read of which the tape does not have what it should read.
func NewLoader(t *trace.Tape, data options.Data, compare bool, uncompared func()) *Loader {
	return &Loader{
		buffers: bufferLoader{t}, hashes: content.NewHashCache(), filler: content.NewFiller(data),
		compare: compare, uncompared: uncompared,
	}
}

// Task loads what a task writes, and what it should read or the sums of that.
func (l *Loader) Task(t *Task) {
	if !l.filler.Made() && t.findLarge() {
		return
	}
	l.loadTask(t)
	if l.filler.Made() {
		l.filler.Fill(t.Content.Data, t.Event.Offset, t.Event.Seq)
	}
}

// largeBytes is how much a write has at least that is written in parts: a call may say that it wrote
// gigabytes of which the tape has nothing.
const largeBytes = 16 << 20

// findLarge notes what a large write by one buffer writes, which can be less than the buffer has. It reports false of
// other tasks.
func (t *Task) findLarge() bool {
	if t.Event.Effect() != event.EffectWrite || t.Event.Spec().NoCall || t.Event.Ret < largeBytes {
		return false
	}
	b := t.contentBuf(event.In)
	if b == nil || b.Kind != event.KindBuf || b.Len < t.Event.Ret {
		return false
	}
	t.Content.Large = b
	return true
}

func (l *Loader) loadTask(t *Task) {
	switch b := t.contentBuf(event.Out); {
	case t.Action == CopyIn: // the planner had to
		return
	case t.Action == MakeCall && t.Event.Spec().NeedsStop: // the kernel copies it
		return
	case b == nil:
	case !l.compare || t.Content.Tainted:
		return // it is not compared
	default:
		var ok bool
		if t.Content.Sums, ok = l.hashes.Sums(l.buffers.tape, b, t.Content.Sums[:0]); ok {
			return
		}
	}
	l.buffers.load(t)
	if b := t.contentBuf(event.In); b != nil && l.compare && !t.Content.Missing {
		l.hashes.Observe(b, t.Content.Data)
	}
}

// contentBuf returns the only buffer of a task with a file's content, if it goes in this
// direction; nil if there are none or several.
func (t *Task) contentBuf(d event.Dir) *event.Buf {
	ev := &t.Event
	if ev.Kind != event.Call || ev.Spec().Class != event.Data || t.Action != MakeCall && t.Action != CopyOut {
		return nil
	}
	var found *event.Buf
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Kind != event.KindBuf && b.Kind != event.KindVec {
			continue
		}
		if found != nil {
			return nil
		}
		found = b
	}
	// What moves inside the kernel is read where it is copied out.
	if found == nil || (found.Dir == event.In && !ev.Spec().NeedsStop) != (d == event.In) {
		return nil
	}
	return found
}

// Step loads the content of a plain step into an arena. t is the step's task as planned.
func (l *Loader) Step(t *Task, s *Step, a *content.Arena) {
	s.clearContent()
	switch {
	case s.Kind == StepWrite && l.filler.Made():
		l.fill(t, s, a)
	case len(t.Event.Bufs) == 0 || s.Ret == 0:
	case s.Kind == StepRead:
		if l.compare {
			l.loadRead(t, s, a)
		}
	default:
		l.loadWrite(&t.Event.Bufs[0], s, a)
	}
}

// fill makes up what a step writes.
func (l *Loader) fill(t *Task, s *Step, a *content.Arena) {
	if part, ok := l.filler.Part(int(s.Count), t.Event.Offset, s.Seq); ok {
		s.SetBytes(part)
		return
	}
	a.Bytes = a.Room(int64(s.Count))
	at := len(a.Bytes)
	a.Bytes = a.Bytes[:at+int(s.Count)]
	s.SetBytes(a.Bytes[at:])
	l.filler.Fill(s.Bytes(), t.Event.Offset, s.Seq)
}

// loadWrite loads what a step writes; nothing stands for zeros.
func (l *Loader) loadWrite(b *event.Buf, s *Step, a *content.Arena) {
	known := content.KnownPrefix(b)
	if known == 0 {
		return
	}
	a.Bytes = a.Room(min(known, maxPlainBytes))
	at := len(a.Bytes)
	out, err := l.buffers.tape.Content(b, a.Bytes)
	if err != nil {
		if out, _, err = l.buffers.tape.ContentZero(b, a.Bytes); err != nil {
			return
		}
	} else if l.compare {
		l.hashes.Observe(b, out[at:])
	}
	a.Bytes = out
	s.SetBytes(out[at:])
}

// loadRead finds what a plain read is to be compared with.
func (l *Loader) loadRead(t *Task, s *Step, a *content.Arena) {
	b := &t.Event.Bufs[0]
	known := content.KnownPrefix(b)
	if t.Content.Tainted || known == 0 || b.Len != s.Ret {
		l.uncompared()
		return
	}
	at := len(a.Sums)
	if out, ok := l.hashes.Sums(l.buffers.tape, b, a.Sums); ok {
		a.Sums = out
		s.SumsAt, s.Sums = uint32(at), uint32(len(out)-at)
		s.Compare = true
		return
	}
	a.Bytes = a.Room(min(known, maxPlainBytes))
	at = len(a.Bytes)
	if out, err := l.buffers.tape.Content(b, a.Bytes); err == nil && int64(len(out)-at) == s.Ret {
		a.Bytes = out
		s.SetBytes(out[at:])
		s.Compare = true
		return
	}
	l.uncompared()
}

// written returns what a call has written of its buffer: it can be less than the buffer has.
func written(ev *event.Event, b *event.Buf) *event.Buf {
	if ev.Effect() != event.EffectWrite || !ev.OK() || ev.Ret < 0 || b.Len <= ev.Ret {
		return b
	}
	short := *b
	short.Len = ev.Ret
	return &short
}

// bufferLoader takes the content of a task's buffers out of a tape.
type bufferLoader struct{ tape *trace.Tape }

// load loads what a task writes and what it should read.
func (l bufferLoader) load(t *Task) {
	ev, c := &t.Event, &t.Content
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Kind != event.KindBuf && b.Kind != event.KindVec {
			continue
		}
		dst := &c.Want
		if b.Dir == event.In && !ev.Spec().NeedsStop {
			dst = &c.Data
			b = written(ev, b)
		}
		data, err := l.tape.Content(b, (*dst)[:0])
		var missing *trace.MissingError
		if errors.As(err, &missing) {
			c.Missing = true
			if b.Dir == event.Out && t.Action != CopyIn {
				known := content.Prefix(b) // reads are not compared with zeros, of which there may be many
				b = &known
			}
			if data, _, err = l.tape.ContentZero(b, (*dst)[:0]); err != nil {
				data = nil
			}
		} else if err != nil {
			c.Missing = true
		}
		if b != &ev.Bufs[i] && b.Dir == event.In {
			data = data[:min(int64(len(data)), b.Len)]
		}
		*dst = data
	}
	if t.Action != CopyIn {
		return
	}
	if ev.BufArg(effect.ContentArg(ev.Op)) == nil { // traces of others have no content of copies
		c.Missing = true
	}
	c.Data = c.Want
}
