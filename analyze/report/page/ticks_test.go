// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/report/page"
)

var tickText = regexp.MustCompile(`class="tick"[^>]*>([^<]*)<`)

// ticksOf returns the labels of a drawing.
func ticksOf(t *testing.T, block page.Block) []string {
	t.Helper()
	p := page.Page{Sections: []page.Section{{ID: "x", Blocks: []page.Block{block}}}}
	var list []string
	for _, m := range tickText.FindAllStringSubmatch(p.Body(), -1) {
		list = append(list, m[1])
	}
	return list
}

// Scales are in round numbers with units, whatever the values are.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		top   float64
		y     page.Unit
		steps int
		step  float64
		want  []string
	}{
		{9.7e6, page.BytesRate, 17, 1e8, []string{"0 B/s", "4 MiB/s", "8 MiB/s", "12 MiB/s", "0 s", "500 ms", "1 s", "1.5 s"}},
		{2e9, page.BytesRate, 2, 1e6, []string{"0 B/s", "512 MiB/s", "1 GiB/s", "1.5 GiB/s", "2 GiB/s", "0 s", "500 µs", "1 ms",
			"1.5 ms", "2 ms"}},
		{3, page.Plain, 10, 1e3, []string{"0", "1", "2", "3", "0 s", "2 µs", "4 µs", "6 µs", "8 µs", "10 µs"}},
		{1, page.Plain, 3, 1, []string{"0", "1", "0 s", "1 ns", "2 ns", "3 ns"}},
		{0.37, page.Percent, 2, 5e9, []string{"0 %", "0.1 %", "0.2 %", "0.3 %", "0.4 %", "0 s", "2 s", "4 s", "6 s", "8 s",
			"10 s"}},
		{73211, page.Plain, 4, 1e12, []string{"0", "20,000", "40,000", "60,000", "80,000", "0 s", "500 s", "1,000 s", "1,500 s",
			"2,000 s", "2,500 s", "3,000 s", "3,500 s", "4,000 s"}},
	} {
		values := make([]float64, c.steps)
		values[0] = c.top
		got := ticksOf(t, &page.Chart{Title: "x", X: page.NS, Y: c.y, Step: c.step,
			Series: []page.Series{{Name: "a", Values: values}}})
		if !slices.Equal(got, c.want) {
			t.Errorf("%v %v over %d of %v ns: got the labels %q, want %q", c.top, c.y, c.steps, c.step, got, c.want)
		}
	}
}

// Of labels that have no room, some are left out.
func TestBarLabels(t *testing.T) {
	bars := &page.Bars{Title: "x", Series: []page.Series{{Name: "a"}}}
	for i := range 40 {
		bars.Labels = append(bars.Labels, fmt.Sprintf("%d KiB and more", i))
		bars.Series[0].Values = append(bars.Series[0].Values, 1)
	}
	var got []string
	for _, l := range ticksOf(t, bars) {
		if strings.Contains(l, "KiB") {
			got = append(got, l)
		}
	}
	if len(got) < 5 || len(got) > 8 || got[0] != bars.Labels[0] {
		t.Errorf("got %d labels %q, want 5 to 8 of 40, with the first", len(got), got)
	}
}
