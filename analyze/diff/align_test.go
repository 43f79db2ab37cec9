// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"math/rand"
	"testing"
)

// longest returns the length of the longest common subsequence.
func longest(a, b []uint64) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func covered(t *testing.T, a, b []uint64, runs []run) (n int) {
	t.Helper()
	endA, endB := 0, 0
	for _, r := range runs {
		if r.a < endA || r.b < endB || r.n <= 0 {
			t.Fatalf("runs %v are out of order", runs)
		}
		for i := range r.n {
			if a[r.a+i] != b[r.b+i] {
				t.Fatalf("run %v is none: %v %v", r, a, b)
			}
		}
		n, endA, endB = n+r.n, r.a+r.n, r.b+r.n
	}
	if endA > len(a) || endB > len(b) {
		t.Fatalf("runs %v go too far", runs)
	}
	return n
}

func sequence(r *rand.Rand, n, kinds int) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = uint64(r.Intn(kinds))
	}
	return s
}

// An alignment pairs equal calls in order, and is as long as can be.
func TestAlign(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 5000 {
		a, b := sequence(r, r.Intn(30), 1+r.Intn(8)), sequence(r, r.Intn(30), 1+r.Intn(8))
		runs, coarse := align(a, b)
		if got, want := covered(t, a, b, runs), longest(a, b); got != want || coarse {
			t.Fatalf("aligned %d of %d: %v %v %v", got, want, a, b, runs)
		}
	}
}

// Where the shortest way is too much work it is said, and what is aligned all the same is
// right, and not much less.
func TestCoarse(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	sum, most := 0, 0
	for range 200 {
		a, b := sequence(r, r.Intn(400), 1+r.Intn(30)), sequence(r, r.Intn(400), 1+r.Intn(30))
		al := &aligner{a: a, b: b, limit: 8 + r.Intn(32)}
		al.part(0, len(a), 0, len(b))
		got, want := covered(t, a, b, al.runs), longest(a, b)
		if got < want && !al.coarse {
			t.Fatalf("%d of %d aligned, and that is not said", got, want)
		}
		sum, most = sum+got, most+want
	}
	if sum < most/2 {
		t.Errorf("%d of %d aligned", sum, most)
	}
}

// Sequences that have nothing in common take no longer than their length allows.
func TestNothing(t *testing.T) {
	a, b := make([]uint64, 200_000), make([]uint64, 200_000)
	for i := range a {
		a[i], b[i] = uint64(i), uint64(i+len(a))
	}
	if runs, _ := align(a, b); len(runs) > 0 {
		t.Errorf("runs %v", runs)
	}
}

// Long sequences with few differences are aligned in full.
func TestLong(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	a := sequence(r, 1_000_000, 50)
	var b []uint64
	changes := 0
	for i, s := range a {
		switch {
		case i%5000 == 17:
			changes++
		case i%5000 == 91:
			b = append(b, s, 99)
			changes++
		default:
			b = append(b, s)
		}
	}
	runs, coarse := align(a, b)
	if n := covered(t, a, b, runs); coarse || n < len(a)-changes {
		t.Errorf("%d of %d aligned, coarse %v", n, len(a), coarse)
	}
}
