// SPDX-License-Identifier: Apache-2.0

package result

import (
	"slices"

	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/tree"
)

// MaxMismatches limits the differences, and the kinds of them, that a Report lists.
const MaxMismatches = 1000

// Report is what came of a replay.
type Report struct {
	Events    uint64 `json:"events"`
	Replayed  uint64 `json:"replayed"`   // by making the call
	Emulated  uint64 `json:"emulated"`   // modelled only
	Skipped   uint64 `json:"skipped"`    // not in the operation table
	ElapsedNS int64  `json:"elapsed_ns"` // of the run alone
	Different uint64 `json:"different"`  // calls' results that differ
	Following uint64 `json:"following"`  // of these, that follow from others
	// First is the difference of the event that comes first in the tape; nil if there is none.
	First *Mismatch `json:"first,omitempty"`
	// Unexplained are results, or parts of some, that no order of the recorded calls
	// explains, because calls that overlapped saw each other halfway. They are not compared.
	Unexplained uint64 `json:"unexplained"`
	Uncompared  uint64 `json:"uncompared"` // reads of bytes that the tape does not have, or that depend on such
	// Dependent are results that are not compared because they depend on calls which a trace by
	// another tool may have left out, and LeftOut the kinds of these calls.
	Dependent uint64   `json:"dependent,omitempty"`
	LeftOut   []string `json:"left_out,omitempty"`
	// Outside are results that are not compared because a process that was not recorded changed the
	// file meanwhile, and OutsideNames the names of such files, at most maxOutside.
	Outside      uint64   `json:"outside,omitempty"`
	OutsideNames []string `json:"outside_names,omitempty"`
	// Overlay are results that are not compared because they are about directories into which overlays of the recording
	// stored, and OverlayDirs these directories.
	Overlay     uint64     `json:"overlay,omitempty"`
	OverlayDirs []string   `json:"overlay_dirs,omitempty"`
	Mismatches  []Mismatch `json:"mismatches"`
	// Kinds says once what differed in one way, however often it did: a target that has no
	// extended attributes is one line. They stand in the order of their first events.
	Kinds []Kind `json:"kinds"`
	// Omitted are calls that are not made although they changed the recording's tree, or of which the trace says
	// too little to make them.
	Omitted        []Omission        `json:"omitted"`
	Tree           []tree.Difference `json:"tree"`         // final tree against the recording's
	TreePaths      int               `json:"tree_paths"`   // compared
	TreeMadeUp     int               `json:"tree_made_up"` // of these, without their content, for the same reason
	InitialEntries int               `json:"skeleton"`     // entries made before the first event
	Problems       []string          `json:"problems"`     // what the target did not allow
	LeftOff        LeftOff           `json:"left_off"`     // what would give rights and was not made
	Confinement    Confinement       `json:"confinement"`
	Aborted        bool              `json:"aborted"`  // at the first difference, as asked
	Machines       int               `json:"machines"` // that have trees of their own
	Timing         *Timing           `json:"timing"`
	// Ops are the operations of which calls were made, by the time that they took when
	// they were recorded.
	Ops []OpTiming `json:"ops"`
	// RecordedRate and ReplayedRate are the bytes that these calls moved over time.
	RecordedRate Rate `json:"recorded_rate"`
	ReplayedRate Rate `json:"replayed_rate"`
	// Members are those of the team that made the calls; Ops and rates are theirs then.
	Members []Member `json:"members,omitempty"`

	kinds map[Mismatch]int // where in Kinds
}

// Member is what a member of a team did.
type Member struct {
	Name       string     `json:"name"`
	Replayed   uint64     `json:"replayed"`
	Different  uint64     `json:"different"`
	ReplayedNS int64      `json:"replayed_ns"` // from its first call to its last
	Ops        []OpTiming `json:"ops"`
}

// OpTiming is what the calls of an operation did and took, as recorded and here.
type OpTiming struct {
	Op       string  `json:"op"`
	Recorded Latency `json:"recorded"`
	Replayed Latency `json:"replayed"`
}

// Latency is how long calls took. Quantiles are within 1 %.
type Latency struct {
	Count uint64 `json:"count"`
	Bytes int64  `json:"bytes"`
	// Timed is how many calls the times are of. When calls are made as fast as possible,
	// one in 16 plain reads and writes is timed; TotalNS is of all, as far as these tell.
	Timed   uint64 `json:"timed"`
	TotalNS int64  `json:"total_ns"`
	P50NS   int64  `json:"p50_ns"`
	P95NS   int64  `json:"p95_ns"`
	P99NS   int64  `json:"p99_ns"`
	MaxNS   int64  `json:"max_ns"`
	// Times are how many calls took about how long, ns, if several replays are to be joined.
	Times []Times `json:"times,omitempty"`
}

// Times are calls that took about as long.
type Times struct {
	NS    int64  `json:"ns"`
	Count uint64 `json:"count"`
}

// Rate is bytes in equal parts of the time.
type Rate struct {
	BinNS int64   `json:"bin_ns"`
	Bytes []int64 `json:"bytes"`
}

// Mismatch is a result that is not as recorded.
type Mismatch struct {
	Seq      uint64 `json:"seq"` // of the event
	TID      uint32 `json:"tid"`
	Op       string `json:"op"`
	Path     string `json:"path,omitempty"`
	Field    string `json:"field"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	// Because is the number of the event, plus 1, whose difference this one follows from;
	// such are counted with it and not listed.
	Because *uint64 `json:"-"`
	// Followers is how many other results differ that follow from this one: on the same
	// file, name or directory.
	Followers uint64 `json:"followers,omitempty"`
}

// Kind is a way in which results differed, with the first that did.
type Kind struct {
	Mismatch
	Count uint64 `json:"count"`
}

// Omission is a reason for which calls of an operation are not made although they changed the
// recording's tree.
type Omission struct {
	Op     string `json:"op"`
	Reason string `json:"why"`
	Count  uint64 `json:"count"`
	Seq    uint64 `json:"seq"` // of the first of these events
	Path   string `json:"path,omitempty"`
}

// Omit adds calls that are not made. o.Seq is that of the first.
func (r *Report) Omit(o Omission) {
	i := slices.IndexFunc(r.Omitted, func(k Omission) bool { return k.Op == o.Op && k.Reason == o.Reason })
	if i < 0 {
		r.Omitted = append(r.Omitted, o)
		return
	}
	k := &r.Omitted[i]
	k.Count += o.Count
	if o.Seq < k.Seq {
		k.Seq, k.Path = o.Seq, o.Path
	}
}

// AddDependent adds results that depend on kinds of calls which the trace may have left out.
func (r *Report) AddDependent(n uint64, kinds []string) {
	r.Dependent += n
	for _, k := range kinds {
		if i, found := slices.BinarySearch(r.LeftOut, k); !found {
			r.LeftOut = slices.Insert(r.LeftOut, i, k)
		}
	}
}

// maxOutside is how many files are named that others changed.
const maxOutside = 20

// AddOutside adds results that are about a file that others changed.
func (r *Report) AddOutside(n uint64, name string) {
	r.Outside += n
	if i, found := slices.BinarySearch(r.OutsideNames, name); !found && len(r.OutsideNames) < maxOutside {
		r.OutsideNames = slices.Insert(r.OutsideNames, i, name)
	}
}

// AddOverlay adds results that are about a directory into which an overlay stored.
func (r *Report) AddOverlay(n uint64, dir string) {
	r.Overlay += n
	if i, found := slices.BinarySearch(r.OverlayDirs, dir); !found && len(r.OverlayDirs) < maxOutside {
		r.OverlayDirs = slices.Insert(r.OverlayDirs, i, dir)
	}
}

// like names what makes mismatches one kind: an operation that fails here with one
// error, or of which one thing differs.
func (m *Mismatch) like() Mismatch {
	k := Mismatch{Op: m.Op, Field: m.Field}
	if m.Field == "errno" {
		k.Expected, k.Got = m.Expected, m.Got
	}
	return k
}

// OK reports whether everything agreed, to the end, and nothing was left out.
func (r *Report) OK() bool {
	return r.Different == 0 && len(r.Tree) == 0 && len(r.Omitted) == 0 && !r.Aborted
}

// New returns a report of nothing.
func New() *Report {
	return &Report{
		kinds: map[Mismatch]int{}, Kinds: []Kind{}, Mismatches: []Mismatch{}, Omitted: []Omission{},
		Tree: []tree.Difference{}, Problems: []string{}, Ops: []OpTiming{},
	}
}

// Add adds a difference to those that are listed, and to its kind.
func (r *Report) Add(m *Mismatch) {
	if len(r.Mismatches) < MaxMismatches {
		r.Mismatches = append(r.Mismatches, *m)
	}
	like := m.like()
	i, ok := r.kinds[like]
	if !ok && len(r.Kinds) < MaxMismatches {
		i, ok = len(r.Kinds), true
		r.kinds[like] = i
		r.Kinds = append(r.Kinds, Kind{Mismatch: *m})
	}
	if !ok {
		return
	}
	k := &r.Kinds[i]
	if k.Count++; m.Seq < k.Seq { // threads report in no order
		k.Mismatch = *m
	}
}

// Timing is how well a replay kept its pace.
type Timing struct {
	Pace  options.Pace `json:"pace"`
	Speed float64      `json:"speed"`
	// RecordedNS is from the entry of the first to the return of the last call that
	// was made, as recorded; ReplayedNS the same in the replay.
	RecordedNS int64 `json:"recorded_ns"`
	ReplayedNS int64 `json:"replayed_ns"`
	// Lag is how much later than at its recorded time, divided by the speed, a call
	// was made. Only of PaceRecorded.
	LagMeanNS int64  `json:"lag_mean_ns"`
	LagMaxNS  int64  `json:"lag_max_ns"`
	Lagging   uint64 `json:"lagging"` // calls that were late by a millisecond or more
}
