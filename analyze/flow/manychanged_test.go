// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/iotape/iotape/analyze/flow"
)

// TestMostChanged has a proxy divide messages anew, and change 27 of 30: bits of them, which is found, or all
// that they have, because it compresses or encrypts, and words in them on purpose, which are no faults.
func TestMostChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want int // changed messages
		give func(t *testing.T, k int, m []byte) []byte
	}{
		"a bit of each": {27, func(_ *testing.T, k int, m []byte) []byte {
			m[20+(k*97)%(len(m)-20)] ^= 1 << (k % 8)
			return m
		}},
		"the same bit near the end": {27, func(_ *testing.T, _ int, m []byte) []byte {
			m[len(m)-5] ^= 1
			return m
		}},
		"deflate": {0, func(t *testing.T, _ int, m []byte) []byte {
			var b bytes.Buffer
			w, err := flate.NewWriter(&b, 6)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write(m)
			_ = w.Close()
			return b.Bytes()
		}},
		"snappy": {0, func(_ *testing.T, _ int, m []byte) []byte { return s2.EncodeSnappy(nil, m) }},
		"AES": {0, func(t *testing.T, k int, m []byte) []byte {
			b, err := aes.NewCipher(make([]byte, 16))
			if err != nil {
				t.Fatal(err)
			}
			cipher.NewCTR(b, append(make([]byte, 15), byte(k))).XORKeyStream(m, m)
			return m
		}},
		"a key of four bytes": {0, func(_ *testing.T, _ int, m []byte) []byte {
			for i := range m {
				m[i] ^= "\x5a\x13\xc7\x88"[i%4]
			}
			return m
		}},
		"a count in the head": {0, func(_ *testing.T, k int, m []byte) []byte {
			m[9] = byte(k)
			return m
		}},
		"words": {0, func(_ *testing.T, _ int, m []byte) []byte {
			return bytes.ReplaceAll(m, []byte("served"), []byte("denied"))
		}},
	} {
		for kind, value := range map[string]func(*rand.Rand, int) []byte{"random": values["random"], "log": logLines} {
			for _, out := range []int{150, 550, 5000} {
				t.Run(fmt.Sprintf("%s/%s/to %d", name, kind, out), func(t *testing.T) {
					t.Parallel()
					r := rand.New(rand.NewPCG(uint64(out), 2))
					var in, give [][]byte
					for k := range 30 {
						in = append(in, value(r, k))
						give = append(give, slices.Clone(in[k]))
						if k >= 3 {
							give[k] = c.give(t, k, give[k])
						}
					}
					m := &maker{t: t}
					m.tape("b", 0, true, divided(in, give, true, out)...)
					f := load(t, nil, m.names...)
					got := 0
					for _, x := range f.Findings() {
						if x.Problem == flow.Changed {
							got += x.Count
						} else if x.Problem.Wrong() {
							t.Errorf("%s: %s, want nothing but changed", x.Problem, x.Text)
						}
					}
					least := c.want / 2
					if out == 150 { // in short parts a changed byte can be one of a header
						least = c.want / 3
					}
					if got > c.want || got < least {
						t.Errorf("%d changed, want %d to %d:\n%s", got, least, c.want, strings.Join(wrong(f), "\n"))
					}
				})
			}
		}
	}
}
