// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"path"
	"strings"
	"time"
)

// Expiry says what Expire removes.
type Expiry struct {
	Keep   time.Duration // rows of days that ended this long ago go; 0: all stay
	Grace  time.Duration // files that no table has any more go after this time
	DryRun bool          // count what would go
}

// Expired is what Expire removed.
type Expired struct {
	Files, Rows int64 // of the tables
	Old         int   // files that no table had any more
	Bytes       int64 // of these
}

// Expire takes the rows of old days out of all tables, in one commit. Then it removes files
// that no table has had for the time of grace: of rows that were taken out or joined, of
// metadata, and of runs that were killed. Programs that read or add for longer than that fail.
func (l *Lake) Expire(ctx context.Context, e *Expiry) (done Expired, err error) {
	if _, err := l.load(ctx); err != nil {
		return done, err
	}
	if e.Keep > 0 {
		if err := l.expireRows(ctx, e, &done); err != nil {
			return done, err
		}
	}
	if e.DryRun {
		return done, nil
	}
	if err := l.After("expire"); err != nil {
		return done, err
	}
	s, err := l.forget(ctx, e.Grace)
	if err != nil {
		return done, err
	}
	return done, l.sweep(ctx, s, l.Clock().Add(-e.Grace), &done)
}

// expireRows takes the files of old days out.
func (l *Lake) expireRows(ctx context.Context, e *Expiry, done *Expired) error {
	// Up to the day before the one that the limit is in.
	limit := l.Clock().Add(-e.Keep).UTC().Truncate(secondsOfDay * time.Second)
	return l.commit(ctx, func(c *change) error {
		*done = Expired{}
		for _, d := range definitions() {
			parts, err := l.plan(ctx, d, c.base.tables[d.name], &Range{To: limit})
			if err != nil {
				return err
			}
			remove := map[string]bool{}
			for _, p := range parts {
				if p.day < dayOf(limit) {
					remove[p.path] = true
					done.Files, done.Rows = done.Files+1, done.Rows+p.rows
				}
			}
			if d.name == summariesTable && !e.DryRun && expiredDay(c.base) < dayOf(limit) {
				// Without this, a tape whose first day went could be added a second time.
				c.table(d.name).Properties[expiredKey] = limit.Format(time.DateOnly)
			}
			if len(remove) == 0 || e.DryRun {
				continue
			}
			if err := c.replace(ctx, d.name, remove, nil, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// expiredKey is the property with the day before which the lake keeps no rows.
const expiredKey = "iotape.kept-from"

// expiredDay returns the first day that the lake keeps.
func expiredDay(s *state) int32 {
	t, err := time.Parse(time.DateOnly, s.tables[summariesTable].Properties[expiredKey])
	if err != nil {
		return -1 << 31
	}
	return dayOf(t)
}

// forget makes tables forget snapshots that ended before the time of grace, and returns the
// state that is left.
func (l *Lake) forget(ctx context.Context, grace time.Duration) (s *state, err error) {
	limit := l.Clock().Add(-grace).UnixMilli()
	err = l.commit(ctx, func(c *change) error {
		for _, d := range definitions() {
			old := c.base.tables[d.name].Snapshots
			first := 0
			// A snapshot ends when the next one begins.
			for first < len(old)-1 && old[first+1].Timestamp < limit {
				first++
			}
			if first > 0 {
				c.table(d.name).keep(old[first:])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l.load(ctx)
}

// sweep removes files of tables that were stored before a time and that the state does not
// name.
func (l *Lake) sweep(ctx context.Context, s *state, before time.Time, done *Expired) error {
	named := map[string]bool{}
	for _, f := range s.files {
		named[f] = true
	}
	for _, d := range definitions() {
		named[publishedKey(d.name, s.number)] = true
		named[d.name+"/metadata/version-hint.text"] = true
		for i := range s.tables[d.name].Snapshots {
			if err := l.name(ctx, &s.tables[d.name].Snapshots[i], named); err != nil {
				return err
			}
		}
	}
	for _, d := range definitions() {
		for o, err := range l.files.List(ctx, d.name+"/") {
			if err != nil {
				return err
			}
			dir := strings.TrimPrefix(path.Dir(o.Key), d.name+"/")
			name := path.Base(o.Key)
			ours := strings.HasPrefix(dir, "data/") || dir == "metadata" &&
				(strings.HasSuffix(name, ".avro") || l.tables.owns(name))
			if named[o.Key] || !ours || !o.Stored.Before(before) {
				continue
			}
			if err := l.files.Remove(ctx, o.Key); err != nil {
				return err
			}
			done.Old, done.Bytes = done.Old+1, done.Bytes+o.Bytes
			l.Progress("removing old files", int64(done.Old), 0)
		}
	}
	return nil
}

// name notes the keys of all files of a snapshot.
func (l *Lake) name(ctx context.Context, s *snapshot, named map[string]bool) error {
	key, err := l.key(s.List)
	if err != nil {
		return err
	}
	named[key] = true
	list, err := l.manifests(ctx, s)
	if err != nil {
		return err
	}
	for _, m := range list {
		key, err := l.key(m.FilePath())
		if err != nil {
			return err
		}
		if named[key] { // another snapshot has it too
			continue
		}
		named[key] = true
		entries, err := l.entries(ctx, m)
		if err != nil {
			return err
		}
		for _, e := range entries {
			key, err := l.key(e.DataFile().FilePath())
			if err != nil {
				return err
			}
			named[key] = true
		}
	}
	return nil
}
