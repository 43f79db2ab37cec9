// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// spool keeps records on disk and returns them in the order of their times; those of one time in that in which
// they came. Its memory does not grow with them: where each record lies is in a second file, in parts that are
// sorted, and that are merged in the end.
type spool struct {
	records, index *os.File
	bytes          int64     // of records
	part           []spooled // that is not sorted yet
	parts          []int64   // where the sorted ones begin in index, in numbers of spooled
	count          int64     // spooled in index
}

// spooled is where an unsorted record lies.
type spooled struct {
	time   uint64
	offset int64
	length int32
}

// spooledBytes is how many bytes a spooled takes in a file.
const spooledBytes = 20

// maxPart is how many records a part of the index has. It is a variable for tests.
var maxPart = 1 << 20

// newSpool makes the spool's files in a directory.
func newSpool(dir string) (*spool, error) {
	records, err := os.CreateTemp(dir, "unsorted")
	if err != nil {
		return nil, err
	}
	index, err := os.CreateTemp(dir, "unsorted-index")
	if err != nil {
		records.Close()
		os.Remove(records.Name())
		return nil, err
	}
	return &spool{records: records, index: index}, nil
}

func (s *spool) close() {
	for _, f := range []*os.File{s.records, s.index} {
		f.Close()
		os.Remove(f.Name())
	}
}

// add notes a record, which begins offset bytes into what will be appended next.
func (s *spool) add(time uint64, offset, length int) error {
	s.part = append(s.part, spooled{time, s.bytes + int64(offset), int32(length)})
	if len(s.part) < maxPart {
		return nil
	}
	return s.endPart()
}

// append writes records.
func (s *spool) append(b []byte) error {
	n, err := s.records.Write(b)
	s.bytes += int64(n)
	return err
}

// endPart sorts a part of the index and writes it.
func (s *spool) endPart() error {
	s.sortPart()
	b := make([]byte, 0, spooledBytes*len(s.part))
	for i := range s.part {
		p := &s.part[i]
		b = binary.LittleEndian.AppendUint64(b, p.time)
		b = binary.LittleEndian.AppendUint64(b, uint64(p.offset))
		b = binary.LittleEndian.AppendUint32(b, uint32(p.length))
	}
	s.parts = append(s.parts, s.count)
	s.count += int64(len(s.part))
	s.part = s.part[:0]
	_, err := s.index.Write(b)
	return err
}

func (s *spool) sortPart() {
	slices.SortStableFunc(s.part, func(a, b spooled) int { return cmp.Compare(a.time, b.time) })
}

// each calls f with where each record lies, in order.
func (s *spool) each(f func(p *spooled) error) error {
	if len(s.parts) == 0 {
		s.sortPart()
		for i := range s.part {
			if err := f(&s.part[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.endPart(); err != nil {
		return err
	}
	h := make(spoolParts, 0, len(s.parts))
	for i, from := range s.parts {
		to := s.count
		if i+1 < len(s.parts) {
			to = s.parts[i+1]
		}
		p := &spoolPart{number: i, r: bufio.NewReaderSize(
			io.NewSectionReader(s.index, from*spooledBytes, (to-from)*spooledBytes), 1<<15)}
		if more, err := p.next(); err != nil {
			return err
		} else if more {
			h = append(h, p)
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		p := h[0]
		if err := f(&p.at); err != nil {
			return err
		}
		more, err := p.next()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	return nil
}

// spoolPart is a sorted part of the index that is being read.
type spoolPart struct {
	number int
	r      *bufio.Reader
	at     spooled
}

// next reads the next one; false at the end.
func (p *spoolPart) next() (bool, error) {
	var b [spooledBytes]byte
	if _, err := io.ReadFull(p.r, b[:]); err == io.EOF {
		return false, nil
	} else if err != nil {
		return false, err
	}
	le := binary.LittleEndian
	p.at = spooled{le.Uint64(b[:]), int64(le.Uint64(b[8:])), int32(le.Uint32(b[16:]))}
	return true, nil
}

// spoolParts is a heap: the part with the earliest record comes first.
type spoolParts []*spoolPart

func (h spoolParts) Len() int { return len(h) }
func (h spoolParts) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at.time, h[j].at.time), cmp.Compare(h[i].number, h[j].number)) < 0
}
func (h spoolParts) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *spoolParts) Push(x any)   { *h = append(*h, x.(*spoolPart)) }
func (h *spoolParts) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// dirOf returns the directory of a file.
func dirOf(f *os.File) string { return filepath.Dir(f.Name()) }
