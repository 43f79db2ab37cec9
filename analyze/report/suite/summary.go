// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/internal/histogram"
	"github.com/iotape/iotape/trace"
)

// Summary is what a catalogue keeps of a tape: the numbers of several sections without
// their lists. All times are in ns, all sizes in bytes.
type Summary struct {
	Calls     uint64   `json:"calls"`
	Failed    uint64   `json:"failed"`
	Read      uint64   `json:"read_bytes"`
	Written   uint64   `json:"written_bytes"`
	InCallsNS int64    `json:"in_calls_ns"`
	Commands  []string `json:"commands"` // names of processes, the first 64 by name
	Users     []uint32 `json:"users"`    // the first 64 by number

	// By operation, and errors by their names.
	Ops, OpsFailed, Errors map[string]uint64
	P50NS, P99NS, MaxNS    map[string]uint64

	// Patterns are accesses, and PatternBytes what they moved, by use and order:
	// "read_only_whole", "write_only_sequential", "read_write_random" …
	Patterns, PatternBytes map[string]uint64

	// ReadSizes and WriteSizes count calls in Darshan's ten classes of sizes.
	ReadSizes, WriteSizes []uint64

	Sessions              uint64 // and how many of them are of which level
	Low, Medium, High     uint64
	ActiveNS              int64 // in sessions
	Files, Small          uint64
	Made, Removed         uint64
	LifeP50NS, LifeMaxNS  int64 // of files that were made and removed
	HotFiles              []string
	SmallWrites, Syncs    uint64
	Reread, Rewritten     uint64
	Unsynced, NeverSynced uint64 // bytes, and files
	DurabilityWarnings    uint64
	Damaged               uint64 // parts of the tape that could not be read
}

// MaxNames limits the names and users that a Summary lists.
const MaxNames = 64

// hotFiles is how many files a Summary names.
const hotFiles = 10

// Summarise computes the Summary of a tape, in one pass.
func Summarise(ctx context.Context, t *trace.Tape, o *Options) (*Summary, error) {
	var options Options
	if o != nil {
		options = *o
	}
	options.Sections = []string{"ops", "patterns", "users", "sizes", "sessions", "census", "redundant", "durability"}
	c, err := pass(ctx, t, &options)
	if err != nil {
		return nil, err
	}
	s := &Summary{Damaged: c.bad, Ops: map[string]uint64{}, OpsFailed: map[string]uint64{}, Errors: map[string]uint64{},
		P50NS: map[string]uint64{}, P99NS: map[string]uint64{}, MaxNS: map[string]uint64{},
		Patterns: map[string]uint64{}, PatternBytes: map[string]uint64{}}
	for _, v := range c.views {
		if v, ok := v.(interface{ summarise(*collector, *Summary) }); ok {
			v.summarise(c, s)
		}
	}
	comms := map[string]bool{}
	for _, p := range c.procs.list {
		s.Calls, s.Failed = s.Calls+p.calls, s.Failed+p.errors
		s.Read, s.Written = s.Read+p.read, s.Written+p.written
		for _, ns := range p.took {
			s.InCallsNS += ns
		}
		if p.comm != "" && p.comm != otherProcesses {
			comms[p.comm] = true
		}
	}
	s.Commands = slices.Sorted(maps.Keys(comms))
	s.Commands = s.Commands[:min(len(s.Commands), MaxNames)]
	return s, nil
}

func (v *ops) summarise(_ *collector, s *Summary) {
	for name, r := range v.by {
		s.Ops[name] = r.Count
		s.P50NS[name], s.P99NS[name], s.MaxNS[name] = uint64(r.times.Quantile(.5)),
			uint64(r.times.Quantile(.99)), uint64(r.times.Max)
		for e, n := range r.Errors {
			s.OpsFailed[name] += n
			s.Errors[strings.TrimSpace(e)] += n
		}
	}
}

func (v *patterns) summarise(_ *collector, s *Summary) {
	v.finish()
	for i, use := range PatternUses {
		for j, order := range PatternOrders {
			if c := v.Cells[i][j]; c.Accesses > 0 {
				s.Patterns[use+"_"+order], s.PatternBytes[use+"_"+order] = c.Accesses, c.Read+c.Written
			}
		}
	}
}

func (v *users) summarise(_ *collector, s *Summary) {
	for _, u := range v.list {
		if !u.others && !slices.Contains(s.Users, u.UID) {
			s.Users = append(s.Users, u.UID)
		}
	}
	slices.Sort(s.Users)
	s.Users = s.Users[:min(len(s.Users), MaxNames)]
}

func (v *sizes) summarise(_ *collector, s *Summary) {
	s.ReadSizes, s.WriteSizes = v.read[:], v.written[:]
}

func (v *sessions) summarise(_ *collector, s *Summary) {
	list, _ := v.find()
	s.Sessions = uint64(len(list))
	for _, r := range list {
		s.ActiveNS += r.LengthNS
		switch r.Level {
		case "low":
			s.Low++
		case "medium":
			s.Medium++
		default:
			s.High++
		}
	}
}

func (v *census) summarise(c *collector, s *Summary) {
	var lives histogram.Histogram
	var hot []*censusRow
	for id, r := range v.rows {
		if r == nil {
			continue
		}
		s.Files++
		if r.File = c.files.list[id].path; r.Size < 4096 {
			s.Small++
		}
		gone, removed := c.gone[id]
		if r.made {
			s.Made++
		}
		if removed {
			s.Removed++
		}
		if r.made && removed {
			lives.Add(gone - r.MadeNS)
		}
		if r.Read+r.Written > 0 && r.File != otherFiles {
			hot = append(hot, r)
		}
	}
	s.LifeP50NS, s.LifeMaxNS = lives.Quantile(.5), lives.Max
	slices.SortFunc(hot, func(a, b *censusRow) int {
		return cmp.Or(cmp.Compare(b.Read+b.Written, a.Read+a.Written), cmp.Compare(a.File, b.File))
	})
	for _, r := range hot[:min(len(hot), hotFiles)] {
		s.HotFiles = append(s.HotFiles, r.File)
	}
}

func (v *redundant) summarise(_ *collector, s *Summary) {
	for _, r := range v.files {
		s.SmallWrites, s.Syncs = s.SmallWrites+r.SmallWrites, s.Syncs+r.Syncs
		s.Reread, s.Rewritten = s.Reread+r.Reread, s.Rewritten+r.Rewritten
	}
}

func (v *durability) summarise(_ *collector, s *Summary) {
	for _, r := range v.files {
		if r.dirty > 0 && !r.removed {
			s.Unsynced += r.dirty
			if r.Syncs == 0 {
				s.NeverSynced++
			}
		}
	}
	s.DurabilityWarnings = uint64(len(v.warnings)) + v.more
}
