// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Evidence is what experiments with an application found out about one recorded run of it,
// beside what its tape proves.
type Evidence struct {
	Waits []Found
	Gaps  []Gap // sorted by their events
	// Alone is whether nothing else counts: of what the tape proves, only that threads
	// are made and waited for.
	Alone bool
}

// Found is a dependency: the event came after another one, of another thread, and by Lag
// later than that had to be.
type Found struct {
	Event, For uint64
	Lag        time.Duration
}

// Gap bounds what a thread did between the last event of it that has a Gap, or its
// beginning, and this one. A bound below 0 is none.
type Gap struct {
	Event   uint64
	Compute time.Duration // CPU time
	Idle    time.Duration // asleep
}

// check reports what is wrong with evidence for a run of so many events.
func (e *Evidence) check(events int) error {
	if e == nil {
		return nil
	}
	wrong := slices.ContainsFunc(e.Waits, func(w Found) bool { return w.For >= w.Event || w.Event >= uint64(events) })
	if wrong || !slices.IsSortedFunc(e.Gaps, func(a, b Gap) int { return cmp.Compare(a.Event, b.Event) }) {
		return errors.New("what is known beside the tape does not fit it")
	}
	return nil
}

func (e *Evidence) alone() bool { return e != nil && e.Alone }

// of returns the links of a tape that count beside the evidence.
func (e *Evidence) of(links []link) []link {
	if !e.alone() {
		return links
	}
	return slices.DeleteFunc(links, func(l link) bool { return l.why != Fork && l.why != Wait })
}

// into adds what was found to what the tape's links make threads wait for.
func (e *Evidence) into(waits []waitFor, sum *Summary) []waitFor {
	if e == nil || len(e.Waits) == 0 {
		return waits
	}
	sum.Found[Throttle] += uint64(len(e.Waits))
	for _, w := range e.Waits {
		waits = append(waits, waitFor{to: uint32(w.Event), from: uint32(w.For), lag: int64(w.Lag)})
	}
	return waits
}

// A bound is taken only if it is clearly lower than what was recorded: of two measurements
// of the same computing, the lower one would on average be too low.
const (
	boundNS    = 20_000
	boundShare = 16 // one part in so many
)

func clearlyLower(bound time.Duration, ns int64) bool {
	return bound >= 0 && int64(bound) < ns-boundNS-ns/boundShare
}

// bound shortens what threads computed and slept to what Gaps allow: the rest was waiting
// that looks like computing.
func (e *Evidence) bound(a *annotator, sleeps []timeAt) []timeAt {
	if e == nil || len(e.Gaps) == 0 {
		return sleeps
	}
	gaps := e.Gaps
	type since struct {
		events          []int // of the thread since the last gap
		sleeps          []int // indexes into sleeps
		compute, asleep int64
	}
	threads := make([]since, len(a.b.lines))
	next := 0
	for i := range a.compute {
		t := &threads[a.b.line[i]]
		if a.compute[i] > 0 {
			t.events, t.compute = append(t.events, i), t.compute+a.compute[i]
		}
		for ; next < len(sleeps) && int(sleeps[next].event) == i; next++ {
			t.sleeps, t.asleep = append(t.sleeps, next), t.asleep+sleeps[next].ns
		}
		if len(gaps) == 0 || gaps[0].Event != uint64(i) {
			continue
		}
		if g := gaps[0]; clearlyLower(g.Compute, t.compute) {
			node, share := a.sum.Nodes[a.b.line[i]], float64(g.Compute)/float64(t.compute)
			for _, k := range t.events {
				less := a.compute[k] - int64(share*float64(a.compute[k]))
				a.compute[k] -= less
				node.Compute -= less
				node.Sync += less
			}
		}
		if g := gaps[0]; clearlyLower(g.Idle, t.asleep) {
			node, share := a.sum.Nodes[a.b.line[i]], float64(g.Idle)/float64(t.asleep)
			for _, k := range t.sleeps {
				less := sleeps[k].ns - int64(share*float64(sleeps[k].ns))
				sleeps[k].ns -= less
				node.Sleep -= less
				node.Sync += less
			}
		}
		*t = since{events: t.events[:0], sleeps: t.sleeps[:0]}
		gaps = gaps[1:]
	}
	return sleeps
}
