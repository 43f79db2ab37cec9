// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/analyze/flow/show"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/trace"
)

// findings is what the flow of the data shows (package flow). It compares contents, so it takes
// more than all other sections: of long tapes it is made if it is asked for.
type findings struct{}

// Up to so many events and bytes of content the section is made without being asked for: within a
// second or two.
const (
	mostFindingEvents = 1 << 20
	mostFindingBytes  = 4 << 20
	// Who gives several tapes wants to see what went between them: that may take some seconds.
	mostFindingBytesOfSeveral = 64 << 20
)

type findingsData struct {
	Computed bool             `json:"computed"`
	Wrong    int64            `json:"wrong"`
	Numbers  map[string]int64 `json:"numbers,omitempty"` // of iotape flow --numbers
	Findings []show.Finding   `json:"findings"`
	Notes    []string         `json:"notes,omitempty"`
}

func newFindings(*collector) view { return &findings{} }

func (v *findings) see(*seen) {}

func (v *findings) section(c *collector) page.Section {
	return findingsOf(c.ctx, []*trace.Tape{c.tape}, &c.o)
}

// findingsOf is the section for tapes, whose data went from one to another.
func findingsOf(ctx context.Context, tapes []*trace.Tape, o *Options) page.Section {
	s := page.Section{ID: "findings", Title: "Findings in the flow of data", Lead: true,
		Note: "Data that is not what was sent, written or held elsewhere, and what else its flow shows. " +
			"iotape flow follows data from and to any event, file or connection."}
	d := findingsData{Findings: []show.Finding{}}
	var events, content uint64
	for _, t := range tapes {
		m := t.Manifest()
		events, content = events+m.Counts.Events, content+m.Content.UniqueBytes
	}
	limit := uint64(mostFindingBytes)
	if len(tapes) > 1 {
		limit = mostFindingBytesOfSeveral
	}
	if !slices.Contains(o.Sections, "findings") && (events > mostFindingEvents || content > limit) {
		s.Data = d
		s.Blocks = []page.Block{page.Line(fmt.Sprintf(
			"not computed, because of %s and %s of different content: iotape report --section findings, or iotape flow",
			report.Plural(events, "event", "events"), report.Bytes(content)))}
		return s
	}
	f, err := flow.Load(ctx, tapes, nil)
	if err != nil {
		s.Data = d
		s.Blocks = []page.Block{page.Line("not computed: " + err.Error())}
		return s
	}
	d.Computed, d.Notes, d.Numbers = true, f.Notes(), map[string]int64{}
	for _, n := range f.Numbers(nil) {
		d.Numbers[n.Name] = n.Value
	}
	d.Wrong = d.Numbers["wrong"]
	d.Findings = show.Findings(f)
	s.Data, s.Blocks = d, d.blocks(cmp.Or(o.Top, defaultTop))
	return s
}

// blocks shows the first findings of each kind.
func (d *findingsData) blocks(most int) []page.Block {
	line := fmt.Sprintf("%s of data that is not what it should be; %s moved %s",
		report.Plural(uint64(d.Wrong), "finding", "findings"),
		report.Plural(uint64(d.Numbers["moves"]), "read or write", "reads and writes"),
		report.Bytes(uint64(d.Numbers["bytes"])))
	blocks := []page.Block{page.Line(line)}
	for _, n := range d.Notes {
		blocks = append(blocks, page.Line("note: "+n))
	}
	shown := map[string]int{}
	hints := &page.Fold{}
	for i := range d.Findings {
		x := &d.Findings[i]
		if shown[x.Kind]++; shown[x.Kind] > most {
			continue
		}
		list := &blocks
		if !x.Wrong {
			list = &hints.Blocks
		}
		*list = append(*list, &page.Finding{Kind: x.Kind, Wrong: x.Wrong, Text: x.Text, Events: x.Events,
			Confidence: x.Confidence, Decide: x.Decide, Story: x.Story})
	}
	if n := len(hints.Blocks); n > 0 {
		hints.Title = report.Plural(uint64(n), "thing", "things") + " that need not be wrong"
		blocks = append(blocks, hints)
	}
	for _, p := range flow.Problems {
		if n := shown[string(p)]; n > most {
			blocks = append(blocks, page.Line(fmt.Sprintf("… %s: %s in all (--top, or iotape flow)", p,
				report.Count(uint64(n)))))
		}
	}
	return blocks
}
