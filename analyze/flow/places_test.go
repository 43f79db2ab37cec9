// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"math"
	"testing"

	"github.com/iotape/iotape/trace"
)

// TestExtentsAtTheEnd writes and reads at the last bytes that a file can have, and more than a call can move:
// it ends.
func TestExtentsAtTheEnd(t *testing.T) {
	var x extents
	const last = math.MaxInt64 - 10
	x.put(last, last+9, 7)
	x.put(0, math.MaxInt64, 8)
	got := map[uint32]int64{}
	for _, from := range []int64{0, last} {
		x.each(from, math.MaxInt64, func(a, b int64, move uint32) { got[move] += b - a })
	}
	if got[7] != 9 || got[8] != trace.MaxContentBytes || len(got) != 2 {
		t.Errorf("bytes by move: %v, want 9 of 7 and %d of 8", got, int64(trace.MaxContentBytes))
	}
	if x.cut(last + 5); len(x.parts) == 0 {
		t.Error("all is cut off")
	}
	x.each(last, math.MaxInt64, func(a, b int64, move uint32) {
		if move == 7 && (a != last || b != last+5) {
			t.Errorf("behind the cut %d to %d is left", a-last, b-last)
		}
	})
}
