// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/iotape/iotape/model/similar"
)

const threshold = 0.8

// contents are groups of which each has a content and versions of it with more and more
// bytes changed: many pairs lie near the threshold.
func contents(size int) (all [][]byte) {
	pick := rand.New(rand.NewPCG(uint64(size), 1))
	for range 60 {
		base := make([]byte, size)
		for i := range base {
			base[i] = byte(pick.IntN(256))
		}
		for k := range 8 {
			c := slices.Clone(base)
			for range k * size / 300 {
				c[pick.IntN(size)] ^= byte(1 + pick.IntN(255))
			}
			all = append(all, c)
		}
	}
	return all
}

type pair [2]int

// way is a way to find similar pairs.
type way struct {
	name    string
	shingle int // of the Jaccard index that it is after
	find    func(all [][]byte) (map[pair]bool, error)
}

func ways() []way {
	return []way{
		{"iotape, content kept", 8, kept},
		{"iotape, `--content signature`", 8, signed},
		{"CAT: 10 numbers, 3 bands of 3, pairs that score 0.8", similar.CATShingle, func(all [][]byte) (map[pair]bool, error) { return cat(all, threshold), nil }},
		{"CAT, all that it reports", similar.CATShingle, func(all [][]byte) (map[pair]bool, error) { return cat(all, 0), nil }},
		{"datasketch's choice of bands for 0.8: 128 numbers, candidates", similar.CATShingle, classic},
	}
}

// pairs prints recall and precision of each way, against all pairs.
func pairs(size int) error {
	all := contents(size)
	fmt.Printf("\nSimilar pairs, Jaccard index %.1f and more: %d contents of %d bytes\n\n", threshold, len(all), size)
	row("", "pairs", "found", "recall", "precision", "CPU ms")
	row("---", "--:", "--:", "--:", "--:", "--:")
	truths := map[int]map[pair]bool{}
	for _, w := range ways() {
		truth, ok := truths[w.shingle]
		if !ok {
			var err error
			if truth, err = bruteForce(all, w.shingle); err != nil {
				return err
			}
			truths[w.shingle] = truth
		}
		var found map[pair]bool
		var err error
		best := time.Duration(math.MaxInt64)
		for range 3 {
			best = min(best, took(func() { found, err = w.find(all) }))
			if err != nil {
				return err
			}
		}
		right := 0
		for p := range found {
			if truth[p] {
				right++
			}
		}
		row(w.name, len(truth), len(found), fmt.Sprintf("%.3f", float64(right)/float64(max(len(truth), 1))),
			fmt.Sprintf("%.3f", float64(right)/float64(max(len(found), 1))), fmt.Sprintf("%.1f", best.Seconds()*1000))
	}
	return nil
}

func sets(all [][]byte, shingle int) ([]similar.Set, error) {
	s, err := similar.NewSigner(&similar.Options{Shingle: shingle})
	if err != nil {
		return nil, err
	}
	list := make([]similar.Set, len(all))
	for i, c := range all {
		list[i] = s.Set(nil, c)
	}
	return list, nil
}

func bruteForce(all [][]byte, shingle int) (map[pair]bool, error) {
	list, err := sets(all, shingle)
	if err != nil {
		return nil, err
	}
	truth := map[pair]bool{}
	for i := range list {
		for k := range i {
			if similar.Jaccard(list[k], list[i]) >= threshold {
				truth[pair{k, i}] = true
			}
		}
	}
	return truth, nil
}

// kept is what flow does with content: candidates of an index, decided by their shingles.
func kept(all [][]byte) (map[pair]bool, error) {
	s, err := similar.NewSigner(nil)
	if err != nil {
		return nil, err
	}
	x, err := similar.NewPairs(&similar.IndexOptions{Threshold: threshold})
	if err != nil {
		return nil, err
	}
	var sig similar.Signature
	for _, c := range all {
		sig = s.Sign(sig[:0], c)
		x.Add(sig)
	}
	found := map[pair]bool{}
	var a, b similar.Set
	x.All(func(i, k int) {
		a, b = s.Set(a, all[i]), s.Set(b, all[k])
		if similar.Jaccard(a, b) >= threshold {
			found[pair{i, k}] = true
		}
	})
	return found, nil
}

// signed is what it does with what --content signature keeps.
func signed(all [][]byte) (map[pair]bool, error) {
	x, err := similar.NewDigestPairs(&similar.IndexOptions{Threshold: threshold})
	if err != nil {
		return nil, err
	}
	var d similar.Digester
	digests, sketches := make([]similar.Digest, len(all)), make([][]byte, len(all))
	for i, c := range all {
		digests[i], sketches[i] = d.Sign(nil, c)
		x.AddDigest(&digests[i])
	}
	found := map[pair]bool{}
	x.All(func(i, k int) {
		if digests[i].EstimateWith(&digests[k], sketches[i], sketches[k]) >= threshold {
			found[pair{i, k}] = true
		}
	})
	return found, nil
}

func cat(all [][]byte, least float64) map[pair]bool {
	sigs := make([]similar.CATSignature, len(all))
	for i, c := range all {
		sigs[i] = similar.SignCAT(c[:min(len(c), 4096)]) // where its tracer cuts content off
	}
	found := map[pair]bool{}
	for _, p := range similar.CATPairs(sigs) {
		if p.Score >= least {
			found[pair{p.A, p.B}] = true
		}
	}
	return found
}

// classic is MinHash LSH as it is in textbooks, with bands as datasketch chooses them:
// those for which the pairs that are missed and those that are too many, over all indexes
// alike, are fewest. Candidates are the answer.
func classic(all [][]byte) (map[pair]bool, error) {
	const numbers = 128
	s, err := similar.NewSigner(&similar.Options{Shingle: similar.CATShingle, Hashes: numbers, AllHashes: true})
	if err != nil {
		return nil, err
	}
	bands, rows := chooseBands(numbers)
	type bucket struct {
		band int
		key  string
	}
	buckets, found := map[bucket][]int{}, map[pair]bool{}
	var sig similar.Signature
	for i, c := range all {
		sig = s.Sign(sig[:0], c)
		for b := range bands {
			k := bucket{b, fmt.Sprint(sig[b*rows : (b+1)*rows])}
			for _, other := range buckets[k] {
				found[pair{other, i}] = true
			}
			buckets[k] = append(buckets[k], i)
		}
	}
	return found, nil
}

// chooseBands weighs both errors alike, integrated in steps of a thousandth.
func chooseBands(numbers int) (bands, rows int) {
	least := math.Inf(1)
	for b := 1; b <= numbers; b++ {
		for r := 1; b*r <= numbers; r++ {
			wrong := 0.0
			for i := range 1000 {
				j := (float64(i) + 0.5) / 1000
				p := 1 - math.Pow(1-math.Pow(j, float64(r)), float64(b))
				if j >= threshold {
					p = 1 - p
				}
				wrong += p
			}
			if wrong < least {
				least, bands, rows = wrong, b, r
			}
		}
	}
	return bands, rows
}
