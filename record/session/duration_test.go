// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/iotape/iotape/record/capture"
)

// TestDurationCountsFromStart sets a recording up for longer than it is to last: the time counts
// from when it records.
func TestDurationCountsFromStart(t *testing.T) {
	p := Plan{Duration: 20 * time.Millisecond}
	told := 0
	o := capture.Options{PIDs: []int{1}, Started: func(int) { told++ }}
	ctx, cancel := p.Context(&o)
	defer cancel()
	time.Sleep(5 * p.Duration) // setting up
	if ctx.Err() != nil {
		t.Fatalf("the recording ended before it began: %v", ctx.Err())
	}
	o.Started(0)
	if told != 1 {
		t.Errorf("Started was passed on %d times, want 1", told)
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Error("the recording does not end")
	}
}
