// SPDX-License-Identifier: Apache-2.0

package diff

// pair is a thread of A and its counterpart in B; one of them may be nil.
type pair struct{ a, b *thread }

// match pairs the threads of two tapes. Parents come before their children.
func match(a, b *thread, each func(pair)) {
	for _, p := range pairs(a.children, b.children) {
		each(p)
		switch {
		case p.a == nil:
			alone(p.b, func(t *thread) { each(pair{b: t}) })
		case p.b == nil:
			alone(p.a, func(t *thread) { each(pair{a: t}) })
		default:
			match(p.a, p.b, each)
		}
	}
}

// alone calls each for all descendants.
func alone(t *thread, each func(*thread)) {
	for _, c := range t.children {
		each(c)
		alone(c, each)
	}
}

// label is the key by which threads are matched.
type label struct {
	own       bool
	exe, argv string
}

// pairs matches children. They are in the order of A; a child that only B has follows the
// one that it follows in B.
func pairs(a, b []*thread) (list []pair) {
	partner := map[*thread]*thread{} // of A by B's
	of := map[*thread]*thread{}      // of B by A's
	join := func(x, y *thread) { of[x], partner[y] = y, x }
	for _, by := range []func(*thread) label{
		func(t *thread) label { return label{t.own, t.exe, t.argv} },
		func(t *thread) label { return label{t.own, t.exe, ""} },
		func(t *thread) label { return label{own: t.own} },
	} {
		inOrder(left(a, of), left(b, partner), by, join)
	}
	next := 0
	alone := func(end int) {
		for ; next < end; next++ {
			if partner[b[next]] == nil {
				list = append(list, pair{nil, b[next]})
			}
		}
	}
	place := map[*thread]int{}
	for i, t := range b {
		place[t] = i
	}
	for _, t := range a {
		y := of[t]
		if y != nil {
			alone(place[y])
		}
		list = append(list, pair{t, y})
	}
	alone(len(b))
	return list
}

// left returns the threads without a partner.
func left(list []*thread, partner map[*thread]*thread) (rest []*thread) {
	for _, t := range list {
		if partner[t] == nil {
			rest = append(rest, t)
		}
	}
	return rest
}

// inOrder joins threads with equal labels: first those in the same order, then each with the
// next.
func inOrder(a, b []*thread, by func(*thread) label, join func(x, y *thread)) {
	numbers := map[label]uint64{}
	sequence := func(list []*thread) (s []uint64) {
		for _, t := range list {
			l := by(t)
			n, ok := numbers[l]
			if !ok {
				n = uint64(len(numbers))
				numbers[l] = n
			}
			s = append(s, n)
		}
		return s
	}
	x, y := sequence(a), sequence(b)
	runs, _ := align(x, y)
	usedA, usedB := make([]bool, len(a)), make([]bool, len(b))
	for _, r := range runs {
		for i := range r.n {
			join(a[r.a+i], b[r.b+i])
			usedA[r.a+i], usedB[r.b+i] = true, true
		}
	}
	waiting := map[uint64][]*thread{}
	for i, t := range b {
		if !usedB[i] {
			waiting[y[i]] = append(waiting[y[i]], t)
		}
	}
	for i, t := range a {
		if w := waiting[x[i]]; !usedA[i] && len(w) > 0 {
			join(t, w[0])
			waiting[x[i]] = w[1:]
		}
	}
}
