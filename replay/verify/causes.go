// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"path"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/plan"
)

// causes is which results differed first on what: what differs later on the same is
// put down to them.
type causes struct {
	names   map[string]uint64 // by path, the event's number + 1
	handles map[*plan.Handle]uint64
}

// maxCauses bounds what is remembered of a replay that goes wrong everywhere.
const maxCauses = 1 << 16

func newCauses() causes { return causes{map[string]uint64{}, map[*plan.Handle]uint64{}} }

// find returns the number + 1 of the first difference that another one may follow from:
// on one of its open files, on its names, or on a directory of these. 0 is none.
func (c *causes) find(names []string, handles []*plan.Handle) uint64 {
	first := uint64(0)
	consider := func(n uint64) {
		if n != 0 && (first == 0 || n < first) {
			first = n
		}
	}
	for _, h := range handles {
		consider(c.handles[h])
	}
	if len(c.names) == 0 {
		return first
	}
	for _, n := range names {
		for ; n != "/" && n != "." && n != ""; n = path.Dir(n) {
			consider(c.names[n])
		}
	}
	return first
}

// remember notes what a difference was on.
func (c *causes) remember(number uint64, names []string, handles []*plan.Handle) {
	if len(c.names)+len(c.handles) > maxCauses {
		return
	}
	for _, n := range names {
		if c.names[n] == 0 {
			c.names[n] = number
		}
	}
	for _, h := range handles {
		if c.handles[h] == 0 {
			c.handles[h] = number
		}
	}
}

// alters reports whether a call that came out differently leaves something else behind
// than it did in the recording, from which other differences follow.
func alters(ev *event.Event, field string) bool {
	switch ev.Spec().Class {
	case event.Namespace:
		return ev.Effect() != event.EffectList
	case event.Descriptor:
		return true
	case event.Meta:
		for i := range ev.Spec().Args {
			if ev.Spec().Args[i].Dir == event.Out && ev.Spec().Args[i].Kind.IsMemory() {
				return false
			}
		}
		return true
	case event.Data:
		return ev.Traffic().Writes || field != "content"
	}
	return false
}
