// SPDX-License-Identifier: Apache-2.0

package options

import "fmt"

// Pace says when a call is made that could be.
type Pace string

// The paces.
const (
	// PaceAFAP makes calls as fast as possible: at once.
	PaceAFAP Pace = "afap"
	// PaceThink computes between the calls of a thread for as long as the recorded
	// thread did: for the CPU time that it used, and at most for the time that went by.
	PaceThink Pace = "think"
	// PaceRecorded makes calls at their recorded times, counted from the first event.
	PaceRecorded Pace = "recorded"
)

// ParsePace returns the pace with a name.
func ParsePace(s string) (Pace, error) {
	switch p := Pace(s); p {
	case PaceAFAP, PaceThink, PaceRecorded:
		return p, nil
	}
	return "", fmt.Errorf("pace %q is neither afap, think nor recorded", s)
}
