// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/histogram"
)

// ops are the operations: how often, how they failed, what they moved, how long they
// took, and what share of the wall time that is.
type ops struct{ by map[string]*opRow }

type opRow struct {
	Op      string            `json:"op"`
	Class   string            `json:"class"`
	Count   uint64            `json:"count"`
	Errors  map[string]uint64 `json:"errors,omitempty"` // by name
	Bytes   uint64            `json:"bytes"`
	Untimed uint64            `json:"untimed,omitempty"` // whose duration is not known; the times are of the others
	TotalNS int64             `json:"total_ns"`
	MeanNS  int64             `json:"mean_ns"`
	P50NS   int64             `json:"p50_ns"`
	P90NS   int64             `json:"p90_ns"`
	P99NS   int64             `json:"p99_ns"`
	MaxNS   int64             `json:"max_ns"`
	Wall    float64           `json:"share_of_wall"` // of all threads' calls together; may be above 1
	times   histogram.Histogram
}

func newOps(*collector) view { return &ops{by: map[string]*opRow{}} }

func (v *ops) see(s *seen) {
	if s.Kind != event.Call {
		return
	}
	r := v.by[s.name]
	if r == nil {
		r = &opRow{Op: s.name, Class: s.spec.Class.String()}
		v.by[s.name] = r
	}
	r.Count++
	r.Bytes += uint64(s.io.Bytes())
	r.TotalNS += s.took
	if s.timed {
		r.times.Add(s.took)
	} else {
		r.Untimed++
	}
	if s.Errno != 0 {
		if r.Errors == nil {
			r.Errors = map[string]uint64{}
		}
		r.Errors[event.ErrnoName(s.Errno)]++
	}
}

func (v *ops) section(c *collector) page.Section {
	list := []opRow{}
	for _, r := range v.by {
		r.MeanNS = r.TotalNS / int64(max(r.Count-r.Untimed, 1))
		r.P50NS, r.P90NS, r.P99NS, r.MaxNS = r.times.Quantile(.5), r.times.Quantile(.9),
			r.times.Quantile(.99), r.times.Max
		r.Wall = share(float64(r.TotalNS), float64(c.last-c.first))
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b opRow) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op))
	})
	s := page.Section{ID: "ops", Title: "Operations", Data: list,
		Note: "Times are from entry to return. The share of the wall time is of all threads together, so it can be " +
			"more than 100 %. Quantiles are within 1 %."}
	s.Blocks = []page.Block{tableOf("", []string{"operation", "class", "calls", "failed", "bytes", "time", "of wall",
		"mean", "p50", "p90", "p99", "max", "errors"}, 2, list, 0, func(r *opRow) []string {
		failed := uint64(0)
		for _, n := range r.Errors {
			failed += n
		}
		return []string{r.Op, r.Class, Count(r.Count), Count(failed), Size(r.Bytes), span(r.TotalNS),
			Percent(r.Wall, 1), span(r.MeanNS), span(r.P50NS), span(r.P90NS), span(r.P99NS), span(r.MaxNS), errorsText(r.Errors)}
	})}
	return s
}

// errorsText lists errors by count.
func errorsText(m map[string]uint64) string {
	type one struct {
		name string
		n    uint64
	}
	var list []one
	for name, n := range m {
		list = append(list, one{name, n})
	}
	slices.SortFunc(list, func(a, b one) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	var parts []string
	for _, e := range list {
		parts = append(parts, fmt.Sprintf("%s %s", e.name, report.Count(e.n)))
	}
	return strings.Join(parts, ", ")
}
