// SPDX-License-Identifier: Apache-2.0

package bench

import "testing"

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Summary
	}{
		{nil, Summary{}},
		{[]float64{3}, Summary{Median: 3, Min: 3, Max: 3}},
		{[]float64{9, 1, 2}, Summary{Median: 2, Min: 1, Max: 9, MAD: 1}},
		{[]float64{4, 1, 2, 10}, Summary{Median: 3, Min: 1, Max: 10, MAD: 1.5}},
	} {
		before := append([]float64(nil), c.values...)
		if got := summarize(c.values); got != c.want {
			t.Errorf("summarize(%v) = %+v, want %+v", c.values, got, c.want)
		}
		for i := range before {
			if c.values[i] != before[i] {
				t.Errorf("summarize changed its argument to %v", c.values)
			}
		}
	}
}
