package replay

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/trace"
)

// planner turns events into tasks, in an order that explains their results.
type planner struct {
	tape     *trace.Tape
	source   *eventsource.Reader
	handles  map[event.OpenID]*handle
	order    *order.Order
	n        uint64 // events
	nodes    map[uint32]*node
	free     map[int][]uint32 // slots of nodes that have ended, the first that did first, by part
	division *division        // among a team; nil: there is none
	slots    uint32
	cwds     map[uint64]*cwd
	root     bool
	made     madeUp
	native   Native
	recent   recent
	notes    *annotated // nil: not wanted
	owners   map[ownerKey]*owner
	taken    map[string]effect.Inode // names of files that were open at the start
	// elsewhere are names that lead to where the kernel makes up the files.
	elsewhere map[string]bool
	guarded   bool // files have been immutable or append-only, which they are not here
}

// node is a thread of the recording.
type node struct {
	slot    uint32
	origin  order.Ref // what its first task waits for: of its maker, or where that did nothing yet, of the maker's
	begun   bool
	exit    int64 // ns; of its last event
	cpu     int64 // ns; at the entry of its last event
	thought int64 // ns of computing since its last task
	// measured says that its calls tell how long it waited for a processor.
	measured bool
}

type cwd struct {
	setBy     order.Ref
	published bool
}

func newPlanner(t *trace.Tape, root bool, made madeUp, elsewhere []string, layout eventsource.Layout, mode order.Mode) *planner {
	names := make(map[string]bool, len(elsewhere))
	for _, n := range elsewhere {
		names[n] = true
	}
	return &planner{
		elsewhere: names, owners: map[ownerKey]*owner{}, recent: recent{},
		made: made, taken: map[string]effect.Inode{},
		tape: t, source: eventsource.NewReader(t, initialtree.Arch(t), layout), root: root,
		handles: map[event.OpenID]*handle{}, order: order.New(mode),
		nodes: map[uint32]*node{}, cwds: map[uint64]*cwd{}, free: map[int][]uint32{},
	}
}

// next fills a task. It returns io.EOF after the last event.
func (p *planner) next(t *task) error {
	t.reset()
	s, err := p.source.Next(&t.ev)
	if err != nil {
		return err
	}
	t.take(s)
	p.n++
	ev := &t.ev
	t.op = ev.Op
	effect.AsCall(ev)
	t.part = p.division.member(ev)
	n := p.node(ev.TID, t.part)
	if p.notes == nil {
		n.compute(ev)
	} else {
		n.thought += p.notes.read(t)
	}
	if p.plain(t) {
		p.place(t, n, true)
		t.step.h.users = use(t.step.h.users, t.ref)
		p.made.plain(t)
		return nil
	}
	t.own()
	switch ev.Kind {
	case event.Call:
		p.plan(t)
	case event.Started:
		if len(ev.Paths) > 0 {
			t.action = enterDir
		}
		t.setsDir, t.publish = t.CwdAfter, true
	case event.Inherited:
		if effect.OpenAtStart(ev, p.taken) {
			p.planOpen(t)
		} else if len(ev.Files) > 0 {
			p.simulate(&ev.Files[0])
		}
	case event.Forked:
		if c := p.cwds[t.CwdAfter]; c != nil && !c.published {
			c.published, t.publish, t.dir = true, true, t.CwdAfter
		}
	case event.Exited:
		t.exited = true
	}
	if ev.Kind == event.Call && t.ev.OK() && (ev.Op == event.OpChdir || ev.Op == event.OpFchdir) {
		t.setsDir, t.publish = t.CwdAfter, t.SharedCwd
	}
	for _, id := range t.Released {
		if h := p.handles[id]; h != nil && h.made.Pos > 0 {
			t.closes = append(t.closes, h)
		}
	}
	p.unlocks(t)
	t.idle = t.action == emulate && len(t.closes) == 0 && len(t.unlock) == 0 && !t.publish && !p.orders(ev) && (p.notes == nil || n.begun && p.notes.idle(t))
	if !t.idle {
		p.order.Closing(t.Released, len(t.unlock) > 0)
		p.place(t, n, t.action != emulate || p.orders(ev))
	}
	for _, id := range t.Released {
		delete(p.handles, id)
		p.order.Closed(id)
	}
	switch ev.Kind {
	case event.Forked:
		p.fork(ev, n)
	case event.Exited:
		p.free[t.part] = append(p.free[t.part], n.slot)
		delete(p.nodes, ev.TID)
	case event.Call:
		if ev.TakesLead() {
			p.lead(ev, n)
		}
	}
	return nil
}

// lead has a thread go on under the number of its process's first one.
func (p *planner) lead(ev *event.Event, n *node) {
	if first := p.nodes[ev.PID]; first != nil {
		p.free[p.division.member(ev)] = append(p.free[p.division.member(ev)], first.slot)
	}
	delete(p.nodes, ev.TID)
	p.nodes[ev.PID] = n
}

// orders reports whether an event that is not repeated orders those that are: bytes go
// through a pipe.
func (p *planner) orders(ev *event.Event) bool {
	const fifo, typeMask = 0o010000, 0o170000
	switch ev.Op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		return ev.Kind == event.Call && len(ev.Files) > 0 && ev.Files[0].Mode&typeMask == fifo
	}
	return false
}

// node returns the state of a thread.
func (p *planner) node(tid uint32, part int) *node {
	n := p.nodes[tid]
	if n == nil {
		n = &node{slot: p.slots}
		if free := p.free[part]; len(free) > 0 {
			n.slot, p.free[part] = free[0], free[1:]
		} else if p.order.Mode() != order.Recorded || p.slots == 0 {
			p.slots++
		} else {
			n.slot = 0 // one after the other, so one for all
		}
		p.nodes[tid] = n
	}
	return n
}

// fork makes the node of a new thread, which begins after what its maker did so far.
func (p *planner) fork(ev *event.Event, maker *node) {
	delete(p.nodes, ev.Child)
	c := p.node(ev.Child, p.division.child(ev))
	if c.origin = maker.origin; maker.begun {
		c.origin = p.order.Last(maker.slot)
	}
}

// maxTickNS is how far a thread's CPU clock may be behind (CONFIG_HZ=100).
const maxTickNS = 10_000_000

// compute notes how long a thread computed before an event: for the time that went by, less
// that in which it waited for a processor. Its CPU clock bounds that, as it may have slept
// between its calls. Where delays are not known, it is the CPU time that it used, and at
// most the time that went by.
func (n *node) compute(ev *event.Event) {
	gap, used := max(ev.Enter-n.exit, 0), ev.CPU-n.cpu
	switch {
	case n.exit == 0:
	case ev.Flags&event.Delays != 0:
		n.measured = true
		// The delay may be from before an access to a mapped file, which says nothing of it.
		n.thought = max(n.thought+min(gap-int64(ev.DelayBefore), used+maxTickNS), 0)
	case n.measured:
		n.thought += max(min(gap, used+maxTickNS), 0)
	default:
		n.thought += max(min(used, gap), 0)
	}
	n.exit, n.cpu = ev.Exit, ev.CPU
}

// place finds out what a task has to wait for. made says that it does what its event
// says.
func (p *planner) place(t *task, n *node, made bool) {
	t.lane = int(n.slot)
	t.think, n.thought = n.thought, 0
	t.ref, t.deps = p.order.Place(n.slot, &t.ev, made, t.deps)
	if p.notes != nil {
		p.notes.apply(t)
	}
	wait := func(r order.Ref) {
		if r.Pos > 0 && r.Slot != t.ref.Slot {
			t.deps = p.order.Wait(r)
		}
	}
	if !n.begun {
		n.begun = true
		wait(n.origin)
	}
	if t.step.kind != stepTask {
		wait(t.step.h.made)
		return
	}
	for _, hs := range [...]*[event.MaxArgs]*handle{&t.fds, &t.through} {
		for _, h := range hs {
			if h != nil {
				wait(h.made)
				h.users = use(h.users, t.ref)
			}
		}
	}
	for _, h := range t.others {
		if h != nil {
			wait(h.made)
			h.users = use(h.users, t.ref)
		}
	}
	if t.result != nil {
		t.result.made = t.ref
	}
	for _, o := range t.unlock {
		for _, r := range o.users {
			wait(r)
		}
	}
	if t.owner != nil {
		t.owner.users = use(t.owner.users, t.ref)
	}
	for _, h := range t.closes {
		wait(h.made)
		for _, r := range h.users {
			wait(r)
		}
	}
	if c := p.cwds[t.dir]; c != nil {
		wait(c.setBy)
	}
	if t.setsDir != 0 {
		p.cwds[t.setsDir] = &cwd{setBy: t.ref, published: t.publish}
	}
}

// use adds a task to the last ones that use something.
func use(refs []order.Ref, r order.Ref) []order.Ref {
	for i := range refs {
		if refs[i].Slot == r.Slot {
			refs[i].Pos = r.Pos
			return refs
		}
	}
	return append(refs, r)
}

// whole reports whether the tape has all of a buffer, or nothing.
func whole(b *event.Buf) bool {
	known := knownPrefix(b)
	return len(b.Hashes) == 0 && (known == b.Len || known == 0)
}

// shortNS is what a call took at most that is expected to be short again.
const shortNS = 50_000

// ordinary reports whether an event's flags leave its call what most are: it was made and
// came back, and the tape has all that it gave. Flags that are not named here say something
// of how it was measured, and make no difference to what is done.
func ordinary(f event.EventFlags) bool {
	return f&(event.Interrupted|event.Incomplete|event.Late|event.Compat|event.StandIn) == 0
}

// plain makes a step of a read or write of one buffer that succeeded, if it is no more
// than that.
func (p *planner) plain(t *task) bool {
	ev, s := &t.ev, &t.step
	switch ev.Op {
	case event.OpPread64, event.OpPwrite64:
		s.places, s.off = true, int64(ev.Args[3])
	case event.OpRead, event.OpWrite:
	default:
		return false
	}
	if p.native.Requests && t.isRequest() {
		return false
	}
	if ev.Kind != event.Call || ev.Errno != 0 || t.Unexplained != 0 || !ordinary(ev.Flags) || ev.Ret < 0 || len(ev.Files) == 0 || len(t.Released) > 0 || ev.Args[2] > maxScratch || ev.Args[1] == 0 {
		return false
	}
	f := &ev.Files[0]
	h := p.handles[f.Open]
	if h == nil || f.Arg != 0 || !f.Known || f.Flags&unix.O_DIRECT != 0 || f.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 || len(ev.Bufs) > 1 || len(ev.Bufs) == 1 && !whole(&ev.Bufs[0]) {
		return false
	}
	s.kind = stepRead
	if ev.Op == event.OpPwrite64 || ev.Op == event.OpWrite {
		s.kind = stepWrite
	}
	t.action = call
	s.h, s.nr = h, uint16(nativeNumber(ev.Op))
	s.count, s.ret, s.seq = uint32(ev.Args[2]), ev.Ret, ev.Seq
	s.tid, s.op, s.short = t.TID, ev.Op, ev.Exit-ev.Enter < shortNS
	return true
}

func (p *planner) simulate(f *event.File) {
	if f.Open != 0 {
		p.handles[f.Open] = nil
	}
}

// plan decides what is done for a call.
func (p *planner) plan(t *task) {
	ev, spec := &t.ev, t.ev.Spec()
	real := p.bind(t)
	switch {
	case t.Unexplained&linearize.UnexplainedResult != 0 && ev.Errno != 0:
		t.why = whyUnexplained // it might succeed here, and leave something
	case ev.Flags&event.Interrupted != 0:
		t.why = whyInterrupted
	case ev.Op == event.OpUnknown:
		t.why = whyUnknown
	case spec.NoCall:
		switch {
		case effect.Runs(ev):
			t.why = whyRuns
		case !real || t.fds[0] == nil:
			t.why = whySimulated
		default:
			t.action = call
		}
	case ev.Op == event.OpIoctl:
		if t.why = whyCommand; ev.OK() {
			p.guarded = p.guarded || effect.Guards(ev)
			p.planShare(t)
		}
	case ev.Op == event.OpMsync:
		const sync = 4 // MS_SYNC
		if t.why = whyModelled; ev.OK() && real && t.fds[0] != nil && ev.Args[2]&sync != 0 {
			t.action = syncMapped
		}
	case isLock(ev):
		if t.why = whySimulated; real && !environmental(ev) {
			p.planLock(t)
		}
	case ev.Op == event.OpFlock:
		if t.why = whySimulated; real && !environmental(ev) && t.fds[0] != nil {
			t.action = lockFile
		}
	case ev.Op == event.OpFcntl && !plainFcntl(ev):
		t.why = whyCommand
	case ev.Op == event.OpBind && len(ev.Paths) > 0 && !effect.Virtual(ev.Paths[0].Abs):
		t.action = nameSocket
	case spec.Replay != event.Native:
		t.why = whyModelled
	case p.modelled(ev):
		t.why = whyOwn
	case environmental(ev) || p.guarded && ev.Errno == syscall.EPERM:
		t.why = whyEnvironment
	case spec.Hold && ev.OK():
		t.why = whySimulated
		p.planCopy(t)
	case !real:
		t.why = whySimulated
	case !p.pathsReal(t):
		t.why = whyPath
	case p.opensSpecial(ev):
		t.why = whySpecial
	default:
		t.action = call
	}
	if t.action != emulate {
		p.start(t)
	}
	if f := ev.FileArg(event.ResultArg); f != nil && spec.Result == event.KindFD && ev.OK() && spec.Class == event.Descriptor && !duplicates(ev.Op) {
		if t.action == call {
			t.result = &handle{fd: -1, path: f.Path}
			p.handles[f.Open] = t.result
		} else {
			p.handles[f.Open] = nil
		}
	}
	if t.action != emulate {
		if t.action == copyIn {
			p.content(t) // whether the tape has it makes a difference for later reads
		}
		p.made.see(t)
		p.recent.see(ev)
		p.recent.listed(t)
	}
}

// bind finds the replay's descriptors of a call. It reports false if one of them
// is simulated.
func (p *planner) bind(t *task) bool {
	real := true
	for i := range t.ev.Files {
		f := &t.ev.Files[i]
		if f.Arg < 0 || f.Open == 0 {
			continue
		}
		h := p.handles[f.Open]
		if h == nil {
			real = false
			continue
		}
		t.fds[f.Arg] = h
	}
	return real
}

// modelled reports whether a call's effect is the model's alone.
func (p *planner) modelled(ev *event.Event) bool {
	switch ev.Op {
	case event.OpDup, event.OpDup2, event.OpDup3, event.OpClose, event.OpCloseRange, event.OpUmask, event.OpMemfdCreate:
		return true
	}
	return false
}

func duplicates(op event.Op) bool {
	return op == event.OpDup || op == event.OpDup2 || op == event.OpDup3 || op == event.OpPidfdGetfd
}

// plainFcntl reports whether an fcntl is repeated as it is: the commands that read and
// set status flags.
func plainFcntl(ev *event.Event) bool {
	return ev.Args[1] == getFL || ev.Args[1] == setFL
}

// fcntl commands (asm-generic/fcntl.h).
const getFL, setFL = 3, 4

// environmental reports whether a call failed, or would come out differently,
// for a reason that lies in the recorded machine and not in its files.
func environmental(ev *event.Event) bool {
	if (ev.Errno == syscall.EAGAIN || ev.Errno == syscall.EACCES) && (ev.Op == event.OpFlock || isLock(ev)) {
		return false // somebody else has the lock
	}
	switch ev.Errno {
	case syscall.EFAULT, syscall.EINTR, syscall.EAGAIN, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EXDEV, syscall.EROFS,
		syscall.ETXTBSY, syscall.EBUSY, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOTTY, syscall.EOPNOTSUPP, syscall.ENOSYS,
		syscall.EDEADLK, syscall.ECANCELED: // a request behind one that failed, or that was taken back
		return true
	}
	if ev.Errno == syscall.EACCES || ev.Errno == syscall.EPERM {
		// Files of other users are the replaying user's own here.
		return ev.UID != 0
	}
	return ev.Errno >= 512 // restarted by the kernel
}

// pathsReal reports whether all names of a call lie in the replay's tree.
func (p *planner) pathsReal(t *task) bool {
	ev, spec := &t.ev, t.ev.Spec()
	want := 0
	for i := range spec.Args {
		if spec.Args[i].Kind == event.KindPath && ev.Args[i] != 0 {
			want++
		}
	}
	if len(ev.Paths) < want {
		return false // a name could not be recorded
	}
	for i := range ev.Paths {
		if effect.Virtual(ev.Paths[i].Abs) || p.elsewhere[ev.Paths[i].Abs] {
			return false
		}
		id := t.State.Through[max(ev.Paths[i].Arg, 0)]
		if id == 0 {
			if _, _, ok := posix.DescriptorPath(ev.Paths[i].Raw, ev.PID); ok {
				return false
			}
			continue
		}
		h := p.handles[id]
		if h == nil {
			return false
		}
		t.through[ev.Paths[i].Arg] = h
	}
	return true
}

// opensSpecial reports whether an open gave something that is neither file nor
// directory: opening a FIFO would wait for the other side.
func (p *planner) opensSpecial(ev *event.Event) bool {
	if f := ev.FileArg(event.ResultArg); f != nil && f.Known && ev.OK() {
		const oPath = 0o10000000
		t := effect.TypeOf(f.Mode)
		return t != 'f' && t != 'd' && f.Flags&oPath == 0
	}
	return ev.Errno == syscall.ENXIO
}

// start notes which working directory a call depends on.
func (p *planner) start(t *task) {
	spec := t.ev.Spec()
	relative := t.ev.Op == event.OpGetcwd
	for i := range t.ev.Paths {
		a := int(t.ev.Paths[i].Arg)
		fromDir := a > 0 && spec.Args[a-1].Kind == event.KindDirFD && int32(t.ev.Args[a-1]) != event.AtFDCWD
		relative = relative || !strings.HasPrefix(t.ev.Paths[i].Raw, "/") && !fromDir
	}
	if relative && p.cwds[t.Cwd] != nil {
		t.dir = t.Cwd
	}
}

// planCopy plans a copy inside the kernel by which of its sides are real.
func (p *planner) planCopy(t *task) {
	src, dst := effect.CopySides(t.ev.Op)
	switch in, out := t.fds[src], t.fds[dst]; {
	case in != nil && out != nil:
		t.action = call
	case out != nil:
		t.action = copyIn
	case in != nil:
		t.action = copyOut
	}
}

// content loads what a task writes and what it should read.
func (p *planner) content(t *task) {
	ev := &t.ev
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if b.Kind != event.KindBuf && b.Kind != event.KindVec {
			continue
		}
		dst := &t.want
		if b.Dir == event.In && !ev.Spec().Hold {
			dst = &t.data
		}
		data, err := p.tape.Content(b, (*dst)[:0])
		var missing *trace.MissingError
		if errors.As(err, &missing) {
			t.noWant = true
			if b.Dir == event.Out && t.action != copyIn {
				known := prefix(b) // nothing is compared with zeros, of which there may be many
				b = &known
			}
			if data, _, err = p.tape.ContentZero(b, (*dst)[:0]); err != nil {
				data = nil
			}
		} else if err != nil {
			t.noWant = true
		}
		*dst = data
	}
	if t.action == copyIn {
		t.data = t.want
	}
}
