// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"slices"
	"strings"

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
	s := page.Section{ID: "findings", Title: "Findings in the flow of data",
		Note: "Data that is not what was sent, written or held elsewhere, and what else its flow shows. " +
			"iotape flow shows the ways of data, and takes several tapes."}
	d := findingsData{Findings: []show.Finding{}}
	m := c.tape.Manifest()
	if !slices.Contains(c.o.Sections, "findings") &&
		(m.Counts.Events > mostFindingEvents || m.Content.UniqueBytes > mostFindingBytes) {
		s.Data = d
		s.Blocks = []page.Block{page.Line(fmt.Sprintf(
			"not computed, because the tape has %s and %s of different content: iotape report --section findings",
			report.Plural(m.Counts.Events, "event", "events"), report.Bytes(m.Content.UniqueBytes)))}
		return s
	}
	f, err := flow.Load(c.ctx, []*trace.Tape{c.tape}, nil)
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
	s.Data, s.Blocks = d, d.blocks(c.o.Top)
	return s
}

// blocks shows the first findings.
func (d *findingsData) blocks(most int) []page.Block {
	line := fmt.Sprintf("%s of data that is not what it should be; %s moved %s",
		report.Plural(uint64(d.Wrong), "finding", "findings"),
		report.Plural(uint64(d.Numbers["moves"]), "read or write", "reads and writes"),
		report.Bytes(uint64(d.Numbers["bytes"])))
	blocks := []page.Block{page.Line(line)}
	for _, n := range d.Notes {
		blocks = append(blocks, page.Line("note: "+n))
	}
	if len(d.Findings) == 0 {
		return blocks
	}
	return append(blocks, tableOf("", []string{"finding", "events", "what"}, 3, d.Findings, most,
		func(x *show.Finding) []string { return []string{x.Kind, strings.Join(x.Events, ", "), x.Text} }))
}
