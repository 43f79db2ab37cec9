// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"
)

// A Summary describes a few measurements of one thing.
type Summary struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	MAD    float64 `json:"mad"` // median of the distances from the median
}

// summarize returns the Summary of values; of none it is zero.
func summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	s := Summary{Median: median(values), Min: slices.Min(values), Max: slices.Max(values)}
	apart := make([]float64, len(values))
	for i, v := range values {
		apart[i] = math.Abs(v - s.Median)
	}
	s.MAD = median(apart)
	return s
}

// median returns the middle of values, or the mean of the two in the middle. There
// must be one at least.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
