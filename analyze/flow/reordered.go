// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// twice reports items that were given out at two places where the others were at one.
func (y *relay) twice() {
	f := y.w.f
	if f.objects[y.from].Kind == File {
		return
	}
	var list []Finding
	for i := range y.items {
		outs := y.outputs(i)
		if len(outs) < 2 || y.items[i].again || f.placeOf(&outs[0]) == f.placeOf(&outs[1]) {
			continue
		}
		a, b := outs[0].move, outs[1].move
		r := y.items[i].move
		had, gave := y.verbs()
		list = append(list, Finding{Problem: Duplicated, Moves: []int{int(r), int(a), int(b)},
			Bytes: f.moves[r].bytes(),
			Text: fmt.Sprintf("%s %s %d bytes (%s) once, and did %s %s the same %s", f.who(int(r)), had,
				f.moves[r].bytes(), f.name(&f.objects[y.from]), gave, f.name(&f.objects[y.to]), times(len(outs))),
			Confidence: y.confidence(),
			Decide:     "whether the receiver drops what it has, by a number in the message"})
	}
	if len(list) <= max(1, y.count/rareMissing) {
		for _, z := range list {
			f.add(z)
		}
	}
}

// times writes how often something happened.
func times(n int) string {
	if n == 2 {
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// placeOf returns where an output is in its object.
func (f *Flow) placeOf(o *out) int64 {
	if m := &f.moves[o.move]; m.at >= 0 {
		return m.at + o.at
	}
	return int64(o.move) << 32
}

// order reports items that were given out in another order, where most were not.
func (y *relay) order() {
	f := y.w.f
	var list []int // items that were given out once
	for i := range y.items {
		if outs := y.outputs(i); len(outs) == 1 && !y.items[i].again {
			list = append(list, i)
		}
	}
	place := func(i int) int64 { return f.placeOf(&y.outputs(list[i])[0]) }
	stay := inOrder(len(list), place)
	moved := len(list) - len(stay)
	// Where an item was given out is certain only if it stands once in that move.
	if n := len(list); moved > 0 {
		list = slices.DeleteFunc(list, func(i int) bool { return f.repeats(y.items[i].move, y.outputs(i)[0].move) })
		if len(list) < n {
			stay = inOrder(len(list), place)
			moved = len(list) - len(stay)
		}
	}
	if moved == 0 || len(list) < leastPassed || 3*moved > len(list) {
		return
	}
	var moves []int
	for i, k := range list {
		if _, ok := slices.BinarySearch(stay, i); !ok && len(moves) < 4 {
			moves = append(moves, int(y.items[k].move), int(y.outputs(k)[0].move))
		}
	}
	had, gave := y.verbs()
	f.add(Finding{Problem: Reordered, Moves: moves, Count: moved,
		Text: fmt.Sprintf("%s did %s %s %d of %d messages in another order than it had %s them (%s)",
			f.who(moves[1]), gave, f.name(&f.objects[y.to]), moved, len(list), had, f.name(&f.objects[y.from])),
		Confidence: Medium,
		Decide:     "whether the order matters: a program that works on several messages at once need not keep it"})
}

// repeats reports whether the content of a move stands at several places of that of another: a part of
// periodic content.
func (f *Flow) repeats(part, all uint32) bool {
	x, y := f.view(f.moves[part].class), f.view(f.moves[all].class)
	at := bytes.Index(y, x)
	return len(x) > 0 && at >= 0 && bytes.Contains(y[at+1:], x)
}

// inOrder returns which of n values make the longest row in which each is larger than the one
// before.
func inOrder(n int, value func(int) int64) []int {
	var ends []int // the last of the best row of each length
	before := make([]int, n)
	for i := range n {
		at, _ := slices.BinarySearchFunc(ends, value(i), func(e int, v int64) int { return cmp.Compare(value(e), v) })
		before[i] = -1
		if at > 0 {
			before[i] = ends[at-1]
		}
		if at == len(ends) {
			ends = append(ends, i)
		} else {
			ends[at] = i
		}
	}
	var row []int
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			row = append(row, i)
		}
	}
	slices.Reverse(row)
	return row
}
