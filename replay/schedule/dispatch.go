// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
)

// MaxQueues is how many threads of the recording are replayed by a thread each.
const MaxQueues = 4096

// flushTasks is after how many planned tasks every queue gets what is planned for it.
const flushTasks = 512

// Executor does the tasks that a Dispatcher hands out.
type Executor interface {
	// Planned is called for each task in the order of planning, before it is handed out; here
	// says that it is not another member's of the team. Idle ones are not handed out.
	Planned(t *plan.Task, here bool)
	// Remote is called for each task that another member of the team does.
	Remote(t *plan.Task)
	// Work does the steps of a queue by c.Run, on a thread of its own.
	Work(c *Consumer)
}

// Config says what a Dispatcher hands out, and when it is due.
type Config struct {
	Planner  *plan.Planner
	Loader   *plan.Loader
	Executor Executor
	Pace     options.Pace
	Speed    float64 // 2 is twice as fast as recorded
	Sleep    bool    // in place of computing, with PaceThink
	// Team is the link to the other members of a team; nil: there is none. Member is the
	// number of this one.
	Team   *os.File
	Member int
	// Progress is called now and then with the number of events planned. It may be nil.
	Progress func(events uint64)
}

// Dispatcher plans the tasks of a tape and hands them to their queues.
type Dispatcher struct {
	Config
	base   Timebase
	budget lookaheadBudget
	link   *Link // nil: there is no team

	queues  []*Queue
	dirty   []*Queue      // with a batch that is being filled
	begin   chan struct{} // closed when the first calls may be made
	live    sync.WaitGroup
	workers int
	tasks   sync.Pool

	halted  atomic.Bool // all waits end
	mu      sync.Mutex
	stopped error // why it was halted, with mu
}

// NewDispatcher returns a dispatcher that has not begun.
func NewDispatcher(c *Config) *Dispatcher {
	d := &Dispatcher{Config: *c, begin: make(chan struct{})}
	d.tasks.New = func() any { return new(plan.Task) }
	d.budget.init(&d.halted)
	d.base = Timebase{pace: c.Pace, speed: c.Speed, sleep: c.Sleep, halted: &d.halted}
	if c.Team != nil {
		d.link = NewLink(c.Team)
	}
	return d
}

// Timebase returns what the times of the replay are measured by.
func (d *Dispatcher) Timebase() *Timebase { return &d.base }

// Halted reports whether the replay was stopped.
func (d *Dispatcher) Halted() bool { return d.halted.Load() }

// Stop stops the replay, for the first error that it is called with.
func (d *Dispatcher) Stop(err error) {
	d.mu.Lock()
	if d.stopped == nil {
		d.stopped = err
	}
	d.mu.Unlock()
	d.halted.Store(true)
	d.budget.halt()
}

// Run plans all tasks, hands them out, and returns when all workers have ended: with the
// error that the replay was stopped for, or nil.
func (d *Dispatcher) Run(ctx context.Context) error {
	heap := limitHeap()
	defer heap.release()
	if d.link != nil {
		d.link.Run(d.Stop)
	}
	stop := context.AfterFunc(ctx, func() { d.Stop(ctx.Err()) })
	defer stop() // not before the workers have ended: all may be planned long before that
	d.planAll(heap)
	d.finishQueues()
	d.live.Wait()
	if d.link != nil {
		d.link.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopped
}

// planAll plans tasks and hands them out, up to the end or until the replay is stopped.
func (d *Dispatcher) planAll(heap *heapLimit) {
	t := d.tasks.Get().(*plan.Task)
	for !d.halted.Load() {
		if err := d.Planner.Next(t); err == io.EOF {
			return
		} else if err != nil {
			d.Stop(err)
			return
		}
		n := d.Planner.Events()
		if n == 1 {
			d.base.first = t.Event.Enter
		}
		if n%flushTasks == 0 {
			d.turn(n, heap)
		}
		d.Executor.Planned(t, t.Order.Member == d.Member)
		if !t.Order.Idle && d.assign(t) {
			t = d.tasks.Get().(*plan.Task)
		}
	}
}

// turn does what is done after each flushTasks tasks.
func (d *Dispatcher) turn(events uint64, heap *heapLimit) {
	if d.flush() {
		d.waitForRoom()
	}
	if d.link == nil { // a team has to plan alike, however far each member is
		for _, q := range d.queues {
			d.Planner.Done(q.slot, q.done.Load())
		}
	}
	if events%(256*flushTasks) == 0 {
		heap.grow()
	}
	if d.Progress != nil {
		d.Progress(events)
	}
}

// assign puts a task into its queue. It reports whether the queue has the task itself now,
// and not only a step that was made of it.
func (d *Dispatcher) assign(t *plan.Task) bool {
	slot := t.Order.Ref.Slot
	if slot >= MaxQueues {
		d.Stop(fmt.Errorf("event %d: more than %d threads at a time: only --order recorded replays so many",
			t.Event.Seq, MaxQueues))
		return false
	}
	for uint32(len(d.queues)) <= slot {
		d.queues = append(d.queues, newQueue(uint32(len(d.queues)), &d.budget, d.link))
	}
	q := d.queues[slot]
	if t.Order.Member != d.Member {
		d.watch(q, t)
		return false
	}
	if !q.local {
		d.startWorker(q)
	}
	b := q.fill
	if b == nil {
		b = d.budget.batch()
		q.fill = b
		d.dirty = append(d.dirty, q)
	}
	b.Steps = append(b.Steps, t.Step)
	s := &b.Steps[len(b.Steps)-1]
	d.addTimes(b, s, t)
	isTask := s.Kind == plan.StepTask
	if isTask {
		d.Loader.Task(t)
		s.Task, s.Seq = t, t.Event.Seq
		b.held += plan.MemoryBytes
		b.content += t.ContentBytes()
	} else {
		d.Loader.Step(t, s, &b.Arena)
	}
	if b.full() {
		d.handOverAndWait(q)
	}
	return isTask
}

// addTimes adds to a batch when a step is due and what it waits for.
func (d *Dispatcher) addTimes(b *Batch, s *plan.Step, t *plan.Task) {
	if d.base.paced() {
		b.times = append(b.times, StepTime{t.Event.Enter, t.Time.Think, t.Time.Sleep, t.Order.Done})
	}
	for _, r := range t.Order.Deps {
		b.deps = append(b.deps, Dependency{queue: d.queues[r.Slot], pos: r.Pos})
	}
	for _, w := range t.Order.Waits {
		b.deps = append(b.deps, Dependency{d.queues[w.Ref.Slot], w.Ref.Pos, w.Lag, w.Done})
	}
	s.Deps = uint32(len(t.Order.Deps) + len(t.Order.Waits))
}

// watch notes a task of another member of the team: that member sends a record when it is
// done, and gets one when what it waits for here is done.
func (d *Dispatcher) watch(q *Queue, t *plan.Task) {
	d.link.watch(q, t.Order.Ref.Pos, t.Order.Done)
	for _, r := range t.Order.Deps {
		if o := d.queues[r.Slot]; o.local {
			o.reportAt(r.Pos)
		}
	}
	for _, w := range t.Order.Waits {
		if o := d.queues[w.Ref.Slot]; o.local {
			o.reportAt(w.Ref.Pos)
		}
	}
	d.Executor.Remote(t)
}

// startWorker starts the worker of a queue.
func (d *Dispatcher) startWorker(q *Queue) {
	q.local = true
	d.workers++
	growProcessors(d.workers)
	c := &Consumer{queue: q, parker: newParker(), begin: d.begin, tasks: &d.tasks}
	c.Pacer.base, c.Pacer.clock = &d.base, defaultThreadClock
	d.live.Go(func() { d.Executor.Work(c) })
}

// growProcessors lets so many workers run at a time as the kernel wants to: Go gives a thread
// that waits in the kernel its processor's leave only after a while.
func growProcessors(workers int) {
	const most = 256
	if n := runtime.GOMAXPROCS(0); workers+2 > n && n < most {
		runtime.GOMAXPROCS(min(2*(workers+2), most))
	}
}

// handOver hands a queue what was planned for it. It reports whether there is no room for more.
func (d *Dispatcher) handOver(q *Queue) (full bool) {
	b := q.fill
	if b == nil {
		return false
	}
	q.fill = nil
	full = d.budget.charge(b)
	q.push(b)
	return full
}

// handOverAndWait is handOver, but waits where too much is planned.
func (d *Dispatcher) handOverAndWait(q *Queue) {
	if d.handOver(q) {
		d.flush()
		d.waitForRoom()
	}
}

// flush hands over all that is planned. It reports whether there is no room for more.
func (d *Dispatcher) flush() (full bool) {
	for _, q := range d.dirty {
		full = d.handOver(q) || full
	}
	d.dirty = d.dirty[:0]
	return full
}

// waitForRoom returns when more may be planned.
func (d *Dispatcher) waitForRoom() {
	d.start()
	d.budget.waitForRoom()
}

// start lets the workers begin.
func (d *Dispatcher) start() {
	select {
	case <-d.begin:
		return
	default:
	}
	if d.link != nil {
		d.link.send(ControlQueue, Ready)
		select {
		case <-d.link.begun:
		case <-d.link.gone:
		}
	}
	if !d.base.paced() {
		d.budget.startCalling() // else there is time to plan while nothing is due
	}
	d.base.start = now()
	close(d.begin)
}

// finishQueues hands over the rest, and tells the workers that it is the last.
func (d *Dispatcher) finishQueues() {
	d.flush()
	for _, q := range d.queues {
		q.push(&Batch{last: true})
	}
	d.start()
}
