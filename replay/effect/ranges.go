// SPDX-License-Identifier: Apache-2.0

package effect

import "github.com/iotape/iotape/event"

// Ranges are parts of files: those, for example, that hold what the tape does not have,
// because the recording kept no bytes of what was read or written there.
type Ranges map[Inode]*Spans

// Add notes a range; Remove takes one out.
func (m Ranges) Add(id Inode, from, to int64) {
	if to <= from {
		return // callers ask whether a file has an entry
	}
	s := m[id]
	if s == nil {
		s = &Spans{}
		m[id] = s
	}
	s.Add(from, to)
}

// Remove takes a range out.
func (m Ranges) Remove(id Inode, from, to int64) {
	if s := m[id]; s != nil {
		if s.Remove(from, to); len(*s) == 0 {
			delete(m, id)
		}
	}
}

// Overlaps reports whether a part of a range is made up.
func (m Ranges) Overlaps(id Inode, from, to int64) bool {
	s := m[id]
	return s != nil && s.Overlaps(from, to)
}

// WholeFile is the end of a range that nothing is known of.
const WholeFile = 1 << 62

// CloneEnd returns the end of what was cloned, in the one file or in the other, in which it
// begins at from.
func CloneEnd(c *event.Cloned, from int64) int64 {
	if n := c.Bytes(); n >= 0 {
		return from + n
	}
	return WholeFile
}

// FileRanges are ranges of one file, in the form that the confined child gets and returns.
type FileRanges struct {
	Dev, Ino uint64
	Spans    [][2]int64 `json:",omitempty"`
}

// List returns the ranges in no order.
func (m Ranges) List() []FileRanges {
	var all []FileRanges
	for id, s := range m {
		f := FileRanges{Dev: id.Dev, Ino: id.Ino}
		for _, r := range *s {
			f.Spans = append(f.Spans, [2]int64{r.From, r.To})
		}
		all = append(all, f)
	}
	return all
}

// NewRanges is the inverse of List.
func NewRanges(files []FileRanges) Ranges {
	m := Ranges{}
	for _, f := range files {
		for _, s := range f.Spans {
			m.Add(Inode{f.Dev, f.Ino}, s[0], s[1])
		}
	}
	return m
}
