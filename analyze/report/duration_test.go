// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"testing"
)

func TestDuration(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 ns", -5: "-5 ns", 12_340: "12.3 µs", 2_000_000_000: "2.00 s",
		math.MinInt64: "-9,223,372,037 s", // has no opposite
	} {
		if got := Duration(ns); got != want {
			t.Errorf("Duration(%d) = %q, want %q", ns, got, want)
		}
	}
}
