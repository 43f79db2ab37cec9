// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
)

// maxText bounds a sample, so that a change is likely to matter and is read quickly.
const maxText = 8 << 10

// trim cuts a text after a whole line.
func trim(b []byte) []byte {
	if len(b) <= maxText || binary(b) {
		return b
	}
	return b[:bytes.LastIndexByte(b[:maxText], '\n')+1]
}

// binary reports whether a file is no text.
func binary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 4096)], 0) >= 0 }

// mutate returns a sample with one to four changes.
func mutate(r *rand.Rand, sample []byte) []byte {
	b := slices.Clone(sample)
	changes := textChanges
	if binary(sample) {
		changes = binaryChanges
	}
	for range 1 + r.IntN(4) {
		if len(b) > 0 {
			b = changes[r.IntN(len(changes))](r, b)
		}
	}
	return b
}

var binaryChanges = []func(r *rand.Rand, b []byte) []byte{flip, flip, flip, cut}

var textChanges = []func(r *rand.Rand, b []byte) []byte{flip, cut, number, number, number, number, repeatLine, dropLine,
	swapLines, swapWords}

func flip(r *rand.Rand, b []byte) []byte {
	b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	return b
}

func cut(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] }

var (
	numbers = regexp.MustCompile(`\d+`)
	words   = regexp.MustCompile(`\w+`)
)

// number replaces a number by one that is special, or by another one of the text.
func number(r *rand.Rand, b []byte) []byte {
	at := numbers.FindAllIndex(b, -1)
	if at == nil {
		return b
	}
	special := []string{"0", "-1", "1", "3", "2147483647", "4294967295", "4294967296", "9223372036854775807",
		"18446744073709551615"}
	other := at[r.IntN(len(at))]
	to := string(b[other[0]:other[1]])
	if r.IntN(3) > 0 {
		to = special[r.IntN(len(special))]
	}
	span := at[r.IntN(len(at))]
	return slices.Concat(b[:span[0]], []byte(to), b[span[1]:])
}

// swapWords puts a word of the text in the place of another one.
func swapWords(r *rand.Rand, b []byte) []byte {
	at := words.FindAllIndex(b, -1)
	if at == nil {
		return b
	}
	from, to := at[r.IntN(len(at))], at[r.IntN(len(at))]
	return slices.Concat(b[:to[0]], b[from[0]:from[1]], b[to[1]:])
}

// lines calls f with the lines of a text, and joins what it returns.
func lines(b []byte, f func(l [][]byte) [][]byte) []byte {
	return slices.Concat(f(slices.Collect(bytes.Lines(b)))...)
}

func repeatLine(r *rand.Rand, b []byte) []byte {
	return lines(b, func(l [][]byte) [][]byte { return slices.Insert(l, r.IntN(len(l)), l[r.IntN(len(l))]) })
}

func dropLine(r *rand.Rand, b []byte) []byte {
	return lines(b, func(l [][]byte) [][]byte {
		i := r.IntN(len(l))
		return slices.Delete(l, i, i+1)
	})
}

func swapLines(r *rand.Rand, b []byte) []byte {
	return lines(b, func(l [][]byte) [][]byte {
		i, k := r.IntN(len(l)), r.IntN(len(l))
		l[i], l[k] = l[k], l[i]
		return l
	})
}
