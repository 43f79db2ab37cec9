// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"slices"
)

// Comparison is a recording and what its replays gave.
type Comparison struct {
	Title    string // what was recorded
	Lines    []string
	Recorded Side
	Targets  []Target
}

// Side is the recording, or one replay.
type Side struct {
	ElapsedNS int64   `json:"elapsed_ns"` // from the first call that is made to the return of the last
	UserNS    int64   `json:"user_ns"`    // CPU time; of a recording it is not known
	SystemNS  int64   `json:"system_ns"`
	Ops       []Op    `json:"ops"`
	Rate      *Series `json:"rate,omitempty"` // bytes moved by the calls, over time
}

// Op is what the calls of one operation did. Times are 0 where none was taken.
type Op struct {
	Op      string `json:"op"`
	Count   uint64 `json:"count"`
	Bytes   uint64 `json:"bytes"`
	TotalNS int64  `json:"total_ns"`
	P50NS   int64  `json:"p50_ns"`
	P95NS   int64  `json:"p95_ns"`
	P99NS   int64  `json:"p99_ns"`
	MaxNS   int64  `json:"max_ns"`
}

// Series is bytes in equal parts of the time.
type Series struct {
	BinNS int64   `json:"bin_ns"`
	Bytes []int64 `json:"bytes"`
}

// Target is one place that was replayed on.
type Target struct {
	Name string `json:"name"`
	Runs []Run  `json:"runs"`
}

// Run is one replay.
type Run struct {
	Side
	// That it then took to write everything to the device; 0 if that was not asked for.
	SyncNS     int64 `json:"sync_ns"`
	SpaceBytes int64 `json:"space_bytes"` // allocated for the files in the end

	Calls      uint64       `json:"calls"` // made
	Modelled   uint64       `json:"modelled"`
	Skipped    uint64       `json:"skipped"`
	Different  uint64       `json:"different"`
	Uncompared uint64       `json:"uncompared"`
	Checked    bool         `json:"checked"` // results were compared
	Paths      int          `json:"paths"`   // compared in the end
	Mismatches []Difference `json:"mismatches,omitempty"`
	Tree       []Difference `json:"tree,omitempty"`
	Problems   []string     `json:"problems,omitempty"`

	Paced     bool  `json:"paced"` // calls were made at their recorded times
	LagMeanNS int64 `json:"lag_mean_ns"`
	LagMaxNS  int64 `json:"lag_max_ns"`
}

// Difference is what was not as in the recording: of a call, or of a file in the end.
type Difference struct {
	Event  uint64 `json:"event,omitempty"`
	Thread uint32 `json:"thread,omitempty"`
	What   string `json:"what"` // operation and field, or the file's attribute
	Path   string `json:"path,omitempty"`
	Want   string `json:"want"`
	Got    string `json:"got"`
}

// Spread is the middle one of several runs' values, with the least and the largest.
type Spread struct {
	Median int64 `json:"median"`
	Min    int64 `json:"min"`
	Max    int64 `json:"max"`
}

// spread sums up a value over a target's runs.
func (t *Target) spread(value func(*Run) int64) Spread {
	if len(t.Runs) == 0 {
		return Spread{}
	}
	list := make([]int64, len(t.Runs))
	for i := range t.Runs {
		list[i] = value(&t.Runs[i])
	}
	slices.Sort(list)
	return Spread{list[len(list)/2], list[0], list[len(list)-1]}
}

// typical returns the run whose elapsed time is the median: the one whose latencies are
// shown. They are not mixed, so that they belong together.
func (t *Target) typical() *Run {
	if len(t.Runs) == 0 {
		return &Run{}
	}
	order := make([]*Run, len(t.Runs))
	for i := range t.Runs {
		order[i] = &t.Runs[i]
	}
	slices.SortFunc(order, func(a, b *Run) int { return cmp.Compare(a.ElapsedNS, b.ElapsedNS) })
	return order[len(order)/2]
}

// OK reports whether every run that was checked agreed with the recording.
func (c *Comparison) OK() bool {
	for i := range c.Targets {
		for j := range c.Targets[i].Runs {
			if r := &c.Targets[i].Runs[j]; r.Different > 0 || len(r.Tree) > 0 {
				return false
			}
		}
	}
	return true
}

// find returns an operation's numbers, zero if a side has none.
func (s *Side) find(op string) Op {
	for i := range s.Ops {
		if s.Ops[i].Op == op {
			return s.Ops[i]
		}
	}
	return Op{Op: op}
}
