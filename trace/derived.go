// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/pipe/wholefile"
)

const derivedFormat = "iotape.index"

// IndexVersion is the version of the Parquet files that package store derives from a tape. An index of another
// version is made anew.
const IndexVersion = 8

// Derived describes the files that were derived from a tape. It is index.json,
// written after them.
type Derived struct {
	Format  string             `json:"format"`  // "iotape.index"
	Version int                `json:"version"` // of what was derived; its maker's number
	Tape    string             `json:"tape"`    // the check of the manifest that they belong to
	Files   map[string]FileSum `json:"files"`
}

// DerivedDir returns the directory of the derived files: the tape's own, unless DeriveElsewhere was called.
func (t *Tape) DerivedDir() string {
	if t.derived != nil {
		return t.derived.Temp
	}
	return t.dir
}

// DeriveElsewhere makes a temporary directory for derived files, for a tape to which nothing can be
// written. Close removes it.
func (t *Tape) DeriveElsewhere() error {
	if t.derived != nil {
		return nil
	}
	dir, err := wholefile.TempDir("iotape-index")
	if err != nil {
		return fmt.Errorf("directory for what is derived from %s: %w", t.name, err)
	}
	t.derived = dir
	return nil
}

// Derived returns the description of the derived files. The error wraps
// fs.ErrNotExist if there are none, and ErrCorrupt if they are not those of this
// tape. The files themselves are not read: Check does that.
func (t *Tape) Derived() (*Derived, error) {
	b, err := readLimited(t.DerivedDir(), IndexName, maxManifestBytes)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	d := new(Derived)
	if err := openJSON(b, d); err != nil {
		return nil, fmt.Errorf("%s: %w", IndexName, err)
	}
	if d.Format != derivedFormat || len(d.Files) > maxTapeFiles {
		return nil, fmt.Errorf("%s: format %q: %w", IndexName, d.Format, ErrCorrupt)
	}
	for name, sum := range d.Files {
		if err := checkSum(name, sum); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", IndexName, err, ErrCorrupt)
		}
	}
	if d.Tape != t.Identity() {
		return nil, fmt.Errorf("%s belongs to another state of the tape: %w", IndexName, ErrCorrupt)
	}
	return d, nil
}

// SetDerived hashes files that lie in DerivedDir and describes them in index.json there.
func (t *Tape) SetDerived(ctx context.Context, version int, names []string) error {
	d := &Derived{Format: derivedFormat, Version: version, Tape: t.Identity(), Files: make(map[string]FileSum)}
	for _, name := range names {
		if err := validName(name); err != nil {
			return err
		}
		sum, err := sumFile(ctx, t.DerivedDir(), name, nil)
		if err != nil {
			return fmt.Errorf("describe index: %w", err)
		}
		d.Files[name] = sum
	}
	b, err := sealJSON(d)
	if err != nil {
		return err
	}
	return replace(t.DerivedDir(), IndexName, b)
}

// Identity tells a tape from others: the check of its manifest or, for a salvaged
// one, something that changes with what was found. What is derived from a tape says it.
func (t *Tape) Identity() string {
	if t.seal != "" {
		return t.seal
	}
	sum := blake3.Sum256(fmt.Appendf(nil, "salvaged %d %d %d %d", t.events.end, t.content.end, t.events.size,
		t.content.size))
	return fmt.Sprintf("%x", sum)
}

// replace writes a file of a directory, in place of the one that is there.
func replace(dir, name string, b []byte) error {
	if err := wholefile.WriteBytes(filepath.Join(dir, name), b); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// CreateDerived begins a file of what is derived from the tape, in DerivedDir. It
// is described by SetDerived, or says by itself which tape it is of.
func (t *Tape) CreateDerived(name string) (*wholefile.File, error) {
	path := filepath.Join(t.DerivedDir(), name)
	wholefile.RemoveLeft(path)
	return wholefile.Create(path)
}

// OpenDerived opens a file that was derived from the tape. Its bytes are not verified. The
// error wraps fs.ErrNotExist if there is none.
func (t *Tape) OpenDerived(name string) (*os.File, error) {
	return wholefile.Open(t.DerivedDir(), name)
}
