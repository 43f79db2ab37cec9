// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/history"
)

// patterns are Figure 12 of DFSTrace (Mummert and Satyanarayanan, SP&E 26(6), 1996): of
// each opening of a regular file, from the open to the end of the last descriptor,
// whether it was read, written or both, and in what order.
type patterns struct {
	history *history.History
	PatternTable
}

// PatternTable counts openings of regular files by what was done to them, and in what order.
type PatternTable struct {
	Cells   [3][3]PatternCell // PatternUses × PatternOrders
	Unused  uint64            // openings without a read or write
	Unknown uint64            // with some, but at places that the tape does not know
}

// PatternCell is the accesses of one kind.
type PatternCell struct {
	Accesses uint64 `json:"accesses"` // openings
	Read     uint64 `json:"read_bytes"`
	Written  uint64 `json:"written_bytes"`
}

// Add adds the accesses of another one.
func (c *PatternCell) Add(o PatternCell) {
	c.Accesses, c.Read, c.Written = c.Accesses+o.Accesses, c.Read+o.Read, c.Written+o.Written
}

// The uses and the orders, as they are named in JSON and in the catalogue.
var (
	PatternUses   = [3]string{"read_only", "write_only", "read_write"}
	PatternOrders = [3]string{"whole", "sequential", "random"}
)

func newPatterns(c *collector) view { return &patterns{history: history.New(c.tape)} }

func (v *patterns) see(s *seen) {
	for _, o := range v.history.Step(s.Event).Ended {
		v.ended(o)
	}
}

func (v *patterns) ended(o *history.Open) {
	if event.FileType(o.Mode) != event.TypeRegular {
		return
	}
	bytes := uint64(max(o.ReadBytes, 0)) + uint64(max(o.WrittenBytes, 0))
	switch {
	case o.Reads == 0 && o.Writes == 0:
		v.Unused++
		return
	case o.Located == 0 && bytes > 0:
		v.Unknown++
		return
	}
	use, order := 2, 2
	switch {
	case o.Writes == 0:
		use = 0
	case o.Reads == 0:
		use = 1
	}
	if o.Located <= 1 || o.Sequential() {
		order = 1
		// One piece that is as long as where it ends began at the start.
		if uint64(o.Max) == bytes && o.Max == o.Size {
			order = 0
		}
	}
	v.Cells[use][order].Add(PatternCell{1, uint64(max(o.ReadBytes, 0)), uint64(max(o.WrittenBytes, 0))})
}

// finish counts what is still open when the tape ends. It may be called again.
func (v *patterns) finish() {
	if v.history == nil {
		return
	}
	for o := range v.history.Opens() {
		v.ended(o)
	}
	v.history = nil
}

func (v *patterns) section(*collector) page.Section {
	v.finish()
	return v.Section("An access is one opening of a regular file, until its last descriptor and mapping end; what "+
		"shares it (dup, fork) is the same access. It is read-only, write-only or read-write by what was done, not "+
		"by the flags of the open. It is sequential if each read or write began where the one before ended, of the "+
		"whole file if it began at its start and ended at its end as well.", "the tape does not know")
}

// Section shows the table. The note explains it; notKnown says who does not know some places.
func (v *PatternTable) Section(note, notKnown string) page.Section {
	var all PatternCell
	var uses [3]PatternCell
	data := map[string]map[string]PatternCell{}
	for i, use := range PatternUses {
		data[use] = map[string]PatternCell{}
		for j, order := range PatternOrders {
			data[use][order] = v.Cells[i][j]
			uses[i].Add(v.Cells[i][j])
		}
		data[use]["all"] = uses[i]
		all.Add(uses[i])
	}
	t := &page.Table{Head: []string{"use", "order", "accesses", "of all", "of the use", "read",
		"written", "of all bytes"}, Left: 2}
	bytes := func(c PatternCell) float64 { return float64(c.Read) + float64(c.Written) }
	row := func(use, order string, c, within PatternCell) {
		t.Add(use, order, Count(c.Accesses), Percent(float64(c.Accesses), float64(all.Accesses)),
			Percent(float64(c.Accesses), float64(within.Accesses)), Size(c.Read), Size(c.Written),
			Percent(bytes(c), bytes(all)))
	}
	for i, use := range []string{"read-only", "write-only", "read-write"} {
		row(use, "", uses[i], all)
		for j, order := range []string{"whole file", "other sequential", "random"} {
			row("", order, v.Cells[i][j], uses[i])
		}
	}
	return page.Section{ID: "patterns", Title: "Accesses of files",
		Note: note,
		Data: map[string]any{"all": all, "uses": data, "unused": v.Unused, "unknown": v.Unknown},
		Blocks: []page.Block{t,
			page.Line(Count(v.Unused) + " openings without a read or write; " +
				Count(v.Unknown) + " with some at places that " + notKnown)}}
}
