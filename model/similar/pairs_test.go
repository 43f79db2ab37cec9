// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// changedContents are contents of which many resemble each other, more and less.
func changedContents(groups, each, n int) (all [][]byte) {
	random := rand.NewChaCha8([32]byte{7})
	pick := rand.New(random)
	for range groups {
		base := make([]byte, n)
		_, _ = random.Read(base)
		for k := range each {
			c := slices.Clone(base)
			for range k * n / 300 {
				c[pick.IntN(n)] ^= byte(1 + pick.IntN(255))
			}
			all = append(all, c)
		}
	}
	return all
}

// TestPairsRecall compares what flow finds with all pairs: those of full content, decided
// exactly, and those of digests and sketches, decided by estimate.
func TestPairsRecall(t *testing.T) {
	const threshold = 0.8
	all := changedContents(40, 8, 1024)
	s, _ := NewSigner(nil)
	full, err := NewPairs(&IndexOptions{Threshold: threshold})
	if err != nil {
		t.Fatal(err)
	}
	small, err := NewDigestPairs(&IndexOptions{Threshold: threshold})
	if err != nil {
		t.Fatal(err)
	}
	var d Digester
	sets, digests, sketches := make([]Set, len(all)), make([]Digest, len(all)), make([][]byte, len(all))
	for i, c := range all {
		sets[i] = s.Set(nil, c)
		digests[i], sketches[i] = d.Sign(nil, c)
		full.Add(s.Sign(nil, c))
		small.AddDigest(&digests[i])
	}
	type pair [2]int
	truth, near := map[pair]bool{}, map[pair]float64{}
	for i := range all {
		for k := range i {
			j := Jaccard(sets[k], sets[i])
			if near[pair{k, i}] = j; j >= threshold {
				truth[pair{k, i}] = true
			}
		}
	}
	if len(truth) < 200 {
		t.Fatalf("only %d pairs are similar", len(truth))
	}
	for _, c := range []struct {
		name    string
		all     func(func(a, b int)) uint64
		decides func(a, b int) bool
		recall  float64
		precise float64
	}{
		{"content", full.All, func(a, b int) bool { return Jaccard(sets[a], sets[b]) >= threshold }, 0.98, 1},
		{"digests and sketches", small.All, func(a, b int) bool {
			return digests[a].EstimateWith(&digests[b], sketches[a], sketches[b]) >= threshold
		}, 0.95, 0.95},
		{"digests", small.All, func(a, b int) bool { return digests[a].Estimate(&digests[b]) >= threshold }, 0.80, 0.65},
	} {
		t.Run(c.name, func(t *testing.T) {
			hits, found, sum := 0, map[pair]bool{}, 0
			candidates := 0
			c.all(func(a, b int) {
				if a >= b || found[pair{a, b}] {
					t.Fatalf("the pair %d, %d is the wrong way round, or there twice", a, b)
				}
				candidates++
				if c.decides(a, b) {
					found[pair{a, b}] = true
					if sum++; truth[pair{a, b}] {
						hits++
					}
				}
			})
			recall, precision := float64(hits)/float64(len(truth)), float64(hits)/float64(sum)
			t.Logf("%d pairs, %d candidates: recall %.3f, precision %.3f", len(truth), candidates, recall, precision)
			if recall < c.recall || precision < c.precise {
				t.Errorf("recall %.3f, precision %.3f; want %.2f and %.2f", recall, precision, c.recall, c.precise)
			}
		})
	}
}

// TestDigestEstimate holds estimates to their error.
func TestDigestEstimate(t *testing.T) {
	all := changedContents(60, 6, 4000)
	s, _ := NewSigner(nil)
	var d Digester
	sum, fine, n := 0.0, 0.0, 0
	for g := range 60 {
		a := all[g*6]
		da, sa := d.Sign(nil, a)
		for k := 1; k < 6; k++ {
			b := all[g*6+k]
			db, sb := d.Sign(nil, b)
			if da == db {
				t.Fatal("different contents have one digest")
			}
			exact := Jaccard(s.Set(nil, a), s.Set(nil, b))
			e, f := da.Estimate(&db)-exact, da.EstimateWith(&db, sa, sb)-exact
			sum, fine = sum+e*e, fine+f*f
			n++
		}
	}
	if variance := sum / float64(n); variance > 0.072*0.072 {
		t.Errorf("the mean square error is %.5f", variance)
	}
	if variance := fine / float64(n); variance > 0.02*0.02 {
		t.Errorf("the mean square error with sketches is %.5f", variance)
	}
	x, y := d.Sum([]byte("one")), d.Sum([]byte("one"))
	if x != y || x.Estimate(&y) != 1 {
		t.Error("equal contents have different digests")
	}
}

func ExampleDigester() {
	var d Digester
	a, b := d.Sum([]byte("the same bytes")), d.Sum([]byte("the same bytes"))
	fmt.Println(a == b)
	// Output: true
}

func BenchmarkDigest(b *testing.B) {
	content := changedContents(1, 1, 64<<10)[0]
	var d Digester
	b.SetBytes(int64(len(content)))
	var sketch []byte
	for b.Loop() {
		_, sketch = d.Sign(sketch[:0], content)
	}
}
