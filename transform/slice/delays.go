// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"math"

	"github.com/iotape/iotape/event"
)

// delays is how long threads waited for a processor in, and before, calls that were left
// out since their last call that was kept, ns.
type delays map[threadKey]uint64

type threadKey struct{ host, tid uint32 }

// leftOut takes an event that is not in the slice.
func (d *delays) leftOut(ev *event.Event) {
	if !ev.TellsDelays() {
		return
	}
	if *d == nil {
		*d = delays{}
	}
	(*d)[threadKey{ev.Host, ev.TID}] += uint64(ev.DelayBefore) + uint64(ev.DelayWithin)
}

// kept makes an event that is say how long its thread waited since the one before in the
// slice.
func (d delays) kept(ev *event.Event) {
	if len(d) == 0 || !ev.TellsDelays() && ev.Kind != event.Exited {
		return
	}
	key := threadKey{ev.Host, ev.TID}
	if ev.Kind == event.Call {
		ev.DelayBefore = uint32(min(d[key]+uint64(ev.DelayBefore), math.MaxUint32))
	}
	delete(d, key)
}
