// SPDX-License-Identifier: Apache-2.0

package flow

import "fmt"

// Diff says where bytes that should be the same are not.
type Diff struct {
	Same, Differ int    // bytes
	Zeros        int    // of Same, bytes that are 0
	First        int    // offset of the first that differs, in what came later
	FromFirst    int    // in what was before
	Before       []byte // bytes around it, of what was before
	After        []byte // and what came later
	Unseen       bool   // there are no bytes to compare, but hashes: Same and Differ say nothing
	Context      int    // how many of these stand in front of the first
}

const (
	contextBefore = 16
	contextAfter  = 32
)

// String says how much is the same.
func (d *Diff) String() string {
	if d.Unseen {
		return "it is not the same"
	}
	return fmt.Sprintf("%d of %d bytes differ", d.Differ, d.Same+d.Differ)
}

// span is a part of a content: from, to.
type span = [2]int64

// overlap returns the part of content a that content b lies under, byte i of a on byte i+shift
// of b. It is empty if its end is not behind its beginning.
func overlap(a, b []byte, shift int64) span {
	return span{max(0, -shift), min(int64(len(a)), int64(len(b))-shift)}
}

// compare lays content b under a, byte i of a on byte i+shift of b.
func compare(a, b []byte, shift int64) Diff { return compareWithin(a, b, shift, overlap(a, b, shift)) }

// compareWithin is compare of a part of a, which b has to lie under.
func compareWithin(a, b []byte, shift int64, part span) (d Diff) {
	from, to := part[0], part[1]
	if from >= to {
		return d
	}
	x, y := a[from:to], b[from+shift:to+shift]
	first := -1
	for i := range x {
		if x[i] != y[i] {
			if d.Differ++; first < 0 {
				first = i
			}
		} else if x[i] == 0 {
			d.Zeros++
		}
	}
	d.Same = len(x) - d.Differ
	if first >= 0 {
		d.First, d.FromFirst = int(from)+first, int(from+shift)+first
		start := max(first-contextBefore, 0)
		d.Context = first - start
		end := min(first+contextAfter, len(x))
		d.After, d.Before = append([]byte(nil), x[start:end]...), append([]byte(nil), y[start:end]...)
	}
	return d
}

const (
	anchor   = 8  // bytes that agree in a row where two contents are one
	endBytes = 16 // bytes at the end of a content that may have changed, and are no header
)

// laid returns the part of content a, with b laid under it, that can be one content with it:
// of contents of one length all, of others without headers and trailers.
func laid(a, b []byte, shift int64) span {
	part := overlap(a, b, shift)
	if len(a) != len(b) {
		part = withoutFrame(a, b, shift, part)
	}
	return part
}

// withoutFrame leaves out of a part what lies before the first and behind the last bytes that
// agree in a row: there a header or a trailer of one lies on content of the other.
func withoutFrame(a, b []byte, shift int64, part span) span {
	agree := func(at, step int64) int64 { // where a row of bytes that agree begins
		row := int64(0)
		for i := at; i >= part[0] && i < part[1]; i += step {
			if a[i] != b[i+shift] {
				row = 0
			} else if row++; row == anchor {
				return i - step*(anchor-1)
			}
		}
		return -1
	}
	from, to := agree(part[0], 1), agree(part[1]-1, -1)
	if from < 0 || to < 0 {
		return span{}
	}
	if from-part[0] > endBytes {
		part[0] = from
	}
	if part[1]-1-to > endBytes {
		part[1] = to + 1
	}
	return part
}

// run is bytes that two contents have in common.
type run struct{ off, from, len int } // where they begin in the first, and in the second; how many

const (
	runBlock = 16 // bytes of the second content that are looked up at once
	leastRun = 32 // bytes
)

// runs returns long runs of bytes of content a that stand in content b, in order, none over
// another.
func runs(a, b []byte) (list []run) {
	blocks := make(map[[runBlock]byte]int, len(b)/runBlock)
	for at := len(b)/runBlock*runBlock - runBlock; at >= 0; at -= runBlock {
		blocks[[runBlock]byte(b[at:])] = at
	}
	done := 0
	for at := 0; at+runBlock <= len(a); at++ {
		k, ok := blocks[[runBlock]byte(a[at:])]
		if !ok {
			continue
		}
		from, to := at, at+runBlock
		for from > done && k > 0 && a[from-1] == b[k-1] {
			from, k = from-1, k-1
		}
		for to < len(a) && k+to-from < len(b) && a[to] == b[k+to-from] {
			to++
		}
		if to-from < leastRun {
			continue
		}
		list = append(list, run{from, k, to - from})
		done, at = to, to-1
	}
	return list
}

// mayAlign reports whether bytes from all over the part of a under which b lies agree by half.
func mayAlign(a, b []byte, shift int64) bool {
	part := overlap(a, b, shift)
	if part[0] >= part[1] {
		return false
	}
	same := 0
	for i := range int64(sampleBytes) {
		at := part[0] + (2*i+1)*(part[1]-part[0])/(2*sampleBytes)
		if a[at] == b[at+shift] {
			same++
		}
	}
	return same >= sampleBytes/2
}

// sight keeps the contents that were looked at last.
type sight struct {
	slots [64]struct {
		class uint32
		b     []byte
	}
	same map[[5]uint32]bool // comparisons that found no difference
}

const maxSight = 1 << 20 // bytes of a content that is kept

// view returns the bytes of a class, nil if they are not known. They must not change.
func (f *Flow) view(class uint32) []byte {
	if class == 0 || f.contents.classes[class].hashed() {
		return nil
	}
	s := &f.sight.slots[class%uint32(len(f.sight.slots))]
	if s.class == class {
		return s.b
	}
	b, err := f.contents.bytes(class)
	if err != nil {
		if f.damage == nil {
			f.damage = err
		}
		return nil
	}
	if len(b) <= maxSight {
		s.class, s.b = class, b
	}
	return b
}

// differs compares the parts of two moves' content that an edge says are the same. ok is
// false if that is not known.
func (f *Flow) differs(e *Edge) (d Diff, ok bool) {
	to, from := &f.moves[e.To], &f.moves[e.From]
	// a damaged tape may say anything
	if to.class == 0 || from.class == 0 || e.Bytes <= 0 || e.Off < 0 || e.FromOff < 0 {
		return d, false
	}
	if to.class == from.class && e.Off == e.FromOff {
		return d, true
	}
	key := [5]uint32{to.class, from.class, uint32(e.Off), uint32(e.FromOff), uint32(e.Bytes)}
	if f.sight.same[key] {
		return d, true
	}
	if f.contents.classes[to.class].hashed() || f.contents.classes[from.class].hashed() {
		whole := e.Off == 0 && e.FromOff == 0 && e.Bytes == to.bytes() && e.Bytes == from.bytes()
		return Diff{Unseen: true, Differ: 1}, whole
	}
	a, b := f.view(to.class), f.view(from.class)
	if int64(len(a)) < e.Off+e.Bytes || int64(len(b)) < e.FromOff+e.Bytes {
		return d, false
	}
	d = compare(a[e.Off:e.Off+e.Bytes], b[e.FromOff:e.FromOff+e.Bytes], 0)
	d.First, d.FromFirst = d.First+int(e.Off), d.FromFirst+int(e.FromOff)
	if d.Differ == 0 && len(f.sight.same) < 1<<18 {
		if f.sight.same == nil {
			f.sight.same = map[[5]uint32]bool{}
		}
		f.sight.same[key] = true
	}
	return d, true
}

// check makes an edge tell how much of it is really the same.
func (f *Flow) check(e *Edge) {
	if e.Why != Sent && e.Why != Stored {
		return
	}
	if d, ok := f.differs(e); ok && d.Unseen {
		e.Changed, e.Similarity, e.Estimated = true, f.near(f.moves[e.To].class, f.moves[e.From].class), true
	} else if ok && d.Differ > 0 {
		e.Changed, e.Similarity = true, float64(d.Same)/float64(max(d.Same+d.Differ, 1))
	}
}
