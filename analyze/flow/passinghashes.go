// SPDX-License-Identifier: Apache-2.0

package flow

import "fmt"

// signedBeginning is beginning for contents of which there are signatures: the one move between two
// others that is no word of a protocol resembles the item as much as its beginning does.
func (y *relay) signedBeginning(r uint32, list []uint32) (z Finding, ok bool) {
	f := y.w.f
	var only uint32
	for _, k := range list[min(1, len(list)):max(len(list)-1, 0)] {
		if f.moves[k].bytes() < smallest {
			continue
		}
		if only != 0 || !f.isSignature(f.moves[k].class) {
			return z, false
		}
		only = k
	}
	all, part := f.moves[r].bytes(), f.moves[only].bytes()
	if only == 0 || part > all-smallest {
		return z, false
	}
	near := estimate(f.contents.signed(f.moves[r].class), f.contents.signed(f.moves[only].class))
	// Text repeats itself, so that its beginning has more of its runs than of its bytes.
	if more := near - float64(part)/float64(all); near < leastBeginning || more < -2*tolerance || more > 6*tolerance {
		return z, false
	}
	return y.truncated(r, only, all-part, Medium), true
}

// hashedInstead looks at the place of an item of which there is a hash only: one move stands there between two
// others, which the process had not taken in. Of the same length it is the item with other bytes, and if it is
// shorter the item's beginning.
func (y *relay) hashedInstead(r uint32, list []uint32) (z Finding, ok bool) {
	f := y.w.f
	hash := func(k uint32) bool { return f.contents.classes[f.moves[k].class].kind == kindHash }
	if !hash(r) {
		return z, false
	}
	var only uint32
	for _, k := range list[min(1, len(list)):max(len(list)-1, 0)] {
		if f.moves[k].bytes() < chatter {
			continue
		}
		if only != 0 || !hash(k) || f.takenIn(f.moves[k].class, y.process) > 0 || f.made(f.moves[r].class, y.process) {
			return z, false
		}
		only = k
	}
	all, part := f.moves[r].bytes(), f.moves[only].bytes()
	switch {
	case only == 0 || part < smallest || part > all:
		return z, false
	case part < all:
		return y.truncated(r, only, all-part, Medium), true
	}
	had, gave := y.verbs()
	return Finding{Problem: Changed, Moves: []int{int(r), int(only)}, Bytes: all, Diff: &Diff{Unseen: true, Differ: 1},
		Confidence: Medium,
		Text: fmt.Sprintf("%s %s %d bytes (%s) in whose place it did %s %s as many with another hash, unlike %d others",
			f.who(int(r)), had, all, f.name(&f.objects[y.from]), gave, f.name(&f.objects[y.to]), y.count),
		Decide: "what the bytes are: record with --content full"}, true
}
