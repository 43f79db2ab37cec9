// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
)

// TestLocks has calls of several threads on the locks of one file, in the plan's order, and
// which of them wait for which, directly or through others.
func TestLocks(t *testing.T) {
	const shared, exclusive, back = 1, 2, 8
	flock := func(slot int, how uint64, e syscall.Errno) (int, act) {
		return slot, act{op: event.OpFlock, ino: 5, open: event.OpenID(slot + 1), errno: e, args: [6]uint64{0, how}}
	}
	type step struct {
		slot int
		act
	}
	does := func(slot int, a act) step { return step{slot, a} }
	for _, c := range []struct {
		name  string
		steps []step
		waits map[[2]int]bool // of the first, for the second
	}{
		{"two that share, and one that has it alone then",
			[]step{does(flock(0, shared, 0)), does(flock(1, shared, 0)), does(flock(0, back, 0)),
				does(flock(1, back, 0)), does(flock(2, exclusive, 0))},
			map[[2]int]bool{{4, 2}: true, {4, 3}: true, {3, 2}: false}},
		{"refused before others were granted one, and given back",
			[]step{does(flock(0, shared, 0)), does(flock(1, exclusive, syscall.EAGAIN)), does(flock(2, shared, 0)),
				does(flock(3, shared, 0)), does(flock(0, back, 0))},
			map[[2]int]bool{{4, 1}: true, {4, 3}: false}},
		{"granted in the plan before it was given back",
			[]step{does(flock(0, exclusive, 0)), does(flock(1, exclusive, 0)), does(flock(0, back, 0)),
				does(flock(2, exclusive, 0))},
			map[[2]int]bool{{2, 1}: false, {3, 1}: true, {3, 2}: true}},
		{"refused, and given back",
			[]step{does(flock(0, exclusive, 0)), does(flock(1, exclusive, syscall.EAGAIN)), does(flock(0, back, 0)),
				does(flock(1, exclusive, 0))},
			map[[2]int]bool{{1, 0}: true, {2, 1}: true, {3, 2}: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := New(Resource)
			var refs []Ref
			after := map[Ref]map[Ref]bool{}
			last := map[uint32]Ref{}
			place := func(slot int, a act) Ref {
				ref, deps := o.Place(uint32(slot), a.event(uint32(slot), int64(len(refs)), int64(len(refs)+100)), true,
					nil)
				after[ref] = map[Ref]bool{}
				for _, d := range append([]Ref{last[ref.Slot]}, deps...) {
					after[ref][d] = true
					for dd := range after[d] {
						after[ref][dd] = true
					}
				}
				last[ref.Slot] = ref
				return ref
			}
			for slot := range 4 {
				place(slot, opens("/f", 5, event.OpenID(slot+1)))
			}
			for _, s := range c.steps {
				refs = append(refs, place(s.slot, s.act))
			}
			for pair, want := range c.waits {
				if got := after[refs[pair[0]]][refs[pair[1]]]; got != want {
					t.Errorf("%v waits for %v: %v", fmt.Sprint(pair[0]), pair[1], got)
				}
			}
		})
	}
}
