// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// mark takes a line that is no call: signals, stops, and what writeFile writes of a tape's
// other events.
func (x *importer) mark(p *prefix, at uint64, what string) error {
	if strings.HasPrefix(what, "stopped by ") {
		x.done.LeftOut(stops, 1)
		return nil
	}
	t, err := x.thread(p)
	if err != nil {
		return err
	}
	if strings.HasPrefix(what, "SIG") {
		return x.markSignal(t, &notation{s: what}, at)
	}
	for i := range marks {
		m := &marks[i]
		rest, ok := strings.CutPrefix(what, m.word)
		if !ok {
			continue
		}
		understood, err := m.take(x, t, &notation{s: rest}, at)
		if understood || err != nil {
			x.done.Records++
			return err
		}
		break
	}
	x.done.LeftOut(notUnderstood, 1)
	return nil
}

// marks are the events that writeFile writes, by what their lines begin with. take adds
// the event to a thread's process; understood is false if the rest of the line is not one.
var marks = []struct {
	word string
	take func(x *importer, t *thread, n *notation, at uint64) (understood bool, err error)
}{
	{"new thread ", func(x *importer, t *thread, n *notation, _ uint64) (bool, error) {
		return x.markForked(t, n, true)
	}},
	{"new process ", func(x *importer, t *thread, n *notation, _ uint64) (bool, error) {
		return x.markForked(t, n, false)
	}},
	{"started in ", (*importer).markStarted},
	{"inherited ", (*importer).markInherited},
	{"lost ", (*importer).markLost},
	{"note ", (*importer).markNote},
}

// markSignal takes a delivered signal. What becomes of it strace does not say; of signals of old versions, and of
// fields that are not understood, there is no more than the number.
func (x *importer) markSignal(t *thread, n *notation, at uint64) error {
	name, _, _ := strings.Cut(n.s, " ")
	sig, ok := event.SignalByName(name)
	if !ok {
		x.done.LeftOut(notUnderstood, 1)
		return nil
	}
	n.i = len(name)
	n.space()
	info := binary.LittleEndian.AppendUint32(nil, uint32(sig))
	if v, err := n.value(); err == nil {
		m := layout.Memory{Layout: event.LayoutSiginfo}
		if b, lost, ok := m.Encode(&v, 0); ok && event.SignalNumber(b) == sig {
			info = b[:event.SiginfoBytes]
			if lost > 0 {
				x.done.LeftOut("of signals: fields", uint64(lost))
			}
		}
	}
	x.done.Records++
	return x.w.Record(&trace.Record{Type: trace.RecSignal, PID: t.p.pid, TID: t.tid, Exit: at,
		Pieces: []trace.Piece{{Len: uint32(len(info)), Data: info}}})
}

func (x *importer) markForked(t *thread, n *notation, shares bool) (understood bool, err error) {
	tid, _, ok := n.number()
	if !ok || tid == 0 || tid > math.MaxUint32 {
		return false, nil
	}
	if x.threads[uint32(tid)] == nil { // the record comes with the call
		_, err = x.newThread(uint32(tid), t, shares)
	}
	return true, err
}

func (x *importer) markStarted(t *thread, n *notation, at uint64) (understood bool, err error) {
	v, err := n.value()
	if err != nil || v.Kind != layout.ToldText || !n.has(", umask ") {
		return false, nil
	}
	mask, _, ok := n.number()
	if !ok || mask > 0o777 {
		return false, nil
	}
	t.p.first.cwd = true
	return true, x.w.Start(t.p.pid, string(v.Data), uint32(mask), at)
}

func (x *importer) markInherited(t *thread, n *notation, at uint64) (understood bool, err error) {
	fd, note, ok := n.number()
	if !ok || fd > math.MaxInt32 || len(t.p.fds) >= maxFDs {
		return false, nil
	}
	t.p.set(int64(fd), &format.OpenFile{Name: note, Pos: -1})
	o, name := object(note)
	o.FD = int32(fd)
	return true, x.w.Open(t.p.pid, o, name, at)
}

func (x *importer) markLost(t *thread, n *notation, at uint64) (understood bool, err error) {
	lost, _, ok := n.number()
	if !ok {
		return false, nil
	}
	r := trace.Record{Type: trace.RecLoss, PID: t.p.pid, TID: t.tid, Exit: at, Count: lost, Reason: trace.LossKilled}
	return true, x.w.Record(&r)
}

func (x *importer) markNote(t *thread, n *notation, at uint64) (understood bool, err error) {
	v, err := n.value()
	if err != nil || v.Kind != layout.ToldText {
		return false, nil
	}
	return true, x.w.Record(&trace.Record{Type: trace.RecNote, PID: t.p.pid, TID: t.tid, Exit: at,
		Pieces: []trace.Piece{{Len: uint32(len(v.Data)), Data: v.Data}}})
}

// number reads a number and what stands behind it in angle brackets.
func (p *notation) number() (v uint64, note string, ok bool) {
	t, err := p.word()
	if err != nil {
		return 0, "", false
	}
	v, ok = event.ParseNumber(t.Text)
	return v, strings.Clone(t.Note), ok
}
