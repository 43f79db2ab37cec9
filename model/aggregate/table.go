// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// DefaultRows is how many rows a Table has room for if nothing else is said.
const DefaultRows = 16384

// Table is what was counted, by key. It belongs to one goroutine.
type Table struct {
	By By
	// CgroupOf, if set, returns the path of the control group of an event's process, "" if it is not known, for
	// ByPlace.
	CgroupOf func(ev *event.Event) string

	rows   map[Key]*Counts
	places map[string]facts.Place // by control group
	most   int
}

// NewTable returns an empty table with room for so many rows besides the one for the
// rest; 0 is DefaultRows.
func NewTable(by By, rows int) *Table {
	if rows <= 0 {
		rows = DefaultRows
	}
	return &Table{By: by, rows: map[Key]*Counts{}, most: rows}
}

// Row is a line of a table.
type Row struct {
	Key Key
	*Counts
}

// Len returns how many rows there are.
func (t *Table) Len() int { return len(t.rows) }

// Row returns a row, nil if there is none. It is the table's own.
func (t *Table) Row(k Key) *Counts { return t.rows[k] }

// Rows returns all rows, in no order. The counts are the table's own.
func (t *Table) Rows() iter.Seq2[Key, *Counts] {
	return func(yield func(Key, *Counts) bool) {
		for k, c := range t.rows {
			if !yield(k, c) {
				return
			}
		}
	}
}

// Add adds to a row what was counted elsewhere.
func (t *Table) Add(k Key, c *Counts) { t.row(k).Add(c) }

// row returns the row of a key, or, if there is no room, the one for the rest.
func (t *Table) row(k Key) *Counts {
	k = k.In(t.By)
	if c := t.rows[k]; c != nil {
		return c
	}
	room := t.most
	if t.rows[Key{Other: true}] != nil {
		room++
	}
	if len(t.rows) >= room && !k.Other {
		return t.row(Key{Other: true})
	}
	c := &Counts{}
	t.rows[k] = c
	return c
}

// Merge adds another table, of at least the dimensions of this one.
func (t *Table) Merge(o *Table) {
	for k, c := range o.rows {
		t.Add(k, c)
	}
}

// Project returns the table of fewer dimensions.
func (t *Table) Project(by By) *Table {
	p := NewTable(by&t.By, t.most)
	p.Merge(t)
	return p
}

// Total returns the sum of all rows.
func (t *Table) Total() *Counts {
	var sum Counts
	for _, c := range t.rows {
		sum.Add(c)
	}
	return &sum
}

// Order is what rows are sorted by.
type Order string

// The orders: the most first, but for Name.
const (
	OrderCalls  Order = "calls"
	OrderFailed Order = "failed"
	OrderBytes  Order = "bytes"
	OrderTime   Order = "time" // spent in the calls
	OrderP99    Order = "p99"
	OrderMax    Order = "max"
	OrderName   Order = "name" // by the columns that rows are told apart by
)

// Orders are all of them.
func Orders() []Order {
	return []Order{OrderCalls, OrderTime, OrderBytes, OrderFailed, OrderP99, OrderMax, OrderName}
}

// Sorted returns the rows in an order. Rows that are equal in it are sorted by name, and
// the row for the rest is the last.
func (t *Table) Sorted(o Order) []Row {
	rows := make([]Row, 0, len(t.rows))
	weights := make(map[Key]uint64, len(t.rows))
	for k, c := range t.rows {
		rows = append(rows, Row{k, c})
		weights[k] = c.weight(o)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		if a.Key.Other != b.Key.Other {
			if a.Key.Other {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(weights[b.Key], weights[a.Key]), a.Key.Compare(b.Key))
	})
	return rows
}

func (c *Counts) weight(o Order) uint64 {
	switch o {
	case OrderCalls:
		return c.Calls
	case OrderFailed:
		return c.Failed
	case OrderBytes:
		return c.Bytes()
	case OrderTime:
		return c.NS
	case OrderP99:
		return c.Quantile(0.99)
	case OrderMax:
		return c.MaxNS
	}
	return 0
}

// Compare orders keys by the columns that tables show them in: negative if k comes first.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Comm, o.Comm), cmp.Compare(k.PID, o.PID), cmp.Compare(k.UID, o.UID),
		strings.Compare(k.Op.String(), o.Op.String()), cmp.Compare(k.Signal, o.Signal),
		k.Place.Compare(o.Place),
		strings.Compare(k.Dir, o.Dir), strings.Compare(k.File, o.File),
		strings.Compare(k.Ext, o.Ext), cmp.Compare(k.Octave, o.Octave))
}

// IntervalSnapshot has what was counted in an interval.
type IntervalSnapshot struct {
	*Table
	At      time.Time     // the interval's end
	Elapsed time.Duration // its length, more than 0
	// Lost are calls that were not counted because even the row for the rest was missing:
	// 0, unless the kernel has no memory. Untracked are threads that could not be followed.
	Lost, Untracked uint64
	Last            bool // what was counted has ended
}

// Rate returns how many of n there were in a second.
func (r *IntervalSnapshot) Rate(n uint64) float64 { return float64(n) / r.Elapsed.Seconds() }
