// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/wallclock"
	"github.com/iotape/iotape/store"
)

// TableColumns are the columns that WriteTable needs, in this order.
func TableColumns() []string {
	return []string{"start", "host", "duration_ns", "calls", "failed", "read", "written", "lost", "begins", "ends",
		"location"}
}

// WriteTable writes rows of TableColumns for people, in their units.
func WriteTable(w io.Writer, rows *store.Rows, clock wallclock.Form) error {
	t := report.Table{Head: []string{"start", "host", "length", "calls", "failed", "read", "written", "lost", "begins",
		"ends", "tape"}, Left: 2}
	text := func(v any) string {
		s, _ := v.(string)
		return report.Printable(s)
	}
	number := func(v any, unit func(uint64) string) string {
		switch n := v.(type) {
		case uint64:
			if n > 0 {
				return unit(n)
			}
		case int64: // of a lake
			if n > 0 {
				return unit(uint64(n))
			}
		}
		return "–"
	}
	n := 0
	for ; rows.Next(); n++ {
		v := rows.Values()
		start, _ := v[0].(time.Time)
		length, _ := v[2].(int64)
		t.Add(clock.Text(start, wallclock.Second), text(v[1]), report.Duration(length),
			number(v[3], report.Count), number(v[4], report.Count), number(v[5], report.Bytes),
			number(v[6], report.Bytes), number(v[7], report.Count), text(v[8]), text(v[9]), text(v[10]))
	}
	if rows.Err() != nil {
		return rows.Err()
	}
	var b strings.Builder
	if n > 0 {
		t.Write(&b)
	}
	fmt.Fprintf(&b, "%s\n", report.Plural(n, "tape", "tapes"))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteFields lists the fields that can be asked for, and what they are.
func WriteFields(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range Fields() {
		name := f.Name
		if f.Keyed {
			name += ".NAME"
		}
		fmt.Fprintf(t, "%s\t%s\n", strings.Join(append([]string{name}, f.Aliases...), ", "), f.About)
	}
	return t.Flush()
}
