// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"strings"
	"testing"
)

// sample is a run that counts.
func sample(round int, ms int64) Sample {
	return Sample{Round: round, ElapsedNS: ms * 1e6, Events: 1000, StreamBytes: 1 << 20, TapeBytes: 1 << 10}
}

// measured is a report as Run makes it, with known times: LevelDB in both ways of
// recording, a build that lost an event, and strace.
func measured() *Report {
	series := func(workload string, class Class, way string, slow bool, samples ...Sample) *Series {
		return &Series{Workload: workload, Title: "the " + workload, Class: class, Size: 10,
			Slow: slow, Way: way, Samples: samples}
	}
	lost := sample(1, 100)
	lost.Lost, lost.Failed = 3, "lost 3 records"
	r := &Report{Version: ReportVersion, Scale: 1, LeftOut: []LeftOut{{"sysdig", "no | driver"}}, Series: []*Series{
		series("db_bench-1t-mmap", Database, "untraced", false, sample(0, 100), sample(1, 200), sample(2, 100)),
		series("db_bench-1t-mmap", Database, "metadata", false, sample(0, 104), sample(1, 208), sample(2, 130)),
		series("db_bench-1t-mmap", Database, "full", false, sample(0, 120), sample(1, 240), sample(2, 115)),
		series("make", Build, "untraced", false, sample(0, 100), sample(1, 100)),
		series("make", Build, "full", false, sample(0, 101), lost),
		series("make", Build, "untraced", true, sample(0, 100)),
		series("make", Build, "strace", true, sample(0, 1500)),
	}}
	r.summarize()
	return r
}

// TestRatio: a ratio is the median of those of the rounds. That of the medians
// would be another.
func TestRatio(t *testing.T) {
	r := measured()
	for _, c := range []struct {
		workload, way string
		slow          bool
		want          Summary
	}{
		{"db_bench-1t-mmap", "untraced", false, Summary{Median: 1, Min: 1, Max: 1}},
		{"db_bench-1t-mmap", "metadata", false, Summary{Median: 1.04, Min: 1.04, Max: 1.3}},
		{"make", "strace", true, Summary{Median: 15, Min: 15, Max: 15}},
		// A run that failed has no ratio.
		{"make", "full", false, Summary{Median: 1.01, Min: 1.01, Max: 1.01}},
	} {
		if got := r.find(c.workload, c.way, c.slow).Ratio; got != c.want {
			t.Errorf("%s, %s: ratio %+v, want %+v", c.workload, c.way, got, c.want)
		}
	}
}

func TestFailures(t *testing.T) {
	got := measured().Failures()
	if len(got) != 1 || got[0] != "the make, full: lost 3 records" {
		t.Errorf("failures are %q", got)
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := measured().Text(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	has := func(words ...string) {
		t.Helper()
		for _, line := range lines {
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, w)
			}
			if all {
				return
			}
		}
		t.Errorf("no line has %q in\n%s", words, b.String())
	}
	has("db_bench-1t-mmap", "100 ms (100–200)", "1.04 (1.04–1.30)", "≤ 1.05 ", "1.20 (1.15–1.20)",
		"≤ 1.15 missed", "1.8–2.3")
	has("make", "failed", "≤ 1.02")
	has("make", "15 (15–15)")
	has("median of the programs", "≤ 1.10 missed") // of those that did not fail
	has("Failed: the make, full: lost 3 records")
	has("Left out: sysdig: no | driver")
}

func TestMarkdown(t *testing.T) {
	doc := "# Speed\n\n" + beginMark + "old\n" + endMark + "\nMore.\n"
	for range 2 { // replacing is repeatable
		out, err := Replace([]byte(doc), measured().Markdown())
		if err != nil {
			t.Fatal(err)
		}
		doc = string(out)
	}
	if !strings.HasPrefix(doc, "# Speed\n\n"+beginMark) || !strings.HasSuffix(doc, endMark+"\nMore.\n") {
		t.Errorf("what stands around the marks has changed:\n%s", doc)
	}
	if strings.Contains(doc, "old\n") || strings.Count(doc, "### What recording costs") != 1 {
		t.Errorf("not replaced:\n%s", doc)
	}
	if !strings.Contains(doc, `no \| driver`) {
		t.Errorf("a bar is not escaped:\n%s", doc)
	}
	columns := 0
	for _, line := range strings.Split(doc, "\n") {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		if n := strings.Count(line, "|"); columns != 0 && n != columns {
			t.Errorf("a row of %d columns in a table of %d: %s", n-1, columns-1, line)
		} else {
			columns = n
		}
	}
}

func TestReplaceWithoutMarks(t *testing.T) {
	for _, doc := range []string{"", beginMark, endMark + beginMark} {
		if _, err := Replace([]byte(doc), []byte("x\n")); err == nil {
			t.Errorf("replaced in %q", doc)
		}
	}
}

func TestReadReport(t *testing.T) {
	var first, second bytes.Buffer
	if err := measured().JSON(&first); err != nil {
		t.Fatal(err)
	}
	r, err := ReadReport(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.JSON(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("a report that was written and read is another")
	}
	for _, bad := range []string{"", "{}", `{"version":2}`, `{"version":1,"series":[null]}`} {
		if _, err := ReadReport(strings.NewReader(bad)); err == nil {
			t.Errorf("read %q", bad)
		}
	}
}

func TestUpdate(t *testing.T) {
	r, later := measured(), measured()
	later.Series = later.Series[3:5] // make, not slow
	later.Series[1].Samples = later.Series[1].Samples[:1]
	later.summarize()
	r.Update(later)
	if f := r.Failures(); len(f) > 0 {
		t.Errorf("what was measured anew still has %q", f)
	}
	if len(r.Series) != 7 || len(r.LeftOut) != 1 {
		t.Errorf("%d series, %d left out", len(r.Series), len(r.LeftOut))
	}
	if r.find("make", "strace", true) == nil {
		t.Error("the slow ways, which were not measured anew, are gone")
	}
}

// TestTargets: a goal for a way or a class that does not exist is a goal nobody sees.
func TestTargets(t *testing.T) {
	for _, target := range targets {
		if _, err := pick([]string{target.way}, Ways(), func(w *Way) string { return w.Name }, "way"); err != nil {
			t.Error(err)
		}
		any := false
		for _, w := range Workloads() {
			any = any || w.Class == target.class
		}
		if !any {
			t.Errorf("no workload is a %s", target.class)
		}
	}
}
