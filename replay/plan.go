package replay

import (
	"errors"
	"slices"
	"strings"
	"syscall"

	"iotape/event"
	"iotape/posix"
	"iotape/trace"
)

// action is what a worker does with a task.
type action uint8

const (
	emulate  action = iota // nothing but what the task closes and publishes
	call                   // the system call itself
	copyIn                 // write recorded bytes in place of a copy from what is simulated
	copyOut                // read and check in place of a copy to what is simulated
	clone                  // FICLONE, or a copy where the target cannot
	enterDir               // go to the recording's first working directory
	openOwn                // open what was open at the start
)

// handle is an open file of the recording and, unless it is simulated, the
// replay's descriptor for it.
type handle struct {
	fd      int    // set by the task that opens it, before any task that uses it
	broken  bool   // the open went wrong; set like fd
	madeBy  uint64 // task number + 1
	lastUse uint64 // task number + 1
	dir     listing
}

// task is one event, ready to be done. It owns everything that it points to.
type task struct {
	n      uint64 // number, from 0; the tape's order
	need   uint64 // tasks with smaller numbers must be done first
	ev     event.Event
	op     event.Op // as recorded; ev of a request is the call that does its work
	action action

	fds [event.MaxArgs]*handle
	// through are the open files that a path argument goes through, as in
	// /proc/self/fd/7.
	through [event.MaxArgs]*handle
	result  *handle // made by this task
	closes  []*handle

	cwd     uint64 // identity of the working directory that relative names start from; 0 if none do
	setsCwd uint64 // identity after a successful change
	publish bool   // other threads will need the working directory
	umask   uint32
	inline  []byte // small content of the event
	data    []byte // content to write
	want    []byte // content to expect
	noWant  bool   // the tape does not have all of it, or of what is written
	madeUp  bool   // what it reads is the replay's own invention
	why     reason // the call is not made
	exited  bool   // last task of its node
}

// planner turns events into tasks, in the tape's order.
type planner struct {
	tape    *trace.Tape
	events  *trace.EventReader
	model   *posix.Model
	handles map[event.OpenID]*handle
	order   order
	n       uint64
	// origin is the task that a thread, or a working directory, comes from.
	origin map[uint32]uint64
	cwds   map[uint64]*cwd
	root   bool
	made   madeUp
	taken  map[string]inode // names of files that were open at the start
}

type cwd struct {
	setBy     uint64 // task number + 1
	published bool
}

func newPlanner(t *trace.Tape, root bool, made madeUp) *planner {
	return &planner{
		made: made, taken: map[string]inode{},
		tape: t, events: t.NewEventReader(), model: posix.New(), root: root,
		handles: map[event.OpenID]*handle{}, order: newOrder(),
		origin: map[uint32]uint64{}, cwds: map[uint64]*cwd{},
	}
}

// next fills a task. It returns io.EOF after the last event. floor is the number of
// tasks, from the first on, that are known to be done.
func (p *planner) next(t *task, floor uint64) error {
	*t = task{ev: t.ev, closes: t.closes[:0], inline: t.inline[:0], data: t.data[:0], want: t.want[:0]}
	if err := p.events.Next(&t.ev); err != nil {
		return err
	}
	ev := &t.ev
	t.own()
	t.n = p.n
	p.n++
	th := p.model.Thread(ev.PID, ev.TID)
	before := th.FS.CwdID
	t.umask = th.FS.Umask
	released := p.model.Apply(ev)
	t.op = ev.Op
	asCall(ev)
	t.need = p.order.overlap(t, floor)
	t.after(p.origin[ev.TID])

	switch ev.Kind {
	case event.Call:
		p.plan(t, before)
	case event.Started:
		if len(ev.Paths) > 0 {
			t.action = enterDir
		}
		p.changesCwd(t, th, true)
	case event.Inherited:
		// Standard streams and the like are the recorder's surroundings.
		if ownFile(ev, p.taken) {
			p.planOwn(t)
		} else if len(ev.Files) > 0 {
			p.simulate(&ev.Files[0])
		}
	case event.Forked:
		p.origin[ev.Child] = t.n + 1
		if c := p.cwds[th.FS.CwdID]; c != nil && !c.published {
			c.published, t.publish, t.cwd = true, true, th.FS.CwdID
			t.after(c.setBy)
		}
	case event.Exited:
		t.exited = true
		delete(p.origin, ev.TID)
	}
	if ev.Kind == event.Call && t.ev.OK() && (ev.Op == event.OpChdir || ev.Op == event.OpFchdir) {
		p.changesCwd(t, th, false)
	}
	for _, id := range released {
		if h := p.handles[id]; h != nil {
			delete(p.handles, id)
			if h.madeBy > 0 {
				t.after(max(h.madeBy, h.lastUse))
				t.closes = append(t.closes, h)
			}
		}
	}
	p.order.done(t)
	return nil
}

// own copies what the reader only lends: a task outlives many events.
func (t *task) own() {
	n := 0
	for i := range t.ev.Bufs {
		n += len(t.ev.Bufs[i].Inline)
	}
	t.inline = slices.Grow(t.inline, n)
	for i := range t.ev.Bufs {
		b := &t.ev.Bufs[i]
		at := len(t.inline)
		t.inline = append(t.inline, b.Inline...)
		b.Inline = t.inline[at:len(t.inline):len(t.inline)]
	}
}

// after makes a task wait for another, given by its number + 1.
func (t *task) after(done uint64) { t.need = max(t.need, min(done, t.n)) }

// changesCwd notes that a thread's working directory is a new one.
func (p *planner) changesCwd(t *task, th *posix.Thread, publish bool) {
	t.setsCwd = th.FS.CwdID
	p.cwds[t.setsCwd] = &cwd{setBy: t.n + 1, published: publish}
	t.publish = publish || t.publish
}

func (p *planner) simulate(f *event.File) {
	if f.Open != 0 {
		p.handles[f.Open] = nil
	}
}

// plan decides what is done for a call.
func (p *planner) plan(t *task, cwdID uint64) {
	ev, spec := &t.ev, t.ev.Spec()
	real := p.bind(t)
	switch {
	case ev.Flags&event.Interrupted != 0:
		t.why = whyInterrupted
	case ev.Op == event.OpUnknown:
		t.why = whyUnknown
	case spec.NoCall:
		switch {
		case runs(ev):
			t.why = whyRuns
		case !real || t.fds[0] == nil:
			t.why = whySimulated
		default:
			t.action = call
		}
	case ev.Op == event.OpIoctl:
		if t.why = whyCommand; ev.Args[1] == ficlone && ev.OK() && real {
			p.planClone(t)
		}
	case ev.Op == event.OpFcntl && !plainFcntl(ev):
		t.why = whyCommand
	case spec.Replay != event.Native:
		t.why = whyModelled
	case p.modelled(ev):
		t.why = whyOwn
	case environmental(ev):
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
	if t.action == call || t.action == clone {
		p.context(t, cwdID)
	}
	if f := ev.FileArg(event.ResultArg); f != nil && spec.Result == event.KindFD && ev.OK() && spec.Class == event.Descriptor && !duplicates(ev.Op) {
		if t.action == call {
			t.result = &handle{fd: -1, madeBy: t.n + 1}
			p.handles[f.Open] = t.result
		} else {
			p.handles[f.Open] = nil
		}
	}
	if t.action != emulate {
		p.content(t)
		p.made.see(t)
		p.order.conflicts(t)
	}
}

// runs reports whether pages were read to be executed: they are not part of the tree.
func runs(ev *event.Event) bool {
	return ev.Op == event.OpMmapPread && ev.Args[4]&event.MappedCode != 0
}

const ficlone = 0x40049409

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
		p.use(t, h)
	}
	return real
}

// modelled reports whether a call's effect is the model's alone.
func (p *planner) modelled(ev *event.Event) bool {
	switch ev.Op {
	case event.OpDup, event.OpDup2, event.OpDup3, event.OpClose, event.OpCloseRange, event.OpUmask, event.OpFlock, event.OpMemfdCreate:
		return true
	}
	return false
}

func duplicates(op event.Op) bool {
	return op == event.OpDup || op == event.OpDup2 || op == event.OpDup3 || op == event.OpPidfdGetfd
}

// plainFcntl reports whether an fcntl is repeated: the commands that read and set
// status flags. Locks belong to processes, of which a replay has only one.
func plainFcntl(ev *event.Event) bool {
	const getFL, setFL = 3, 4
	return ev.Args[1] == getFL || ev.Args[1] == setFL
}

// environmental reports whether a call failed, or would come out differently,
// for a reason that lies in the recorded machine and not in its files.
func environmental(ev *event.Event) bool {
	switch ev.Errno {
	case syscall.EFAULT, syscall.EINTR, syscall.EAGAIN, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EXDEV, syscall.EROFS,
		syscall.ETXTBSY, syscall.EBUSY, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOTTY, syscall.EOPNOTSUPP, syscall.ENOSYS,
		syscall.ECANCELED: // a request behind one that failed, or that was taken back
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
		if virtual(ev.Paths[i].Abs) {
			return false
		}
		fd, _, ok := posix.DescriptorPath(ev.Paths[i].Raw, ev.PID)
		if !ok {
			continue
		}
		d := p.model.Thread(ev.PID, ev.TID).Table.Lookup(fd)
		if d == nil || p.handles[d.Open.ID] == nil {
			return false
		}
		p.use(t, p.handles[d.Open.ID])
		t.through[ev.Paths[i].Arg] = p.handles[d.Open.ID]
	}
	return true
}

// use makes a task wait for what opens a handle.
func (p *planner) use(t *task, h *handle) {
	h.lastUse = max(h.lastUse, t.n+1)
	t.after(h.madeBy)
}

// opensSpecial reports whether an open gave something that is neither file nor
// directory: opening a FIFO would wait for the other side.
func (p *planner) opensSpecial(ev *event.Event) bool {
	if f := ev.FileArg(event.ResultArg); f != nil && f.Known && ev.OK() {
		const oPath = 0o10000000
		t := typeOf(f.Mode)
		return t != 'f' && t != 'd' && !(t == 'l' && f.Flags&oPath != 0)
	}
	return ev.Errno == syscall.ENXIO
}

// context notes which working directory and mask a call depends on.
func (p *planner) context(t *task, cwdID uint64) {
	spec := t.ev.Spec()
	relative := t.ev.Op == event.OpGetcwd
	for i := range t.ev.Paths {
		a := int(t.ev.Paths[i].Arg)
		fromDir := a > 0 && spec.Args[a-1].Kind == event.KindDirFD && int32(t.ev.Args[a-1]) != event.AtFDCWD
		relative = relative || !strings.HasPrefix(t.ev.Paths[i].Raw, "/") && !fromDir
	}
	if c := p.cwds[cwdID]; relative && c != nil {
		t.cwd = cwdID
		t.after(c.setBy)
	}
}

// planCopy plans a copy inside the kernel by which of its sides are real.
func (p *planner) planCopy(t *task) {
	src, dst := copySides(t.ev.Op)
	switch in, out := t.fds[src], t.fds[dst]; {
	case in != nil && out != nil:
		t.action = call
	case out != nil:
		t.action = copyIn
	case in != nil:
		t.action = copyOut
	}
}

// copySides returns the arguments of a copy's source and target.
func copySides(op event.Op) (src, dst int) {
	if op == event.OpSendfile {
		return 1, 0
	}
	return 0, 2
}

// planClone binds the source of a FICLONE, which is passed as a number.
func (p *planner) planClone(t *task) {
	d := p.model.Thread(t.ev.PID, t.ev.TID).Table.Lookup(int32(t.ev.Args[2]))
	if d == nil || t.fds[0] == nil || p.handles[d.Open.ID] == nil {
		return
	}
	t.fds[2] = p.handles[d.Open.ID]
	p.use(t, t.fds[2])
	t.action = clone
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
