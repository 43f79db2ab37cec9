// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/iotape/iotape/event"

// Totals sums up calls.
type Totals struct {
	Calls        uint64 `json:"calls"`
	Errors       uint64 `json:"errors"` // calls that failed
	ReadBytes    uint64 `json:"read_bytes"`
	WrittenBytes uint64 `json:"written_bytes"`
	Syncs        uint64 `json:"syncs"`             // calls of the class sync
	Untimed      uint64 `json:"untimed,omitempty"` // calls whose duration is not known
	TotalNS      int64  `json:"total_ns"`          // spent in calls, over all threads
}

// Add counts a call. It returns how long the call took, as event.Took does.
func (t *Totals) Add(e *event.Event) (took int64, known bool) {
	took, known = e.Took()
	io := e.Traffic()
	t.Calls++
	t.ReadBytes += uint64(io.Read)
	t.WrittenBytes += uint64(io.Written)
	t.TotalNS += took
	if e.Errno != 0 {
		t.Errors++
	}
	if e.Spec().Class == event.Sync {
		t.Syncs++
	}
	if !known {
		t.Untimed++
	}
	return took, known
}
