// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"testing"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
)

// TestRequestsLater: the programs for requests may come later only where a thread can wait for
// them, and no queue can be older than the recording or be made by a thread that is not seen.
func TestRequestsLater(t *testing.T) {
	command := []string{"true"}
	for _, tt := range []struct {
		name    string
		options capture.Options
		want    bool
	}{
		{"a command", capture.Options{Command: command}, true},
		{"a command that is not held", capture.Options{Command: command, Overflow: capture.OverflowDrop}, false},
		{"a command with a filter", capture.Options{Command: command, Prefilter: &predicate.Prefilter{}}, false},
		{"the whole machine", capture.Options{All: true}, false},
		{"the whole machine and a command", capture.Options{All: true, Command: command}, false},
		{"running processes", capture.Options{PIDs: []int{1}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newConfig(&tt.options, 1)
			if got := c.requestsLater(); got != tt.want {
				t.Errorf("requestsLater() = %v, want %v", got, tt.want)
			}
		})
	}
}
