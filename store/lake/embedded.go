// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/iotape/iotape/pipe/wholefile"
)

// embedded is the catalogue in the lake itself: a file for each commit, with a number, which
// says where the metadata of each table is. Who makes the file of the next number has
// committed all tables at once; of several, one succeeds.
//
//	catalogue/000000000042.json   the commits, without a gap
//	catalogue/latest              the number of a late one, where the search begins
type embedded struct{ l *Lake }

const (
	commitsDir = "catalogue"
	latestKey  = commitsDir + "/latest"
	product    = "iotape lake"
)

// commitFile is the content of such a file.
type commitFile struct {
	Product string            `json:"product"`
	Version int               `json:"version"`
	Written time.Time         `json:"written"`
	Tables  map[string]string `json:"tables"` // keys of metadata files
}

func commitKey(number int64) string { return fmt.Sprintf("%s/%012d.json", commitsDir, number) }

// commitOf returns the commit of a number, or nil if there is none.
func (e *embedded) commitOf(ctx context.Context, number int64) (*commitFile, error) {
	b, err := e.l.read(ctx, commitKey(number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c commitFile
	switch err := json.Unmarshal(b, &c); {
	case err != nil || c.Product != product:
		return nil, fmt.Errorf("%s is not a lake of iotape: %s is of another program", e.l.where, commitKey(number))
	case c.Version != lakeVersion:
		return nil, fmt.Errorf("%s is a newer lake (version %d); this iotape knows version %d", e.l.where, c.Version,
			lakeVersion)
	}
	return &c, nil
}

// hint returns the number in the file latest, 0 if there is none.
func (e *embedded) hint(ctx context.Context) (int64, error) {
	b, err := e.l.read(ctx, latestKey)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	n, wrong := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 62)
	if err == nil && (wrong != nil || n < 0) {
		err = fmt.Errorf("%s is not a lake of iotape: %s has no number", e.l.where, latestKey)
	}
	return n, err
}

// latest finds the last commit: from the hint on it doubles its steps, and halves them again.
func (e *embedded) latest(ctx context.Context) (number int64, c *commitFile, err error) {
	number, err = e.hint(ctx)
	if err != nil {
		return 0, nil, err
	}
	if number > 0 {
		if c, err = e.commitOf(ctx, number); err != nil {
			return 0, nil, err
		}
		if c == nil {
			return 0, nil, fmt.Errorf("%s: the lake is damaged: %s is missing", e.l.where, commitKey(number))
		}
	}
	for step, up := int64(1), true; step > 0; {
		next, err := e.commitOf(ctx, number+step)
		switch {
		case err != nil:
			return 0, nil, err
		case next == nil:
			up = false
		default:
			number, c = number+step, next
		}
		if up {
			step *= 2
		} else {
			step /= 2
		}
	}
	return number, c, nil
}

func (e *embedded) load(ctx context.Context) (*state, error) {
	number, c, err := e.latest(ctx)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("%s: %w", e.l.where, ErrNone)
	}
	s := &state{number: number, tables: map[string]*metadata{}, files: c.Tables}
	for name, key := range c.Tables {
		if !fs.ValidPath(key) {
			return nil, fmt.Errorf("%s: the lake is damaged: the metadata of %s is %q", e.l.where, name, key)
		}
		b, err := e.l.read(ctx, key)
		if err != nil {
			return nil, err
		}
		m := new(metadata)
		if err := json.Unmarshal(b, m); err != nil {
			return nil, fmt.Errorf("%s: the lake is damaged: %s: %w", e.l.where, key, err)
		}
		s.tables[name] = m
	}
	return s, nil
}

// create makes the first commit, in a place that has nothing else.
func (e *embedded) create(ctx context.Context) error {
	for o, err := range e.l.files.List(ctx, "") {
		if err != nil {
			return err
		}
		// What a run left that was killed before the first commit is of the tables.
		dir, _, _ := strings.Cut(o.Key, "/")
		if dir != commitsDir && !slices.Contains(Tables(), dir) {
			return fmt.Errorf("%s is not a lake of iotape: it has other files, as %s; name an empty place",
				e.l.where, o.Key)
		}
	}
	next := &state{tables: map[string]*metadata{}}
	for _, d := range definitions() {
		next.tables[d.name] = newMetadata(d, e.l.prefix+d.name, e.l.Clock())
	}
	if err := e.commit(ctx, &state{}, next); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// A server that does not know the condition would let two commits have one number.
	if err := e.l.files.Create(ctx, commitKey(1), []byte("{}")); !errors.Is(err, fs.ErrExist) {
		return errors.Join(fmt.Errorf("%s: its server does not support If-None-Match, which commits need", e.l.where),
			err,
			e.l.files.Remove(ctx, commitKey(1)))
	}
	return nil
}

func (e *embedded) commit(ctx context.Context, base, next *state) error {
	c := commitFile{Product: product, Version: lakeVersion, Written: e.l.Clock().UTC(), Tables: map[string]string{}}
	maps.Copy(c.Tables, base.files)
	var made []string
	for _, name := range slices.Sorted(maps.Keys(next.tables)) {
		m := next.tables[name]
		if m == base.tables[name] {
			continue
		}
		b, err := json.Marshal(m)
		if err != nil {
			return err
		}
		// Programs that look for *.metadata.json must not meet what is not committed.
		key := path.Join(name, "metadata", fmt.Sprintf("commit-%d-%s.json", base.number+1, uuid.NewString()))
		if err := e.l.create(ctx, key, b); err != nil {
			return err
		}
		c.Tables[name], made = key, append(made, key)
	}
	if err := e.l.After("metadata"); err != nil {
		return err
	}
	b, err := json.MarshalIndent(&c, "", "  ")
	if err != nil {
		return err
	}
	if err := e.claim(ctx, base.number+1, append(b, '\n')); err != nil {
		if errors.Is(err, fs.ErrExist) {
			for _, key := range made {
				err = errors.Join(err, e.l.files.Remove(ctx, key))
			}
		}
		return err
	}
	if err := e.l.After("commit"); err != nil {
		return err
	}
	return e.publish(ctx, &state{number: base.number + 1, tables: next.tables, files: c.Tables})
}

// claim makes the file of a commit. A client that repeats a request finds what the first one
// made: that is no other's.
func (e *embedded) claim(ctx context.Context, number int64, content []byte) error {
	err := e.l.create(ctx, commitKey(number), content)
	if errors.Is(err, fs.ErrExist) {
		if there, wrong := e.l.read(ctx, commitKey(number)); wrong != nil || bytes.Equal(there, content) {
			return wrong
		}
	}
	return err
}

// publish makes the state visible to programs that do not know this catalogue: they find
// vN.metadata.json of a table by its file version-hint.text.
func (e *embedded) publish(ctx context.Context, s *state) error {
	for _, d := range definitions() {
		b, err := json.Marshal(s.tables[d.name])
		if err != nil {
			return err
		}
		if err := e.l.files.Create(ctx, publishedKey(d.name, s.number), b); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := e.l.After("publish"); err != nil {
		return err
	}
	if later, err := e.commitOf(ctx, s.number+1); later != nil || err != nil {
		return err // who made it publishes it
	}
	for _, d := range definitions() {
		if err := e.replace(ctx, d.name+"/metadata/version-hint.text", s.number); err != nil {
			return err
		}
	}
	return e.replace(ctx, latestKey, s.number)
}

func (e *embedded) settle(ctx context.Context, s *state) error {
	if n, err := e.hint(ctx); err != nil || n == s.number {
		return err
	}
	return e.publish(ctx, s)
}

func publishedKey(table string, number int64) string {
	return fmt.Sprintf("%s/metadata/v%d.metadata.json", table, number)
}

func (e *embedded) address(s *state, table string) string {
	return e.l.prefix + publishedKey(table, s.number)
}

func (e *embedded) owns(string) bool { return true }

// replace writes a file with a number.
func (e *embedded) replace(ctx context.Context, key string, number int64) error {
	work, err := wholefile.TempDir(tempName)
	if err != nil {
		return err
	}
	defer work.Close()
	name := filepath.Join(work.Temp, "number")
	if err := os.WriteFile(name, []byte(strconv.FormatInt(number, 10)), 0o600); err != nil {
		return err
	}
	return e.l.files.Put(ctx, key, name)
}
