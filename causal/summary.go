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
}

// explain adds up the longest path: what a replay on the same storage would take. Own is
// how long each event's storage call took; it becomes when each event is done.
func explain(line []uint32, lines int, compute []int64, sleeps []timeAt, waits []waitFor, own []int64) (ns int64) {
	done := make([]int64, lines)
	for i, l := range line {
		at := done[l] + compute[i]
		for ; len(waits) > 0 && int(waits[0].to) == i; waits = waits[1:] {
			at = max(at, own[waits[0].from]+waits[0].lag)
		}
		if len(sleeps) > 0 && int(sleeps[0].event) == i {
			at += sleeps[0].ns
			sleeps = sleeps[1:]
		}
		at += own[i]
		own[i], done[l] = at, at
		ns = max(ns, at)
	}
	return ns
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
	Line
	Compute int64 // used a processor, in calls that a replay does not make, too
	Storage int64 // in calls that a replay makes
	Sync    int64 // slept until another thread of the tape did something
	Sleep   int64 // slept for a time, or for somebody outside
	Delay   int64 // could have gone on, but had no processor
}
