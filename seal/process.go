// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// processes says of processes that executed a program what calls tell: the program and the directories.
type processes struct {
	programs map[uint32]string // by process, between its execve and what the recorder says of it
	known    facts.Tracker
}

func (p *processes) see(m *posix.Model, ev *event.Event) {
	switch {
	case ev.Effect() == event.EffectExecute && ev.OK():
		if p.programs == nil {
			p.programs = map[uint32]string{}
		}
		if len(ev.Paths) > 0 {
			p.programs[ev.PID] = cmp.Or(ev.Paths[0].Reached(), ev.Paths[0].Raw)
		}
	case ev.Kind == event.Exited && ev.TID == ev.PID:
		delete(p.programs, ev.PID)
		p.known.Forget(ev.Host, ev.PID)
	case ev.Kind == event.Described:
		p.described(m, ev)
	}
	p.known.See(ev)
}

// described completes what the recorder says of a process.
func (p *processes) described(m *posix.Model, ev *event.Event) {
	f, env, args := facts.Of(ev), inline(ev, facts.PartEnv), inline(ev, facts.PartArgs)
	if f.Exe == "" {
		fs := m.Thread(ev.PID, ev.TID).FS
		f.Exe, f.Cwd = p.programs[ev.PID], cmp.Or(f.Cwd, fs.Cwd)
		f.Root = cmp.Or(f.Root, fs.Root)
	}
	if old := p.known.Of(ev.Host, ev.PID); ev.Args[0] == onlyChanged && old != nil {
		f.Exe, f.Cwd, f.Root = cmp.Or(f.Exe, old.Exe), cmp.Or(f.Cwd, old.Cwd), cmp.Or(f.Root, old.Root)
		env, args = old.Env, old.Args
	}
	ev.Args[0] = 0
	delete(p.programs, ev.PID)
	facts.Describe(ev, f, env, args)
}

// onlyChanged is argument 0 of an event of kind Described, until it is complete, if the process has executed no
// program since the last one: what is absent is as it was.
const onlyChanged = 1

func inline(ev *event.Event, part int) []byte {
	if b := ev.BufArg(part); b != nil {
		return b.Inline
	}
	return nil
}

// process takes what is said of a process. A record without facts says nothing.
func (a *assembler) process(r *trace.Record) {
	var parts [facts.PartExe + 1][]byte
	for i := range r.Pieces {
		p := &r.Pieces[i]
		const lacking = trace.PieceMissing | trace.PieceOmitted | trace.PieceHash | trace.PieceSketch
		cut := p.Flags&trace.PieceTruncated != 0 && p.Arg == facts.PartCgroup
		if int(p.Arg) < len(parts) && p.Flags&lacking == 0 && !cut {
			parts[p.Arg] = p.Data
		}
	}
	said := facts.FromKernel(parts[facts.PartKernel], parts[facts.PartCgroup])
	if text := parts[facts.PartFacts]; text != nil {
		said = facts.Parse(text)
	}
	if said == nil {
		return
	}
	it := a.simple(r, event.Described)
	if r.Flags&trace.ProcessChanged != 0 {
		it.ev.Args[0] = onlyChanged
	}
	facts.Describe(&it.ev, said, bytes.Clone(parts[facts.PartEnv]), bytes.Clone(parts[facts.PartArgs]))
	if dev, ino, name, ok := facts.Executed(parts[facts.PartExe]); ok {
		it.ev.Files = []event.File{{FD: -1, Known: true, Dev: statDev(dev), Ino: ino, Path: name}}
	}
	a.queue.push(it)
}
