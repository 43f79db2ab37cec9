// SPDX-License-Identifier: Apache-2.0

// Package spell finds what was meant by a misspelt name.
package spell

import "strings"

// Nearest returns the name of a list that a misspelt one is nearest to, "" if it is like
// none. Case does not count.
func Nearest(name string, names []string) string {
	const longest = 40
	if len(name) > longest {
		return ""
	}
	best, distance := "", min(1+len(name)/3, 3)
	for _, n := range names {
		if d := edits(strings.ToLower(name), strings.ToLower(n), distance); d < distance ||
			d == distance && best == "" {
			best, distance = n, d
		}
	}
	return best
}

// edits returns how many letters have to be inserted, removed, replaced or swapped with
// their neighbour to turn a into b; more than limit if they are more than that.
func edits(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	last, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], last[j-2]+1)
			}
		}
		last, row, next = row, next, last
	}
	return row[len(b)]
}
