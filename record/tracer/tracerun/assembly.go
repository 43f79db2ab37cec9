// SPDX-License-Identifier: Apache-2.0

package tracerun

import (
	"context"

	"github.com/iotape/iotape/record/tracer"
)

// assembly is an assembly driver at work: a session.Stream, or an aggregate. (The words are
// those of Tracefs.)
type assembly interface {
	tracer.Assembly
	// Discard takes away what was made, for a recording that did not begin.
	Discard()
	// Finish makes what is left to make after Close, and says in a line what came of it.
	// lost counts the records that it did not get, writeErr is why. final: the target has
	// ended.
	Finish(ctx context.Context, lost uint64, writeErr error, final bool) (line string, err error)
}
