// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"github.com/iotape/iotape/event"
)

// positions follows where the kept events of a slice leave the positions of open files,
// and makes up for the calls that are left out and moved them.
type positions struct {
	at        map[event.OpenID]int64
	synthetic event.Event
}

const (
	seekCur = 1
)

// movesPosition reports whether a call uses the position of an open file, and moves it.
func movesPosition(ev *event.Event) bool {
	if !ev.OK() {
		return false
	}
	switch ev.Effect() {
	case event.EffectSeek, event.EffectList, event.EffectCopy:
		return true
	}
	return ev.AtPosition()
}

// replaceable reports whether a call that moved a position can be left out where only
// the position counts: where the next kept one begins is known from itself.
func replaceable(ev *event.Event) bool { return ev.AtPosition() && ev.Op.Like() == ev.Op }

// positioned reports whether a file has a position that counts.
func positioned(f *event.File) bool {
	return f.Is(event.TypeRegular) || f.Is(event.TypeDir)
}

// startOf returns the position that a file had when a call began; ok is false if it is
// not known, or does not matter.
func startOf(ev *event.Event, f *event.File) (start int64, ok bool) {
	if !movesPosition(ev) || !positioned(f) || f.Open == 0 {
		return 0, false
	}
	switch {
	case ev.AtPosition():
		return ev.Offset, f.Arg == 0 && ev.Offset >= 0 && !(ev.Effect() == event.EffectWrite && ev.Appends())
	case ev.Effect() == event.EffectSeek:
		return ev.Ret - int64(ev.Args[1]), ev.Args[2] == seekCur
	case copiesAtPosition(ev, f):
		return f.Pos - ev.Ret, f.Pos >= ev.Ret
	}
	return 0, false
}

// copiesAtPosition reports whether a call with two files used the position of this one, and
// not an offset in its arguments.
func copiesAtPosition(ev *event.Event, f *event.File) bool {
	if ev.Effect() != event.EffectCopy {
		return false
	}
	from, to := ev.CopySides()
	appends := f.Flags&event.OpenAppend != 0
	return int(f.Arg) == from.FD && from.AtPosition(ev) || int(f.Arg) == to.FD && to.AtPosition(ev) && !appends
}

// before returns the call that has to stand in front of an event, so that a file is where
// the event found it: an lseek that stands for what was left out; nil if none has to.
func (p *positions) before(ev *event.Event, arch event.Arch) *event.Event {
	if ev.Kind != event.Call {
		return nil
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		start, ok := startOf(ev, f)
		if at, known := p.at[f.Open]; !ok || !known || at == start {
			continue
		}
		p.at[f.Open] = start
		files := append(p.synthetic.Files[:0], *f)
		files[0].Arg, files[0].Pos = 0, start
		p.synthetic = event.Event{
			Kind: event.Call, Op: event.OpLseek, NR: uint32(event.Number(arch, event.OpLseek)), Host: ev.Host,
			PID: ev.PID, TID: ev.TID, PPID: ev.PPID, PGID: ev.PGID, SID: ev.SID, UID: ev.UID, GID: ev.GID,
			NSPID: ev.NSPID, NSTID: ev.NSTID, Comm: ev.Comm,
			Enter: ev.Enter, Exit: ev.Enter, CPU: ev.CPU, Ret: start,
			Args:  [event.MaxArgs]uint64{uint64(f.FD), uint64(start)},
			Files: files, Offset: -1, Count: -1, Flags: event.Synthetic,
		}
		return &p.synthetic
	}
	return nil
}

// after notes where a kept event left positions.
func (p *positions) after(ev *event.Event) {
	moves := ev.Kind == event.Call && movesPosition(ev)
	for i := range ev.Files {
		f := &ev.Files[i]
		if f.Open == 0 || !positioned(f) {
			continue
		}
		_, known := p.at[f.Open]
		switch {
		case moves && ev.AtPosition() && f.Arg == 0 && ev.Offset >= 0:
			p.at[f.Open] = ev.Offset + ev.Ret
		case moves, !known && (ev.Kind == event.Inherited || f.Arg == event.ResultArg):
			p.at[f.Open] = f.Pos
		}
	}
}
