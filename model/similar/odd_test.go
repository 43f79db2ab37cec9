// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSketchError holds estimates near the threshold to a standard error, for content of
// all sizes; also where one is so much longer that its sketch has to be folded.
func TestSketchError(t *testing.T) {
	pick := rand.New(rand.NewPCG(1, 2))
	s, _ := NewSigner(nil)
	var d Digester
	for _, n := range []int{100, 128, 129, 256, 300, 512, 600, 1024, 1200, 4096, 30_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			sum, bias, rounds := 0.0, 0.0, 60
			for range rounds {
				a := make([]byte, n)
				for i := range a {
					a[i] = byte(pick.IntN(256))
				}
				b := slices.Clone(a)
				for range 1 + n/70 {
					b[pick.IntN(n)] ^= byte(1 + pick.IntN(255))
				}
				b = append(b, a[:n/50]...)
				da, sa := d.Sign(nil, a)
				db, sb := d.Sign(nil, b)
				e := da.EstimateWith(&db, sa, sb)
				if x := db.EstimateWith(&da, sb, sa); x != e {
					t.Fatalf("%v one way, %v the other", e, x)
				}
				e -= Jaccard(s.Set(nil, a), s.Set(nil, b))
				sum, bias = sum+e*e, bias+e
			}
			sd, mean := math.Sqrt(sum/float64(rounds)), bias/float64(rounds)
			t.Logf("standard error %.4f, bias %+.4f", sd, mean)
			if sd > 0.021 || math.Abs(mean) > 0.008 {
				t.Errorf("standard error %.4f, bias %+.4f", sd, mean)
			}
		})
	}
}

// TestDigestIsASignature: what a Digester computes in one pass are the bits of a Signer's
// signature, as digests had them from the first version on.
func TestDigestIsASignature(t *testing.T) {
	s, err := NewSigner(&Options{Hashes: DigestHashes})
	if err != nil {
		t.Fatal(err)
	}
	var d Digester
	pick := rand.New(rand.NewPCG(3, 4))
	for n := 1; n < 6000; n = n*5/4 + 1 {
		content := make([]byte, n)
		for i := range content {
			content[i] = byte(pick.IntN(256))
		}
		got := d.Sum(content)
		var want Digest
		copy(want[:8], got[:8])
		for i, v := range s.Sign(nil, content) {
			want[8+i/8] |= byte(mix(v+uint64(i)*golden)&1) << (i % 8)
		}
		if got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

func TestSketchBytes(t *testing.T) {
	var d Digester
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 32, 128: 32, 129: 62, 1024: 242, 1025: 482, 1 << 20: 482} {
		if got := SketchBytes(n); got != want {
			t.Errorf("%d bytes have a sketch of %d, want %d", n, got, want)
		}
		if n >= 0 {
			if _, s := d.Sign([]byte("x"), make([]byte, n)); len(s) != 1+want || s[0] != 'x' {
				t.Errorf("%d bytes: %d were appended", n, len(s)-1)
			}
		}
	}
}

// FuzzSketches: sketches come from files, so nothing about them is sure.
func FuzzSketches(f *testing.F) {
	var d Digester
	_, sketch := d.Sign(nil, bytes.Repeat([]byte("some content "), 100))
	f.Add(sketch, sketch[:242])
	f.Add([]byte{255, 255, 1}, []byte{1})
	f.Add([]byte{0, 12, 1}, bytes.Repeat([]byte{7}, 963))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := d.Sum(a), d.Sum(b)
		if e := x.EstimateWith(&y, a, b); !(e >= 0 && e <= 1) {
			t.Errorf("an estimate of %v", e)
		}
	})
}
