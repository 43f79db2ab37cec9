// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/pipe/objectstore"
	"github.com/iotape/iotape/store"
)

// tempName is what the directories for temporary files are named after.
const tempName = "iotape-lake"

// Options for Open.
type Options struct {
	// Catalogue is the address of an Iceberg REST catalogue that has the tables; "" means the
	// one that is in the lake itself.
	Catalogue string
	// Query limits the engine's memory and threads. It may be nil.
	Query *store.QueryOptions
	// Suite is for the summaries of tapes that are added.
	Suite suite.Options
	// Findings is the number of events up to which a tape's flow is computed, for the table of
	// findings: that takes some 200 bytes of memory for each. 0 is DefaultFindings, less than 0 none.
	Findings int64
	// Progress is told what is being done, and how much of it; it may be nil.
	Progress func(what string, done, total int64)
	Clock    func() time.Time        // nil is time.Now
	After    func(step string) error // called after each step, for tests; may be nil
}

// DefaultFindings is the number of events of the largest tape whose flow is computed.
const DefaultFindings = 5_000_000

// Lake is a set of tables in a directory or bucket.
type Lake struct {
	Options
	where  string
	files  objectstore.Store
	prefix string // of the addresses of all files, with a slash at its end
	tables tableCatalogue
	tries  int // of a commit
}

// ErrNone is of a place where there is no lake.
var ErrNone = errors.New("there is no lake")

// state is the tables of a lake at one time.
type state struct {
	number int64 // of the commit that made it, in the catalogue of the lake itself
	tables map[string]*metadata
	files  map[string]string // where the metadata of each is
}

// tableCatalogue says which state of all tables is current.
type tableCatalogue interface {
	// load returns the current state, or ErrNone.
	load(ctx context.Context) (*state, error)
	// create makes empty tables where there are none.
	create(ctx context.Context) error
	// commit replaces base by next, all tables at once. It is fs.ErrExist if base is not the
	// current state any more; then nothing has changed.
	commit(ctx context.Context, base, next *state) error
	// settle completes what a commit that was killed may have left. s is the current state.
	settle(ctx context.Context, s *state) error
	// address returns where the metadata file of a table is that other programs read.
	address(s *state, table string) string
	// owns reports whether a metadata file of a table, by its name, was made by the catalogue in
	// the lake, and goes when no state names it.
	owns(name string) bool
}

// Open opens the lake at a place: a directory, or s3://BUCKET/PREFIX. Nothing is made or read
// yet.
func Open(ctx context.Context, where string, o *Options) (*Lake, error) {
	files, err := objectstore.Open(ctx, where)
	if err != nil {
		return nil, err
	}
	return openStore(where, files, o)
}

func openStore(where string, files objectstore.Store, o *Options) (*Lake, error) {
	l := &Lake{where: where, files: files, tries: maxTries, prefix: strings.TrimSuffix(files.Location("x"), "x")}
	if o != nil {
		l.Options = *o
	}
	if !objectstore.IsBucket(where) {
		l.prefix = "file://" + l.prefix
	}
	if l.Progress == nil {
		l.Progress = func(string, int64, int64) {}
	}
	if l.Findings == 0 {
		l.Findings = DefaultFindings
	}
	if l.Clock == nil {
		l.Clock = time.Now
	}
	if l.After == nil {
		l.After = func(string) error { return nil }
	}
	l.tables = &embedded{l}
	if l.Catalogue != "" {
		rest, err := newREST(l)
		if err != nil {
			return nil, err
		}
		l.tables = rest
	}
	return l, nil
}

// load returns the current state of the lake.
func (l *Lake) load(ctx context.Context) (*state, error) {
	s, err := l.tables.load(ctx)
	if err != nil {
		return nil, err
	}
	for name, m := range s.tables {
		if err := m.check(name); err != nil {
			return nil, fmt.Errorf("%s: %w", l.where, err)
		}
	}
	for _, d := range definitions() {
		if s.tables[d.name] == nil {
			return nil, fmt.Errorf("%s: the lake has no table %s; it is damaged, or was made by another program",
				l.where, d.name)
		}
	}
	return s, nil
}

// key returns the key of a file of the lake. Metadata may come from anybody: it leads
// nowhere else.
func (l *Lake) key(address string) (string, error) {
	key, ok := strings.CutPrefix(address, l.prefix)
	if !ok || !filepath.IsLocal(filepath.FromSlash(key)) {
		return "", fmt.Errorf("%s: the lake names %q, which is not in it (was it moved?)", l.where, address)
	}
	return key, nil
}

// maxMetadata limits a file of metadata, in bytes.
const maxMetadata = 1 << 30

// read returns a file of metadata.
func (l *Lake) read(ctx context.Context, key string) ([]byte, error) {
	in, err := l.files.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(objectstore.Reader(ctx, in), maxMetadata+1))
	if err == nil && len(b) > maxMetadata {
		err = fmt.Errorf("more than %d bytes", maxMetadata)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", l.files.Location(key), err)
	}
	return b, nil
}

// ErrLost is of a store that took a file, and does not have it.
var ErrLost = errors.New("the store took the file, and gives back another or none")

// create stores a file of metadata under a new key, and reads it back.
func (l *Lake) create(ctx context.Context, key string, content []byte) error {
	if err := l.files.Create(ctx, key, content); err != nil {
		return err
	}
	back, err := l.read(ctx, key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(back, content) {
		return fmt.Errorf("%s: %w; check the server, then run this again", l.files.Location(key), ErrLost)
	}
	return nil
}

// put stores a file of rows, and reads it back.
func (l *Lake) put(ctx context.Context, key, file string) error {
	want, err := sumOf(ctx, func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return err
	}
	if err := l.files.Put(ctx, key, file); err != nil {
		return err
	}
	got, err := sumOf(ctx, func() (io.ReadCloser, error) { return l.files.Get(ctx, key) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || got != want {
		return fmt.Errorf("%s: %w; check the server, then run this again", l.files.Location(key), ErrLost)
	}
	return nil
}

func sumOf(ctx context.Context, open func() (io.ReadCloser, error)) (sum [32]byte, err error) {
	in, err := open()
	if err != nil {
		return sum, err
	}
	defer in.Close()
	h := blake3.New()
	if _, err := io.Copy(h, objectstore.Reader(ctx, in)); err != nil {
		return sum, err
	}
	return [32]byte(h.Sum(nil)), nil
}

// fetched makes files of the lake local: it returns where those with the addresses are, after
// copying those of a bucket to dir.
func (l *Lake) fetched(ctx context.Context, files []*part, dir string) (paths []string, err error) {
	var done, total int64
	for _, f := range files {
		total += f.bytes
	}
	for i, f := range files {
		key, err := l.key(f.path)
		if err != nil {
			return nil, err
		}
		if !objectstore.IsBucket(l.where) {
			paths = append(paths, l.files.Location(key))
			continue
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.parquet", i))
		if err := l.fetch(ctx, key, path); err != nil {
			return nil, err
		}
		paths = append(paths, path)
		done += f.bytes
		l.Progress("fetching", done, total)
	}
	return paths, nil
}

func (l *Lake) fetch(ctx context.Context, key, path string) error {
	in, err := l.files.Get(ctx, key)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, objectstore.Reader(ctx, in))
	return errors.Join(err, out.Close())
}
