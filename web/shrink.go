// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"

	"github.com/iotape/iotape/web/viewmodel"
)

// shrink makes a picture of all of a scene that is small enough for a file.
func shrink(s *viewmodel.Scene) (*embedded, error) {
	about := s.About()
	w := &viewmodel.Window{FromNS: about.FromNS, ToNS: about.ToNS, Columns: fileColumns, Arrows: true}
	about.Rows, w.Rows = pruned(about.Rows)
	for {
		p, err := s.Window(context.Background(), w)
		if err != nil {
			return nil, err
		}
		for i := range p.Rows { // numbered anew
			p.Rows[i].Row = i
		}
		b, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		if len(b) <= fileBytes || w.Columns <= 50 {
			return &embedded{about, p}, nil
		}
		w.Columns /= 2
	}
}

// pruned returns at most fileRows rows, and what each of them shows: those that are
// deepest are left out, and shown with the rows above them; then the last.
func pruned(rows []viewmodel.Row) ([]viewmodel.Row, []viewmodel.RowRef) {
	depth := 0
	for _, r := range rows {
		depth = max(depth, r.Depth)
	}
	for ; ; depth-- {
		kept := []viewmodel.Row{}
		refs := []viewmodel.RowRef{}
		number := map[int]int{-1: -1} // new by old
		for i, r := range rows {
			if r.Depth > depth {
				continue
			}
			number[i] = len(kept)
			r.Parent = number[r.Parent]
			kept, refs = append(kept, r), append(refs, viewmodel.RowRef{Row: i, All: r.Depth == depth && r.Below > 0})
		}
		if len(kept) > fileRows && depth > 0 {
			continue
		}
		kept, refs = kept[:min(len(kept), fileRows)], refs[:min(len(refs), fileRows)]
		for i := range kept {
			kept[i].Below = 0
			for k := i + 1; k < len(kept) && kept[k].Depth > kept[i].Depth; k++ {
				kept[i].Below++
			}
		}
		return kept, refs
	}
}
