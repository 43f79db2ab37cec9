// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"cmp"
	"slices"
	"time"
)

// expected is what earlier runs say of a node.
type expected struct {
	gaps    []gap // before each of its calls, and after the last
	longest int64 // that a call took, ns
	most    gap   // the longest of gaps
}

// gap is the time between two calls: how long the node computed in it, and was asleep.
type gap struct{ cpu, idle int64 }

// expectations returns for each node what to expect: the least that any run showed, for a
// run in which a node had to wait shows more.
func expectations(runs []*Run) map[string]*expected {
	all := map[string]*expected{}
	for _, r := range runs {
		for _, n := range r.Nodes {
			e := all[n.Name]
			if e == nil {
				e = &expected{}
				all[n.Name] = e
			}
			for i := range n.Calls {
				c := &n.Calls[i]
				e.see(i, gap{c.CPU, c.Idle})
				if c.Exit > 0 && r.Held == "" {
					e.longest = max(e.longest, c.Exit-c.Enter)
				}
			}
			if r.Abandoned == "" {
				e.see(len(n.Calls), gap{n.TailCPU, n.TailIdle})
			}
		}
	}
	for _, e := range all {
		for _, g := range e.gaps {
			e.most = gap{max(e.most.cpu, g.cpu), max(e.most.idle, g.idle)}
		}
	}
	return all
}

func (e *expected) see(i int, g gap) {
	if i == len(e.gaps) {
		e.gaps = append(e.gaps, g)
	} else if i < len(e.gaps) {
		e.gaps[i] = gap{min(e.gaps[i].cpu, g.cpu), min(e.gaps[i].idle, g.idle)}
	}
}

// watched is what the watchdog saw of a thread since anybody last did something.
type watched struct {
	progress   uint64 // when it began to count
	cpu, delay int64  // of the thread, at the last look
	at         int64  // the last look
	ran, slept int64
	looks      int // since the count began
	doing      doing
	busy       bool // ran for half of the time since the look before
}

// look counts on.
func (th *thread) look(progress uint64) {
	s := &th.watched
	cpu, delay := usage(int(th.tid))
	at := now()
	if s.progress != progress {
		*s = watched{progress: progress, cpu: cpu, delay: delay, at: at}
		s.doing = look(int(th.tid))
		s.busy = s.doing == running
		return
	}
	ran, waited := max(cpu-s.cpu, 0), max(delay-s.delay, 0)
	s.doing = running
	if ran == 0 && waited == 0 && !stopped(int(th.tid)) {
		s.doing = look(int(th.tid))
	}
	s.looks++
	if s.doing != running {
		s.slept += at - s.at
	}
	s.ran += ran
	s.busy = 2*ran > at-s.at
	s.cpu, s.delay, s.at = cpu, delay, at
}

// sample notes how long nodes have run: when one ends, it cannot be asked any more.
func (w *watch) sample() {
	if w.o.Hold != "" {
		return
	}
	for _, th := range w.names {
		if !th.ended {
			th.watched.cpu, _ = usage(int(th.tid))
		}
	}
}

// tick looks at all threads, and lets a held one go on if it may.
func (w *watch) tick() {
	w.mu.Lock()
	if len(w.held) == 0 {
		w.sample()
		w.mu.Unlock()
		return
	}
	held, progress := w.held[0], w.progress
	free, on := w.free()
	late := now()-held.held > cmp.Or(w.o.Most, DefaultMost).Nanoseconds()
	w.mu.Unlock()
	switch {
	case free:
		w.settled(func() { w.release(held, progress, "", nil) })
	case late:
		w.tr.Do(func() { w.release(held, progress, cmp.Or(on, Others), nil) })
	}
}

// settled calls f on the tracing thread when it has handled all stops that there are now: on
// a busy machine it may be behind, and what has moved since is not known before.
func (w *watch) settled(f func()) {
	w.tr.Do(func() { w.tr.Do(f) }) // between two of them it asks for stops
}

// Others stands for who kept a call from going on and is no node.
const Others = "processes that make no I/O calls"

// free looks at all threads, and reports whether all nodes but the held one have ended or
// are stuck; if not, on is the first that is not, "" if that is none.
func (w *watch) free() (free bool, on string) {
	others := make([]*thread, 0, len(w.threads))
	helpers := false
	for _, th := range w.threads {
		if th.name == w.o.Hold || th.held > 0 {
			continue
		}
		th.look(w.progress)
		if w.names[th.name] == th {
			others = append(others, th)
		} else {
			helpers = helpers || th.watched.busy
		}
	}
	free = now()-w.last >= w.patience().Nanoseconds()
	slices.SortFunc(others, func(a, b *thread) int { return byName(a.name, b.name) })
	for _, th := range others {
		if !w.stuck(th, helpers) {
			free, on = false, cmp.Or(on, th.name)
		}
	}
	return free, on
}

// callPatience is how much longer than ever a call has to take to be stuck: storage is
// sometimes slow.
const callPatience = int64(50 * time.Millisecond)

// stuck reports whether a node makes no call for longer than it should. Helpers that
// compute may wake it up.
func (w *watch) stuck(th *thread, helpers bool) bool {
	// A machine that stood still makes one look as good as many.
	const fewest = 3
	s, e := &th.watched, w.want[th.name]
	if s.looks < fewest {
		return false
	}
	if e == nil {
		e = &expected{} // it was not there when nobody was held
	}
	if th.inCall {
		return s.slept > 2*e.longest+callPatience
	}
	want := e.most
	if n := th.calls(); n < len(e.gaps) {
		want = e.gaps[n]
	}
	if s.doing == endless && !helpers {
		want.idle = 0
	}
	patience := w.patience().Nanoseconds()
	return s.ran > 2*want.cpu+patience || s.slept > 2*want.idle+patience
}
