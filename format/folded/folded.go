// SPDX-License-Identifier: Apache-2.0

package folded

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report/flame"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "folded stacks",
	ID:       "folded",
	Suffixes: []string{".folded"},
	About:    "calls by their stacks, for flamegraph.pl, inferno and speedscope",
	Write:    write,
}

func write(ctx context.Context, out io.Writer, t *trace.Tape, o *format.Options) (*format.Done, error) {
	m, err := flame.ParseMeasure(cmp.Or(o.Weight, string(flame.Time)))
	if err != nil {
		return nil, err
	}
	sums, err := Sum(ctx, t)
	if err != nil {
		return nil, err
	}
	lines := map[string]uint64{}
	for _, s := range sums.Samples() {
		names := s.Path()
		for i := range names {
			names[i] = Clean(names[i])
		}
		lines[strings.Join(names, ";")] += m.Of(s.Weight)
	}
	done := &format.Done{}
	if sums.Without > 0 {
		done.LeftOut("calls without a stack", sums.Without)
	}
	w := bufio.NewWriter(out)
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		if n := lines[line]; n > 0 {
			fmt.Fprintf(w, "%s %d\n", line, n)
			done.Records++
		}
	}
	return done, w.Flush()
}

// Sum adds up the calls of a tape by their stacks.
func Sum(ctx context.Context, t *trace.Tape) (*flame.Sums, error) {
	sums, n := &flame.Sums{}, 0
	for ev, err := range t.Events() {
		if err != nil {
			return nil, err
		}
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if ev.Kind == event.Call {
			sums.See(ev)
		}
	}
	return sums, nil
}

// Clean makes a name one that can stand in a line: without semicolons and control characters.
func Clean(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029:
			return '?'
		}
		return r
	}, name)
}
