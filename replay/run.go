package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/trace"
)

// maxLanes is how many threads of the recording are replayed by a thread each.
const maxLanes = 4096

// flushTasks is after how many planned tasks every lane gets what is planned for it.
const flushTasks = 512

// runner is the execution of a tape's events.
type runner struct {
	planner *planner
	root    bool // may change owners and identities
	checks  Checks
	abort   bool // at the first difference
	plan    schedule
	arch    event.Arch
	uid     uint32
	procFD  int // /proc/self/fd

	native  Native
	devices bool
	renamed bool // names are others than recorded
	data    *filler
	log     *logger

	lanes  []*lane
	halted atomic.Bool   // nobody waits any longer
	fifos  atomic.Bool   // there may be some in the target
	begin  chan struct{} // closed when the first calls may be made
	live   sync.WaitGroup
	tasks  sync.Pool
	known  *known
	dirty  []*lane // with a batch that is being filled

	stock stock

	mu     sync.Mutex
	report *Report
	causes causes
	// lockDoubts are the files of which a lock could not be had that had been granted.
	lockDoubts sync.Map
	tally      tally
	cwds       map[uint64]int // O_PATH descriptors of published working directories
	stopped    error

	part    int      // of a team
	link    *link    // to the others of it; nil: there is none
	dirs    sync.Map // working directories that others of it went to: their names
	workers int
}

// run does all events of a tape in the present root directory.
func run(ctx context.Context, t *trace.Tape, procFD int, c *confined, progress func(done uint64)) (message, error) {
	heap := limitHeap()
	defer heap.release()
	r := &runner{
		root: unix.Geteuid() == 0, checks: c.Checks, abort: c.Abort, arch: initialtree.Arch(t), uid: uint32(unix.Geteuid()),
		procFD: procFD, report: newReport(), causes: newCauses(), data: newFiller(c.Data), log: c.log, native: c.Native, devices: c.Devices, cwds: map[uint64]int{}, begin: make(chan struct{}), known: newKnown(),
		tasks: sync.Pool{New: func() any { return new(task) }},
	}
	r.stock.init(&r.halted)
	r.plan.pace, r.plan.speed, r.plan.halted, r.plan.sleep = c.Pace, c.Speed, &r.halted, c.Sleep
	r.planner = newPlanner(t, r.root, newMadeUp(t, c.Made, c.Data.Made), c.Elsewhere, c.Layout, c.Order)
	r.planner.native = c.Native
	r.renamed = slices.ContainsFunc(c.Layout, func(h eventsource.Host) bool { return len(h.Renames) > 0 })
	r.planner.notes = c.notes
	r.fifos.Store(c.FIFOs)
	if err := r.join(t, c.Layout, c.Part); err != nil {
		return message{}, err
	}
	err := r.feed(ctx, heap, progress)
	r.live.Wait()
	if r.link != nil {
		r.link.close()
	}
	for _, fd := range r.cwds {
		unix.Close(fd)
	}
	if err == nil || err == errAborted {
		err = r.stopped
	}
	if err == errAborted {
		r.report.Aborted, err = true, nil
	}
	r.tally.into(r.report, &r.plan)
	return message{Report: r.report, Made: r.planner.made.List(), Began: max(r.tally.pacer.begin-r.plan.start, 0)}, err
}

// feed plans tasks and hands them to their workers.
func (r *runner) feed(ctx context.Context, heap *heapLimit, progress func(uint64)) (err error) {
	stop := context.AfterFunc(ctx, func() { r.stop(ctx.Err()) })
	defer stop()
	defer r.end()
	t := r.tasks.Get().(*task)
	for !r.halted.Load() {
		if err := r.planner.next(t); err == io.EOF {
			return nil
		} else if err != nil {
			r.stop(err)
			return err
		}
		n := r.planner.n
		if t.part == r.part {
			r.report.count(t)
		}
		if n == 1 {
			r.plan.first = t.ev.Enter
		}
		if n%flushTasks == 0 {
			if r.flush() {
				r.wait()
			}
			for _, l := range r.lanes {
				if r.link == nil { // a team has to plan alike, however far each is
					r.planner.order.Done(l.slot, l.done.Load())
				}
			}
			if n%(256*flushTasks) == 0 {
				heap.grow()
			}
			if progress != nil {
				progress(n)
			}
		}
		if t.action == emulate {
			r.log.skipped(t)
		} else if makesFIFO(&t.ev) {
			r.fifos.Store(true)
		}
		if t.idle {
			continue
		}
		if t.part == r.part {
			r.tally.recorded(t)
		}
		if r.assign(t) {
			t = r.tasks.Get().(*task)
		}
	}
	return r.stopped
}

// assign puts a task into its lane. It reports whether the lane has the task itself
// now, and not only a step that was made of it.
func (r *runner) assign(t *task) bool {
	if t.lane >= maxLanes {
		r.stop(fmt.Errorf("event %d: more than %d threads at a time: only --order recorded replays so many", t.ev.Seq, maxLanes))
		return false
	}
	for len(r.lanes) <= t.lane {
		r.lanes = append(r.lanes, newLane(uint32(len(r.lanes))))
	}
	l := r.lanes[t.lane]
	if t.part != r.part {
		r.elsewhere(l, t)
		return false
	}
	if !l.here {
		l.here = true
		r.workers++
		r.processors(r.workers)
		r.live.Add(1)
		w := &worker{runner: r, lane: l, bunk: newBunk(), back: -1, tally: tally{untimed: sampled}, umask: ^uint32(0), uid: ^uint32(0), gid: ^uint32(0)}
		go w.loop()
	}
	b := l.fill
	if b == nil {
		b = r.stock.batch()
		l.fill = b
		r.dirty = append(r.dirty, l)
	}
	b.steps = append(b.steps, t.step)
	s := &b.steps[len(b.steps)-1]
	if r.plan.pace != PaceAFAP {
		b.whens = append(b.whens, when{t.ev.Enter, t.think, t.sleep, t.at})
	}
	at := len(b.deps)
	for _, d := range t.deps {
		b.deps = append(b.deps, dep{lane: r.lanes[d.Slot], pos: d.Pos})
	}
	for _, d := range t.awaits {
		b.deps = append(b.deps, dep{r.lanes[d.ref.Slot], d.ref.Pos, d.lag, d.at})
	}
	s.deps = uint32(len(b.deps) - at)
	if s.kind == stepTask {
		r.content(t)
		if r.data.data.Made {
			r.data.fill(t.data, t.ev.Offset, t.ev.Seq)
		}
		s.task, s.seq = t, t.ev.Seq
		b.held += taskBytes
		b.content += int64(cap(t.data)+cap(t.want)+cap(t.inline)) + int64(cap(t.parts))*partBytes
	} else {
		r.load(t, s, b)
	}
	if len(b.steps) == batchSteps || b.held+b.content+int64(len(b.bytes)) >= batchBytes {
		r.hand(l)
	}
	return s.kind == stepTask
}

// processors lets so many workers run at a time as the kernel wants to: Go gives a thread
// that waits in the kernel its processor's leave only after a while.
func (r *runner) processors(workers int) {
	const most = 256
	if n := runtime.GOMAXPROCS(0); workers+2 > n && n < most {
		runtime.GOMAXPROCS(min(2*(workers+2), most))
	}
}

// taskBytes is about what a task takes, with what it points to.
const taskBytes = 4096

// give hands a lane what was planned for it.
func (r *runner) give(l *lane) (full bool) {
	b := l.fill
	if b == nil {
		return false
	}
	l.fill = nil
	full = r.stock.take(b)
	l.hand(b)
	return full
}

// hand is give that waits where too much is planned.
func (r *runner) hand(l *lane) {
	if r.give(l) {
		r.flush()
		r.wait()
	}
}

// flush hands over all that is planned. It reports whether there is no room for more.
func (r *runner) flush() (full bool) {
	for _, l := range r.dirty {
		full = r.give(l) || full
	}
	r.dirty = r.dirty[:0]
	return full
}

// wait returns when more may be planned.
func (r *runner) wait() {
	r.start()
	r.stock.wait()
}

// start lets the workers begin.
func (r *runner) start() {
	select {
	case <-r.begin:
	default:
		if r.link != nil {
			r.link.tell(ControlLane, Ready)
			select {
			case <-r.link.begin:
			case <-r.link.gone:
			}
		}
		if r.plan.pace == PaceAFAP {
			r.stock.begun() // else there is time to plan while nothing is due
		}
		r.plan.start = clock()
		close(r.begin)
	}
}

// end hands over the rest, and tells the workers that it is the last.
func (r *runner) end() {
	r.flush()
	for _, l := range r.lanes {
		l.hand(&batch{last: true})
	}
	r.start()
}

// errAborted stops a replay at its first difference.
var errAborted = errors.New("a result differs")

func (r *runner) stop(err error) {
	r.mu.Lock()
	if r.stopped == nil {
		r.stopped = err
	}
	r.mu.Unlock()
	r.halted.Store(true)
	r.stock.halt()
}
