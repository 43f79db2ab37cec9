// SPDX-License-Identifier: Apache-2.0

package diff

// run is a range that is equal in both sequences.
type run struct{ a, b, n int }

// aligner aligns two sequences by the linear-space algorithm of E. Myers, An O(ND)
// Difference Algorithm and Its Variations (1986).
//
// Where it takes more than limit edits to find the middle of the shortest path, the aligner
// uses the furthest point that it has reached, as GNU diff does. The time is then at most
// proportional to limit times the length, and the path may be longer than the shortest.
type aligner struct {
	a, b   []uint64
	runs   []run
	limit  int
	coarse bool // the search for a path was cut short
	// The furthest point on each diagonal, from the start and from the end.
	forward, backward []int
}

// maxEdits is the limit of edits.
const maxEdits = 1024

// align returns the ranges that a and b have in common, in order. coarse reports that there
// may be more.
func align(a, b []uint64) (runs []run, coarse bool) {
	al := &aligner{a: a, b: b, limit: maxEdits}
	al.part(0, len(a), 0, len(b))
	return al.runs, al.coarse
}

// equal adds a range.
func (al *aligner) equal(a, b, n int) {
	if n == 0 {
		return
	}
	if k := len(al.runs) - 1; k >= 0 && al.runs[k].a+al.runs[k].n == a && al.runs[k].b+al.runs[k].n == b {
		al.runs[k].n += n
		return
	}
	al.runs = append(al.runs, run{a, b, n})
}

// part aligns from (a0, b0) to (a1, b1).
func (al *aligner) part(a0, a1, b0, b1 int) {
	for {
		head, tail := 0, 0
		for a0+head < a1 && b0+head < b1 && al.a[a0+head] == al.b[b0+head] {
			head++
		}
		al.equal(a0, b0, head)
		a0, b0 = a0+head, b0+head
		if a0 == a1 || b0 == b1 {
			return
		}
		for al.a[a1-tail-1] == al.b[b1-tail-1] { // the first differ, so this ends
			if tail++; a1-tail == a0 || b1-tail == b0 {
				break
			}
		}
		if tail > 0 {
			al.part(a0, a1-tail, b0, b1-tail)
			al.equal(a1-tail, b1-tail, tail)
			return
		}
		x, y, u, v := al.middle(a0, a1, b0, b1)
		al.part(a0, x, b0, y)
		al.equal(x, y, u-x)
		a0, b0 = u, v
	}
}

// middle finds the middle of the shortest path from (a0, b0) to (a1, b1): the diagonal from
// (x, y) to (u, v). The two sides differ in their first and in their last element.
func (al *aligner) middle(a0, a1, b0, b1 int) (x, y, u, v int) {
	most := min((a1-a0+b1-b0+1)/2, al.limit)
	zero := most + 1 // place of diagonal 0
	if len(al.forward) < 2*zero+1 {
		al.forward, al.backward = make([]int, 2*zero+1), make([]int, 2*zero+1)
	}
	s := search{a: al.a[a0:a1], b: al.b[b0:b1], fw: al.forward[:2*zero+1], bw: al.backward[:2*zero+1], zero: zero}
	s.fw[zero+1], s.bw[zero+1] = 0, 0
	for d := 0; d <= most; d++ {
		x, y, u, v, ok := s.forward(d)
		if !ok {
			x, y, u, v, ok = s.backward(d)
		}
		if ok {
			return a0 + x, b0 + y, a0 + u, b0 + v
		}
	}
	// Too many edits: use the furthest point from the start.
	al.coarse = true
	u, v = s.furthest(most)
	return a0 + u, b0 + v, a0 + u, b0 + v
}

// search finds the middle of the shortest path through two sequences. Diagonal k has the
// points (x, x-k), as seen from the side of the search.
type search struct {
	a, b   []uint64
	fw, bw []int // the furthest point on each diagonal, from the start and from the end
	zero   int   // place of diagonal 0 in them
}

// forward follows the diagonals from the start by one more edit. ok is true if it meets the
// path from the end, with the diagonal from (x, y) to (u, v).
func (s *search) forward(d int) (x, y, u, v int, ok bool) {
	n, m := len(s.a), len(s.b)
	delta := n - m
	odd := delta&1 != 0
	for k := -d; k <= d; k += 2 {
		x = step(s.fw, s.zero+k, k == -d, k == d)
		u, v = x, x-k
		for u < n && v < m && v >= 0 && s.a[u] == s.b[v] {
			u, v = u+1, v+1
		}
		s.fw[s.zero+k] = u
		if r := delta - k; odd && r > -d && r < d && u+s.bw[s.zero+r] >= n {
			return x, x - k, u, v, true
		}
	}
	return 0, 0, 0, 0, false
}

// backward does the same from the end.
func (s *search) backward(d int) (x, y, u, v int, ok bool) {
	n, m := len(s.a), len(s.b)
	delta := n - m
	odd := delta&1 != 0
	for k := -d; k <= d; k += 2 {
		x = step(s.bw, s.zero+k, k == -d, k == d)
		u, v = x, x-k
		for u < n && v < m && v >= 0 && s.a[n-u-1] == s.b[m-v-1] {
			u, v = u+1, v+1
		}
		s.bw[s.zero+k] = u
		if r := delta - k; !odd && r >= -d && r <= d && u+s.fw[s.zero+r] >= n {
			return n - u, m - v, n - x, m - x + k, true
		}
	}
	return 0, 0, 0, 0, false
}

// furthest returns the furthest point from the start that the search has reached.
func (s *search) furthest(most int) (u, v int) {
	best := -1
	for k := -most; k <= most; k += 2 {
		far := s.fw[s.zero+k]
		if far <= len(s.a) && far-k <= len(s.b) && far-k >= 0 && far+far-k > best {
			best, u, v = far+far-k, far, far-k
		}
	}
	return u, v
}

// step returns where the path enters diagonal k: from the one below or above, whichever
// reached further.
func step(v []int, k int, lowest, highest bool) int {
	if lowest || !highest && v[k-1] < v[k+1] {
		return v[k+1]
	}
	return v[k-1] + 1
}
