// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// change is one commit in the making: the tables that it changes, and the files that it has
// stored for them.
type change struct {
	l          *Lake
	base, next *state
	made       []string // keys
}

// maxTries is how often a commit is made again because others were faster.
const maxTries = 200

// commit changes the tables by f, which begins anew, with the tables as they are then, if
// another commit was faster. A commit that changes nothing is not made.
func (l *Lake) commit(ctx context.Context, f func(c *change) error) error {
	for try := range l.tries {
		base, err := l.load(ctx)
		if err != nil {
			return err
		}
		next := &state{number: base.number, files: base.files, tables: maps.Clone(base.tables)}
		c := &change{l: l, base: base, next: next}
		if err := f(c); err != nil {
			return errors.Join(err, c.drop())
		}
		if maps.Equal(c.next.tables, base.tables) {
			return l.tables.settle(ctx, base)
		}
		err = l.tables.commit(ctx, base, c.next)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := c.drop(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(rand.IntN(10*min(try+1, 50))+1) * time.Millisecond):
		}
	}
	return fmt.Errorf("%s: %w: %d tries failed; run this again", l.where, errBusy, l.tries)
}

// errBusy is of a commit that did not get its turn. Nothing has changed.
var errBusy = errors.New("others commit all the time")

// drop removes what the commit stored in vain.
func (c *change) drop() (err error) {
	for _, key := range c.made {
		err = errors.Join(err, c.l.files.Remove(context.WithoutCancel(context.Background()), key))
	}
	c.made = nil
	return err
}

// table returns a table that can be changed.
func (c *change) table(name string) *metadata {
	m := c.next.tables[name]
	if m == c.base.tables[name] {
		m = m.clone()
		c.next.tables[name] = m
	}
	return m
}

// manifests returns the manifests of a table's current snapshot.
func (l *Lake) manifests(ctx context.Context, s *snapshot) ([]iceberg.ManifestFile, error) {
	if s == nil {
		return nil, nil
	}
	key, err := l.key(s.List)
	if err != nil {
		return nil, err
	}
	b, err := l.read(ctx, key)
	if err != nil {
		return nil, err
	}
	list, err := iceberg.ReadManifestList(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: the lake is damaged: %s: %w", l.where, key, err)
	}
	return list, nil
}

// entries returns the files that a manifest has.
func (l *Lake) entries(ctx context.Context, m iceberg.ManifestFile) ([]iceberg.ManifestEntry, error) {
	if m.ManifestContent() != iceberg.ManifestContentData {
		return nil, fmt.Errorf("%s: another program deleted rows of it, which iotape does not read; "+
			"compact the table with that program", l.where)
	}
	key, err := l.key(m.FilePath())
	if err != nil {
		return nil, err
	}
	b, err := l.read(ctx, key)
	if err != nil {
		return nil, err
	}
	entries, err := iceberg.ReadManifest(m, bytes.NewReader(b), true)
	if err != nil {
		return nil, fmt.Errorf("%s: the lake is damaged: %s: %w", l.where, key, err)
	}
	return entries, nil
}

// Manifests with fewer files than mergeBelow become one when there are mergeCount of them, so
// that a plan reads few.
const (
	mergeBelow = 1000
	mergeCount = 32
)

// totals are the numbers of a snapshot's summary.
type totals struct{ files, rows, bytes int64 }

func (t *totals) add(d iceberg.DataFile) {
	t.files++
	t.rows += d.Count()
	t.bytes += d.FileSizeBytes()
}

// replace makes a snapshot of a table without the files in remove and with those in add. All
// in remove must be there.
func (c *change) replace(ctx context.Context, name string, remove map[string]bool, add []iceberg.DataFile,
	properties map[string]string) error {
	m := c.table(name)
	before := m.current()
	list, err := c.l.manifests(ctx, before)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(f iceberg.ManifestFile) bool { // of files that went with an earlier snapshot
		return !f.HasAddedFiles() && !f.HasExistingFiles()
	})
	s := snapshot{ID: newSnapshotID(), Sequence: m.LastSequence + 1, Timestamp: c.l.Clock().UnixMilli()}
	var total, gone, come totals
	if before != nil {
		s.Parent = &before.ID
		s.Timestamp = max(s.Timestamp, before.Timestamp)
		total.files, total.rows, total.bytes = numberIn(before, "total-data-files"), numberIn(before, "total-records"),
			numberIn(before, "total-files-size")
	}
	w := &manifestWriter{c, m, name, s.ID}
	if len(remove) > 0 {
		if list, err = w.without(ctx, list, remove, &gone); err != nil {
			return err
		}
		if gone.files != int64(len(remove)) {
			return fmt.Errorf("table %s: %d of %d files to be replaced are not there any more: %w", name,
				int64(len(remove))-gone.files, len(remove), errGone)
		}
	}
	if len(add) > 0 {
		var entries []iceberg.ManifestEntry
		for _, d := range add {
			entries = append(entries, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &s.ID, nil, nil, d))
			come.add(d)
		}
		made, err := w.write(ctx, entries)
		if err != nil {
			return err
		}
		list = append(list, made)
	}
	if list, err = w.merge(ctx, list); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := iceberg.WriteManifestList(formatV2, &b, s.ID, s.Parent, &s.Sequence, 0, list); err != nil {
		return err
	}
	key := path.Join(name, "metadata", fmt.Sprintf("snap-%d-%s.avro", s.ID, uuid.NewString()))
	if err := c.store(ctx, key, b.Bytes()); err != nil {
		return err
	}
	s.List, s.Schema = c.l.prefix+key, &m.CurrentSchema
	s.Summary = summaryOf(total, gone, come)
	maps.Copy(s.Summary, properties)
	m.add(s)
	return nil
}

// errGone is of files that another commit has replaced.
var errGone = errors.New("another commit replaced them")

func numberIn(s *snapshot, key string) int64 {
	n, _ := strconv.ParseInt(s.Summary[key], 10, 64)
	return n
}

func summaryOf(total, gone, come totals) map[string]string {
	operation := "overwrite"
	switch {
	case gone.files == 0:
		operation = "append"
	case gone.rows == come.rows:
		operation = "replace"
	case come.files == 0:
		operation = "delete"
	}
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[string]string{
		"operation": operation, "added-data-files": text(come.files), "added-records": text(come.rows),
		"added-files-size": text(come.bytes), "deleted-data-files": text(gone.files), "deleted-records": text(gone.rows),
		"removed-files-size": text(gone.bytes), "total-data-files": text(total.files + come.files - gone.files),
		"total-records":    text(total.rows + come.rows - gone.rows),
		"total-files-size": text(total.bytes + come.bytes - gone.bytes),
	}
}

// store stores a file of metadata that goes if the commit fails.
func (c *change) store(ctx context.Context, key string, content []byte) error {
	c.made = append(c.made, key)
	return c.l.create(ctx, key, content)
}

// manifestWriter makes the manifests of one snapshot.
type manifestWriter struct {
	c        *change
	m        *metadata
	table    string
	snapshot int64
}

// write stores a manifest.
func (w *manifestWriter) write(ctx context.Context, entries []iceberg.ManifestEntry) (iceberg.ManifestFile, error) {
	key := path.Join(w.table, "metadata", uuid.NewString()+"-m0.avro")
	var b bytes.Buffer
	out, err := iceberg.NewManifestWriter(formatV2, &b, *w.m.spec(), w.m.schema(), w.snapshot)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		switch e.Status() {
		case iceberg.EntryStatusADDED:
			err = out.Add(e)
		case iceberg.EntryStatusDELETED:
			err = out.Delete(e)
		default:
			err = out.Existing(e)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest of table %s: %w", w.table, err)
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	if err := w.c.store(ctx, key, b.Bytes()); err != nil {
		return nil, err
	}
	return out.ToManifestFile(w.c.l.prefix+key, int64(b.Len()))
}

// status returns an entry with another status.
func status(e iceberg.ManifestEntry, s iceberg.ManifestEntryStatus, id int64) iceberg.ManifestEntry {
	if s != iceberg.EntryStatusDELETED {
		id = e.SnapshotID()
	}
	n := e.SequenceNum()
	return iceberg.NewManifestEntry(s, &id, &n, e.FileSequenceNum(), e.DataFile())
}

// without returns the manifests without some files. The summaries of manifests are not asked:
// a file is looked for wherever it can be.
func (w *manifestWriter) without(ctx context.Context, list []iceberg.ManifestFile, remove map[string]bool,
	gone *totals) (left []iceberg.ManifestFile, err error) {
	for _, m := range list {
		entries, err := w.c.l.entries(ctx, m)
		if err != nil {
			return nil, err
		}
		goes := func(e iceberg.ManifestEntry) bool { return remove[e.DataFile().FilePath()] }
		if !slices.ContainsFunc(entries, goes) {
			left = append(left, m)
			continue
		}
		var changed []iceberg.ManifestEntry
		for _, e := range entries {
			if goes(e) {
				changed = append(changed, status(e, iceberg.EntryStatusDELETED, w.snapshot))
				gone.add(e.DataFile())
			} else {
				changed = append(changed, status(e, iceberg.EntryStatusEXISTING, 0))
			}
		}
		made, err := w.write(ctx, changed)
		if err != nil {
			return nil, err
		}
		left = append(left, made)
	}
	return left, nil
}

// merge makes one manifest of small ones of earlier snapshots, if there are many.
func (w *manifestWriter) merge(ctx context.Context, list []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	small := func(m iceberg.ManifestFile) bool {
		return m.SnapshotID() != w.snapshot && m.AddedDataFiles()+m.ExistingDataFiles() < mergeBelow &&
			m.ManifestContent() == iceberg.ManifestContentData
	}
	var all []iceberg.ManifestEntry
	var left []iceberg.ManifestFile
	n := 0
	for _, m := range list {
		if small(m) {
			n++
		}
	}
	if n < mergeCount {
		return list, nil
	}
	for _, m := range list {
		if !small(m) {
			left = append(left, m)
			continue
		}
		entries, err := w.c.l.entries(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			all = append(all, status(e, iceberg.EntryStatusEXISTING, 0))
		}
	}
	if len(all) == 0 {
		return left, nil
	}
	made, err := w.write(ctx, all)
	if err != nil {
		return nil, err
	}
	return append([]iceberg.ManifestFile{made}, left...), nil
}
