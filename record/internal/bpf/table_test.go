// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
)

// The table has what the programs need to know of a call, at its number.
func TestRows(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		a, ok := event.ParseArch(arch)
		if !ok {
			t.Fatalf("%s is not known", arch)
		}
		table := Rows(a, capture.Content{})
		for _, c := range []struct {
			op                event.Op
			flags, opens      uint16
			moves, name, caps uint8
		}{
			{op: event.OpOpenat, flags: specFDResult, opens: 2 | 3<<8, name: 2, caps: 1},
			{op: event.OpRead, flags: specPosition, moves: movesRead, caps: 1},
			{op: event.OpPwrite64, moves: movesWritten, caps: 1},
			{op: event.OpSendmmsg, flags: specInner | specSends, moves: movesWritten | movesMessages,
				caps: 1},
			{op: event.OpListen, flags: specEnds},
			{op: event.OpExitGroup, flags: specNoReturn},
		} {
			got := table[event.Number(a, c.op)]
			if got.Op != uint16(c.op) || got.Flags != c.flags || got.Opens != c.opens || got.Moves != c.moves ||
				got.Name != c.name || got.Ncaps != c.caps {
				t.Errorf("%s, %v: got row %+v, want %+v", arch, c.op, got, c)
			}
		}
		if got := table[CompatRow-1]; got.Op != uint16(event.OpUnknown) {
			t.Errorf("%s: got row %+v for calls without a number, want none", arch, got)
		}
	}
}

// A test of a suffix is made only if the programs were loaded with it: else the call passes.
func TestPutPrefilterOfOtherSuffixes(t *testing.T) {
	prefilter := func(text string) *predicate.Prefilter {
		g, err := predicate.New(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, undecided := g.Exact()
		if len(undecided) > 0 || len(s.Suffixes) != 1 {
			t.Fatalf("%s: got suffixes %q, undecided %v, want one suffix", text, s.Suffixes, undecided)
		}
		return s
	}
	loaded, other := prefilter("op = write and ext = txt"), prefilter("op = write and ext = log")
	list, n := Suffixes(loaded)
	if n != 1 || list[0].Mask[1]>>32 != 0xffffffff || list[0].Mask[0] != 0 {
		t.Errorf("got %d suffixes, the first %+v, want one of 4 bytes at the end", n, list[0])
	}
	fields := func(s *predicate.Prefilter) map[predicate.PrefilterField]int {
		var shared Common
		PutPrefilter(&shared, s, loaded)
		m := map[predicate.PrefilterField]int{}
		for i := range s.Steps {
			m[predicate.PrefilterField(shared.Prefilter[i].Field)]++
		}
		return m
	}
	if got := fields(loaded)[predicate.PrefilterSuffix]; got != 1 {
		t.Errorf("got %d tests of the suffix that was loaded, want 1", got)
	}
	if got := fields(other)[predicate.PrefilterSuffix]; got != 0 {
		t.Errorf("got %d tests of a suffix that was not loaded, want none", got)
	}
}
