// SPDX-License-Identifier: Apache-2.0

package effect

import "github.com/iotape/iotape/event"

// AsDone makes a call that wrote or copied less than it was asked ask for what it did: what
// stopped it, such as a limit, a full file system or memory that ends, is not there in a replay.
// Parts of a vector end with the bytes that the tape has of it.
func AsDone(ev *event.Event) {
	n := -1
	switch ev.Op {
	case event.OpWrite, event.OpPwrite64:
		n = 2
	case event.OpSendfile:
		n = 3
	case event.OpCopyFileRange, event.OpSplice:
		n = 4
	}
	if n >= 0 && ev.Kind == event.Call && ev.OK() && ev.Ret >= 0 {
		ev.Args[n] = min(ev.Args[n], uint64(ev.Ret))
	}
}
