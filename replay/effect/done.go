// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/tree"
)

// AsDone makes a call that moved less than it was asked ask for what it did: what stopped it, such
// as a limit, a full file system or memory that ends, is not there in a replay. A read that
// ended with its file is left, and ends with the file here.
func AsDone(ev *event.Event) {
	if ev.Kind != event.Call || !ev.OK() || ev.Ret < 0 || ev.Spec().NoCall {
		return
	}
	switch ev.Effect() {
	case event.EffectRead:
		if !beforeEnd(ev) {
			return
		}
	case event.EffectWrite, event.EffectCopy:
	default:
		return
	}
	spec := ev.Spec()
	for i := range spec.Args {
		switch spec.Args[i].Kind {
		case event.KindSize:
			ev.Args[i] = min(ev.Args[i], uint64(ev.Ret))
		case event.KindVec:
			shortenParts(ev.BufArg(i), ev.Ret)
		}
	}
}

// beforeEnd reports whether a read ended before its file did.
func beforeEnd(ev *event.Event) bool {
	f := ev.FileArg(0)
	return f != nil && f.Known && TypeOf(f.Mode) == tree.File && ev.Offset >= 0 && ev.Offset+ev.Ret < f.Size
}

// shortenParts ends the parts of a vector where their total is n bytes.
func shortenParts(b *event.Buf, n int64) {
	if b == nil {
		return
	}
	b.Parts = slices.Clone(b.Parts) // which the tape only lends
	for i := range b.Parts {
		b.Parts[i] = max(0, min(b.Parts[i], n))
		n -= b.Parts[i]
	}
}
