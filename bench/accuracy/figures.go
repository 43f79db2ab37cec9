// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
)

// Figure is one of the paper's, as a table and, if it can be drawn, pictures.
type Figure struct {
	Name, Title, Note string
	Table             *page.Table
	Pictures          []page.Block
}

// modes lists the ways to replay that there are figures of, the plain ones first.
func (r *Report) modes() (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, name := range append([]string{again}, modeNames()...) {
		for _, row := range r.Rows {
			if _, ok := row.Error[name]; ok || row.Failed[name] != "" {
				add(name)
			}
		}
	}
	for _, row := range r.Rows {
		for _, n := range row.Notes {
			if _, ok := row.Error[n.Mode]; n.Held == n.Nodes && ok {
				add(n.Mode)
			}
		}
	}
	return names
}

func modeNames() (names []string) {
	for _, m := range Modes {
		names = append(names, m.Name)
	}
	return names
}

// apps lists the applications.
func (r *Report) apps() (names []string) {
	for _, row := range r.Rows {
		if !slices.Contains(names, row.App) {
			names = append(names, row.App)
		}
	}
	return names
}

// elsewhere reports whether a row is of a storage system that its application was not
// recorded on: only these say something of replays.
func (r *Report) elsewhere(row *Row) bool { return row.Store != r.Traced }

// mean returns the mean and the largest error of an application, "" for all, in a mode:
// over the storage systems that it was not recorded on.
func (r *Report) mean(app, mode string) (mean, worst float64, n int) {
	return r.over(mode, func(row *Row) bool { return app == "" || row.App == app })
}

// over is mean over the rows that are picked.
func (r *Report) over(mode string, pick func(*Row) bool) (mean, worst float64, n int) {
	for _, row := range r.Rows {
		e, ok := row.Error[mode]
		if !ok || !r.elsewhere(row) || !pick(row) {
			continue
		}
		mean += math.Abs(e)
		worst = max(worst, math.Abs(e))
		n++
	}
	return mean / float64(max(n, 1)), worst, n
}

// cell is a mode's error and, of several turns, its spread.
func (r *Row) cell(mode string) string {
	e, ok := r.Error[mode]
	if !ok {
		return "–"
	}
	text := fmt.Sprintf("%+.1f %%", 100*e)
	if least, most := r.Least[mode], r.Most[mode]; least < most {
		text += fmt.Sprintf(" (%+.1f..%+.1f)", 100*least, 100*most)
	}
	return text
}

func percent(v float64, n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

// Figures makes the paper's figures.
func (r *Report) Figures() []Figure {
	figures := []Figure{r.summary(), r.errors(), r.periods(), r.sampling(), r.cost()}
	return append(figures, r.bandwidths()...)
}

// The goals, for causal replays where wake-ups are visible.
const goalMean, goalWorst = .03, .08

// groups are what errors are summed up by.
var groups = []struct {
	name string
	goal bool
	pick func(*Row) bool
}{
	{"wake-ups show, the same work", true, func(row *Row) bool { return row.visible() && row.Does.Same() }},
	{"wake-ups show, all", true, (*Row).visible},
	{"spin and mpi, the same work", false, func(row *Row) bool { return !row.visible() && row.Does.Same() }},
	{"spin and mpi, all", false, func(row *Row) bool { return !row.visible() }},
}

func (r *Row) visible() bool {
	_, sync, _ := strings.Cut(r.App, "/")
	return (&App{Sync: sync}).visible()
}

// summary is the errors by group, against the goals.
func (r *Report) summary() Figure {
	f := Figure{Name: "summary", Title: "Mean and worst error", Note: fmt.Sprintf(
		"Over the storage systems that were not recorded on. Again: of the application's second run in a turn, "+
			"against its first. The same work: there, an application makes as many calls with data and as many "+
			"flushes, and moves as many bytes, as recorded, within %.0f %%. The goals, mean below %.0f %% and worst "+
			"below %.0f %%, are for causal replays where wake-ups show.",
		100*Tolerance, 100*goalMean, 100*goalWorst)}
	t := &page.Table{Head: []string{"applications", "mode", "rows", "mean", "worst", "goals"}, Left: 2}
	for _, g := range groups {
		for _, mode := range r.modes() {
			mean, worst, n := r.over(mode, g.pick)
			if n == 0 {
				continue
			}
			goals := ""
			if g.goal && mode == "causal" {
				goals = verdict("mean", mean, goalMean) + ", " + verdict("worst", worst, goalWorst)
			}
			t.Add(g.name, mode, fmt.Sprint(n), percent(mean, n), percent(worst, n), goals)
		}
	}
	f.Table = t
	return f
}

func verdict(what string, v, goal float64) string {
	if v < goal {
		return what + " reached"
	}
	return what + " missed"
}

// errors is Figure 8.
func (r *Report) errors() Figure {
	f := Figure{Name: "figure-8", Title: "Error by application and storage system", Note: fmt.Sprintf(
		"Of the replay's time against the application's: the median of the turns, of which each is a recording on "+
			"%s, a run, its replays, and a run again, right after each other; and from the least to the largest. The "+
			"application's time is the mean of both runs; again: the second's difference from the first. "+
			"Does: calls with data, flushes, and bytes, of the application there, of those recorded. %d ranks, of "+
			"spin and mpi %d; mean and worst are over the other storage systems.", r.Traced, r.Ranks, r.Polling)}
	modes := r.modes()
	if i := slices.IndexFunc(modes, func(m string) bool { return strings.HasPrefix(m, "throttle ") }); i >= 0 {
		modes = modes[:i+1] // with what discover says before it; the other periods are Figure 9
	}
	t := &page.Table{Head: append([]string{"application", "storage", "does", "runs for"}, modes...), Left: 2}
	for _, row := range r.Rows {
		cells := []string{row.App, row.Store, row.Does.String(), report.Duration(row.AppNS)}
		for _, m := range modes {
			cells = append(cells, row.cell(m))
		}
		t.Add(cells...)
	}
	mean, worst := []string{"mean", "others", "", ""}, []string{"worst", "others", "", ""}
	for _, m := range modes {
		a, b, n := r.mean("", m)
		mean, worst = append(mean, percent(a, n)), append(worst, percent(b, n))
	}
	t.Add(mean...)
	t.Add(worst...)
	f.Table = t
	f.Pictures = r.errorBars(modes)
	return f
}

// allNotes are the annotations of an application.
func (r *Report) allNotes(app string) (list []*Notes) {
	for _, row := range r.Rows {
		for _, n := range row.Notes {
			if row.App == app && !slices.ContainsFunc(list, func(o *Notes) bool { return o.Mode == n.Mode }) {
				list = append(list, n)
			}
		}
	}
	return list
}

// notes are those that were made by holding nodes alone.
func (r *Report) notes(app string) []*Notes {
	return slices.DeleteFunc(r.allNotes(app), func(n *Notes) bool { return n.Period == 0 })
}

// periods is Figure 9.
func (r *Report) periods() Figure {
	f := Figure{Name: "figure-9", Title: "Sampling calls: error and tracing time by period",
		Note: "All nodes are held, each in a run of its own, at each P-th call. Tracing time is that of all runs, as " +
			"a multiple of the application's own. In the last two columns the replay also knows what one recording " +
			"shows: discover, without --alone."}
	t := &page.Table{Head: []string{"application", "period", "nodes", "dependencies", "tracing", "multiple",
		"mean error", "worst", "discover", "worst"}, Left: 1}
	var labels []string
	byKind := curves{}
	for _, app := range r.apps() {
		var values []float64
		for _, n := range r.notes(app) {
			if n.Held != n.Nodes {
				continue
			}
			a, b, count := r.mean(app, n.Mode)
			both, most, rows := r.mean(app, discoverMode(n.Period))
			t.Add(app, report.Count(uint64(n.Period)), fmt.Sprint(n.Nodes), report.Count(uint64(n.Found)),
				report.Duration(n.TraceNS), fmt.Sprintf("%.1f", n.Times), percent(a, count), percent(b, count),
				percent(both, rows), percent(most, rows))
			label := fmt.Sprint(n.Period)
			if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
			if count > 0 {
				values = append(values, 100*a)
			}
		}
		byKind.add(app, values)
	}
	f.Table = t
	f.Pictures = byKind.bars("Mean error by period, of the applications that wait so", labels)
	return f
}

// sampling is Figure 10.
func (r *Report) sampling() Figure {
	f := Figure{Name: "figure-10", Title: "Sampling nodes: error and tracing time by how many are held",
		Note: "They are held in the order of their names. 0 is a replay in the order of threads and files only, with " +
			"the computing."}
	t := &page.Table{Head: []string{"application", "nodes held", "of", "dependencies", "multiple",
		"mean error", "worst"}, Left: 1}
	most := 0
	byKind := curves{}
	for _, app := range r.apps() {
		list := r.notes(app)
		if !slices.ContainsFunc(list, func(n *Notes) bool { return n.Held < n.Nodes }) {
			continue
		}
		period := list[0].Period
		list = slices.DeleteFunc(list, func(n *Notes) bool { return n.Period != period })
		slices.SortFunc(list, func(a, b *Notes) int { return a.Held - b.Held })
		var values []float64
		if a, b, count := r.mean(app, "resource"); count > 0 {
			t.Add(app, "0", fmt.Sprint(list[0].Nodes), "0", "1.0", percent(a, count), percent(b, count))
			values = append(values, 100*a)
		}
		drawn := len(values) > 0 // else there is nothing to begin with
		for _, n := range list {
			a, b, count := r.mean(app, n.Mode)
			t.Add(app, fmt.Sprint(n.Held), fmt.Sprint(n.Nodes), report.Count(uint64(n.Found)),
				fmt.Sprintf("%.1f", n.Times), percent(a, count), percent(b, count))
			if drawn && count > 0 {
				values = append(values, 100*a)
			}
		}
		byKind.add(app, values)
		most = max(most, len(values))
	}
	var labels []string
	for i := range most {
		labels = append(labels, fmt.Sprint(i))
	}
	f.Table = t
	f.Pictures = byKind.bars("Mean error by nodes held, of the applications that wait so", labels)
	return f
}

// bandwidths is Figure 1, for each application and storage system.
func (r *Report) bandwidths() (figures []Figure) {
	for _, row := range r.Rows {
		own, ok := row.Rates["application"]
		if !ok || own.BinNS == 0 {
			continue
		}
		chart := &page.Chart{Title: fmt.Sprintf("%s on %s: bandwidth over time", row.App, row.Store),
			X: page.NS, Y: page.BytesRate}
		names := []string{"application"}
		for _, name := range slices.Sorted(maps.Keys(row.Rates)) {
			if name == "afap" || name == "causal" || name == "throttle 1" {
				names = append(names, name)
			}
		}
		longest := int64(0)
		for _, name := range names {
			longest = max(longest, row.Rates[name].BinNS*int64(len(row.Rates[name].Bytes)))
		}
		const steps = 60
		chart.Step = float64(longest) / steps
		t := &page.Table{Head: []string{"", "bytes", "took", "mean"}, Left: 1}
		for _, name := range names {
			rt := row.Rates[name]
			s := page.Series{Name: name, Values: make([]float64, steps)}
			sum := int64(0)
			for i, n := range rt.Bytes {
				spread(s.Values, float64(int64(i)*rt.BinNS)/chart.Step, float64(rt.BinNS)/chart.Step,
					float64(n)/(chart.Step/1e9))
				sum += n
			}
			took := rt.BinNS * int64(len(rt.Bytes))
			t.Add(name, report.Bytes(uint64(sum)), report.Duration(took),
				report.Bytes(uint64(float64(sum)/(float64(max(took, 1))/1e9)))+"/s")
			chart.Series = append(chart.Series, s)
		}
		figures = append(figures,
			Figure{Name: "figure-1-" + strings.NewReplacer("/", "-").Replace(row.App) + "-" + row.Store,
				Title: chart.Title, Note: "Bytes read and written; the application's were recorded there.", Table: t,
				Pictures: []page.Block{chart}})
	}
	return figures
}

// spread adds an amount to the values over which a part of the time goes, from a place in
// steps on and so many steps long.
func spread(values []float64, from, long, amount float64) {
	for at := from; at < from+long-1e-9; {
		next := min(math.Floor(at+1e-9)+1, from+long)
		values[min(int(at+1e-9), len(values)-1)] += amount * (next - at) / long
		at = next
	}
}
