// SPDX-License-Identifier: Apache-2.0

package causal

// Summary says what Annotate found.
type Summary struct {
	Events uint64
	Losses uint64             // marks of lost events: dependencies may be missing
	Woken  uint64             // wake-ups in the recording, whoever gave them
	Found  [numReasons]uint64 // dependencies between threads, by Reason
	Waits  uint64             // of these, what is left after the reduction
	Nodes  []*NodeTotal       // in the order of their first events
	// ElapsedNS is how long the run took, from the first call to the last, ns;
	// ExplainedNS how long it would take by the annotations alone, if each storage call
	// took as long as it did. What is lacking are delays, and dependencies that nothing
	// shows.
	ElapsedNS, ExplainedNS int64
	// Path is what ExplainedNS is made of.
	Path Path
}

// Path is the longest way through the annotations, ns: what it would take to make the run
// shorter.
type Path struct {
	Compute int64 // also in events of which those on it needed only the beginning
	Storage int64
	Sleep   int64
}

// explain finds the longest path: what a replay on the same storage would take. Own is
// how long each event's storage call took.
func explain(line []uint32, lines int, compute []int64, sleeps []timeAt, waits []waitFor, own []int64) (ns int64,
	path Path) {
	const none = ^uint32(0)
	done := make([]int64, len(line))    // when each event is done
	before := make([]uint32, len(line)) // on which one that depends
	last := make([]uint32, lines)
	for l := range last {
		last[l] = none
	}
	end, slept := none, 0
	for i, l := range line {
		at := compute[i]
		if before[i] = last[l]; last[l] != none {
			at += done[last[l]]
		}
		for ; len(waits) > 0 && int(waits[0].to) == i; waits = waits[1:] {
			if w := &waits[0]; done[w.from]+w.lag > at {
				at, before[i] = done[w.from]+w.lag, w.from
			}
		}
		if slept < len(sleeps) && int(sleeps[slept].event) == i {
			at += sleeps[slept].ns
			slept++
		}
		done[i], last[l] = at+own[i], uint32(i)
		if done[i] > ns {
			ns, end = done[i], uint32(i)
		}
	}
	for i := end; i != none; i = before[i] {
		path.Storage += own[i]
		for slept > 0 && sleeps[slept-1].event > i {
			slept--
		}
		if slept > 0 && sleeps[slept-1].event == i {
			path.Sleep += sleeps[slept-1].ns
		}
	}
	path.Compute = ns - path.Storage - path.Sleep
	return ns, path
}

// Reasons lists the reasons for which dependencies between threads were found, and how
// many of each.
func (s *Summary) Reasons(yield func(Reason, uint64) bool) {
	for r, n := range s.Found {
		if n > 0 && !yield(Reason(r), n) {
			return
		}
	}
}

// NodeTotal says what a thread did with its time, in ns.
type NodeTotal struct {
	ThreadLifetime
	Compute int64 // used a processor, in calls that a replay does not make, too
	Storage int64 // in calls that a replay makes
	Sync    int64 // slept until another thread of the tape did something
	Sleep   int64 // slept for a time, or for somebody outside
	Delay   int64 // could have gone on, but had no processor
}
