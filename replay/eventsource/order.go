// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"fmt"

	"github.com/iotape/iotape/internal/buildinfo"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/trace"
)

// Key says of what a replay derives the order of a tape's events and its initial tree, beside the tape: the layout, and
// the program.
func (l Layout) Key() string {
	const version = 1 // of what is derived
	b := fmt.Appendf(nil, "%d %q", version, buildinfo.String())
	for i := range l {
		h := &l[i]
		b = fmt.Appendf(b, "\n%q %d %q %q %v %v %v", h.Name, h.Machine, h.Dir, h.Renames, h.Shared, h.Owners.Users,
			h.Owners.Groups)
		if o := h.Owners.Only; o != nil {
			b = fmt.Appendf(b, " only %d %d", o.UID, o.GID)
		}
	}
	return string(b)
}

// StoredOrder returns the order of a tape's events that a replay with the same layout found before, nil if none did.
func StoredOrder(t *trace.Tape, key string) *linearize.Order {
	b, err := t.Derivation(trace.OrderName, key, linearize.MaxOrderBytes)
	if err != nil {
		return nil
	}
	o, err := linearize.ParseOrder(b, t.Manifest().Counts.Events)
	if err != nil {
		return nil
	}
	return o
}

// StoreOrder stores an order of a tape's events for StoredOrder.
func StoreOrder(t *trace.Tape, key string, o *linearize.Order) error {
	b := o.Bytes()
	if _, err := linearize.ParseOrder(b, t.Manifest().Counts.Events); err != nil {
		return err // of a tape that lacks events, or one that is longer than is stored
	}
	return t.SetDerivation(trace.OrderName, key, b)
}
