// SPDX-License-Identifier: Apache-2.0

package similar

import "slices"

// Set is the set of shingles of a content, in order.
type Set []uint64

// Set returns the shingles of content, each once, in memory of dst.
func (s *Signer) Set(dst Set, content []byte) Set {
	dst = dst[:0]
	shingles(content, s.o.Shingle, func(v uint64) { dst = append(dst, v) })
	slices.Sort(dst)
	return slices.Compact(dst)
}

// Jaccard returns the size of the intersection of two sets by that of their union: exactly
// what signatures estimate. Of two empty sets it is 0.
func Jaccard(a, b Set) float64 {
	both := common(a, b)
	if all := len(a) + len(b) - both; all > 0 {
		return float64(both) / float64(all)
	}
	return 0
}

// Containment returns which part of a is in b too.
func Containment(a, b Set) float64 {
	if len(a) == 0 {
		return 0
	}
	return float64(common(a, b)) / float64(len(a))
}

func common(a, b Set) (n int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}
