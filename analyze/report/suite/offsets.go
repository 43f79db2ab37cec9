// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
)

// offsetMap is where in a file bytes were moved, over time: rows of equal ranges of the
// file, which grow as it does, so that its size need not be known before.
type offsetMap struct {
	each  int64 // bytes of a row: a power of two
	rows  [offsetRows]*bins
	calls uint64
}

const (
	offsetRows = 32
	// maxOffsetMaps limits the files that have one: 32 KB each. Those that come first do.
	maxOffsetMaps = 2048
	// shownOffsetMaps is how many files are shown: those with the most accesses.
	shownOffsetMaps = 4
)

// add counts an access.
func (m *offsetMap) add(c *collector, at, off, n int64) {
	m.calls++
	m.each = max(m.each, blockBytes)
	for off+n > m.each*offsetRows && m.each < 1<<57 {
		m.coarser()
	}
	for end := off + n; off < end; {
		i := min(off/m.each, offsetRows-1)
		part := end - off
		if i < offsetRows-1 {
			part = min(part, (i+1)*m.each-off)
		}
		if m.rows[i] == nil {
			m.rows[i] = newBins(c)
		}
		m.rows[i].add(at, float64(part))
		off += part
	}
}

// coarser makes rows of twice the size.
func (m *offsetMap) coarser() {
	for i := range m.rows {
		var sum *bins
		if 2*i < offsetRows {
			if sum = m.rows[2*i]; sum == nil {
				sum = m.rows[2*i+1]
			} else if o := m.rows[2*i+1]; o != nil {
				for k := range sum.values {
					sum.values[k] += o.values[k]
				}
			}
		}
		m.rows[i] = sum
	}
	m.each *= 2
}

// picture lays the map out, the file's end above.
func (m *offsetMap) picture(c *collector, name string) *page.Heat {
	empty := newBins(c)
	h := &page.Heat{Title: "Offsets over time: " + name, X: page.NS, Unit: page.Bytes, Step: float64(empty.step)}
	some := false
	for i := offsetRows - 1; i >= 0; i-- {
		b := m.rows[i]
		if some = some || b != nil; !some {
			continue
		}
		h.Rows = append(h.Rows,
			page.Series{Name: "from " + report.Bytes(uint64(int64(i)*m.each)), Values: cmp.Or(b, empty).values})
	}
	return h
}

// offsetData are the numbers of a map.
type offsetData struct {
	File  string      `json:"file"`
	Calls uint64      `json:"accesses"`
	Each  int64       `json:"bytes_of_a_row"`
	Step  int64       `json:"step_ns"`
	Rows  [][]float64 `json:"rows"` // bytes, from the file's beginning; null where there are none
}

// offsets returns the maps of the files with the most accesses.
func (v *access) offsets(c *collector) (maps []*page.Heat, data []offsetData) {
	var ids []int
	for id, g := range v.segments {
		if g.where != nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int) int {
		return cmp.Or(cmp.Compare(v.segments[b].where.calls, v.segments[a].where.calls), cmp.Compare(a, b))
	})
	data = []offsetData{}
	for _, id := range ids[:min(len(ids), shownOffsetMaps)] {
		m, name := v.segments[id].where, c.files.list[id].path
		maps = append(maps, m.picture(c, name))
		d := offsetData{File: name, Calls: m.calls, Each: m.each, Step: newBins(c).step}
		for _, b := range m.rows {
			if b == nil {
				d.Rows = append(d.Rows, nil)
				continue
			}
			d.Rows = append(d.Rows, b.values)
		}
		data = append(data, d)
	}
	return maps, data
}
