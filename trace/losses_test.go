// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/trace"
)

// TestLosses: every reason that a stream can tell is listed with its words, in the order of the numbers,
// and no input makes the list long.
func TestLosses(t *testing.T) {
	records := map[uint32]uint64{trace.LossUnseen: 2, trace.LossRing: 1, trace.LossDisk: 0, trace.LossStalled: 3,
		trace.LossPages: 4}
	want := []trace.Loss{{Reason: "the ring was full", Records: 1},
		{Reason: "pages of mapped files could not be looked up", Records: 4},
		{Reason: "requests to io_uring and AIO could not be seen", Records: 2},
		{Reason: "the output accepted nothing", Records: 3}}
	if diff := cmp.Diff(want, trace.Losses(records)); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
	for reason := trace.LossRing; reason <= trace.LossHung; reason++ {
		if words := trace.LossReason(reason); strings.HasPrefix(words, "reason ") {
			t.Errorf("reason %d has no words: %q", reason, words)
		}
	}
	many := map[uint32]uint64{}
	for i := range uint32(1000) {
		many[1000+i] = 1
	}
	list, sum := trace.Losses(many), uint64(0)
	for _, l := range list {
		sum += l.Records
	}
	if len(list) != 32 || sum != 1000 {
		t.Errorf("1000 reasons of one record each: %d rows of %d records, want 32 of 1000", len(list), sum)
	}
}
