// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/store/catalogue"
	"github.com/iotape/iotape/trace"
)

// Limits of what is taken from one tape.
const (
	maxPartitions = 1000           // days times hosts, of a table
	maxAhead      = 24 * time.Hour // how far a host's clock may be ahead of ours
)

// prepared is a tape whose files are stored, and which no commit has yet.
type prepared struct {
	row    *catalogue.Row
	files  map[string][]iceberg.DataFile // by table
	fields map[string][]store.Field      // the numbers of the columns in these files
	flowed bool                          // findings were looked for
	w      *writer
}

// ErrExpired is of a tape that begins on a day that the lake does not keep any more.
var ErrExpired = errors.New("it begins on a day that the lake does not keep any more (iotape lake expire)")

// Add adds the tape in the directory dir, which must be indexed. location is where the tape is
// kept, "" means in dir. It reports whether the tape is new: a tape that is in the lake, by
// the hash of its manifest, is not added again, whoever else adds it at the same time. The
// rows of all tables appear at once or not at all. The first Add makes the lake.
func (l *Lake) Add(ctx context.Context, t *trace.Tape, location string) (added bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("add %s to the lake: %w", t.Name(), err)
		}
	}()
	if location == "" {
		if location, err = filepath.Abs(t.Dir()); err != nil {
			return false, err
		}
	}
	s, err := l.load(ctx)
	if errors.Is(err, ErrNone) {
		if err = l.tables.create(ctx); err == nil {
			s, err = l.load(ctx)
		}
	}
	if err != nil {
		return false, err
	}
	row, err := l.rowOf(ctx, t, location)
	if err != nil {
		return false, err
	}
	there, err := l.has(ctx, s, row)
	if err != nil {
		return false, err
	}
	if there {
		return false, l.tables.settle(ctx, s)
	}
	if dayOf(row.Start) < expiredDay(s) {
		return false, ErrExpired
	}
	p, err := l.prepare(ctx, s, t, row)
	if err != nil {
		return false, err
	}
	err = l.commit(ctx, func(c *change) error {
		added = false
		there, err := l.has(ctx, c.base, row)
		if err != nil || there {
			return err
		}
		added = true
		return c.add(ctx, p)
	})
	// After another error the commit may have been made.
	if err == nil && !added || errors.Is(err, errBusy) {
		p.w.drop() // another program was faster
	}
	return added, err
}

// rowOf returns the row of a tape in the table of summaries.
func (l *Lake) rowOf(ctx context.Context, t *trace.Tape, location string) (*catalogue.Row, error) {
	o := l.Suite
	total := int64(t.Manifest().Counts.Events)
	o.Progress = func(done uint64) { l.Progress("reading "+t.Name(), int64(done), total) }
	row, err := catalogue.OfTape(ctx, t, location, &o)
	if err != nil {
		return nil, err
	}
	return row, l.checkClock(row.End, row.Host)
}

func (l *Lake) checkClock(at time.Time, host string) error {
	if at.After(l.Clock().Add(maxAhead)) {
		return fmt.Errorf("it has events of %s, which is in the future: the clock of host %q "+
			"or of this machine is wrong",
			at.UTC().Format(time.DateTime), host)
	}
	return nil
}

// has reports whether a tape's row is in the table of summaries.
func (l *Lake) has(ctx context.Context, s *state, row *catalogue.Row) (bool, error) {
	d, m := definitionOf(summariesTable), s.tables[summariesTable]
	day := row.Start.UTC().Truncate(24 * time.Hour)
	id, _ := m.schema().FindFieldByName(tapeIDColumn)
	var parts []*part
	err := l.eachPart(ctx, d, m, &Range{From: day, To: day.Add(24 * time.Hour), Hosts: []string{store.Text(row.Host)}},
		nil, func(p *part) {
			low, high := p.data.LowerBoundValues()[id.ID], p.data.UpperBoundValues()[id.ID]
			if low == nil || high == nil || row.ID >= string(low) && row.ID <= string(high) {
				parts = append(parts, p)
			}
		})
	if err != nil {
		return false, err
	}
	if len(parts) == 0 {
		return false, nil
	}
	found := false
	err = l.withTables(ctx, "", []*definition{d}, s, [][]*part{parts}, func(t *store.Tables) error {
		return t.Each(ctx, "SELECT 1 FROM "+d.name+" WHERE "+tapeIDColumn+" = ? LIMIT 1", []any{row.ID},
			func([]any) error { found = true; return nil })
	})
	return found, err
}

// withTables calls f with an engine that has the given files of tables as views, and may write
// into the directory out.
func (l *Lake) withTables(ctx context.Context, out string, tables []*definition, s *state, files [][]*part,
	f func(*store.Tables) error) (err error) {
	temp, err := wholefile.TempDir(tempName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	work := temp.Temp
	var views []store.View
	for i, d := range tables {
		dir := filepath.Join(work, d.name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		paths, err := l.fetched(ctx, files[i], dir)
		if err != nil {
			return err
		}
		views = append(views, store.View{Name: d.name, Columns: d.all(),
			Fields: fieldsOf(s.tables[d.name].schema(), d.all()), Files: paths})
	}
	t, err := store.OpenTables(ctx, views, out, l.Query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return f(t)
}

func definitionOf(name string) *definition {
	i := slices.IndexFunc(definitions(), func(d *definition) bool { return d.name == name })
	return definitions()[i]
}

// prepare stores the files of a tape.
func (l *Lake) prepare(ctx context.Context, s *state, tape *trace.Tape, row *catalogue.Row) (_ *prepared, err error) {
	temp, err := wholefile.TempDir(tempName)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	work := temp.Temp
	views, err := l.views(ctx, tape, row, work)
	if err != nil {
		return nil, err
	}
	t, err := store.OpenTables(ctx, views, work, l.Query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	p := &prepared{row: row, files: map[string][]iceberg.DataFile{}, fields: map[string][]store.Field{},
		flowed: l.flows(tape), w: &writer{l: l, dir: work}}
	for _, d := range definitions() {
		if err := l.prepareTable(ctx, t, d, s.tables[d.name], p); err != nil {
			p.w.drop()
			return nil, err
		}
		if err := l.After("store " + d.name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// prepareTable stores a tape's files of one table.
func (l *Lake) prepareTable(ctx context.Context, t *store.Tables, d *definition, m *metadata, p *prepared) error {
	var list []partition
	err := t.Each(ctx, d.partitions(), nil, func(v []any) error {
		day, _ := v[0].(time.Time)
		host, _ := v[1].(string)
		if len(list) == maxPartitions {
			return fmt.Errorf("its table %s has more than %d days and hosts: its clocks are wrong", d.name,
				maxPartitions)
		}
		list = append(list, partition{dayOf(day), host})
		return l.checkClock(day, host)
	})
	if err != nil {
		return err
	}
	// Columns that the lake does not have yet get their numbers now; the commit gives the same.
	m = m.clone()
	m.extend(d)
	p.fields[d.name] = fieldsOf(m.schema(), d.all())
	query := d.selection(p.row.ID, store.Text(p.row.Tape))
	if d.name == summariesTable && !p.flowed {
		query = strings.Replace(query, findingsCount, unknownCount, 1)
	}
	for i := range list {
		l.Progress("writing "+d.name, int64(i), int64(len(list)))
		f, err := p.w.write(ctx, t, d, m, &list[i], p.row.ID, query, list[i].time(), list[i].host)
		if err != nil {
			return err
		}
		if f != nil {
			p.files[d.name] = append(p.files[d.name], f)
		}
	}
	return nil
}

// views are the tables of a tape.
func (l *Lake) views(ctx context.Context, tape *trace.Tape, row *catalogue.Row,
	work string) (views []store.View, err error) {
	for _, d := range definitions() {
		v := store.View{Name: d.name, Columns: store.TableColumns(d.name)}
		switch d.name {
		case summariesTable:
			v.Columns = catalogue.StoreColumns()
			file := filepath.Join(work, "row.parquet")
			if err := catalogue.WriteRows(ctx, file, row); err != nil {
				return nil, err
			}
			v.Files = []string{file}
		case findingsTable:
			if v, err = l.findingsOf(ctx, tape, row, filepath.Join(work, "found.parquet")); err != nil {
				return nil, err
			}
		default:
			v.Files = []string{filepath.Join(tape.Dir(), store.ParquetName(d.name))}
		}
		for i, f := range v.Files {
			if v.Files[i], err = filepath.Abs(f); err != nil {
				return nil, err
			}
		}
		views = append(views, v)
	}
	return views, nil
}

// add puts a tape into a commit.
func (c *change) add(ctx context.Context, p *prepared) error {
	for _, d := range definitions() {
		files := p.files[d.name]
		m := c.table(d.name)
		before := m.CurrentSchema
		m.extend(d)
		if len(files) == 0 {
			if m.CurrentSchema == before {
				c.next.tables[d.name] = c.base.tables[d.name] // as it was
			}
			continue
		}
		if !sameFields(fieldsOf(m.schema(), d.all()), p.fields[d.name]) {
			return errColumns(d)
		}
		if err := c.replace(ctx, d.name, nil, files, map[string]string{"iotape.tape": p.row.ID,
			"iotape.program": strings.ToValidUTF8(p.row.Program, "?")}); err != nil {
			return err
		}
	}
	return nil
}
