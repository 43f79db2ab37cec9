// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
)

// Stacks says of which calls the stacks are recorded.
type Stacks struct {
	// Prefilter, if it is set, refuses calls whose stack is not wanted. Sealing asks the whole filter.
	Prefilter *predicate.Prefilter
	// Every is of how many calls that are wanted one has its stack recorded. 0 is 1.
	Every uint64
	// Bytes is how much of a stack's memory is copied, where the stack is followed later. 0 is
	// DefaultStackBytes; at most MaxStackBytes.
	Bytes int
}

// The part of a stack that is copied.
const (
	DefaultStackBytes = 16 << 10
	MaxStackBytes     = 64 << 10
)

// AtReturn reports whether it takes the result of a call to know whether its stack is wanted. Calls that
// may not return, or not to where they were made, do not wait for that.
func (s *Stacks) AtReturn(op event.Op) bool {
	if s.Prefilter == nil || event.Lookup(op).NoReturn || op == event.OpExecve || op == event.OpExecveat {
		return false
	}
	for i := range s.Prefilter.Steps {
		switch s.Prefilter.Steps[i].Field {
		case predicate.PrefilterLatency, predicate.PrefilterResult, predicate.PrefilterErrno:
			return s.Prefilter.Entries[op] >= 0
		}
	}
	return false
}
