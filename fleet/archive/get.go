// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/iotape/iotape/pipe/objectstore"
	"github.com/iotape/iotape/trace"
)

// ErrNoTape says that a tape is not in a store.
var ErrNoTape = errors.New("there is no such tape")

// Find returns the key of a tape by its key, its location, or its name.
func Find(ctx context.Context, s objectstore.Store, name string) (key string, err error) {
	name = strings.TrimSuffix(name, "/")
	root := s.Location("")
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/"); ok {
		name = rest
	}
	if checkKey(name) == nil {
		return name, nil
	}
	if strings.ContainsRune(name, '/') || !validPart(name) {
		return "", fmt.Errorf("%s: %w", name, ErrNoTape)
	}
	prefix := "" // the name has the day
	if len(name) > 8 {
		prefix = "day=" + name[:4] + "-" + name[4:6] + "-" + name[6:8] + "/"
	}
	for t, err := range Tapes(ctx, s, prefix) {
		if err != nil {
			return "", err
		}
		if t.Name() == name || t.Name() == name+tapeSuffix {
			return t.Key, nil
		}
	}
	return "", fmt.Errorf("%s: %w in %s", name, ErrNoTape, root)
}

// Get copies a tape from a store into a new directory, and verifies each file by the
// manifest. After an error the directory does not exist.
func Get(ctx context.Context, s objectstore.Store, key, out string) (err error) {
	if err := checkKey(key); err != nil {
		return err
	}
	if _, err := os.Lstat(out); err == nil {
		return fmt.Errorf("%s is there already", out)
	}
	b, err := getAll(ctx, s, key+"/"+trace.ManifestName)
	if err != nil {
		return err
	}
	m, err := trace.ParseManifest(b)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Location(key), err)
	}
	dir := out + ".getting"
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	for _, name := range order(m.Files)[:len(m.Files)] {
		if err := getFile(ctx, s, key+"/"+name, filepath.Join(dir, name), m.Files[name]); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, trace.ManifestName), b, 0o666); err != nil {
		return err
	}
	return os.Rename(dir, out)
}

// maxManifest limits the size of a manifest, in bytes, as package trace does.
const maxManifest = 64 << 20

func getAll(ctx context.Context, s objectstore.Store, key string) ([]byte, error) {
	in, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(objectstore.Reader(ctx, in), maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Location(key), err)
	}
	return b, nil
}

func getFile(ctx context.Context, s objectstore.Store, key, name string, want trace.FileSum) error {
	in, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(copySum(ctx, f, in, s.Location(key), want), f.Close())
}
