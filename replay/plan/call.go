// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/linearize"
)

// planCall decides what is done for a call.
func (p *Planner) planCall(t *Task) {
	ev, spec := &t.Event, t.Event.Spec()
	p.chooseAction(t, p.bind(t))
	p.elsewhere.observe(ev, makesLink)
	p.specials.observe(ev, makesSpecial)
	if t.Action != Emulate {
		p.findBaseDir(t)
	}
	f := ev.FileArg(event.ResultArg)
	if f != nil && ev.OK() && spec.Result == event.KindFD && spec.Class == event.Descriptor && !duplicates(ev.Op) {
		if t.Action == MakeCall {
			t.Files.Result = NewHandle(f.Path)
			t.Files.Result.listedFrom = ev.Enter
			p.handles[f.Open] = t.Files.Result
		} else {
			p.handles[f.Open] = nil
			if t.Why == whyPath {
				p.outside[f.Open] = true
			}
		}
	}
	p.findOmission(t)
	p.tainted.mapped(ev)
	p.shared.observe(ev, p)
	if t.Action == Emulate {
		return
	}
	if t.Action == CopyIn {
		p.loader.load(t) // whether the tape has it makes a difference for later reads
	}
	p.tainted.observe(t)
	p.recent.observe(ev)
	p.recent.findUnsure(t)
}

// bind finds the replay's descriptors of a call. It reports false if one of them
// is simulated.
func (p *Planner) bind(t *Task) (real bool) {
	real = true
	for i := range t.Event.Files {
		f := &t.Event.Files[i]
		if f.Arg < 0 || f.Open == 0 {
			continue
		}
		h := p.handles[f.Open]
		if h == nil {
			real = real && unused(&t.Event, int(f.Arg))
			continue
		}
		t.Files.FDs[f.Arg] = h
	}
	return real
}

// unused reports whether an argument is the directory of an absolute name, which does not matter.
func unused(ev *event.Event, arg int) bool {
	if spec := ev.Spec(); arg >= len(spec.Args) || spec.Args[arg].Kind != event.KindDirFD {
		return false
	}
	name := ev.PathArg(arg + 1)
	return name != nil && strings.HasPrefix(name.Raw, "/") && ev.Op != event.OpOpenat2 // with RESOLVE_IN_ROOT it does
}

// simulate notes an open file that the replay does not have.
func (p *Planner) simulate(f *event.File) {
	if f.Open != 0 {
		p.handles[f.Open] = nil
	}
}

// chooseAction chooses the action for a call, or the reason why it is not made. real says that
// none of its descriptors is simulated.
func (p *Planner) chooseAction(t *Task, real bool) {
	ev := &t.Event
	switch {
	case t.Unexplained&linearize.UnexplainedResult != 0 && ev.Errno != 0:
		t.Why = whyUnexplained // it might succeed here, and leave something
	case ev.Flags&event.Interrupted != 0:
		t.Why = whyInterrupted
	case ev.Spec().Replay == event.Native && unsaid(ev): // others are not made anyway
		t.Why = whyUnsaid
	case ev.Op == event.OpUnknown:
		t.Why = whyUnknown
	case ev.Spec().NoCall:
		p.chooseMapped(t, real)
	default:
		if !p.chooseSpecial(t, real) {
			p.chooseOrdinary(t, real)
		}
	}
}

// unsaid reports whether a call has a number that the trace does not say. Of flags and permissions, it has
// what to take instead.
func unsaid(ev *event.Event) bool {
	if ev.Flags&event.UnknownArgs == 0 {
		return false
	}
	spec := ev.Spec()
	for i := range spec.Args {
		switch spec.Args[i].Kind {
		case event.KindFlags, event.KindMode, event.KindNone:
		default:
			if !ev.ArgKnown(i) {
				return true
			}
		}
	}
	return false
}

// chooseSpecial is for operations that need more than the system call itself. It reports false
// for ordinary calls.
func (p *Planner) chooseSpecial(t *Task, real bool) bool {
	switch t.Event.Op {
	case event.OpIoctl:
		p.chooseIoctl(t)
	case event.OpMsync:
		p.chooseMsync(t, real)
	case event.OpFcntl:
		return p.chooseFcntl(t, real)
	case event.OpFlock:
		p.chooseFlock(t, real)
	case event.OpBind:
		return p.chooseBind(t)
	default:
		return false
	}
	return true
}

// chooseMapped is for accesses to mapped files.
func (p *Planner) chooseMapped(t *Task, real bool) {
	switch {
	case effect.Runs(&t.Event):
		t.Why = whyRuns
	case !real || t.Files.FDs[0] == nil:
		t.Why = whySimulated
	default:
		t.Action = MakeCall
	}
}

func (p *Planner) chooseIoctl(t *Task) {
	if t.Why = whyCommand; t.Event.OK() {
		p.planShare(t)
	}
}

func (p *Planner) chooseMsync(t *Task, real bool) {
	const sync = 4 // MS_SYNC
	if t.Why = whyModelled; t.Event.OK() && real && t.Files.FDs[0] != nil && t.Event.Args[2]&sync != 0 {
		t.Action = SyncMapped
	}
}

// chooseFcntl reports false for commands that are repeated as they are.
func (p *Planner) chooseFcntl(t *Task, real bool) bool {
	switch {
	case isLock(&t.Event):
		if t.Why = whySimulated; real && !refused(t) {
			p.planLock(t)
		}
	case t.Event.Args[1] != GetFL && t.Event.Args[1] != SetFL:
		t.Why = whyCommand
	default:
		return false
	}
	return true
}

func (p *Planner) chooseFlock(t *Task, real bool) {
	if t.Why = whySimulated; real && !refused(t) && t.Files.FDs[0] != nil {
		t.Action = LockFile
	}
}

// chooseBind reports false for sockets without a name in the replay's tree.
func (p *Planner) chooseBind(t *Task) bool {
	if len(t.Event.Paths) == 0 || effect.Virtual(t.Event.Paths[0].Abs) {
		return false
	}
	t.Action = NameSocket
	return true
}

// chooseOrdinary is for calls that are made as they are, if they are made.
func (p *Planner) chooseOrdinary(t *Task, real bool) {
	ev, spec := &t.Event, t.Event.Spec()
	switch {
	case spec.Replay != event.Native:
		t.Why = whyModelled
	case modelled(ev.Op):
		t.Why = whyOwn
	case refused(t):
		t.Why = whyEnvironment
	case spec.NeedsStop && ev.OK():
		t.Why = whySimulated
		p.planCopy(t)
	case !real:
		t.Why = whySimulated
	case ev.OK() && throughUnknown(ev):
		t.Why = whyNoName
	case opensSpecial(ev) || p.opensNamed(ev):
		t.Why = whySpecial
	default:
		if t.Why = p.findNames(t); t.Why == whyNone {
			t.Action = MakeCall
		}
	}
}

// modelled reports whether an operation's effect is the model's alone.
func modelled(op event.Op) bool {
	switch op.Effect() {
	case event.EffectDup, event.EffectDupTo, event.EffectClose, event.EffectCloseRange:
		return true
	}
	return op == event.OpUmask || op == event.OpMemfdCreate
}

func duplicates(op event.Op) bool {
	return op.Effect() == event.EffectDup || op.Effect() == event.EffectDupTo || op == event.OpPidfdGetfd
}

// GetFL and SetFL are the commands of fcntl that are repeated as they are: they read and set
// status flags (asm-generic/fcntl.h).
const GetFL, SetFL = 3, 4

// findNames returns why the names of a call are not to be found in the replay's tree, or
// whyNone.
func (p *Planner) findNames(t *Task) Reason {
	ev := &t.Event
	if nameless(ev) || !content.TextKnown(ev) {
		return whyNoName
	}
	for i := range ev.Paths {
		_, follow := ev.NameUse(i)
		if effect.Virtual(ev.Paths[i].Abs) || follow && p.elsewhere[ev.Paths[i].Abs] {
			return whyPath
		}
		if effect.LeavesVirtual(ev.Paths[i].Raw) {
			ev.Paths[i].Raw = ev.Paths[i].Abs
		}
		id := t.State.Through[max(ev.Paths[i].Arg, 0)]
		if id == 0 {
			if _, _, ok := posix.DescriptorPath(ev.Paths[i].Raw, ev.PID); ok {
				return whyNoName
			}
			continue
		}
		h := p.handles[id]
		if h == nil {
			return whySimulated
		}
		t.Files.Through[ev.Paths[i].Arg] = h
	}
	return whyNone
}

// nameless reports whether a call was given a name that the tape does not have.
func nameless(ev *event.Event) bool {
	spec, want := ev.Spec(), 0
	for i := range spec.Args {
		if spec.Args[i].Kind == event.KindPath && ev.Args[i] != 0 {
			want++
		}
	}
	return len(ev.Paths) < want
}

// throughUnknown reports whether a call that succeeded used a descriptor of which the tape does not say what it was.
func throughUnknown(ev *event.Event) bool {
	if _, request := ev.Request(); request {
		return false
	}
	spec := ev.Spec()
	for i := range spec.Args {
		kind := spec.Args[i].Kind
		if kind != event.KindFD && (kind != event.KindDirFD || unused(ev, i)) || int32(ev.Args[i]) < 0 {
			continue
		}
		if f := ev.FileArg(i); f == nil || f.Open == 0 {
			return true
		}
	}
	return false
}

// opensSpecial reports whether an open gave something that is neither file nor
// directory: opening a FIFO would wait for the other side.
func opensSpecial(ev *event.Event) bool {
	if f := ev.FileArg(event.ResultArg); f != nil && f.Known && ev.OK() {
		const oPath = 0o10000000
		t := effect.TypeOf(f.Mode)
		return t != 'f' && t != 'd' && f.Flags&oPath == 0
	}
	return ev.Errno == syscall.ENXIO
}

// opensNamed reports whether an open gave the FIFO, socket or device of a name, by what other calls say of it.
func (p *Planner) opensNamed(ev *event.Event) bool {
	f := ev.FileArg(event.ResultArg)
	return f != nil && !f.Known && ev.OK() && p.specials[f.Path] && ev.Spec().Class == event.Descriptor
}

// findBaseDir notes which working directory a call depends on.
func (p *Planner) findBaseDir(t *Task) {
	spec := t.Event.Spec()
	relative := t.Event.Op == event.OpGetcwd
	for i := range t.Event.Paths {
		a := int(t.Event.Paths[i].Arg)
		fromDir := a > 0 && spec.Args[a-1].Kind == event.KindDirFD && int32(t.Event.Args[a-1]) != event.AtFDCWD
		relative = relative || !strings.HasPrefix(t.Event.Paths[i].Raw, "/") && !fromDir
	}
	if relative && p.cwds[t.Cwd] != nil {
		t.Dir.From = t.Cwd
	}
}

// planCopy plans a copy inside the kernel by which of its sides are real.
func (p *Planner) planCopy(t *Task) {
	from, to := t.Event.CopySides()
	switch in, out := t.Files.FDs[from.FD], t.Files.FDs[to.FD]; {
	case in != nil && out != nil:
		t.Action = MakeCall
	case out != nil:
		t.Action = CopyIn
	case in != nil:
		t.Action = CopyOut
	}
}
