// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/store"
)

// smallFile is the size, in bytes, below which a file of a partition is joined with others,
// up to largeFile together.
const (
	smallFile = 64 << 20
	largeFile = 256 << 20
)

// Compacted is what Compact did.
type Compacted struct {
	Before, After int   // files that were joined, and what became of them
	Bytes         int64 // of the new files
}

// Compact joins the small files of each table's partitions, sorted as before. Each join is a
// commit of its own, so that what is done stays when it is stopped. Rows that are added
// meanwhile stay as they are. The old files go with Expire.
func (l *Lake) Compact(ctx context.Context) (done Compacted, err error) {
	s, err := l.load(ctx)
	if err != nil {
		return done, err
	}
	for _, d := range definitions() {
		parts, err := l.plan(ctx, d, s.tables[d.name], &Range{})
		if err != nil {
			return done, err
		}
		groups := smallOnes(parts)
		for i, g := range groups {
			l.Progress("compacting "+d.name, int64(i), int64(len(groups)))
			if err := l.join(ctx, d, s, g, &done); err != nil {
				return done, fmt.Errorf("compact table %s: %w", d.name, err)
			}
		}
	}
	return done, nil
}

// smallOnes returns groups of small files of one partition each, of at least two.
func smallOnes(parts []*part) (groups [][]*part) {
	var group []*part
	var bytes int64
	end := func() {
		if len(group) > 1 {
			groups = append(groups, group)
		}
		group, bytes = nil, 0
	}
	for _, p := range parts { // they are in the order of partitions
		n := p.bytes
		if len(group) > 0 && (group[0].day != p.day || group[0].host != p.host || bytes+n > largeFile) {
			end()
		}
		if n < smallFile {
			group, bytes = append(group, p), bytes+n
		}
	}
	end()
	return groups
}

// join replaces files of one partition by one.
func (l *Lake) join(ctx context.Context, d *definition, s *state, group []*part, done *Compacted) (err error) {
	temp, err := wholefile.TempDir(tempName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	work := temp.Temp
	w := &writer{l: l, dir: work}
	m := s.tables[d.name].clone()
	m.extend(d)
	fields := fieldsOf(m.schema(), d.all())
	var made iceberg.DataFile
	err = l.withTables(ctx, work, []*definition{d}, s, [][]*part{group}, func(t *store.Tables) error {
		var names []string
		for _, c := range d.all() {
			names = append(names, name(c.Name))
		}
		made, err = w.write(ctx, t, d, m, &partition{group[0].day, group[0].host}, "joined",
			fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", strings.Join(names, ", "), d.name, d.order()))
		return err
	})
	if err != nil {
		w.drop()
		return err
	}
	if err := l.After("join " + d.name); err != nil {
		return err
	}
	remove, add := map[string]bool{}, []iceberg.DataFile{}
	for _, p := range group {
		remove[p.path] = true
	}
	if made != nil {
		add = append(add, made)
	}
	err = l.commit(ctx, func(c *change) error {
		now := c.table(d.name)
		now.extend(d)
		if !sameFields(fieldsOf(now.schema(), d.all()), fields) {
			return errColumns(d)
		}
		return c.replace(ctx, d.name, remove, add, nil)
	})
	if errors.Is(err, errGone) { // by another Compact or Expire
		w.drop()
		return nil
	}
	if err == nil {
		done.Before += len(group)
		done.After += len(add)
		for _, f := range add {
			done.Bytes += f.FileSizeBytes()
		}
	}
	return err
}
