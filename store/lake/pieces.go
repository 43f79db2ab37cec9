// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/store"
)

// Limits of a piece: so much of a table is read at a time, and fetched from a bucket.
const (
	pieceBytes = 256 << 20
	pieceFiles = 256
)

// pieces calls f with the rows of a range in one table, a piece after the other in the order of
// days, so that neither memory nor temporary files grow with the range. day is the first one of
// a piece.
func (l *Lake) pieces(ctx context.Context, s *state, table string, r *Range,
	f func(t *store.Tables, day int32) error) error {
	d := definitionOf(table)
	parts, err := l.plan(ctx, d, s.tables[table], r)
	if err != nil {
		return err
	}
	for done := 0; done < len(parts); {
		l.Progress("reading "+table, int64(done), int64(len(parts)))
		n, bytes := 0, int64(0)
		for ; done+n < len(parts) && n < pieceFiles; n++ {
			if bytes += parts[done+n].bytes; n > 0 && bytes > pieceBytes {
				break
			}
		}
		if err := l.piece(ctx, d, s, parts[done:done+n], r, f); err != nil {
			return err
		}
		done += n
	}
	return nil
}

func (l *Lake) piece(ctx context.Context, d *definition, s *state, parts []*part, r *Range,
	f func(t *store.Tables, day int32) error) (err error) {
	work, err := wholefile.TempDir(tempName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	dir := filepath.Join(work.Temp, d.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	paths, err := l.fetched(ctx, parts, dir)
	if err != nil {
		return err
	}
	t, err := store.OpenTables(ctx, []store.View{{Name: d.name, Columns: d.all(),
		Fields: fieldsOf(s.tables[d.name].schema(), d.all()), Files: paths, Where: d.condition(r)}}, "", l.Query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return f(t, parts[0].day)
}
