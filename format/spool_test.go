// SPDX-License-Identifier: Apache-2.0

package format

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestSpool: records come back in the order of their times, and those of one time as they came, whether the
// index is of one part or of many.
func TestSpool(t *testing.T) {
	defer func(was int) { maxPart = was }(maxPart)
	for _, tt := range []struct{ part, records int }{{1000, 0}, {1000, 300}, {7, 6}, {7, 7}, {7, 300}} {
		maxPart = tt.part
		dir := t.TempDir()
		s, err := newSpool(dir)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, uint64(tt.records)))
		var want []spooled
		for i := range tt.records {
			k := spooled{time: uint64(r.IntN(50)), offset: int64(i) * 8, length: 8}
			want = append(want, k)
			if err := s.add(k.time, 0, 8); err != nil {
				t.Fatal(err)
			}
			if err := s.append(binary.LittleEndian.AppendUint64(nil, uint64(i))); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortStableFunc(want, func(a, b spooled) int { return cmp.Compare(a.time, b.time) })
		var got []spooled
		err = s.each(func(p *spooled) error {
			var b [8]byte
			if _, err := s.records.ReadAt(b[:], p.offset); err != nil {
				return err
			}
			if n := int64(binary.LittleEndian.Uint64(b[:])) * 8; n != p.offset {
				t.Errorf("at %d is the record of %d", p.offset, n)
			}
			got = append(got, *p)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("parts of %d, %d records: %v, want %v", tt.part, tt.records, got, want)
		}
		s.close()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v, %v are left behind", left, err)
		}
	}
}
