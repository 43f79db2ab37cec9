package accuracy

import (
	"fmt"
	"io"
	"math"

	"iotape/report"
)

// Text writes the errors as a table, and their means and maxima for each mode: over the
// storage systems that the application was not recorded on.
func (r *Report) Text(w io.Writer) error {
	fmt.Fprintf(w, "recorded on %s with %d ranks that wait by %s; error of the replay's time against the application's\n\n", r.Traced, r.Ranks, r.Sync)
	t := report.Table{Head: []string{"application", "storage", "runs for"}, Left: 2}
	var modes []string
	for _, m := range Modes {
		for _, row := range r.Rows {
			if _, ok := row.Error[m.Name]; ok || row.Failed[m.Name] != "" {
				modes = append(modes, m.Name)
				t.Head = append(t.Head, m.Name)
				break
			}
		}
	}
	sum, most, n := map[string]float64{}, map[string]float64{}, map[string]int{}
	for _, row := range r.Rows {
		cells := []string{row.App, row.Store, report.Duration(row.AppNS)}
		for _, m := range modes {
			e, ok := row.Error[m]
			if !ok {
				cells = append(cells, "–")
				continue
			}
			cells = append(cells, fmt.Sprintf("%+.1f %%", 100*e))
			if row.Store != r.Traced {
				sum[m] += math.Abs(e)
				most[m] = max(most[m], math.Abs(e))
				n[m]++
			}
		}
		t.Add(cells...)
	}
	for _, line := range []struct {
		name string
		of   func(m string) float64
	}{{"mean", func(m string) float64 { return sum[m] / float64(n[m]) }}, {"worst", func(m string) float64 { return most[m] }}} {
		cells := []string{line.name, "others", ""}
		for _, m := range modes {
			if n[m] == 0 {
				cells = append(cells, "–")
			} else {
				cells = append(cells, fmt.Sprintf("%.1f %%", 100*line.of(m)))
			}
		}
		t.Add(cells...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	said := map[string]bool{}
	for _, row := range r.Rows {
		for _, m := range modes {
			if why := row.Failed[m]; why != "" && !said[m+why] {
				said[m+why] = true
				fmt.Fprintf(w, "%s of %s on %s: %s\n", m, row.App, row.Store, report.Printable(why))
			}
		}
	}
	for _, s := range Stores {
		if why := r.Skipped[s.Name]; why != "" {
			fmt.Fprintf(w, "no %s: %s\n", s.Name, report.Printable(why))
		}
	}
	return nil
}
