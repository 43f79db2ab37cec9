// SPDX-License-Identifier: Apache-2.0

package happens

import "github.com/iotape/iotape/trace"

// First is when something first happened on a host.
type First struct {
	NS    int64 // monotonic time of the host, ns
	Known bool  // false: nothing happened there
}

// Align puts the hosts' times beside each other: by their wall clocks, and what messages say of
// the differences of those. It returns what is added to each host's monotonic times, ns; the
// earliest event is at 0. A host without a wall clock begins with the others. skews may be nil.
func Align(hosts []trace.Host, firsts []First, skews []Skew) []int64 {
	shifts := make([]int64, len(hosts))
	origin, known := int64(0), false
	for i := range hosts {
		if hosts[i].WallNS == 0 {
			continue
		}
		shifts[i] = hosts[i].Wall(0)
		if i < len(skews) && skews[i].Bounded() {
			shifts[i] -= skews[i].NS
		}
		if at := firsts[i].NS + shifts[i]; firsts[i].Known && (!known || at < origin) {
			origin, known = at, true
		}
	}
	for i := range hosts {
		switch {
		case hosts[i].WallNS != 0:
			shifts[i] -= origin
		case firsts[i].Known:
			shifts[i] = -firsts[i].NS
		}
	}
	return shifts
}
