// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/zeebo/blake3"
)

const derivedFormat = "iotape.index"

// Derived describes the files that were derived from a tape. It is index.json,
// written after them.
type Derived struct {
	Format  string             `json:"format"`  // "iotape.index"
	Version int                `json:"version"` // of what was derived; its maker's number
	Tape    string             `json:"tape"`    // the check of the manifest that they belong to
	Files   map[string]FileSum `json:"files"`
}

// Derived returns the description of the derived files. The error wraps
// fs.ErrNotExist if there are none, and ErrCorrupt if they are not those of this
// tape. The files themselves are not read: Check does that.
func (t *Tape) Derived() (*Derived, error) {
	b, err := readLimited(filepath.Join(t.dir, IndexName), maxManifestBytes)
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

// SetDerived hashes files that lie in the tape's directory and describes them in
// index.json.
func (t *Tape) SetDerived(ctx context.Context, version int, names []string) error {
	d := &Derived{Format: derivedFormat, Version: version, Tape: t.Identity(), Files: make(map[string]FileSum)}
	for _, name := range names {
		if err := validName(name); err != nil {
			return err
		}
		sum, err := sumFile(ctx, filepath.Join(t.dir, name), nil)
		if err != nil {
			return fmt.Errorf("describe index: %w", err)
		}
		d.Files[name] = sum
	}
	b, err := sealJSON(d)
	if err != nil {
		return err
	}
	return replaceFile(t.dir, IndexName, b)
}

// Identity tells a tape from others: the check of its manifest or, for a salvaged
// one, something that changes with what was found. What is derived from a tape says it.
func (t *Tape) Identity() string {
	if t.seal != "" {
		return t.seal
	}
	sum := blake3.Sum256(fmt.Appendf(nil, "salvaged %d %d %d %d", t.events.end, t.content.end, t.events.size, t.content.size))
	return fmt.Sprintf("%x", sum)
}
