// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/store/catalogue"
)

// Rows are the result of a query. They must be closed.
type Rows struct {
	*store.Rows
	work *wholefile.NewDir
	// Files and Bytes are what the engine was given to read, of what the tables have.
	Files, AllFiles int
	Bytes, AllBytes int64
}

// Close ends the query, and removes its temporary files.
func (r *Rows) Close() error { return errors.Join(r.Rows.Close(), r.work.Close()) }

// Select runs one SELECT over the rows of a range, in the tables of the lake that it names. The
// engine gets the files that can have such rows and that the statement's conditions leave, and
// can read nothing else.
func (l *Lake) Select(ctx context.Context, query string, r *Range) (rows *Rows, err error) {
	return l.selectRows(ctx, query, nil, r, true)
}

// Find returns the rows of the table of summaries that answer a question to a catalogue. They must
// be closed. Numbers are signed.
func (l *Lake) Find(ctx context.Context, q catalogue.Question, r *Range) (*Rows, error) {
	return l.selectRows(ctx, "WITH tapes AS (SELECT "+tapeIDColumn+" AS id, * FROM "+summariesTable+") "+q.SQL, q.Args,
		r, true)
}

// selectRows is Select with values for the statement's ?. Without prune, the statement's
// conditions are not looked at.
func (l *Lake) selectRows(ctx context.Context, query string, args []any, r *Range, prune bool) (_ *Rows, err error) {
	s, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	q, err := newPruner(ctx, query, l.Query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	q.off = !prune
	temp, err := wholefile.TempDir(tempName)
	if err != nil {
		return nil, err
	}
	work := temp.Temp
	rows := &Rows{work: temp}
	defer func() {
		if err != nil {
			err = errors.Join(err, temp.Close())
		}
	}()
	var views []store.View
	for _, d := range definitions() {
		m := s.tables[d.name]
		v := store.View{Name: d.name, Columns: d.all(), Fields: fieldsOf(m.schema(), d.all()), Where: d.condition(r)}
		if q.reads.has(d.name) {
			l.Progress("planning "+d.name, 0, 0)
			parts, err := l.planFor(ctx, d, m, r, q)
			if err != nil {
				return nil, err
			}
			dir := filepath.Join(work, d.name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				return nil, err
			}
			if v.Files, err = l.fetched(ctx, parts, dir); err != nil {
				return nil, err
			}
			rows.count(parts, m.current())
		}
		views = append(views, v)
	}
	if rows.Rows, err = store.QueryTables(ctx, views, query, l.Query, args...); err != nil {
		return nil, fmt.Errorf("%s: %w", l.where, err)
	}
	return rows, nil
}

func (r *Rows) count(parts []*part, s *snapshot) {
	r.Files += len(parts)
	for _, p := range parts {
		r.Bytes += p.bytes
	}
	if s != nil {
		r.AllFiles += int(numberIn(s, "total-data-files"))
		r.AllBytes += numberIn(s, "total-files-size")
	}
}
