// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/iotape/iotape/store"
)

// Checked is what Check found.
type Checked struct {
	Files, Rows int
	Elsewhere   int      // tapes that are not on this machine, and were not looked at
	Problems    []string // a line each
}

// Check reads every file of the catalogue and looks whether the tapes on this machine are
// those that were added.
func (c *Catalogue) Check(ctx context.Context) (*Checked, error) {
	files, unlock, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	k := &Checked{Files: len(files)}
	seen := map[string]string{}
	for _, f := range files {
		if err := c.checkFile(ctx, f, k, seen); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			k.Problems = append(k.Problems, fmt.Sprintf("%s cannot be read: %v", f, err))
		}
	}
	return k, nil
}

func (c *Catalogue) checkFile(ctx context.Context, file string, k *Checked, seen map[string]string) error {
	rows, err := store.QueryParquet(ctx, tapesName, StoreColumns(), []string{file}, "SELECT id, location FROM tapes")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		k.Rows++
		id, _ := rows.Values()[0].(string)
		location, _ := rows.Values()[1].(string)
		if other, ok := seen[id]; ok {
			k.Problems = append(k.Problems, fmt.Sprintf("tape %s is there twice, in %s and %s", id, other, file))
		}
		seen[id] = file
		if !filepath.IsAbs(location) {
			k.Elsewhere++
			continue
		}
		switch now, err := IDOf(location); {
		case errors.Is(err, fs.ErrNotExist):
			k.Problems = append(k.Problems, fmt.Sprintf("%s is gone (iotape catalogue rm %s)", location, id))
		case err != nil:
			k.Problems = append(k.Problems, err.Error())
		case now != id:
			k.Problems = append(k.Problems, fmt.Sprintf("%s is not the tape that was added", location))
		}
	}
	return rows.Err()
}
