// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/pipe/objectstore"
)

// inMemory is a store of files in memory.
type inMemory map[string][]byte

func (m inMemory) Put(_ context.Context, key, file string) (err error) {
	m[key], err = os.ReadFile(file)
	return err
}

func (m inMemory) Create(_ context.Context, key string, content []byte) error {
	if _, ok := m[key]; ok {
		return fs.ErrExist
	}
	m[key] = bytes.Clone(content)
	return nil
}

func (m inMemory) Get(_ context.Context, key string) (io.ReadCloser, error) {
	b, ok := m[key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (m inMemory) List(_ context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if strings.HasPrefix(key, prefix) && !yield(objectstore.Object{Key: key, Bytes: int64(len(m[key]))}, nil) {
				return
			}
		}
	}
}

func (m inMemory) Remove(_ context.Context, key string) error { delete(m, key); return nil }

func (m inMemory) Location(key string) string { return "/nowhere/" + key }

// metadataOf returns the files of a small lake by which it is read, all but rows: its catalogue, and
// what the table of events has.
func metadataOf(t testing.TB) (m inMemory, keys []string) {
	t.Helper()
	m = inMemory{}
	l, err := openStore("/nowhere", m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Add(t.Context(), made(t, "db1", noon, 3), ""); err != nil {
		t.Fatal(err)
	}
	s, err := l.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys = []string{latestKey, commitKey(1), commitKey(s.number), s.files["events"]}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if ok, _ := filepath.Match("events/metadata/*.avro", key); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) != 6 {
		t.Fatalf("files %q, want 6", keys)
	}
	return m, keys
}

// FuzzLake replaces one file of a lake by which it is read: the lake is read, or there is an error
// in one line.
func FuzzLake(f *testing.F) {
	files, keys := metadataOf(f)
	for i, key := range keys {
		f.Add(uint8(i), files[key])
	}
	for _, other := range []string{`{}`, `null`, `[]`, `{"format-version":1,"table-uuid":"x"}`, `{"format-version":3}`,
		`{"product":"iotape lake","version":1,"tables":{"events":"../../etc/passwd"}}`,
		`{"format-version":2,"properties":{"iotape.lake":"1"},"schemas":[null],"partition-specs":[null]}`,
		"9223372036854775807"} {
		for i := range keys {
			f.Add(uint8(i), []byte(other))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		changed := maps.Clone(files)
		changed[keys[int(which)%len(keys)]] = content
		l, err := openStore("/nowhere", changed, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := definitionOf("events")
		s, err := l.load(t.Context())
		if err == nil {
			_, err = l.plan(t.Context(), d, s.tables[d.name], &Range{Path: "/etc/*", From: noon})
		}
		if err == nil {
			_, err = l.List(t.Context())
		}
		if err == nil {
			err = readsForAdd(t.Context(), l)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || err.Error() == "") {
			t.Errorf("error %q, want one line", err)
		}
	})
}

// readsForAdd does what an Add does before it writes.
func readsForAdd(ctx context.Context, l *Lake) error {
	return l.commit(ctx, func(c *change) error {
		m := c.table("events")
		m.extend(definitionOf("events"))
		list, err := l.manifests(ctx, m.current())
		if err != nil {
			return err
		}
		w := &manifestWriter{c, m, "events", newSnapshotID()}
		if _, err = w.merge(ctx, list); err != nil {
			return err
		}
		return errors.Join(c.drop(), errStop)
	})
}

var errStop = errors.New("as much as is needed")
