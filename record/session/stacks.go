// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// Stacks makes the recording have the stacks of the calls that match x, of all calls if that is nil. It
// counts on Filter being set.
func (p *Plan) Stacks(x *predicate.Expr, every uint64, bytes int) error {
	if bytes > capture.MaxStackBytes {
		return fmt.Errorf("--stack-bytes %d: at most %d of a stack are copied", bytes, capture.MaxStackBytes)
	}
	s := &capture.Stacks{Every: every, Bytes: bytes}
	if x != nil {
		wanted := x
		if p.Filter != nil { // what is not recorded needs no stack
			var err error
			if wanted, err = predicate.Parse("(" + x.String() + ") and (" + p.Filter.String() + ")"); err != nil {
				return err
			}
		}
		g, err := predicate.Compile(wanted, FilterOptions())
		if err != nil {
			return err
		}
		s.Prefilter = g.Prefilter(func(event.Op) bool { return true })
	}
	p.Capture.Stacks, p.StackFilter = s, x
	return nil
}

// headStacks says in the head of a stream which calls have a stack.
func (p *Plan) headStacks() *trace.HeadStacks {
	if p.Capture.Stacks == nil {
		return nil
	}
	h := &trace.HeadStacks{Every: p.Capture.Stacks.Every}
	if p.StackFilter != nil {
		h.Filter = p.StackFilter.String()
	}
	return h
}
