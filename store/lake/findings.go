// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/store/catalogue"
	"github.com/iotape/iotape/trace"
)

// findingColumns are those of the table of findings: what the flow of a tape's content shows.
var findingColumns = []store.Column{
	{Name: "problem", Type: "VARCHAR"}, {Name: "wrong", Type: "BOOLEAN"}, {Name: "finding", Type: "VARCHAR"},
	{Name: "count", Type: "BIGINT"}, {Name: "bytes", Type: "BIGINT"},
}

// flows reports whether the findings of a tape are looked for.
func (l *Lake) flows(tape *trace.Tape) bool {
	return int64(tape.Manifest().Counts.Events) <= l.Findings
}

// findingsOf writes the findings of a tape to a file, if they are looked for.
func (l *Lake) findingsOf(ctx context.Context, tape *trace.Tape, row *catalogue.Row, file string) (store.View, error) {
	v := store.View{Name: findingsTable, Columns: append([]store.Column{{Name: dayColumn, Type: "DATE"},
		{Name: hostColumn, Type: "VARCHAR"}}, findingColumns...)}
	if !l.flows(tape) {
		return v, nil
	}
	f, err := flow.Load(ctx, []*trace.Tape{tape}, &flow.Options{Progress: func(step string) {
		l.Progress("looking for findings: "+step, 0, 0)
	}})
	if err != nil {
		return v, err
	}
	v.Files = []string{file}
	return v, store.WriteParquet(ctx, file, v.Columns, "", func(yield func([]any, error) bool) {
		for _, x := range f.Findings() {
			if !yield([]any{row.Start, store.Text(row.Host), string(x.Problem), x.Problem.Wrong(), store.Text(x.Text),
				int64(x.Count), x.Bytes}, nil) {
				return
			}
		}
	})
}
