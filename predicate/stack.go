// SPDX-License-Identifier: Apache-2.0

package predicate

import "github.com/iotape/iotape/event"

// stack reports whether a function of an event's stack, or the file that it is in, fits.
func (m *Matcher) stack(s *step, ev *event.Event) bool {
	if ev.Stack == nil {
		return false
	}
	for i := range ev.Stack.Frames {
		f := &ev.Stack.Frames[i]
		if f.Function != "" && m.fits(s, f.Function) || f.Module != "" && m.fits(s, f.Module) {
			return true
		}
	}
	return false
}
