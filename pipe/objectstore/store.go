// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/iotape/iotape/pipe/wholefile"
)

// Store keeps files by keys: parts of a-z, A-Z, 0-9, -, _, . and = with slashes between
// them. All errors about a missing file are fs.ErrNotExist.
type Store interface {
	// Put stores a local file completely or not at all. It replaces an existing one.
	Put(ctx context.Context, key, file string) error
	// Create stores a small file completely or not at all, and only if there is none with
	// the key: otherwise the error is fs.ErrExist. Of several at once, one succeeds.
	Create(ctx context.Context, key string, content []byte) error
	// Get opens a file. The caller closes it.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// List iterates over the files whose keys begin with a prefix, in the order of keys.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Remove removes a file. A missing file is no error.
	Remove(ctx context.Context, key string) error
	// Location returns where a file is: an absolute path, or s3://BUCKET/KEY.
	Location(key string) string
}

// Object is a file in a store.
type Object struct {
	Key    string
	Bytes  int64
	Stored time.Time // by the store's clock
}

// IsBucket reports whether a place is in a bucket, and not a directory.
func IsBucket(where string) bool { return strings.HasPrefix(where, s3Scheme) }

// Open opens the store at a place: a directory, or s3://BUCKET/PREFIX.
func Open(ctx context.Context, where string) (Store, error) {
	if strings.HasPrefix(where, s3Scheme) {
		return openS3(ctx, where)
	}
	if i := strings.Index(where, "://"); i >= 0 {
		return nil, fmt.Errorf("%s: unknown kind of store %q; use a directory or s3://BUCKET/PREFIX", where, where[:i])
	}
	dir, err := filepath.Abs(where)
	if err != nil {
		return nil, err
	}
	return directory{dir}, nil
}

// directory is a Store of plain files. The first Put makes the directory.
type directory struct{ root string }

// puttingSuffix is the suffix of incomplete files.
const puttingSuffix = ".putting"

func (d directory) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

func (d directory) Location(key string) string { return d.path(key) }

func (d directory) Put(ctx context.Context, key, file string) (err error) {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	name := d.path(key)
	if err := wholefile.MkdirBelow(d.root, path.Dir(key), 0o700); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*"+puttingSuffix) // several may put it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(out.Name())
		}
	}()
	_, err = io.Copy(out, Reader(ctx, in))
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), name); err != nil {
		return err
	}
	return SyncDirs(d.root, filepath.Dir(name))
}

// Create writes a file beside its place, and links it there: a link does not replace.
func (d directory) Create(_ context.Context, key string, content []byte) (err error) {
	name := d.path(key)
	if err := wholefile.MkdirBelow(d.root, path.Dir(key), 0o700); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(name), "*"+puttingSuffix)
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = out.Write(content)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := os.Link(out.Name(), name); err != nil {
		return err
	}
	return SyncDirs(d.root, filepath.Dir(name))
}

// SyncDirs makes the names in a directory and those above it durable.
func SyncDirs(root, dir string) error {
	for {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		if dir == root || len(dir) <= len(root) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

func (d directory) Get(_ context.Context, key string) (io.ReadCloser, error) {
	return wholefile.OpenBelow(d.root, key, os.O_RDONLY, 0)
}

func (d directory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		// Walk the directory that has all keys with the prefix.
		base := path.Dir(prefix + "x")
		err := filepath.WalkDir(d.path(base), func(name string, e fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(d.root, name)
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			key := filepath.ToSlash(rel)
			st, err := e.Info()
			if err != nil || !strings.HasPrefix(key, prefix) || strings.HasSuffix(key, puttingSuffix) {
				return ignoreGone(err)
			}
			if !yield(Object{key, st.Size(), st.ModTime()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err = ignoreGone(err); err != nil {
			yield(Object{}, err)
		}
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Remove removes a file, and the directories that become empty.
func (d directory) Remove(_ context.Context, key string) error {
	name := d.path(key)
	if err := ignoreGone(os.Remove(name)); err != nil {
		return err
	}
	for dir := filepath.Dir(name); len(dir) > len(d.root) && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

// Reader returns a reader of r that ends with its context.
func Reader(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
