// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"fmt"
	"path"
	"slices"
)

// passKey is what a process reads again and again: the parts of a file, or the files of a
// directory. Another program of the process is another reader: what programs read when they
// begin is always the same.
type passKey struct {
	process uint32
	program uint32
	object  uint32
	dir     string
}

// passes follows how often a process went through something, and in which order.
type passes struct {
	rank  map[int64]uint32 // of what was read in the first pass: its place there
	seen  map[int64]bool   // in the present pass
	count int              // finished passes after the first
	last  int64            // place of what was read last in the present pass, -1 if it is new
	next  int              // in the present pass: what stands behind the one before as it did in the first
	of    int
	// of all finished passes after the first
	nexts, ofs int
	moves      []int // the first of each pass
	n          int   // in the first pass
}

// Limits: what is beyond is not followed.
const (
	leastPass = 8
	mostUnits = 4 << 20
)

// pass takes a read of a file.
func (w *finder) pass(i int, m *move, o *Object) {
	k := passKey{process: w.f.processOf(uint32(i)), object: m.object}
	k.program = w.program(k.process, m.event)
	w.step(k, m.at, i)
	if m.at == 0 {
		k.object, k.dir = none, path.Dir(o.Name)
		w.step(k, int64(m.object), i)
	}
}

// program returns how many programs a process had begun before an event.
func (w *finder) program(process, event uint32) uint32 {
	n, _ := slices.BinarySearch(w.execs[process], event)
	return uint32(n)
}

func (w *finder) step(k passKey, unit int64, i int) {
	s := w.passes[k]
	if s == nil {
		if w.units >= mostUnits {
			return
		}
		s = &passes{rank: map[int64]uint32{}, seen: map[int64]bool{}, last: -1, moves: []int{i}}
		w.passes[k] = s
		w.units++
	}
	if s.seen[unit] {
		if len(s.seen) == 1 { // the same over and over
			return
		}
		s.end()
		if len(s.moves) < 4 {
			s.moves = append(s.moves, i)
		}
	}
	if w.units >= mostUnits {
		return
	}
	s.seen[unit] = true
	if s.n == 0 {
		s.rank[unit] = uint32(len(s.rank))
		w.units += 2
		return
	}
	at := int64(-1)
	if r, ok := s.rank[unit]; ok {
		at = int64(r)
	}
	if len(s.seen) > 1 {
		if s.of++; s.last >= 0 && at == s.last+1 {
			s.next++
		}
	}
	s.last = at
}

// end ends a pass. One that was much shorter than the first does not count.
func (s *passes) end() {
	if s.n == 0 {
		s.n = len(s.rank)
	} else if len(s.seen)*2 >= s.n {
		s.count++
		s.nexts, s.ofs = s.nexts+s.next, s.ofs+s.of
	}
	clear(s.seen)
	s.next, s.of, s.last = 0, 0, -1
}

// orders reports what was read several times.
func (w *finder) orders() {
	f := w.f
	var keys []passKey
	for k, s := range w.passes {
		if s.n > 0 {
			s.end()
		}
		if s.count > 0 && s.n >= leastPass && s.ofs > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b passKey) int { return cmp.Compare(w.passes[a].moves[0], w.passes[b].moves[0]) })
	for _, k := range keys {
		s := w.passes[k]
		what := fmt.Sprintf("%d parts of %s", s.n, f.name(&f.objects[f.moves[s.moves[0]].object]))
		if k.object == none {
			what = fmt.Sprintf("%d files of %s", s.n, k.dir)
		}
		same := float64(s.nexts) / float64(s.ofs)
		x := Finding{Problem: SameOrder, Moves: s.moves, Count: 1}
		how := "in the same order"
		if same < 0.5 {
			x.Problem = Shuffled
			how = "in another order"
		}
		x.Text = fmt.Sprintf("%s read %s %d times, %s: %.0f %% came behind the same as the first time",
			f.who(s.moves[0]), what, s.count+1, how, 100*same)
		f.add(x)
	}
}
