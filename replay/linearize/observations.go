// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"github.com/iotape/iotape/event"
)

// observedSize returns the size that the capture found the call's file to have when the call
// returned, -1 if the event has none.
func (s *footprint) observedSize(ev *event.Event) int64 {
	arg := 0
	switch s.class {
	case classOpen:
		arg = event.ResultArg
	case classRead, classWrite, classResize, classSeek:
	default:
		return -1
	}
	f := ev.FileArg(arg)
	if s.file < 0 || s.kind != kindOther || f == nil || !f.Known {
		return -1
	}
	return max(f.Size, -1)
}

// insertObservations returns the calls of a search, in the tape's order. A size that was
// recorded with a call is that at the call's return. If another call may have changed the
// size between the call's effect and its return, the size becomes an observation of its
// own, after the call.
func (r *search) insertObservations(s *state, calls []*slot) []*slot {
	r.list, r.observations = r.list[:0], r.observations[:0]
	for i, sl := range calls {
		r.list = append(r.list, sl)
		if sl.deferred = sl.observed >= 0 && s.overlapped(calls, r.early, i); !sl.deferred {
			continue
		}
		r.observations = append(r.observations, slot{
			n: sl.n, exit: sl.exit, pos: sl.pos, observed: -1, span: span{file: -1}, observation: true,
		})
		look := &r.observations[len(r.observations)-1]
		look.ev.Enter, look.ev.Exit, look.ev.TID = sl.ev.Enter, sl.ev.Exit, sl.ev.TID
		look.footprint = footprint{class: classFstat, file: sl.footprint.file, size: sl.observed, mode: -1, links: -1}
		r.list = append(r.list, nil) // r.observations may be reallocated
	}
	if len(r.observations) == 0 {
		return calls
	}
	n := 0
	for i := range r.list {
		if r.list[i] == nil {
			r.list[i] = &r.observations[n]
			n++
		}
	}
	return r.list
}

// overlapped reports whether another call can have changed the size of the i-th call's file
// between its effect and its return.
func (s *state) overlapped(calls []*slot, early []int64, i int) bool {
	sl := calls[i]
	size := s.files[sl.footprint.file].size
	alters := func(other *slot) bool {
		if other.ev.Enter >= sl.ev.Exit {
			return false
		}
		for _, t := range other.accesses {
			if t.cell == size && (t.mode == accessCommute || t.mode == accessWrite) {
				return true
			}
		}
		return false
	}
	for k := i - 1; k >= 0 && calls[k].exit > sl.ev.Enter; k-- {
		if alters(calls[k]) {
			return true
		}
	}
	for k := i + 1; k < len(calls) && early[k] < sl.ev.Exit; k++ {
		if alters(calls[k]) {
			return true
		}
	}
	return false
}
