// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/histogram"
	"github.com/iotape/iotape/internal/jsonout"
)

// Phases sums up a trace between its notes. It is also the JSON that `iotape stat --by-note
// --json` prints; fields are only ever added.
type Phases struct {
	Version int     `json:"version"` // 1
	Filter  string  `json:"filter,omitempty"`
	Phases  []Phase `json:"phases"` // the first begins with the trace, each other with a note
	// Damaged is how many parts of the tape could not be read.
	Damaged uint64 `json:"damaged_blocks"`
}

// Phase is what happened between two notes. A call counts where it returned.
type Phase struct {
	Note    string `json:"note"`         // with which it begins; "" for the first
	Seq     uint64 `json:"seq"`          // of the note; of the first event for the first
	StartNS int64  `json:"start_ns"`     // since the start of the trace
	TookNS  int64  `json:"took_ns"`      // to the next note, or the end of the trace
	Lost    uint64 `json:"lost_records"` // known to be missing
	Totals
	P99NS int64 `json:"p99_ns"` // of a call, within 1 %
	MaxNS int64 `json:"max_ns"`

	times histogram.Histogram
}

// CollectPhases sums up the events between notes that fit, all if fits is nil. Errors that the
// iterator yields are counted as damage. Of the options, Filter and Correct count.
func CollectPhases(events iter.Seq2[*event.Event, error], fits func(*event.Event) bool, o *Options) *Phases {
	r := &Phases{Version: 1, Filter: o.Filter}
	var first, last int64
	var p *Phase
	for e, err := range events {
		if err != nil {
			r.Damaged++
			continue
		}
		if o.Correct != nil {
			o.Correct(e)
		}
		if p == nil {
			first, last = e.Enter, e.Exit
			p = &Phase{Seq: e.Seq}
		}
		last = max(last, e.Exit)
		fit := fits == nil || fits(e) // has to see all events
		if e.Kind == event.NoteMark {
			r.end(p, e.Exit-first)
			p = &Phase{Note: e.Note(), Seq: e.Seq, StartNS: e.Exit - first}
			continue
		}
		if fit {
			p.see(e)
		}
	}
	if p != nil {
		r.end(p, last-first)
	}
	return r
}

// end completes a phase, which ends at a time since the start of the trace.
func (r *Phases) end(p *Phase, at int64) {
	p.TookNS = max(at-p.StartNS, 0)
	p.P99NS = p.times.Quantile(0.99)
	r.Phases = append(r.Phases, *p)
}

func (p *Phase) see(e *event.Event) {
	switch e.Kind {
	case event.LossMark:
		p.Lost += e.Loss().Records
	case event.Call:
		if took, known := p.Add(e); known {
			p.MaxNS = max(p.MaxNS, took)
			p.times.Add(took)
		}
	}
}

// JSON writes the phases as one indented JSON object.
func (r *Phases) JSON(w io.Writer) error { return jsonout.Object(w, r) }

// Text writes the phases as a table for people.
func (r *Phases) Text(w io.Writer) error {
	var b strings.Builder
	if r.Filter != "" {
		fmt.Fprintf(&b, "only what fits: %s\n", Printable(r.Filter))
	}
	if len(r.Phases) < 2 {
		b.WriteString("there are no notes: write some with iotape note while you record\n")
	}
	t := Table{Head: []string{"start", "took", "calls", "errors", "read", "written", "syncs", "in calls", "p99", "max",
		"after the note"}, Right: 10}
	for i := range r.Phases {
		p := &r.Phases[i]
		note := Printable(p.Note)
		if i == 0 {
			note = "(start)"
		}
		t.Add(Duration(p.StartNS), Duration(p.TookNS), Count(p.Calls), dash(p.Errors, Count),
			dash(p.ReadBytes, Bytes), dash(p.WrittenBytes, Bytes), dash(p.Syncs, Count),
			Duration(p.TotalNS), Duration(p.P99NS), Duration(p.MaxNS), note)
	}
	t.Write(&b)
	for i := range r.Phases {
		if n := r.Phases[i].Lost; n > 0 {
			fmt.Fprintf(&b, "%s lost after the note %q\n", Plural(n, "record is", "records are"), r.Phases[i].Note)
		}
	}
	if r.Damaged > 0 {
		fmt.Fprintf(&b, "%s could not be read\n", Plural(r.Damaged, "part of the tape", "parts of the tape"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
