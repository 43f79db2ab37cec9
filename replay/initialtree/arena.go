// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"hash/maphash"
	"strings"
)

// A tape may have millions of files. What is known of them is kept in blocks, found
// through tables of pointers, and costs about 200 bytes a file (BenchmarkInferManyFiles).

// arena makes values in blocks: no allocation, and no header, for each.
type arena[T any] struct {
	blocks [][]T // all but the last are full
}

const blockLen = 1024

func (a *arena[T]) make() *T {
	n := len(a.blocks)
	if n == 0 || len(a.blocks[n-1]) == blockLen {
		a.blocks = append(a.blocks, make([]T, 0, blockLen))
		n++
	}
	b := &a.blocks[n-1]
	*b = (*b)[:len(*b)+1]
	return &(*b)[len(*b)-1]
}

// texts keeps strings in blocks.
type texts struct{ b strings.Builder }

func (t *texts) intern(s string) string {
	const block = 64 << 10
	if t.b.Cap()-t.b.Len() < len(s) {
		t.b.Reset() // which leaves the old block to the strings in it
		t.b.Grow(max(block, len(s)))
	}
	at := t.b.Len()
	t.b.WriteString(s)
	return t.b.String()[at:]
}

// index finds values by a hash: a table with linear probing that only grows.
type index[T any] struct {
	slots []*T // a power of two; at most three quarters are in use
	used  int
}

// slot returns where the value with a hash is for which same holds, or is to be put.
func (x *index[T]) slot(hash uint64, same func(*T) bool) **T {
	if len(x.slots) == 0 {
		return nil
	}
	for i := hash; ; i++ {
		s := &x.slots[i&uint64(len(x.slots)-1)]
		if *s == nil || same(*s) {
			return s
		}
	}
}

// insert adds v, in place of the one that is the same, if there is one. hash is that of
// any value.
func (x *index[T]) insert(v *T, hash func(*T) uint64, same func(*T) bool) {
	if 4*(x.used+1) > 3*len(x.slots) {
		old := x.slots
		x.slots = make([]*T, max(64, 2*len(old)))
		for _, o := range old {
			if o != nil {
				*x.slot(hash(o), func(*T) bool { return false }) = o
			}
		}
	}
	s := x.slot(hash(v), same)
	if *s == nil {
		x.used++
	}
	*s = v
}

var seed = maphash.MakeSeed()
