// SPDX-License-Identifier: Apache-2.0

package order

import "github.com/iotape/iotape/event"

// horizon is how many tasks a task is compared with, by time; it waits for all that
// are further back.
const horizon = 4096

// interval is the order of what did not overlap.
type interval struct {
	n     uint64 // tasks placed
	exits [horizon]int64
	refs  [horizon]Ref
	// gone is, by slot, the last task that fell out of the ring.
	gone []uint64
	// from is, by slot, the first task that one of the slot may not yet wait for: all
	// before it had returned.
	from []uint64
}

// place makes a task wait for those that had returned before it was made.
func (v *interval) place(o *Order, ev *event.Event) {
	for len(v.from) < len(o.slots) {
		v.from, v.gone = append(v.from, 0), append(v.gone, 0)
	}
	from := v.from[o.self.Slot]
	whole := true
	if v.n > horizon && from < v.n-horizon {
		from = v.n - horizon
		for i, pos := range v.gone {
			o.wait(Ref{uint32(i), pos})
		}
	}
	first := from
	for i := from; i < v.n; i++ {
		k := i % horizon
		if v.exits[k] < ev.Enter {
			o.wait(v.refs[k])
			if whole {
				first = i + 1
			}
		} else {
			whole = false
		}
	}
	v.from[o.self.Slot] = first
	k := v.n % horizon
	if v.n >= horizon {
		v.gone[v.refs[k].Slot] = v.refs[k].Pos
	}
	v.exits[k], v.refs[k] = ev.Exit, o.self
	v.n++
}
