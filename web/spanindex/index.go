// SPDX-License-Identifier: Apache-2.0

package spanindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"

	"github.com/iotape/iotape/trace"
)

// fan is how many nodes one of the level above sums up.
const fan = 8

// minEntryBytes is the least that the directory has for a page.
const minEntryBytes = 20

// Index is an open index. It is safe for concurrent use.
type Index struct {
	r     io.ReaderAt
	extra []byte
	lines []line
}

type line struct {
	pages  []pageEntry
	levels [][]Mark // sums of fan pages, of fan of these, and so on
}

// Open opens the index in a file of size bytes.
func Open(r io.ReaderAt, size int64) (*Index, error) {
	b, start, err := readDirectory(r, size)
	if err != nil {
		return nil, err
	}
	x := &Index{r: r}
	d := &decoder{b: b}
	x.extra = d.take(int(min(d.uvarint(), uint64(len(d.b)+1))))
	n := d.uvarint()
	if n > MaxLines || n > uint64(len(d.b)) {
		return nil, damaged("too many lines")
	}
	x.lines = make([]line, n)
	for i := range x.lines {
		pages := d.uvarint()
		if pages > uint64(len(d.b)/minEntryBytes) {
			return nil, damaged("too many pages")
		}
		l := &x.lines[i]
		l.pages = make([]pageEntry, pages)
		for k := range l.pages {
			e := d.entry()
			if d.bad || !e.possible(start) {
				return nil, damaged("a page that cannot be")
			}
			l.pages[k] = e
		}
		l.sumUp()
	}
	if d.bad || len(d.b) > 0 {
		return nil, damaged("its directory is damaged")
	}
	return x, nil
}

func damaged(what string) error {
	return fmt.Errorf("index of the time line: %s: %w", what, trace.ErrCorrupt)
}

// readDirectory reads what stands behind the pages, and checks it. start is where the
// pages end.
func readDirectory(r io.ReaderAt, size int64) (directory []byte, start int64, err error) {
	if size < int64(len(magic)+trailerBytes) {
		return nil, 0, damaged("it breaks off")
	}
	t := make([]byte, trailerBytes)
	if _, err := r.ReadAt(t, size-trailerBytes); err != nil {
		return nil, 0, fmt.Errorf("read index of the time line: %w", err)
	}
	at, length := binary.LittleEndian.Uint64(t), binary.LittleEndian.Uint64(t[8:])
	if string(t[20:]) != magic || at > uint64(size) || length != uint64(size)-trailerBytes-at {
		return nil, 0, damaged("no trailer")
	}
	directory = make([]byte, length)
	if _, err := r.ReadAt(directory, int64(at)); err != nil {
		return nil, 0, fmt.Errorf("read index of the time line: %w", err)
	}
	if crc32.Checksum(directory, castagnoli) != binary.LittleEndian.Uint32(t[16:]) {
		return nil, 0, damaged("its directory is damaged")
	}
	return directory, int64(at), nil
}

// possible reports whether a page can be in front of the byte end, and hold such spans.
func (e *pageEntry) possible(end int64) bool {
	return e.bytes <= maxPageBytes && e.off >= int64(len(magic)) && e.off <= end-int64(e.bytes) &&
		e.sum.To >= e.sum.From && e.sum.N > 0 && e.sum.N <= pageSpans && e.sum.Last >= e.sum.First
}

// sumUp makes the levels over a line's pages.
func (l *line) sumUp() {
	if len(l.pages) <= 1 {
		return
	}
	level := make([]Mark, (len(l.pages)+fan-1)/fan)
	for i := range l.pages {
		level[i/fan].Add(&l.pages[i].sum)
	}
	for l.levels = append(l.levels, level); len(level) > 1; l.levels = append(l.levels, level) {
		above := make([]Mark, (len(level)+fan-1)/fan)
		for i := range level {
			above[i/fan].Add(&level[i])
		}
		level = above
	}
}

// Extra returns the bytes that Finish was given.
func (x *Index) Extra() []byte { return x.extra }

// Lines returns how many lines there are.
func (x *Index) Lines() int { return len(x.lines) }

// Sum returns all of a line as one mark, of which N is 0 if it is empty.
func (x *Index) Sum(line int) (m Mark) {
	switch l := &x.lines[line]; {
	case len(l.levels) > 0:
		m = l.levels[len(l.levels)-1][0]
	case len(l.pages) > 0:
		m = l.pages[0].sum
	}
	return m
}

// walk is one visit of a line.
type walk struct {
	x         *Index
	l         *line
	w         Window
	page      []byte
	yield     func(*Mark)
	remaining int
	mark      Mark // of one span, or a group, to be given
	work      Work
}

// Window is what a picture asks for.
type Window struct {
	From, To int64 // ns
	Grain    int64 // ns: what is shorter need not be told apart
	Limit    int   // of the marks; 0 is none
	Work     *Work // added to; nil: it is not counted
}

// Work is what was looked at for a window.
type Work struct {
	Nodes  int // sums in memory
	Pages  int // that were read
	Groups int // sums within pages
	Spans  int
}

// ErrLimit says that there are more marks than the window's limit.
var ErrLimit = errors.New("more marks than were asked for")

// Marks calls yield with what is on a line within a window, in the order of the line. A
// mark that is longer than the grain is a single span. It is reused: who keeps it, copies.
func (x *Index) Marks(line int, w Window, yield func(*Mark)) error {
	l := &x.lines[line]
	v := &walk{x: x, l: l, w: w, yield: yield, remaining: w.Limit}
	if w.Work != nil {
		defer func() {
			w.Work.Nodes += v.work.Nodes
			w.Work.Pages += v.work.Pages
			w.Work.Groups += v.work.Groups
			w.Work.Spans += v.work.Spans
		}()
	}
	switch {
	case len(l.levels) > 0:
		return v.node(len(l.levels)-1, 0)
	case len(l.pages) > 0:
		return v.open(0)
	}
	return nil
}

// give gives a mark if it is in the window; whole says that it need not be opened.
func (v *walk) give(m *Mark) (done bool, err error) {
	if m.To < v.w.From || m.From > v.w.To {
		return true, nil
	}
	if m.N > 1 && m.To-m.From > v.w.Grain {
		return false, nil
	}
	if v.w.Limit > 0 {
		if v.remaining == 0 {
			return true, ErrLimit
		}
		v.remaining--
	}
	v.yield(m)
	return true, nil
}

func (v *walk) node(level, i int) error {
	v.work.Nodes++
	if done, err := v.give(&v.l.levels[level][i]); done {
		return err
	}
	for k := i * fan; k < (i+1)*fan; k++ {
		var err error
		switch {
		case level > 0 && k < len(v.l.levels[level-1]):
			err = v.node(level-1, k)
		case level == 0 && k < len(v.l.pages):
			err = v.open(k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open gives a page as one mark, or the spans in it.
func (v *walk) open(i int) error {
	e := &v.l.pages[i]
	v.work.Nodes++
	if done, err := v.give(&e.sum); done {
		return err
	}
	v.work.Pages++
	return v.x.spans(e, &v.page, func(sum *Mark) (bool, error) {
		v.work.Groups++
		done, err := v.give(sum)
		return !done, err
	}, func(s *Span) error {
		v.work.Spans++
		if s.To < v.w.From || s.From > v.w.To {
			return nil
		}
		v.mark = s.mark()
		_, err := v.give(&v.mark)
		return err
	})
}

// spans calls f with the spans of a page, of those groups that enter wants; buf is for its
// bytes.
func (x *Index) spans(e *pageEntry, buf *[]byte, enter func(*Mark) (bool, error), f func(*Span) error) error {
	if cap(*buf) < e.bytes {
		*buf = make([]byte, maxPageBytes)
	}
	b := (*buf)[:e.bytes]
	if _, err := x.r.ReadAt(b, e.off); err != nil {
		return fmt.Errorf("read index of the time line: %w", err)
	}
	if crc32.Checksum(b, castagnoli) != e.check {
		return fmt.Errorf("index of the time line: page at %d: %w", e.off, trace.ErrCorrupt)
	}
	d := &decoder{b: b}
	var sum Mark
	for left := e.sum.N; left > 0; left -= sum.N {
		d.mark(&sum, sum.From, sum.First)
		spans := decoder{b: d.take(int(min(d.uvarint(), maxPageBytes)))}
		if d.bad || sum.N == 0 || sum.N > min(left, groupSpans) || sum.To < sum.From || sum.Last < sum.First {
			return fmt.Errorf("index of the time line: page at %d: a group that cannot be: %w", e.off, trace.ErrCorrupt)
		}
		if ok, err := enter(&sum); !ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		s := Span{From: sum.From, ID: sum.First}
		for range sum.N {
			if err := spans.span(&s); err != nil {
				return err
			}
			if err := f(&s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Near returns the span with an ID on a line, and those before and after it; ok is false
// for those that there are not.
func (x *Index) Near(line int, id uint64) (before, at, after Span, ok [3]bool, err error) {
	pages := x.lines[line].pages
	first := max(sort.Search(len(pages), func(i int) bool { return pages[i].sum.Last >= id })-1, 0)
	var buf []byte
	for i := first; i < len(pages) && !ok[2]; i++ {
		err = x.spans(&pages[i], &buf, func(*Mark) (bool, error) { return true, nil }, func(s *Span) error {
			switch {
			case s.ID < id:
				before, ok[0] = *s, true
			case s.ID == id:
				at, ok[1] = *s, true
			case !ok[2]:
				after, ok[2] = *s, true
			}
			return nil
		})
		if err != nil {
			return before, at, after, ok, err
		}
	}
	return before, at, after, ok, nil
}
