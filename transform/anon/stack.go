// SPDX-License-Identifier: Apache-2.0

package anon

import "github.com/iotape/iotape/event"

// stack maps a stack: the names of files. Build-ids, by which everybody finds the names of published programs, are
// removed. Names of functions stay. The same stack becomes the same one.
func (m *mapper) stack(s *event.Stack) *event.Stack {
	if s == nil || !m.mapsNames() {
		return s
	}
	if to := m.stacks[s]; to != nil {
		return to
	}
	to := &event.Stack{Frames: make([]event.Frame, len(s.Frames)), End: s.End}
	for i, f := range s.Frames {
		f.Module, f.File = m.path(f.Module), m.path(f.File)
		if !m.back {
			f.BuildID = ""
		}
		to.Frames[i] = f
	}
	if m.stacks == nil || len(m.stacks) >= maxCached {
		m.stacks = map[*event.Stack]*event.Stack{}
	}
	m.stacks[s] = to
	return to
}
