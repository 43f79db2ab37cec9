// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"context"
	"errors"
	"math"

	"github.com/iotape/iotape/web/spanindex"
)

// Limits of a Window.
const (
	MaxColumns = 4096
	maxRows    = 256 // of one picture
	maxArrows  = 1500
)

// Window is what a picture asks for.
type Window struct {
	FromNS, ToNS int64
	Columns      int      // of the picture
	Rows         []RowRef // in their order
	Arrows       bool
}

// grain returns what a column stands for, ns.
func (w *Window) grain() int64 { return (w.ToNS-w.FromNS-1)/int64(w.Columns) + 1 }

// RowRef is a row of the picture.
type RowRef struct {
	Row int
	All bool // with all rows below it
}

// Picture is the answer.
type Picture struct {
	FromNS  int64      `json:"from_ns"`
	ToNS    int64      `json:"to_ns"`
	GrainNS int64      `json:"grain_ns"` // of a column
	Rows    []RowMarks `json:"rows"`
	// Arrows are numbers, ArrowFields for each: the index in Rows where it begins, where it
	// ends, when it begins and how long after that it ends (ns), how many it is, its
	// reason, and tape and number of the event at its end.
	Arrows     []int64 `json:"arrows"`
	MoreArrows bool    `json:"more_arrows,omitempty"` // than could be shown
}

// How many numbers there are of a cell, a span and an arrow.
const (
	CellFields  = 8
	SpanFields  = 7
	ArrowFields = 8
)

// RowMarks is what is on a row.
type RowMarks struct {
	Row int `json:"row"`
	// Cells are columns with calls that are too short to be shown alone: the column, the
	// kind that took the most time, that of all (ns; -1 if it is not known of any), how many calls, how many failed,
	// bytes, content, and the number of the first event.
	Cells []int64 `json:"cells"`
	// Spans are calls that are shown alone: when it began, how long it took (ns), kind,
	// failures, bytes, content, and the number of the event.
	Spans []int64 `json:"spans"`
}

// ErrWindow says that a window cannot be.
var ErrWindow = errors.New("a window has a beginning before its end, 1 to 4096 columns and at most 256 rows that " +
	"there are")

// Window returns what is to be seen in a window.
func (s *Scene) Window(ctx context.Context, w *Window) (*Picture, error) {
	if err := s.check(w); err != nil {
		return nil, err
	}
	s.mu.RLock() // times may be put right meanwhile
	defer s.mu.RUnlock()
	p := &Picture{FromNS: w.FromNS, ToNS: w.ToNS, GrainNS: w.grain(), Rows: make([]RowMarks, len(w.Rows)),
		Arrows: []int64{}}
	for i, r := range w.Rows {
		if err := s.rowMarks(ctx, w, r, &p.Rows[i]); err != nil {
			return nil, err
		}
	}
	if w.Arrows && s.arrows != nil {
		if err := s.windowArrows(w, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (s *Scene) check(w *Window) error {
	if w.ToNS <= w.FromNS || w.ToNS-w.FromNS < 0 || w.Columns < 1 || w.Columns > MaxColumns || len(w.Rows) > maxRows {
		return ErrWindow
	}
	for _, r := range w.Rows {
		if r.Row < 0 || r.Row >= len(s.rows) {
			return ErrWindow
		}
	}
	return nil
}

// lanesOf returns the lanes of a row.
func (s *Scene) lanesOf(r RowRef) []int {
	own := s.rowOf[r.Row].lanes
	if !r.All || s.rows[r.Row].Below == 0 {
		return own
	}
	all := append([]int{}, own...)
	for i := r.Row + 1; i <= r.Row+s.rows[r.Row].Below; i++ {
		if s.rows[i].Kind == "process" {
			all = append(all, s.rowOf[i].lanes...)
		}
	}
	return all
}

// wideColumns is how many columns a call has to be long to be shown alone.
const wideColumns = 2

func (s *Scene) rowMarks(ctx context.Context, w *Window, r RowRef, out *RowMarks) error {
	out.Row, out.Spans = r.Row, []int64{}
	t := s.tapes[s.rows[r.Row].Tape]
	lanes := s.lanesOf(r)
	grain := w.grain()
	c := columns{w: w, grain: grain, cells: make([]spanindex.Mark, w.Columns)}
	for _, l := range lanes {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if l >= t.index.Lines() {
			continue
		}
		shift := t.shift(t.Lanes[l].Host)
		err := t.index.Marks(l, spanindex.Window{From: w.FromNS - shift, To: w.ToNS - shift, Grain: grain},
			func(m *spanindex.Mark) {
				if m.N == 1 && len(lanes) == 1 && m.To-m.From >= wideColumns*grain {
					out.Spans = append(out.Spans, m.From+shift, m.To-m.From, int64(m.Kind()), int64(m.Failed),
						clamp(m.Bytes), int64(m.Content), clamp(m.First))
					return
				}
				c.add(m, shift)
			})
		if err != nil {
			return err
		}
	}
	out.Cells = c.numbers()
	return nil
}

// Overview returns all calls of all tapes in one row of columns.
func (s *Scene) Overview(ctx context.Context, n int) (*Picture, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	w := &Window{FromNS: s.from, ToNS: s.to, Columns: n}
	if err := s.check(w); err != nil {
		return nil, err
	}
	c := columns{w: w, grain: w.grain(), cells: make([]spanindex.Mark, n)}
	for _, t := range s.tapes {
		for l := range t.index.Lines() {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			shift := t.shift(t.Lanes[l].Host)
			if err := t.index.Marks(l, spanindex.Window{From: w.FromNS - shift, To: w.ToNS - shift, Grain: c.grain},
				func(m *spanindex.Mark) { c.add(m, shift) }); err != nil {
				return nil, err
			}
		}
	}
	return &Picture{FromNS: w.FromNS, ToNS: w.ToNS, GrainNS: c.grain,
		Rows: []RowMarks{{Row: -1, Cells: c.numbers(), Spans: []int64{}}}, Arrows: []int64{}}, nil
}

// clamp makes a number one that JavaScript has exactly.
func clamp(n uint64) int64 { return int64(min(n, 1<<53)) }

// columns are the cells of a row.
type columns struct {
	w     *Window
	grain int64
	cells []spanindex.Mark
}

// add puts a mark into the columns that it is in: its calls into the first, their time
// into all, in proportion.
func (c *columns) add(m *spanindex.Mark, shift int64) {
	from, to := m.From+shift, m.To+shift
	i, j := c.at(from), c.at(to)
	if i == j {
		c.cells[i].Add(m)
		return
	}
	kind, length := m.Kind(), float64(to-from)
	for k := i; k <= j; k++ {
		start := c.w.FromNS + int64(k)*c.grain
		part := float64(min(to, start+c.grain)-max(from, start)) / length
		if part <= 0 {
			continue
		}
		cell := &c.cells[k]
		if cell.N == 0 && cell.To == cell.From {
			cell.From, cell.To, cell.First, cell.Last = start, start+c.grain, m.First, m.Last
			cell.Content = m.Content
		}
		if k == max(i, 0) {
			cell.N, cell.Failed, cell.Bytes = cell.N+m.N, cell.Failed+m.Failed, cell.Bytes+m.Bytes
			cell.Untimed += m.Untimed
		}
		if m.N == 1 {
			cell.Busy[kind] += int64(math.Round(float64(m.Busy[kind]) * part))
			continue
		}
		for b := range m.Busy {
			cell.Busy[b] += int64(math.Round(float64(m.Busy[b]) * part))
		}
	}
}

// numbers returns the cells that have something.
func (c *columns) numbers() []int64 {
	list := []int64{}
	for i := range c.cells {
		m := &c.cells[i]
		if m.N == 0 && m.To <= m.From {
			continue
		}
		busy := int64(0)
		for _, ns := range m.Busy {
			busy += ns
		}
		if m.N > 0 && m.N == m.Untimed {
			busy = unknownNS
		}
		list = append(list, int64(i), int64(m.Kind()), busy, clamp(m.N), clamp(m.Failed), clamp(m.Bytes),
			int64(m.Content), clamp(m.First))
	}
	return list
}

// unknownNS stands for a time that is not known.
const unknownNS = -1

// at returns the column of a time, the first or last for one outside.
func (c *columns) at(ns int64) int {
	return int(min(max((ns-c.w.FromNS)/c.grain, 0), int64(len(c.cells)-1)))
}

// windowArrows adds the arrows between rows of the window.
func (s *Scene) windowArrows(w *Window, p *Picture) error {
	rowOf := make([][]int, len(s.tapes)) // of each tape and lane: 1 + the index in Rows; 0 is none
	for i, t := range s.tapes {
		rowOf[i] = make([]int, len(t.Lanes))
	}
	for i, r := range w.Rows {
		lanes := rowOf[s.rows[r.Row].Tape]
		for _, l := range s.lanesOf(r) {
			if had := lanes[l]; had == 0 || s.rows[w.Rows[had-1].Row].Kind != "thread" {
				lanes[l] = i + 1
			}
		}
	}
	type visible struct{ pair, from, to int }
	var pairs []visible
	for k := range s.arrows.pairs {
		p := &s.arrows.pairs[k]
		from, to := rowOf[p.from.tape][p.from.lane], rowOf[p.to.tape][p.to.lane]
		if from != 0 && to != 0 && from != to {
			pairs = append(pairs, visible{k, from - 1, to - 1})
		}
	}
	grain := w.grain()
	// What is too much is drawn coarser, a few times, and then not all.
	for range 4 {
		p.Arrows, p.MoreArrows = p.Arrows[:0], false
		for _, v := range pairs {
			room := maxArrows - len(p.Arrows)/ArrowFields
			if room <= 0 {
				p.MoreArrows = true
				break
			}
			err := s.arrows.index.Marks(v.pair, spanindex.Window{From: w.FromNS, To: w.ToNS, Grain: grain, Limit: room},
				func(m *spanindex.Mark) {
					tape, seq := s.order.Event(int(m.First))
					p.Arrows = append(p.Arrows, int64(v.from), int64(v.to), m.From, m.To-m.From, clamp(m.N),
						int64(m.Kind()), int64(tape), clamp(seq))
				})
			if errors.Is(err, spanindex.ErrLimit) {
				p.MoreArrows = true
				break
			}
			if err != nil {
				return err
			}
		}
		if !p.MoreArrows {
			return nil
		}
		grain *= 4
	}
	return nil
}
