// SPDX-License-Identifier: Apache-2.0

package histogram

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQuantiles holds the histogram against sorted durations.
func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() int64{
		"small":     func() int64 { return rng.Int64N(100) },
		"uniform":   func() int64 { return rng.Int64N(1e9) },
		"lognormal": func() int64 { return int64(math.Exp(rng.NormFloat64()*3 + 8)) },
		"constant":  func() int64 { return 123_456_789 },
	} {
		var h Histogram
		var all []int64
		for range 20000 {
			v := draw()
			all = append(all, v)
			h.Add(v)
		}
		slices.Sort(all)
		for _, q := range []float64{0.0001, 0.5, 0.9, 0.99, 0.999, 1} {
			want := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
			got := h.Quantile(q)
			if diff := math.Abs(float64(got - want)); diff > 0.01*float64(want) {
				t.Errorf("%s: quantile %v is %d, want %d within 1 %%", name, q, got, want)
			}
		}
	}
	var h Histogram
	h.Add(-5)
	h.Add(math.MaxInt64)
	if h.Quantile(0.5) != 0 || h.Quantile(1) != math.MaxInt64 && h.Quantile(1) < math.MaxInt64/100*99 {
		t.Errorf("extremes: %d, %d", h.Quantile(0.5), h.Quantile(1))
	}
}

// What Buckets gives makes the same quantiles again, but for the longest duration.
func TestBuckets(t *testing.T) {
	var h, again Histogram
	for i := range int64(100_000) {
		h.Add(i * i)
	}
	for ns, n := range h.Buckets() {
		again.AddN(ns, n)
	}
	again.Max = max(again.Max, h.Max)
	if again.Count != h.Count {
		t.Errorf("%d durations, want %d", again.Count, h.Count)
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.95, 0.999, 1} {
		if got, want := again.Quantile(q), h.Quantile(q); got != want {
			t.Errorf("quantile %v: %d, want %d", q, got, want)
		}
	}
}
