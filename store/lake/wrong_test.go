// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/pipe/objectstore"
	"github.com/iotape/iotape/store"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// filesOf returns the names and sizes of all files below a directory.
func filesOf(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			st, wrong := d.Info()
			fmt.Fprintln(&b, path, st.Size())
			err = wrong
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// refused holds an Add to failing with a message, in one line, and to leaving the lake as it is.
func refused(t *testing.T, l *Lake, dir, want string, host string, at time.Time) {
	t.Helper()
	before := filesOf(t, dir)
	_, err := l.Add(t.Context(), made(t, host, at, 3), "")
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want one line with %q", err, want)
	}
	if after := filesOf(t, dir); after != before {
		t.Errorf("the lake had\n%sand has\n%s", before, after)
	}
}

func TestWrongPlaces(t *testing.T) {
	begin := func(t *testing.T) (string, *Lake) {
		where := filepath.Join(t.TempDir(), "lake")
		l := lakeAt(t, where, nil)
		if _, err := l.Add(t.Context(), made(t, "a", noon, 3), ""); err != nil {
			t.Fatal(err)
		}
		return where, l
	}
	write := func(t *testing.T, name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("another directory", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "thesis.txt"), "mine")
		refused(t, lakeAt(t, dir, nil), dir, "not a lake of iotape", "b", noon)
	})
	t.Run("another product", func(t *testing.T) {
		where, l := begin(t)
		write(t, filepath.Join(where, commitKey(1)), `{"product":"another lake","version":1}`)
		if err := os.Remove(filepath.Join(where, latestKey)); err != nil {
			t.Fatal(err)
		}
		refused(t, l, where, "is of another program", "b", noon)
	})
	t.Run("newer lake", func(t *testing.T) {
		where, l := begin(t)
		write(t, filepath.Join(where, commitKey(3)), `{"product":"iotape lake","version":2}`)
		refused(t, l, where, "newer lake (version 2)", "b", noon)
	})
	t.Run("a clock in the future", func(t *testing.T) {
		where, l := begin(t)
		refused(t, l, where, "is in the future: the clock of host \"b\"", "b", time.Now().Add(1000*time.Hour))
	})
	t.Run("moved", func(t *testing.T) {
		where, _ := begin(t)
		if err := os.Rename(where, where+"2"); err != nil {
			t.Fatal(err)
		}
		_, err := lakeAt(t, where+"2", nil).Select(t.Context(), "SELECT count(*) FROM events", &Range{})
		if err == nil || !strings.Contains(err.Error(), "was it moved?") {
			t.Errorf("%v, want that it was moved", err)
		}
	})
	t.Run("nothing there", func(t *testing.T) {
		l := lakeAt(t, filepath.Join(t.TempDir(), "lake"), nil)
		if _, err := l.List(t.Context()); !errors.Is(err, ErrNone) {
			t.Errorf("%v, want ErrNone", err)
		}
	})
}

// Damaged and hostile metadata is an error, not a crash, wherever it is damaged.
func TestDamaged(t *testing.T) {
	where := filepath.Join(t.TempDir(), "lake")
	l := lakeAt(t, where, nil)
	if _, err := l.Add(t.Context(), made(t, "a", noon, 3), ""); err != nil {
		t.Fatal(err)
	}
	s, err := l.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := filepath.Glob(filepath.Join(where, "events", "metadata", "*.avro"))
	if err != nil || len(snapshots) != 2 {
		t.Fatal(snapshots, err)
	}
	others := []string{filepath.Join(where, s.files["events"]), filepath.Join(where, commitKey(2))}
	for _, name := range append(snapshots, others...) {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(whole); i += 1 + len(whole)/40 {
			b := append([]byte(nil), whole...)
			b[i] ^= 0xff
			for _, damaged := range [][]byte{b, whole[:i]} {
				if err := os.WriteFile(name, damaged, 0o666); err != nil {
					t.Fatal(err)
				}
				if list, err := l.List(t.Context()); err == nil && len(list) == 0 {
					t.Errorf("%s damaged at %d: no table and no error", filepath.Base(name), i)
				}
			}
		}
		if err := os.WriteFile(name, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.List(t.Context()); err != nil {
		t.Errorf("whole again: %v", err)
	}
}

// losing is a store that says that it took a file, and did not, or took a part of it.
type losing struct {
	objectstore.Store
	what string // a part of the key
	half bool
}

// losingLake makes a lake with one tape, whose store loses nothing yet.
func losingLake(t *testing.T, where string) (*Lake, *losing) {
	t.Helper()
	files, err := objectstore.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	s := &losing{Store: files}
	l, err := openStore(where, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Add(t.Context(), made(t, "a", noon, 3), ""); err != nil {
		t.Fatal(err)
	}
	return l, s
}

func (s *losing) Put(ctx context.Context, key, file string) error {
	if s.what == "" || !strings.Contains(key, s.what) {
		return s.Store.Put(ctx, key, file)
	}
	b, err := os.ReadFile(file)
	if err != nil || !s.half {
		return err
	}
	return errors.Join(os.WriteFile(file, b[:len(b)/2], 0o666), s.Store.Put(ctx, key, file))
}

func (s *losing) Create(ctx context.Context, key string, content []byte) error {
	if s.what == "" || !strings.Contains(key, s.what) {
		return s.Store.Create(ctx, key, content)
	}
	if !s.half {
		return nil
	}
	return s.Store.Create(ctx, key, content[:len(content)/2])
}

// A store that loses a file is found out before the commit; when it is well again, the tape
// is added.
func TestLostWrites(t *testing.T) {
	testenv.Short(t, "it adds tapes many times")
	for _, what := range []string{"opens/data", "-m0.avro", "snap-", "files/metadata/commit-"} {
		for _, half := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s half=%v", strings.ReplaceAll(what, "/", "_"), half), func(t *testing.T) {
				where := filepath.Join(t.TempDir(), "lake")
				l, s := losingLake(t, where)
				tape := tapeOf(t)
				s.what, s.half = what, half
				if _, err := l.Add(t.Context(), tape, ""); !errors.Is(err, ErrLost) {
					t.Errorf("%v, want ErrLost", err)
				}
				if got := answer(t, l, "SELECT count(*) FROM summaries", &Range{}); got != "1\n" {
					t.Errorf("the lake has %s tapes, want 1", got)
				}
				s.what = ""
				if added, err := l.Add(t.Context(), tape, ""); err != nil || !added {
					t.Errorf("well again: %v, %v", added, err)
				}
			})
		}
	}
}

// TestExpire: old days go, their tapes stay away, and files go only after the time of grace.
func TestExpire(t *testing.T) {
	where := filepath.Join(t.TempDir(), "lake")
	now := noon.Add(10 * 24 * time.Hour)
	l := lakeAt(t, where, func(o *Options) { o.Clock = func() time.Time { return now } })
	old := made(t, "a", noon.Add(12*time.Hour-time.Second), 10) // on two days
	for _, tape := range []*struct{ at time.Time }{{noon.Add(9 * 24 * time.Hour)}} {
		if _, err := l.Add(t.Context(), made(t, "a", tape.at, 10), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Add(t.Context(), old, ""); err != nil {
		t.Fatal(err)
	}
	const count = "SELECT count(*) FROM events"
	e := &Expiry{Keep: 9 * 24 * time.Hour, DryRun: true}
	would, err := l.Expire(t.Context(), e)
	if err != nil || answer(t, l, count, &Range{}) != "40\n" {
		t.Fatalf("a dry run: %+v, %v", would, err)
	}
	e.DryRun, e.Grace = false, time.Hour
	done, err := l.Expire(t.Context(), e)
	if err != nil || done.Rows != would.Rows || done.Rows == 0 {
		t.Errorf("expired %+v, %v, want %+v", done, err, would)
	}
	if got := answer(t, l, count+" WHERE day < '2026-05-02'", &Range{}); got != "0\n" {
		t.Errorf("%s rows are left of the day", got)
	}
	if got := answer(t, l, count, &Range{}); got != "30\n" {
		t.Errorf("%s rows are left, want 30", got)
	}
	if _, err := l.Add(t.Context(), old, ""); !errors.Is(err, ErrExpired) {
		t.Errorf("the old tape again: %v, want ErrExpired", err)
	}
	now = time.Now().Add(48 * time.Hour) // the store's clock is that of this machine
	if done, err = l.Expire(t.Context(), &Expiry{Grace: time.Hour}); err != nil || done.Old == 0 {
		t.Errorf("after the time of grace: %+v, %v", done, err)
	}
	if got := answer(t, l, count, &Range{}); got != "30\n" {
		t.Errorf("%s rows are left, want 30", got)
	}
	if left, _ := filepath.Glob(filepath.Join(where, "events/data/day=2026-05-01/*/*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// A lake in a bucket is added to, asked, compacted and expired as one in a directory.
func TestBucket(t *testing.T) {
	testenv.Short(t, "it adds tapes many times")
	testenv.S3Server(t, "lake")
	l := lakeAt(t, "s3://lake/some/where", nil)
	first, second := tapeOf(t), made(t, "a", noon, 10)
	third := made(t, "a", noon.Add(time.Hour), 10)
	for _, tape := range []struct {
		want bool
		add  func() (bool, error)
	}{
		{true, func() (bool, error) { return l.Add(t.Context(), first, "") }},
		{true, func() (bool, error) { return l.Add(t.Context(), second, "s3://tapes/second.tape") }},
		{false, func() (bool, error) { return l.Add(t.Context(), first, "") }},
		{true, func() (bool, error) { return l.Add(t.Context(), third, "") }},
	} {
		if added, err := tape.add(); err != nil || added != tape.want {
			t.Fatalf("%v, %v, want %v", added, err, tape.want)
		}
	}
	want := counted(t, first, second, third)
	for _, step := range []func() error{
		func() error { return nil },
		func() error { _, err := l.Compact(t.Context()); return err },
		func() error { _, err := l.Expire(t.Context(), &Expiry{}); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		if got := has(t, l); got != want {
			t.Errorf("the lake has %s, want %s", got, want)
		}
	}
	const where, want2 = "SELECT location FROM summaries WHERE location LIKE 's3:%'", "s3://tapes/second.tape\n"
	if got := answer(t, l, where, &Range{}); got != want2 {
		t.Errorf("location %s, want %s", got, want2)
	}
}

// A lake that an older version made, without some columns and a table's newest rows, gets the
// columns with the next tape; older rows have NULL, and columns keep their numbers.
func TestColumnsAreAdded(t *testing.T) {
	where := filepath.Join(t.TempDir(), "lake")
	l := lakeAt(t, where, nil)
	d := *definitionOf("events")
	d.columns = d.columns[:len(d.columns)-3] // an older version
	next := &state{tables: map[string]*metadata{}}
	for _, other := range definitions() {
		next.tables[other.name] = newMetadata(other, l.prefix+other.name, noon)
	}
	old := newMetadata(&d, l.prefix+d.name, noon)
	next.tables[d.name] = old
	if err := l.tables.commit(t.Context(), &state{}, next); err != nil {
		t.Fatal(err)
	}
	w := &writer{l: l, dir: t.TempDir()}
	tables, err := store.OpenTables(t.Context(), nil, w.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	p := &partition{dayOf(noon), "old"}
	file, err := w.write(t.Context(), tables, &d, old, p, "made", simulated(&d, p, 7))
	if err != nil {
		t.Fatal(err)
	}
	err = l.commit(t.Context(), func(c *change) error {
		return c.replace(t.Context(), d.name, nil, []iceberg.DataFile{file}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	const query = "SELECT host, count(*), count(seq), count(flags), count(incomplete) FROM events " +
		"GROUP BY host ORDER BY host"
	if got, want := answer(t, l, query, &Range{}), "old 7 7 0 0\n"; got != want {
		t.Errorf("before: %s, want %s", got, want)
	}
	if _, err := l.Add(t.Context(), made(t, "new", noon, 10), ""); err != nil {
		t.Fatal(err)
	}
	if got, want := answer(t, l, query, &Range{}), "new 20 20 20 20\nold 7 7 0 0\n"; got != want {
		t.Errorf("after: %s, want %s", got, want)
	}
	s, err := l.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range old.schema().Fields() {
		if now, ok := s.tables[d.name].schema().FindFieldByName(f.Name); !ok || now.ID != f.ID {
			t.Errorf("column %s has number %d, want %d", f.Name, now.ID, f.ID)
		}
	}
	if r := fromModule(t, l, "events"); r.Rows != 27 || r.Columns["flags"].Values != 20 {
		t.Errorf("iceberg-go reads %d rows and %d flags, want 27 and 20", r.Rows, r.Columns["flags"].Values)
	}
	if _, err := l.Compact(t.Context()); err != nil {
		t.Error(err)
	}
}
