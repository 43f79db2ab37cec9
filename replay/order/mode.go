// SPDX-License-Identifier: Apache-2.0

package order

import "fmt"

// Mode is how much of the recorded order a replay keeps.
type Mode uint8

// The modes, from the strictest.
const (
	// Recorded does one task after the other, in the plan's order.
	Recorded Mode = iota
	// Overlap begins a task when all that had returned before it was made are done, as
	// Re-Animator does (Akgun et al., SYSTOR 2020, section 4.3); of tasks that overlapped, those
	// that access one resource keep the plan's order.
	Overlap
	// Resource keeps the order of a thread, and on each resource.
	Resource
	// Causal is Resource, and the waits of a tape's annotations.
	Causal
)

var modeNames = [...]string{"recorded", "overlap", "resource", "causal"}

// String returns the mode's name.
func (m Mode) String() string { return modeNames[m] }

// ParseMode returns the mode with a name.
func ParseMode(s string) (Mode, error) {
	for i, n := range modeNames {
		if s == n {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("order %q is neither recorded, overlap, resource nor causal", s)
}
