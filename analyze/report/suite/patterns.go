// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/model/history"
)

// patterns are Figure 12 of DFSTrace (Mummert and Satyanarayanan, SP&E 26(6), 1996): of
// each opening of a regular file, from the open to the end of the last descriptor,
// whether it was read, written or both, and in what order.
type patterns struct {
	history *history.History
	cells   [3][3]patternCell // use × order
	unused  uint64            // openings without a read or write
	unknown uint64            // with some, but at places that the tape does not know
}

// patternCell are the accesses of one kind.
type patternCell struct {
	Accesses uint64 `json:"accesses"` // openings
	Read     uint64 `json:"read_bytes"`
	Written  uint64 `json:"written_bytes"`
}

func (c *patternCell) add(o patternCell) {
	c.Accesses, c.Read, c.Written = c.Accesses+o.Accesses, c.Read+o.Read, c.Written+o.Written
}

// The uses and the orders, as they are named in JSON and in the catalogue.
var (
	patternUses   = [3]string{"read_only", "write_only", "read_write"}
	patternOrders = [3]string{"whole", "sequential", "random"}
)

func newPatterns(c *collector) view { return &patterns{history: history.New(c.tape)} }

func (v *patterns) see(s *seen) {
	for _, o := range v.history.Step(s.Event).Ended {
		v.ended(o)
	}
}

func (v *patterns) ended(o *history.Open) {
	if o.Mode&typeMask != typeRegular {
		return
	}
	bytes := uint64(max(o.ReadBytes, 0)) + uint64(max(o.WrittenBytes, 0))
	switch {
	case o.Reads == 0 && o.Writes == 0:
		v.unused++
		return
	case o.Located == 0 && bytes > 0:
		v.unknown++
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
	v.cells[use][order].add(patternCell{1, uint64(max(o.ReadBytes, 0)), uint64(max(o.WrittenBytes, 0))})
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
	var all patternCell
	var uses [3]patternCell
	data := map[string]map[string]patternCell{}
	for i, use := range patternUses {
		data[use] = map[string]patternCell{}
		for j, order := range patternOrders {
			data[use][order] = v.cells[i][j]
			uses[i].add(v.cells[i][j])
		}
		data[use]["all"] = uses[i]
		all.add(uses[i])
	}
	t := &page.Table{Head: []string{"use", "order", "accesses", "of all", "of the use", "read",
		"written", "of all bytes"}, Left: 2}
	bytes := func(c patternCell) float64 { return float64(c.Read) + float64(c.Written) }
	row := func(use, order string, c, within patternCell) {
		t.Add(use, order, count(c.Accesses), percent(float64(c.Accesses), float64(all.Accesses)),
			percent(float64(c.Accesses), float64(within.Accesses)), size(c.Read), size(c.Written),
			percent(bytes(c), bytes(all)))
	}
	for i, use := range []string{"read-only", "write-only", "read-write"} {
		row(use, "", uses[i], all)
		for j, order := range []string{"whole file", "other sequential", "random"} {
			row("", order, v.cells[i][j], uses[i])
		}
	}
	return page.Section{ID: "patterns", Title: "Accesses of files",
		Note: "An access is one opening of a regular file, until its last descriptor and mapping end; what shares it " +
			"(dup, fork) is the same access. It is read-only, write-only or read-write by what was done, not by the " +
			"flags of the open. It is sequential if each read or write began where the one before ended, of the " +
			"whole file if it began at its start and ended at its end as well.",
		Data: map[string]any{"all": all, "uses": data, "unused": v.unused, "unknown": v.unknown},
		Blocks: []page.Block{t,
			page.Line(count(v.unused) + " openings without a read or write; " + count(v.unknown) + " with some at places that the tape does not know")}}
}
