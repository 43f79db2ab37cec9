// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"cmp"
	"maps"
	"slices"
)

// Threads returns all followed threads: by process, its first thread in front.
func (m *Model) Threads() []*Thread {
	all := slices.Collect(maps.Values(m.threads))
	slices.SortFunc(all, func(a, b *Thread) int {
		if a.PID != b.PID {
			return cmp.Compare(a.PID, b.PID)
		}
		if first := a.TID == a.PID; first != (b.TID == b.PID) {
			if first {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.TID, b.TID)
	})
	return all
}

// Numbers returns the open descriptors of a table, ascending.
func (t *Table) Numbers() []int32 { return slices.Sorted(maps.Keys(t.slots)) }
