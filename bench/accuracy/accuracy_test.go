// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/internal/testenv"
)

// TestSmallStudy makes a study that is too small to say anything, but runs everything.
func TestSmallStudy(t *testing.T) {
	testenv.Short(t, "builds programs and runs them")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "gcc")
	r, err := Run(t.Context(), Options{
		Iotape: testenv.Iotape(t), Dir: t.TempDir(), Memory: t.TempDir(), Apps: []string{"pseudosyncdat"},
		Stores: []string{"disk", "arm"},
		Modes:  []string{"causal", "throttle"}, Syncs: []string{"spin"}, Periods: []int{2}, Sampling: true, Ranks: 3,
		Polling: 3, Scale: 0.05, Repeat: 1, Rates: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows)+len(r.Skipped) != 2 {
		t.Errorf("%d rows, skipped %v", len(r.Rows), r.Skipped)
	}
	for _, row := range r.Rows {
		if row.AppNS <= 0 || len(row.Failed) > 0 || len(row.Rates["application"].Bytes) == 0 {
			t.Errorf("%+v", row)
		}
		if row.Does == nil || !row.Does.Same() {
			t.Errorf("%s does %v: its ranks make the same calls everywhere", row.Store, row.Does)
		}
		for _, mode := range []string{"causal", "discover 2", "throttle 2", "throttle 2, 1 of 3 nodes",
			"throttle 2, 2 of 3 nodes"} {
			if _, ok := row.Error[mode]; !ok {
				t.Errorf("%s on %s: no figure; %v", mode, row.Store, row.Error)
			}
		}
		for _, n := range row.Notes {
			if n.Period > 0 && (n.Found == 0 || n.TraceNS <= 0) {
				t.Errorf("%+v", n)
			}
		}
	}
}

// sample is a report of one application that waits by spinning.
func sample() *Report {
	wake, all := &Notes{Mode: "causal", TraceNS: 1e9, Times: 1},
		&Notes{Mode: "throttle 1", Period: 1, Held: 2, Nodes: 2, TraceNS: 9e9, Times: 9, Found: 14}
	one, few := &Notes{Mode: "throttle 1, 1 of 2 nodes", Period: 1, Held: 1, Nodes: 2, TraceNS: 5e9, Times: 5,
		Found: 7}, &Notes{Mode: "throttle 100", Period: 100, Held: 2, Nodes: 2, TraceNS: 2e9, Times: 2, Found: 2}
	notes := []*Notes{wake, all, one, few}
	same, other := &Does{Data: 1, Flushes: 1, Bytes: 1}, &Does{Data: 1, Flushes: .85, Bytes: 1}
	return &Report{Version: reportVersion, Traced: "disk", Ranks: 2, Polling: 2,
		Skipped: map[string]string{"arm": "no fuse"}, LeftOut: []string{"make"}, Rows: []*Row{
			{App: "quake/spin", Store: "disk", AppNS: 1e9, Notes: notes, Error: map[string]float64{"afap": 0.5, "causal": 0.5, "throttle 1": 0.1}},
			{App: "quake/spin", Store: "throttled", AppNS: 2e9, Notes: notes, Does: same, Least: map[string]float64{"causal": .3}, Most: map[string]float64{"causal": .4}, Error: map[string]float64{"afap": -0.5, "causal": 0.31, "throttle 1": -0.01, "throttle 1, 1 of 2 nodes": .1, "throttle 100": .2}},
			{App: "postgres", Store: "channels", AppNS: 1e9, Does: other, Error: map[string]float64{"causal": -.5}},
			{App: "make", Store: "channels", AppNS: 1e9, Does: same, Error: map[string]float64{"causal": -.02}},
			{App: "quake/spin", Store: "channels", AppNS: 3e9, Notes: notes, Error: map[string]float64{"afap": 0.25, "causal": 0.29, "throttle 1": 0.03, "throttle 1, 1 of 2 nodes": .2}, Failed: map[string]string{"throttle 100": "it hung"},
				Rates: map[string]rate{"application": {BinNS: 1e9, Bytes: []int64{1 << 20, 0, 1 << 20}}, "causal": {BinNS: 1e9, Bytes: []int64{1 << 20, 1 << 20}}}},
		}}
}

func TestFigures(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Page().Text(&b); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(` +`).ReplaceAllString(b.String(), " ")
	for _, want := range []string{
		"mean others 37.5 % 28.0 % 2.0 %\n",
		"worst others 50.0 % 50.0 % 3.0 %\n",
		"quake/spin throttled 100/100/100 % 2.00 s -50.0 % +31.0 % (+30.0..+40.0) -1.0 %\n",
		"postgres channels 100/85/100 % 1.00 s – -50.0 % –\n",
		"wake-ups show, the same work causal 1 2.0 % 2.0 % mean reached, worst reached\n",
		"wake-ups show, all causal 2 26.0 % 50.0 % mean missed, worst missed\n",
		"spin and mpi, the same work causal 1 31.0 % 31.0 %",
		"quake/spin 1 2 14 9.00 s 9.0 2.0 % 3.0 % – –\n", // by period
		"quake/spin 1 2 7 5.0 15.0 % 20.0 %",             // by nodes
		"no arm: no fuse\n", "not measured: make\n", "throttle 100 of quake/spin on channels: it hung\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	// What costs more and is worse than something else does not stand in Figure 11.
	figures := sample().Figures()
	i := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == "figure-11" })
	var modes []string
	for _, row := range figures[i].Table.Rows {
		modes = append(modes, row[1])
	}
	if got := strings.Join(modes, ", "); got != "causal, throttle 100, throttle 1, 1 of 2 nodes, throttle 1" {
		t.Errorf("%s", got)
	}
	for _, f := range figures {
		for _, p := range f.Pictures {
			b.Reset()
			if err := page.SVG(&b, p); err != nil || !strings.HasPrefix(b.String(), "<svg xmlns=") {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
	}
	if names := figures[len(figures)-1].Name; names != "figure-1-quake-spin-channels" {
		t.Error(names)
	}
	b.Reset()
	if err := sample().Tables(&b); err != nil || strings.Count(b.String(), "#### ") != 4 ||
		!strings.Contains(b.String(), "#### Figure-9: ") || !strings.Contains(b.String(), "#### Figure-10: ") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := sample().Markdown(&b); err != nil ||
		!strings.Contains(b.String(), "| mean | others |  |  | 37.5 % | 28.0 % | 2.0 % |\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestReportComesBack: -from reads what was written.
func TestReportComesBack(t *testing.T) {
	b, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read([]byte(`{"version":2}`)); err == nil {
		t.Error("a report of another version was read")
	}
	var was, is bytes.Buffer
	if err := sample().Markdown(&was); err != nil {
		t.Fatal(err)
	}
	if err := r.Markdown(&is); err != nil || is.String() != was.String() {
		t.Errorf("%v\n%s", err, is.String())
	}
}

// TestBetween: only what stands between the lines of a document changes.
func TestBetween(t *testing.T) {
	got, err := Between([]byte("a\n"+beginLine+"old\n"+endLine+"b\n"), []byte("new\n"))
	if want := "a\n" + beginLine + "new\n" + endLine + "b\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, doc := range []string{"", beginLine, endLine + beginLine} {
		if _, err := Between([]byte(doc), nil); err == nil {
			t.Errorf("%q has both lines?", doc)
		}
	}
}
