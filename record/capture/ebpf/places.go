// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/internal/bpf"
)

// placesAgain is how long after a look at the machine's control groups the next one is, if calls came from others.
const placesAgain = time.Second

// places keeps the programs' table of control groups, with the tests of the filter that hold in each
// (include/prefilter.h). Groups that were made since the last look are not in it: their calls are
// recorded, and the filter is asked later. Its methods do nothing when it is nil.
type places struct {
	p        *programs
	tests    []predicate.PrefilterPlaces
	known    map[uint64]bool
	unplaced uint64 // what the programs had counted then
	next     time.Time
}

// newPlaces fills the table, if the filter asks where processes run.
func newPlaces(p *programs, c *config) (*places, error) {
	if c.options.Prefilter == nil || len(c.options.Prefilter.Places) == 0 {
		return nil, nil
	}
	l := &places{p: p, tests: c.options.Prefilter.Places, known: map[uint64]bool{}}
	if err := l.look(); err != nil {
		return nil, fmt.Errorf("look at the control groups: %w", err)
	}
	return l, nil
}

// look adds the control groups that there are.
func (l *places) look() error {
	l.unplaced, l.next = atomic.LoadUint64(&l.p.shared.Unplaced), time.Now().Add(placesAgain)
	now := map[uint64]bool{}
	walked := bpf.Cgroups(func(id uint64, path string) {
		now[id] = true
		if l.known[id] {
			return
		}
		var bits uint64
		for i := range l.tests {
			if l.tests[i].Hold(path) {
				bits |= 1 << i
			}
		}
		if l.p.Places.Put(id, bits) != nil {
			delete(now, id) // no room: its calls are let through
		}
	})
	for id := range l.known {
		if !now[id] {
			_ = l.p.Places.Delete(id) // its processes ended, or are in another
		}
	}
	l.known = now
	return walked
}

// refresh looks again if there were calls from groups that are not in the table.
func (l *places) refresh() {
	if l == nil || atomic.LoadUint64(&l.p.shared.Unplaced) == l.unplaced || time.Now().Before(l.next) {
		return
	}
	_ = l.look() // else they are let through, as before
}
