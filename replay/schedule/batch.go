// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"sync/atomic"

	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/plan"
)

// StepTime is when a step is due, where calls are paced.
type StepTime struct {
	due   int64         // recorded entry, ns
	think int64         // ns of computing before it, as recorded
	sleep int64         // ns of sleeping, after what it waits for
	done  *atomic.Int64 // gets the time when it was done; nil: that is not wanted
}

// Dependency is what a step waits for: that a queue has done its first pos steps.
type Dependency struct {
	queue *Queue
	pos   uint64
	lag   int64         // ns that have to go by after that
	done  *atomic.Int64 // when that was, with a lag
}

// batchSteps is how many steps are handed over at a time, and batchBytes how much content and
// tasks a batch holds before it is handed over with fewer.
const (
	batchSteps = 128
	batchBytes = 1 << 20
)

// Batch is a run of steps of one queue.
type Batch struct {
	Steps []plan.Step
	// Arena has the steps' content.
	Arena   content.Arena
	times   []StepTime   // of the steps; none if calls are made as fast as possible
	deps    []Dependency // of the steps, one's behind the other's
	held    int64        // bytes of memory that it keeps; all of it once it is handed over
	content int64        // bytes of it that are content
	next    *Batch
	last    bool // the queue ends
}

// full reports whether the batch is to be handed over.
func (b *Batch) full() bool {
	return len(b.Steps) == batchSteps || b.held+b.content+b.Arena.Used() >= batchBytes
}

// charge adds up the memory that the batch takes.
func (b *Batch) charge() {
	b.content += b.Arena.Held()
	b.held += int64(cap(b.Steps))*plan.StepBytes + b.content
}

// reset makes the batch ready for its next use.
func (b *Batch) reset() {
	clear(b.Steps)
	b.Steps, b.times, b.deps, b.held, b.content = b.Steps[:0], b.times[:0], b.deps[:0], 0, 0
	b.Arena.Reset()
}
