// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/replay/result"
)

// Config is the configuration of the child process, as JSON.
type Config struct {
	Tape   string // its directory
	Into   string // the target, absolute
	Checks options.Checks
	Abort  bool // at the first difference
	Pace   options.Pace
	Speed  float64
	Order  order.Mode
	Native options.Native
	// Privileged makes set-id bits, capabilities and device numbers.
	Privileged bool
	Sleep      bool // in place of computing
	Layout     eventsource.Layout
	Data       options.Data
	LogLevel   options.LogLevel // "" without a log
	FIFOs      bool             // there may be some in the target
	Limits     Limits
	// Elsewhere, Specials, LeftOut, Others, Overlays and Tainted are those of initialtree.Tree.
	Elsewhere []string
	Specials  []string
	LeftOut   []string
	Others    []string
	Overlays  []string
	Tainted   []effect.FileRanges
	// OrderKey is the layout's, if the tape has an order of its events with it; else "".
	OrderKey string
	// Target is the directory Into, whose mode and owner are not compared; the zero value: they are.
	Target effect.Inode
	// Group is one that lets into the target; 0: none.
	Group uint32
	// KeepTimes adds to the report how long how many calls took.
	KeepTimes bool
	// Part of a team; nil: all.
	Part *Part
}

// Answer is what came of a run.
type Answer struct {
	Report *result.Report `json:"report,omitempty"`
	// Tainted are the files that have made-up content in the end.
	Tainted []effect.FileRanges `json:"tainted,omitempty"`
	// BeganNS is when the first call was made, from the moment when calls might be.
	BeganNS int64 `json:"began,omitempty"`

	endNS int64 // when the last call was done, likewise; of a joined answer
}

// Join adds the answer of a member of a team. Times are from the common beginning.
func (a *Answer) Join(o *Answer, member string) {
	if part := o.Report; part.Replayed > 0 {
		if len(a.Report.Members) == 0 || a.BeganNS == 0 || o.BeganNS < a.BeganNS {
			a.BeganNS = o.BeganNS
		}
		a.endNS = max(a.endNS, o.BeganNS+part.Timing.ReplayedNS)
	}
	a.Report.Join(o.Report, member)
	a.Report.Timing.ReplayedNS = max(a.endNS-a.BeganNS, 0)
	a.Tainted = append(a.Tainted, o.Tainted...)
}
