// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
)

// Options say what to run, and whom to hold. Command, Serial and Budget are needed.
type Options struct {
	Command ptracer.Command // its Argv, Dir, Env, Files and Credential
	Scope   Scope
	Serial  string // of the recorded run that this one belongs to
	Hold    string // node to hold; "" is nobody
	Period  int    // hold each such call, from the first one
	// Known are runs made before: what they say of the nodes' gaps. With Hold, one in
	// which nobody was held is needed.
	Known []*Run
	// Patience is how much longer than expected a node has to make no call to be stuck;
	// 0 is DefaultPatience.
	Patience time.Duration
	// Most is how long a call is held at most; 0 is DefaultMost. Budget is how long the
	// run may take, after which it is ended.
	Most, Budget time.Duration
	// Peers are set if other hosts have parts of the run.
	Peers *Peers
}

// Defaults of Options.
const (
	DefaultPatience = 10 * time.Millisecond
	DefaultMost     = 5 * time.Second
)

// maxGivenUp is after how many holds that came to nothing nobody is held any more.
const maxGivenUp = 3

// watch is a run that is under way. What it has is used by the tracing thread and by the
// watchdog, each with the lock.
type watch struct {
	o    *Options
	run  *Run
	ops  map[int]event.Op
	tr   *ptracer.Engine
	want map[string]*expected

	mu       sync.Mutex
	family   processTree
	threads  map[uint32]*thread // that live
	names    map[string]*thread // nodes, also such that have ended
	held     []*thread          // in the order in which they are let go on
	progress uint64             // counts what nodes do
	last     int64              // when that was
	givenUp  int
	peers    peers
}

// thread is a followed thread.
type thread struct {
	t    *ptracer.Tracee
	tid  uint32
	name string
	node *Node // nil: it has made no I/O call
	// At the end of its last call, or at its birth.
	cpu, delay, wall int64
	inCall           bool
	held             int64 // since when, 0: it is not
	ended            bool
	watched          watched
}

// Watch runs the application once. An error means that there was no such run; one that was
// ended before its end is no error, but says so.
func Watch(ctx context.Context, o *Options) (*Run, error) {
	ops, err := numbers()
	if err != nil {
		return nil, err
	}
	w := &watch{
		o: o, ops: ops, run: &Run{Version: runVersion, Serial: o.Serial, Command: o.Command.Argv, Held: o.Hold,
			Period: o.Period},
		family: processTree{}, threads: map[uint32]*thread{}, names: map[string]*thread{}, want: expectations(o.Known),
	}
	list := make([]int, 0, len(ops))
	for nr := range ops {
		list = append(list, nr)
	}
	slices.Sort(list)
	cmd := o.Command
	if cmd.Filter, err = ptracer.Filter(list, true); err != nil {
		return nil, err
	}
	w.tr = ptracer.New(&cmd, &ptracer.Handler{Fork: w.fork, Exec: w.exec, Enter: w.enter, Leave: w.leave, Exit: w.exit})
	began := now()
	stop := w.guard(ctx)
	st, err := w.tr.Run(context.WithoutCancel(ctx))
	stop()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	w.run.Elapsed, w.run.Exit, w.run.Signal = now()-began, st.Exit, int(st.Signal)
	for _, t := range w.names {
		if t.node != nil && len(t.node.Calls) > 0 {
			w.run.Nodes = append(w.run.Nodes, t.node)
		}
	}
	slices.SortFunc(w.run.Nodes, func(a, b *Node) int { return byName(a.Name, b.Name) })
	return w.run, nil
}

// byName orders the names of nodes: by host, and by place there.
func byName(a, b string) int {
	hostA, nodeA := HostOf(a)
	hostB, nodeB := HostOf(b)
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '/' })
	}
	return cmp.Or(cmp.Compare(hostA, hostB), slices.CompareFunc(split(nodeA), split(nodeB), func(x, y string) int {
		i, _ := strconv.Atoi(x)
		k, _ := strconv.Atoi(y)
		return cmp.Compare(i, k)
	}), cmp.Compare(nodeA, nodeB))
}

// guard lets held threads go on when they may, and ends the run when its time is over.
func (w *watch) guard(ctx context.Context) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(w.patience() / 4)
		defer tick.Stop()
		over := time.NewTimer(w.o.Budget)
		defer over.Stop()
		var told <-chan *Order
		if w.o.Peers != nil {
			told = w.o.Peers.Told
		}
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				w.tr.Do(w.kill)
			case <-over.C:
				w.abandon()
				w.tr.Do(w.kill)
				over.Reset(100 * time.Millisecond) // for what is made meanwhile
			case o := <-told:
				w.told(o)
			case <-tick.C:
				if w.o.Peers != nil {
					w.report(false)
				} else {
					w.tick()
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func (w *watch) patience() time.Duration { return cmp.Or(w.o.Patience, DefaultPatience) }

// kill ends all that runs.
func (w *watch) kill() {
	w.tr.Threads(func(t *ptracer.Tracee) { _ = unix.Kill(t.PID, unix.SIGKILL) })
}

// abandon says why the run is ended.
func (w *watch) abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.run.Abandoned != "" {
		return
	}
	why := fmt.Sprintf("it was not at its end after %v", w.o.Budget)
	if len(w.held) > 0 {
		t := w.held[0]
		why += fmt.Sprintf("; node %s was held at call %d, %v", t.name, len(t.node.Calls)-1,
			&t.node.Calls[len(t.node.Calls)-1])
	}
	for _, name := range slices.SortedFunc(maps.Keys(w.names), byName) {
		if t := w.names[name]; !t.ended && t.held == 0 {
			why += fmt.Sprintf("; node %s had made %d calls and was %s", name, t.calls(), w.state(t))
		}
	}
	w.run.Abandoned = why
}

func (t *thread) calls() int {
	if t.node == nil {
		return 0
	}
	return len(t.node.Calls)
}

// state says in words what a thread is at, and for how long.
func (w *watch) state(t *thread) string {
	since := t.wall // of its last I/O call's end
	what := ""
	switch d, op := lookAt(int(t.tid)); {
	case t.inCall:
		c := &t.node.Calls[len(t.node.Calls)-1]
		what, since = "in "+c.String(), c.Enter
	case d == running:
		what = "computing"
	case d == endless:
		what = "waiting for another in " + op.String()
	default:
		what = "asleep in " + op.String()
	}
	return fmt.Sprintf("%s, for %v at most", what, time.Duration(now()-since).Round(time.Millisecond))
}

// moved notes that a node, or one to be, did something.
func (w *watch) moved() {
	w.progress++
	w.peers.own++
	w.last = now()
}

// of returns the state of a thread; one without is the command's first.
func (w *watch) of(t *ptracer.Tracee) *thread {
	if th, ok := t.Data.(*thread); ok {
		return th
	}
	return w.add(t, w.family.first(uint32(t.TID)))
}

func (w *watch) add(t *ptracer.Tracee, k *processNode) *thread {
	th := &thread{t: t, tid: uint32(t.TID), name: k.name, wall: now()}
	t.Data = th
	w.threads[th.tid] = th
	if w.want[th.name] != nil {
		w.names[th.name] = th
	}
	w.moved()
	return th
}

func (w *watch) fork(parent, child *ptracer.Tracee) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if parent == nil {
		return // its maker was killed: its place in the family is not known
	}
	from := w.of(parent)
	w.add(child, w.family.onFork(from.tid, uint32(child.TID), child.PID == parent.PID))
}

// exec is told of a program that is executed. A thread that is not its process's first
// goes on as that one, whose number it has then, as it does on the tape.
func (w *watch) exec(t *ptracer.Tracee, old int, replaced *ptracer.Tracee) {
	cpu, delay := usage(t.TID)
	w.mu.Lock()
	defer w.mu.Unlock()
	th := w.of(t) // from here on the command is known
	if replaced != nil {
		first := w.of(replaced)
		delete(w.threads, uint32(old))
		th.tid = uint32(old)
		w.gone(th)
		w.broken(first)
		first.t, first.ended, t.Data = t, false, first
		first.cpu, first.delay, first.wall = cpu, delay, now()
		first.watched = watched{}
		w.threads[first.tid] = first
	}
	w.moved()
}

// broken notes that a thread is no longer in the call that it was in, and that the call
// had no result: tapes do not count such.
func (w *watch) broken(th *thread) {
	if th.inCall {
		th.node.Calls = th.node.Calls[:len(th.node.Calls)-1]
	}
	th.inCall, th.held = false, 0
	w.held = slices.DeleteFunc(w.held, func(o *thread) bool { return o == th })
}

func (w *watch) exit(t *ptracer.Tracee, _ unix.WaitStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone(w.of(t))
}

func (w *watch) gone(th *thread) {
	w.broken(th)
	th.ended = true
	if w.threads[th.tid] == th {
		delete(w.threads, th.tid)
	}
	if n := th.node; n != nil {
		// Its own figures are gone with it: this is at least what it did.
		n.TailCPU = max(th.watched.cpu-th.cpu, 0)
		n.TailIdle = max(now()-th.wall-n.TailCPU, 0)
	}
	w.moved()
}

// enter is told of a call that begins, and holds it.
func (w *watch) enter(t *ptracer.Tracee, c *ptracer.Syscall) bool {
	op, ok := w.ops[int(c.NR)]
	if !ok || c.Compat {
		return false
	}
	path, mode, ok := file(t.TID, int32(c.Args[0]))
	if !ok || !w.o.Scope.counts(mode, path) {
		return false
	}
	cpu, delay := usage(t.TID)
	w.mu.Lock()
	defer w.mu.Unlock()
	th := w.of(t)
	if th.node == nil {
		th.node = &Node{Name: th.name, Comm: comm(t.TID)}
		w.names[th.name] = th
	}
	at := now()
	args := c.Args
	gap := Call{Op: op.String(), Shape: shape(op, &args), File: path, Enter: at, CPU: max(cpu-th.cpu, 0)}
	gap.Idle = max(at-th.wall-gap.CPU-max(delay-th.delay, 0), 0)
	n := len(th.node.Calls)
	th.node.Calls = append(th.node.Calls, gap)
	th.inCall = true
	w.moved()
	if th.name == w.o.Hold && n%max(w.o.Period, 1) == 0 && w.givenUp < maxGivenUp {
		th.held = at
		w.held = append(w.held, th)
		t.Hold()
	}
	return true
}

func (w *watch) leave(t *ptracer.Tracee, ret int64) {
	cpu, delay := usage(t.TID)
	w.mu.Lock()
	defer w.mu.Unlock()
	th := w.of(t)
	if !th.inCall {
		return
	}
	th.inCall = false
	th.cpu, th.delay, th.wall = cpu, delay, now()
	if restarted(ret) {
		th.node.Calls = th.node.Calls[:len(th.node.Calls)-1]
		return
	}
	th.node.Calls[len(th.node.Calls)-1].Exit = th.wall
	w.moved()
}

// restarted reports whether the kernel will make the call again (ERESTARTSYS and others).
func restarted(ret int64) bool { return -ret >= 512 && -ret <= 516 && syscall.Errno(-ret) != 514 }

// release lets a thread go on that is held longer than all others, if nothing has happened since the watchdog
// looked. Elsewhere says of other hosts' nodes what Hold.Next does.
func (w *watch) release(th *thread, progress uint64, gaveUp string, elsewhere map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 || w.held[0] != th || gaveUp == "" && w.progress != progress {
		return
	}
	w.held = w.held[1:]
	n := len(th.node.Calls) - 1
	h := Hold{Call: n, From: th.held, Till: now(), Next: w.next(th), Until: gaveUp}
	maps.Copy(h.Next, elsewhere)
	w.run.Holds = append(w.run.Holds, h)
	if gaveUp != "" {
		w.givenUp++
	}
	th.held = 0
	th.node.Calls[n].Enter = h.Till
	w.moved()
	th.t.Resume()
}
