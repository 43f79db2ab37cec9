package diff

import (
	"slices"
	"sort"
)

// run is a stretch that both sequences have.
type run struct{ a, b, n int }

// aligner aligns two sequences.
type aligner struct {
	a, b   []uint64
	runs   []run
	work   int   // steps that may still be done
	coarse bool  // they did not suffice
	v      []int // of middle: how far each diagonal is
}

// maxWork bounds the steps of one alignment; one is about a nanosecond.
const maxWork = 1 << 29

// align returns the stretches that a and b have in common, in order. coarse says that
// there may be more.
func align(a, b []uint64) (runs []run, coarse bool) {
	al := &aligner{a: a, b: b, work: maxWork}
	al.patience(0, len(a), 0, len(b), 0)
	return al.runs, al.coarse
}

// equal adds a stretch.
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

// ends aligns what both begin with, and returns how much they end with.
func (al *aligner) ends(a0, a1, b0, b1 *int) (tail int) {
	head := 0
	for *a0+head < *a1 && *b0+head < *b1 && al.a[*a0+head] == al.b[*b0+head] {
		head++
	}
	al.equal(*a0, *b0, head)
	*a0, *b0 = *a0+head, *b0+head
	for *a0 < *a1 && *b0 < *b1 && al.a[*a1-1] == al.b[*b1-1] {
		*a1, *b1, tail = *a1-1, *b1-1, tail+1
	}
	return tail
}

// maxDepth bounds the recursion of patience.
const maxDepth = 64

// patience aligns by what is unique in both, and what is between by itself.
func (al *aligner) patience(a0, a1, b0, b1, depth int) {
	tail := al.ends(&a0, &a1, &b0, &b1)
	defer func() { al.equal(a1, b1, tail) }()
	if a0 == a1 || b0 == b1 {
		return
	}
	anchors := al.anchors(a0, a1, b0, b1)
	if len(anchors) == 0 || depth == maxDepth {
		al.myers(a0, a1, b0, b1)
		return
	}
	for _, p := range anchors {
		al.patience(a0, p.a, b0, p.b, depth+1)
		al.equal(p.a, p.b, 1)
		a0, b0 = p.a+1, p.b+1
	}
	al.patience(a0, a1, b0, b1, depth+1)
}

// anchors returns the longest list of places, ascending on both sides, of what is unique
// on both.
func (al *aligner) anchors(a0, a1, b0, b1 int) []run {
	type place struct{ na, nb, a, b int }
	places := map[uint64]*place{}
	for i, s := range al.a[a0:a1] {
		p := places[s]
		if p == nil {
			p = &place{}
			places[s] = p
		}
		p.na, p.a = p.na+1, a0+i
	}
	for i, s := range al.b[b0:b1] {
		if p := places[s]; p != nil {
			p.nb, p.b = p.nb+1, b0+i
		}
	}
	var unique []run
	for _, p := range places {
		if p.na == 1 && p.nb == 1 {
			unique = append(unique, run{p.a, p.b, 1})
		}
	}
	slices.SortFunc(unique, func(x, y run) int { return x.a - y.a })
	return ascending(unique)
}

// ascending returns the longest part of a list, ascending in a, that ascends in b.
func ascending(list []run) []run {
	var tops, before []int // the lowest end of a part of each length; the one before each
	before = make([]int, len(list))
	for i := range list {
		k := sort.Search(len(tops), func(k int) bool { return list[tops[k]].b >= list[i].b })
		before[i] = -1
		if k > 0 {
			before[i] = tops[k-1]
		}
		if k == len(tops) {
			tops = append(tops, i)
		} else {
			tops[k] = i
		}
	}
	if len(tops) == 0 {
		return nil
	}
	best := make([]run, len(tops))
	for i, k := tops[len(tops)-1], len(tops)-1; k >= 0; i, k = before[i], k-1 {
		best[k] = list[i]
	}
	return best
}

// myers aligns by the linear-space algorithm of E. Myers, An O(ND) Difference Algorithm
// and Its Variations (1986).
func (al *aligner) myers(a0, a1, b0, b1 int) {
	tail := al.ends(&a0, &a1, &b0, &b1)
	defer func() { al.equal(a1, b1, tail) }()
	if a0 == a1 || b0 == b1 {
		return
	}
	x, y, u, v, ok := al.middle(a0, a1, b0, b1)
	if !ok {
		al.coarse = true
		return
	}
	al.myers(a0, x, b0, y)
	al.equal(x, y, u-x)
	al.myers(u, a1, v, b1)
}

// middle finds the middle snake of the shortest way from (a0, b0) to (a1, b1): from
// (x, y) to (u, v). ok is false if that is too much work.
func (al *aligner) middle(a0, a1, b0, b1 int) (x, y, u, v int, ok bool) {
	n, m := a1-a0, b1-b0
	most := (n + m + 1) / 2
	size := 2*most + 2
	if len(al.v) < 2*size {
		al.v = make([]int, 2*size)
	}
	forward, backward := al.v[:size], al.v[size:2*size]
	clear(al.v[:2*size])
	at := func(k int) int { return (k%size + size) % size }
	delta := n - m
	odd := delta&1 != 0
	for d := 0; d <= most; d++ {
		if al.work -= 2*d + 2; al.work < 0 {
			return 0, 0, 0, 0, false
		}
		for k := -d; k <= d; k += 2 {
			if k == -d || k != d && forward[at(k-1)] < forward[at(k+1)] {
				x = forward[at(k+1)]
			} else {
				x = forward[at(k-1)] + 1
			}
			y = x - k
			u, v = x, y
			for u < n && v < m && u >= 0 && v >= 0 && al.a[a0+u] == al.b[b0+v] {
				u, v = u+1, v+1
			}
			al.work -= u - x
			forward[at(k)] = u
			if r := delta - k; odd && r >= -(d-1) && r <= d-1 && u+backward[at(r)] >= n {
				return a0 + x, b0 + y, a0 + u, b0 + v, true
			}
		}
		for k := -d; k <= d; k += 2 {
			if k == -d || k != d && backward[at(k-1)] < backward[at(k+1)] {
				x = backward[at(k+1)]
			} else {
				x = backward[at(k-1)] + 1
			}
			y = x - k
			u, v = x, y
			for u < n && v < m && u >= 0 && v >= 0 && al.a[a1-u-1] == al.b[b1-v-1] {
				u, v = u+1, v+1
			}
			al.work -= u - x
			backward[at(k)] = u
			if r := delta - k; !odd && r >= -d && r <= d && u+forward[at(r)] >= n {
				return a1 - u, b1 - v, a1 - x, b1 - y, true
			}
		}
	}
	return 0, 0, 0, 0, false
}
