// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"context"
	"fmt"
	"strconv"

	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// OfTape is Infer with the trees of a tape, under its own names.
func OfTape(ctx context.Context, t *trace.Tape) (*Tree, error) {
	snapshots, final, err := tapeTrees(t)
	if err != nil {
		return nil, err
	}
	tr, err := Infer(ctx, t, snapshots, final, nil)
	if err != nil {
		return nil, fmt.Errorf("find the initial tree: %w", err)
	}
	return tr, nil
}

// tapeTrees reads the snapshots of a tape and its final tree, nil if it has none.
func tapeTrees(t *trace.Tape) (snapshots []*tree.Manifest, final *tree.Manifest, err error) {
	read := func(name string) (*tree.Manifest, error) {
		r, err := t.OpenFile(name)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return tree.Decode(r)
	}
	for n := 0; ; n++ {
		name := trace.SnapshotName
		if n > 0 {
			name += "-" + strconv.Itoa(n)
		}
		if _, ok := t.Manifest().Files[name]; !ok {
			break
		}
		m, err := read(name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		snapshots = append(snapshots, m)
	}
	if _, ok := t.Manifest().Files[trace.FinalName]; ok {
		if final, err = read(trace.FinalName); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", trace.FinalName, err)
		}
	}
	return snapshots, final, nil
}
