// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
)

// MayLeaveOut reports whether a slice never needs a call of an operation but where its
// filter picks it: a recording with a filter need not have it. A slice of what is left
// is that of the whole.
func MayLeaveOut(op event.Op) bool {
	s := event.Lookup(op)
	if op == event.OpUnknown || op.Like() != op || s.NoCall || s.Identity || s.NoReturn || s.NeedsStop ||
		s.Result == event.KindFD || posix.MayChange(op) {
		return false
	}
	switch op {
	case event.OpIoSubmit, event.OpIoGetevents, event.OpIoPgetevents, event.OpIoSetup, event.OpIoDestroy,
		event.OpIoCancel, event.OpIoUringEnter:
		return false // requests
	case event.OpBind, event.OpConnect:
		return false // addresses of sockets (package predicate)
	case event.OpPrlimit64, event.OpGetrlimit:
		return true
	}
	switch op.Effect() {
	case event.EffectSeek, event.EffectList:
		return false // positions that cannot be made up for
	case event.EffectReadlink:
		return true
	}
	switch s.Class {
	case event.Data, event.Meta, event.Sync, event.Lock, event.Wait, event.Socket, event.Block:
		return true
	}
	return false
}
