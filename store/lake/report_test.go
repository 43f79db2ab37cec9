// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/store/catalogue"
	"github.com/iotape/iotape/trace"
)

// data returns what --json prints of a section.
func data(t *testing.T, p *page.Page, section string) map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := p.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	var d map[string]any
	if err := json.Unmarshal(b.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[section], &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// numbersOf returns the numbers of a section that a lake and its tapes have in common.
func numbersOf(t *testing.T, section string, d map[string]any) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	add := func(name string, v any) {
		n, ok := v.(float64)
		if !ok {
			t.Fatalf("%s of %s is %v", name, section, v)
		}
		sums[name] += n
	}
	rows := func(list any, key string, names ...string) {
		all, _ := list.([]any)
		for _, r := range all {
			r := r.(map[string]any)
			for _, name := range names {
				add(fmt.Sprint(key, " ", r[key], " ", name), r[name])
			}
		}
	}
	switch section {
	case "tstat":
		add("calls", d["calls"])
		add("failed", d["failed"])
		rows(d["ops"], "op", "calls", "failed")
	case "users":
		rows(d["users"], "uid", "calls", "failed", "read_bytes", "written_bytes", "took_ns", "processes")
	case "patterns":
		add("unused", d["unused"])
		add("unknown", d["unknown"])
		for use, orders := range d["uses"].(map[string]any) {
			for order, cell := range orders.(map[string]any) {
				for name, n := range cell.(map[string]any) {
					add(use+" "+order+" "+name, n)
				}
			}
		}
	case "sessions":
		rows(d["sessions"], "level", "calls", "active", "low", "medium", "high", "length_ns")
	}
	return sums
}

// The summaries of a lake have the numbers of its tapes together, also of tapes that go on over
// midnight, and of ranges.
func TestReports(t *testing.T) {
	midnight := noon.Add(12*time.Hour - 1200*time.Millisecond)
	recorded := tapeOf(t)
	tapes := []*trace.Tape{recorded, made(t, "db1", midnight, 20), made(t, "db2", noon, 40),
		made(t, "db1", noon.Add(-time.Hour), 5)}
	l := lakeAt(t, filepath.Join(t.TempDir(), "lake"), nil)
	for _, tape := range tapes {
		if _, err := l.Add(t.Context(), tape, ""); err != nil {
			t.Fatal(err)
		}
	}
	o := suite.SessionOptions{Interval: time.Second, Activity: 5, Gap: 2}
	want := func(section string, tapes ...*trace.Tape) map[string]float64 {
		sums := map[string]float64{}
		for _, tape := range tapes {
			p, _, err := suite.Collect(t.Context(), tape, &suite.Options{Sections: []string{section}, Sessions: o,
				CallName: stracetext.CallName})
			if err != nil {
				t.Fatal(err)
			}
			for name, n := range numbersOf(t, section, data(t, p, section)) {
				sums[name] += n
			}
		}
		return sums
	}
	second := &Range{Hosts: []string{"db2"}, From: noon.Add(-time.Minute), To: noon.Add(time.Hour)}
	for _, section := range []string{"tstat", "users", "patterns", "sessions"} {
		for _, c := range []struct {
			r     *Range
			tapes []*trace.Tape
		}{{&Range{}, tapes}, {second, tapes[2:3]}, {&Range{Hosts: []string{"none"}}, nil}} {
			if section == "sessions" && len(c.tapes) > 1 {
				continue // a host's tapes are one series there
			}
			p, err := l.Report(t.Context(), section, c.r, o)
			if err != nil {
				t.Fatal(err)
			}
			got := numbersOf(t, section, data(t, p, section))
			for name, n := range want(section, c.tapes...) {
				if got[name] != n {
					t.Errorf("%s of %d tapes: %s is %v, want %v", section, len(c.tapes), name, got[name], n)
				}
				delete(got, name)
			}
			for name, n := range got {
				if n != 0 {
					t.Errorf("%s of %d tapes: %s is %v, which the tapes do not have", section, len(c.tapes), name, n)
				}
			}
			var text strings.Builder
			if err := p.Text(&text); err != nil || !strings.Contains(text.String(), "begin in the range") {
				t.Errorf("%s: %q, %v", section, text.String(), err)
			}
		}
	}
	o.Interval = time.Microsecond
	if _, err := l.Report(t.Context(), "sessions", &Range{}, o); err == nil ||
		!strings.Contains(err.Error(), "choose a longer --interval") {
		t.Errorf("too many intervals: %v", err)
	}
}

// A lake finds the tapes that a catalogue of the same tapes finds.
func TestFind(t *testing.T) {
	l := lakeAt(t, filepath.Join(t.TempDir(), "lake"), nil)
	c := catalogue.Open(filepath.Join(t.TempDir(), "catalogue"))
	for i, host := range []string{"db1", "db2", "db1"} {
		tape := made(t, host, noon.AddDate(0, 0, i), 5*i+1)
		if _, err := l.Add(t.Context(), tape, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := c.AddTape(t.Context(), tape.Dir(), "", suite.Options{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	o := &catalogue.Options{Columns: []string{"id", "host", "start", "calls"}, Sort: "calls"}
	for _, filter := range []string{"", "host = db1", "ops.write > 5", "start >= 2026-05-02 and not host = db2",
		"duration > 1s", "user = 1000 and comm = writer", "p99.read < 1s", "incomplete"} {
		var x *predicate.Expr
		if filter != "" {
			var err error
			if x, err = predicate.Parse(filter); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := c.Find(t.Context(), x, o)
		if err != nil {
			t.Fatal(err)
		}
		want := lines(t, rows)
		rows.Close()
		q, err := catalogue.Statement(x, o)
		if err != nil {
			t.Fatal(err)
		}
		found, err := l.Find(t.Context(), q, &Range{})
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(t, found.Rows); got != want {
			t.Errorf("%q: the lake finds\n%swant\n%s", filter, got, want)
		}
		found.Close()
	}
}
