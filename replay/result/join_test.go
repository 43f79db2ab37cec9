// SPDX-License-Identifier: Apache-2.0

package result

import "testing"

// joined returns the report of a team of two: each made 8 of 10 calls, of which two differed.
func joined() *Report {
	all := New()
	for i, name := range []string{"a", "b"} {
		part := New()
		part.Timing = &Timing{Pace: "afap", Speed: 1, RecordedNS: int64(10 * (i + 1)), LagMaxNS: int64(5 - i)}
		part.Events, part.Replayed, part.Different = 10, 8, 2
		for _, seq := range []uint64{uint64(20 - i), uint64(30 - i)} {
			m := Mismatch{Seq: seq, Op: "write", Field: "result", Expected: "1", Got: "2"}
			if part.First == nil {
				first := m
				part.First = &first
			}
			part.Add(&m)
		}
		all.Join(part, name)
	}
	return all
}

// The reports of a team's members add up.
func TestJoin(t *testing.T) {
	all := joined()
	if all.Events != 20 || all.Replayed != 16 || all.Different != 4 {
		t.Errorf("%d events, %d replayed, %d different, want 20, 16 and 4", all.Events, all.Replayed, all.Different)
	}
	if all.Timing.RecordedNS != 20 || all.Timing.LagMaxNS != 5 {
		t.Errorf("times are %+v, want the longest: 20 and 5 ns", *all.Timing)
	}
	if len(all.Members) != 2 || all.Members[1].Name != "b" || all.OK() {
		t.Errorf("members are %+v, OK is %v", all.Members, all.OK())
	}
}

// Their differences stand in the order of events, each kind once.
func TestJoinDifferences(t *testing.T) {
	all := joined()
	if all.First == nil || all.First.Seq != 19 {
		t.Errorf("the first difference is %+v, want that of event 19", all.First)
	}
	var seqs []uint64
	for _, m := range all.Mismatches {
		seqs = append(seqs, m.Seq)
	}
	if len(seqs) != 4 || seqs[0] != 19 || seqs[1] != 20 || seqs[2] != 29 || seqs[3] != 30 {
		t.Errorf("differences of events %v, want 19 20 29 30", seqs)
	}
	if len(all.Kinds) != 1 || all.Kinds[0].Count != 4 {
		t.Errorf("kinds are %+v, want one, of 4", all.Kinds)
	}
}
