// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/history"
)

// arrows finds what leads from one call to another. Both of an arrow's calls get its
// number, in whichever order they return.
type arrows struct {
	last  uint64
	born  map[uint32]uint64   // by thread that has made no call yet: from the fork
	begun map[uint32][]effect // by thread: of the call that it is in
	pipes map[pipeID]*pipe
}

// effect is what a call did before it returned: it made a thread, or woke one.
type effect struct {
	arrow uint64
	time  int64
}

func newArrows() *arrows {
	return &arrows{born: map[uint32]uint64{}, begun: map[uint32][]effect{}, pipes: map[pipeID]*pipe{}}
}

func (a *arrows) next() uint64 {
	a.last++
	return a.last
}

// maxEffects is how many threads a call can wake with arrows; more are woken without.
const maxEffects = 1 << 12

// effect returns a new arrow from the call that a thread is in, 0 for one too many.
func (a *arrows) effect(tid uint32, time int64) uint64 {
	if len(a.begun[tid]) == maxEffects {
		return 0
	}
	n := a.next()
	a.begun[tid] = append(a.begun[tid], effect{n, time})
	return n
}

// fork notes that a thread made another.
func (a *arrows) fork(ev *event.Event) { a.born[ev.Child] = a.effect(ev.TID, ev.Exit) }

// wake notes that a thread woke the event's.
func (a *arrows) wake(ev *event.Event) []uint64 {
	if n := a.effect(ev.Child, ev.Exit); n != 0 {
		return []uint64{n}
	}
	return nil
}

// exit forgets a thread.
func (a *arrows) exit(tid uint32) {
	delete(a.born, tid)
	delete(a.begun, tid)
}

// of adds to a slice the arrows that its call has.
func (a *arrows) of(m *history.EventContext, s *Slice) {
	if n := a.born[m.TID]; n != 0 {
		s.In = append(s.In, n)
		delete(a.born, m.TID)
	}
	if list := a.begun[m.TID]; len(list) > 0 && !request(m.Op) {
		for _, e := range list {
			if m.Enter <= e.time && e.time <= m.Exit { // or it was not in a call that is recorded
				s.Out = append(s.Out, e.arrow)
			}
		}
		delete(a.begun, m.TID)
	}
	io := m.Traffic()
	if p := a.pipe(m, io.From); p != nil && io.Read > 0 && m.Op.Like() != event.OpTee { // which leaves the bytes there
		a.read(p, m, io.Read, s)
	}
	if p := a.pipe(m, io.To); p != nil && io.Written > 0 {
		a.write(p, m, io.Written, s)
	}
}

// pipeID is a pipe's inode or, where that was not recorded, its name.
type pipeID struct {
	dev, ino uint64
	name     string
}

// pipe is what is known of the bytes in a pipe, which are numbered from 0.
type pipe struct {
	ends          int   // open files
	written, read int64 // bytes
	writes        []span
	reads         []span // that returned before the writes that their bytes are from
	unsure        bool   // others use it, who are not in the tape
}

// span is the bytes of a call.
type span struct {
	from, to    int64
	enter, exit int64
	arrow       uint64 // 0 once it has both its ends
}

// What a pipe holds at most: without privileges it can be made that large (pipe(7)).
const maxPipe = 1 << 20

func idOf(o *history.Open) (pipeID, bool) {
	switch {
	case event.FileType(o.Mode) == event.TypeFIFO && o.Ino != 0:
		return pipeID{dev: o.Dev, ino: o.Ino}, true
	case o.Mode == 0 && strings.HasPrefix(o.Path, "pipe:["):
		return pipeID{name: o.Path}, true
	}
	return pipeID{}, false
}

func (a *arrows) opened(o *history.Open) {
	id, ok := idOf(o)
	if !ok {
		return
	}
	p := a.pipes[id]
	if p == nil {
		p = &pipe{}
		a.pipes[id] = p
	}
	p.ends++
}

func (a *arrows) closed(o *history.Open) {
	id, _ := idOf(o)
	if p := a.pipes[id]; p != nil {
		if p.ends--; p.ends == 0 {
			delete(a.pipes, id)
		}
	}
}

// pipe returns the pipe that a call read or wrote, nil if it is none of which the
// order of bytes is known.
func (a *arrows) pipe(m *history.EventContext, f *event.File) *pipe {
	if f == nil {
		return nil
	}
	o := m.OpenOf(f)
	if o == nil {
		return nil
	}
	id, ok := idOf(o)
	if !ok {
		return nil
	}
	if p := a.pipes[id]; p != nil && !p.unsure {
		return p
	}
	return nil
}

func (a *arrows) read(p *pipe, m *history.EventContext, n int64, s *Slice) {
	from, to := p.read, p.read+n
	p.read = to
	for i := range p.writes {
		w := &p.writes[i]
		if w.arrow == 0 || w.to <= from || w.from >= to {
			continue
		}
		if w.enter <= m.Enter {
			s.In = append(s.In, w.arrow)
		} else {
			s.Received = append(s.Received, w.arrow)
		}
		w.arrow = 0
	}
	p.writes = after(p.writes, p.read)
	if to > p.written {
		r := span{max(from, p.written), to, m.Enter, m.Exit, a.next()}
		s.Received = append(s.Received, r.arrow)
		p.reads = append(p.reads, r)
		p.check()
	}
}

func (a *arrows) write(p *pipe, m *history.EventContext, n int64, s *Slice) {
	w := span{p.written, p.written + n, m.Enter, m.Exit, a.next()}
	p.written = w.to
	for i := range p.reads {
		r := &p.reads[i]
		if r.arrow == 0 || r.from >= w.to || r.to <= w.from {
			continue
		}
		if r.exit <= m.Enter { // it read something else
			p.lose()
			return
		}
		s.Out = append(s.Out, r.arrow)
		r.arrow = 0
	}
	p.reads = after(p.reads, p.written)
	if w.to > p.read {
		s.Out = append(s.Out, w.arrow)
		p.writes = append(p.writes, w)
		p.check()
	}
}

// check finds that somebody else must read or write the pipe.
func (p *pipe) check() {
	if d := p.written - p.read; d > maxPipe || d < -maxPipe {
		p.lose()
	}
}

func (p *pipe) lose() { p.unsure, p.writes, p.reads = true, nil, nil }

// after returns the spans that reach beyond a byte.
func after(list []span, at int64) []span {
	i := 0
	for i < len(list) && list[i].to <= at {
		i++
	}
	return list[i:]
}
