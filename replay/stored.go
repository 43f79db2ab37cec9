// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/trace"
)

// CheckStored compares the initial tree and the order that replays stored in a tape with those that a replay without
// options finds now, and adds to a report what differs. Those of a replay with other options, by another user or by
// another version are noted, not compared.
func CheckStored(ctx context.Context, t *trace.Tape, rep *trace.CheckReport) error {
	layout, err := new(Options).layout(t)
	if err != nil {
		return err
	}
	key := layout.Key()
	var compared []string
	for _, name := range []string{trace.InitialName, trace.OrderName} {
		damaged := slices.ContainsFunc(rep.Damage, func(d trace.Damage) bool { return d.File == name })
		switch _, err := t.Derivation(name, key, trace.MaxDerivation); {
		case err == nil:
			compared = append(compared, name)
		case !damaged && !errors.Is(err, fs.ErrNotExist):
			rep.Notes = append(rep.Notes, name+" is not compared: a replay with other options, by another user or by "+
				"another version of iotape stored it")
		}
	}
	if len(compared) == 0 || !rep.OK() {
		return nil // what is found in a damaged tape is no measure
	}
	snapshots, final, err := trees(t, layout)
	if err != nil {
		return err
	}
	found, err := initialtree.Infer(ctx, t, snapshots, final, layout)
	if err != nil {
		return fmt.Errorf("find the initial tree: %w", err)
	}
	for _, name := range compared {
		same := found.IsStored(key)
		if name == trace.OrderName {
			stored := eventsource.StoredOrder(t, key)
			same = stored != nil && found.Order != nil && bytes.Equal(stored.Bytes(), found.Order.Bytes())
		}
		if !same {
			rep.Damage = append(rep.Damage, trace.Damage{File: name, Offset: -1, Derived: true,
				Err: fmt.Errorf("it is not what a replay finds in the tape: %w", trace.ErrCorrupt)})
		}
	}
	return nil
}
