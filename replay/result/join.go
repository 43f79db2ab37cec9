// SPDX-License-Identifier: Apache-2.0

package result

import "slices"

// Join adds the report of a member of a team. Of the times it only takes how much the
// recording took and how late calls were: the caller knows when each member began.
func (r *Report) Join(part *Report, member string) {
	if r.Timing == nil {
		r.Timing = &Timing{Pace: part.Timing.Pace, Speed: part.Timing.Speed}
	}
	t := r.Timing
	t.RecordedNS = max(t.RecordedNS, part.Timing.RecordedNS)
	t.LagMaxNS, t.Lagging = max(t.LagMaxNS, part.Timing.LagMaxNS), t.Lagging+part.Timing.Lagging
	r.Members = append(r.Members, Member{
		Name: member, Replayed: part.Replayed, Different: part.Different, ReplayedNS: part.Timing.ReplayedNS,
		Ops: part.Ops,
	})
	r.Events += part.Events
	r.Replayed += part.Replayed
	r.Emulated += part.Emulated
	r.Skipped += part.Skipped
	r.Different += part.Different
	r.Following += part.Following
	r.Unexplained += part.Unexplained
	r.Uncompared += part.Uncompared
	r.AddDependent(part.Dependent, part.LeftOut)
	r.Outside += part.Outside
	for _, name := range part.OutsideNames {
		r.AddOutside(0, name)
	}
	r.Overlay += part.Overlay
	for _, dir := range part.OverlayDirs {
		r.AddOverlay(0, dir)
	}
	r.Aborted = r.Aborted || part.Aborted
	r.Confinement.Join(part.Confinement)
	r.LeftOff.Add(part.LeftOff)
	r.Problems = append(r.Problems, part.Problems...)
	if part.First != nil && (r.First == nil || part.First.Seq < r.First.Seq) {
		r.First = part.First
	}
	r.Mismatches = append(r.Mismatches, part.Mismatches...)
	slices.SortFunc(r.Mismatches, func(a, b Mismatch) int { return int(a.Seq) - int(b.Seq) })
	r.Mismatches = r.Mismatches[:min(len(r.Mismatches), MaxMismatches)]
	for _, o := range part.Omitted {
		r.Omit(o)
	}
	for _, k := range part.Kinds {
		i, ok := r.kinds[k.like()]
		if !ok {
			i = len(r.Kinds)
			r.kinds[k.like()] = i
			r.Kinds = append(r.Kinds, Kind{Mismatch: k.Mismatch})
		}
		r.Kinds[i].Count += k.Count
	}
}
