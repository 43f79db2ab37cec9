// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
)

// CAT's parameters (Esteves et al., CAT: Content-aware Tracing and Analysis for
// Distributed Systems, Middleware 2021), as its Go programs have them: shingles of 5
// bytes, 10 numbers, 3 bands of 3 rows of which the low 16 bits count. The tenth number
// is in no band.
const (
	CATShingle = 5
	CATHashes  = 10
	catBands   = 3
	catRows    = 3
	catBits    = 1<<16 - 1
)

// CATSignature is a signature as in CAT's traces.
type CATSignature [CATHashes]uint64

// The keys of its two hash functions: what Go's math/rand gives for seed 1.
const (
	catKey1 = 5577006791947779410
	catKey2 = 8674665223082153551
)

// SignCAT returns the signature that CAT's tracer computes of content (which it cuts off at
// 4 KiB): content shorter than a shingle is padded with spaces. Each number is the least of
// h1 + i*h2 over all shingles, h1 and h2 being FNV-1a with different keys in front.
func SignCAT(content []byte) (sig CATSignature) {
	for i := range sig {
		sig[i] = 1<<64 - 1
	}
	if len(content) < CATShingle {
		content = append(append(make([]byte, 0, CATShingle), content...), "     "[len(content):]...)
	}
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], catKey1)
	start1 := fnv(fnvOffset, key[:])
	binary.BigEndian.PutUint64(key[:], catKey2)
	start2 := fnv(fnvOffset, key[:])
	for i := 0; i+CATShingle <= len(content); i++ {
		s := content[i : i+CATShingle]
		h1, h2 := fnv(start1, s), fnv(start2, s)
		for k := range sig {
			sig[k] = min(sig[k], h1)
			h1 += h2
		}
	}
	return sig
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func fnv(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

// Dice returns the score of a pair in CAT's traces: the Sørensen–Dice coefficient of the
// numbers of the two signatures as sets.
func (s *CATSignature) Dice(o *CATSignature) float64 {
	a, b := s.set(), o.set()
	return 2 * float64(common(a, b)) / float64(len(a)+len(b))
}

func (s *CATSignature) set() Set {
	set := Set(slices.Clone(s[:]))
	slices.Sort(set)
	return slices.Compact(set)
}

// CATPair is a pair of events, by their places in the list given to CATPairs: A < B.
type CATPair struct {
	A, B  int
	Score float64
}

// CATPairs returns the pairs that CAT's solver reports of the signatures of a trace, in
// order: all candidates of its index, whatever their score.
func CATPairs(sigs []CATSignature) []CATPair {
	type bucket struct {
		band int
		key  [catRows]uint16
	}
	buckets := map[bucket][]int{}
	var pairs []CATPair
	for b := range sigs {
		near := map[int]bool{}
		for band := range catBands {
			k := bucket{band: band}
			for r := range catRows {
				k.key[r] = uint16(sigs[b][band*catRows+r] & catBits)
			}
			for _, a := range buckets[k] {
				near[a] = true
			}
			buckets[k] = append(buckets[k], b)
		}
		for a := range near {
			pairs = append(pairs, CATPair{A: a, B: b, Score: sigs[a].Dice(&sigs[b])})
		}
	}
	slices.SortFunc(pairs, func(p, q CATPair) int { return cmp.Or(cmp.Compare(p.A, q.A), cmp.Compare(p.B, q.B)) })
	return pairs
}

// catNote is what counts of the note that an imported event of CAT's logs has behind it.
type catNote struct {
	CatLog struct {
		Data struct {
			Signature []uint64 `json:"signature"`
		} `json:"data"`
	} `json:"catlog"`
}

// CATSignatureOf returns the signature that the note behind an imported event of CAT's logs has of
// the event's content.
func CATSignatureOf(note []byte) (sig CATSignature, ok bool) {
	var n catNote
	if json.Unmarshal(note, &n) != nil || len(n.CatLog.Data.Signature) != CATHashes {
		return sig, false
	}
	copy(sig[:], n.CatLog.Data.Signature)
	return sig, true
}
