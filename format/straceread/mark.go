package straceread

import (
	"math"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/trace"
)

// mark takes a line that is no call: signals, and what writeFile writes of a tape's
// other events.
func (x *importer) mark(p *prefix, at uint64, what string) error {
	if strings.HasPrefix(what, "SIG") || strings.HasPrefix(what, "stopped by ") {
		x.done.LeftOut(signals, 1)
		return nil
	}
	t, err := x.thread(p)
	if err != nil {
		return err
	}
	n := notation{s: what}
	number := func() (uint64, string, bool) {
		v, err := n.word()
		if err != nil {
			return 0, "", false
		}
		u, ok := event.ParseNumber(v.Text)
		return u, strings.Clone(v.Note), ok
	}
	x.done.Records++
	switch {
	case n.has("new thread "), n.has("new process "):
		tid, _, ok := number()
		if !ok || tid == 0 || tid > math.MaxUint32 {
			break
		}
		if x.threads[uint32(tid)] == nil { // the record comes with the call
			_, err = x.newThread(uint32(tid), t, strings.HasPrefix(what, "new thread"))
		}
		return err
	case n.has("started in "):
		v, err := n.value()
		if err != nil || v.Kind != layout.ToldText || !n.has(", umask ") {
			break
		}
		if mask, _, ok := number(); ok && mask <= 0o777 {
			t.p.cwd = true
			return x.w.Start(t.p.pid, string(v.Data), uint32(mask), at)
		}
	case n.has("inherited "):
		fd, note, ok := number()
		if !ok || fd > math.MaxInt32 || len(t.p.fds) >= maxFDs {
			break
		}
		t.p.set(int64(fd), &openFile{name: note, pos: -1})
		o, name := object(note)
		o.FD = int32(fd)
		return x.w.Open(t.p.pid, o, name, at)
	case n.has("lost "):
		if lost, _, ok := number(); ok {
			return x.w.Record(&trace.Record{Type: trace.RecLoss, PID: t.p.pid, TID: t.tid, Exit: at, Count: lost, Reason: trace.LossKilled})
		}
	case n.has("note "):
		if v, err := n.value(); err == nil && v.Kind == layout.ToldText {
			return x.w.Record(&trace.Record{Type: trace.RecNote, PID: t.p.pid, TID: t.tid, Exit: at,
				Pieces: []trace.Piece{{Len: uint32(len(v.Data)), Data: v.Data}}})
		}
	}
	x.done.Records--
	x.done.LeftOut(notUnderstood, 1)
	return nil
}
