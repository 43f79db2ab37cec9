// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/record/capture/digest"
	"github.com/iotape/iotape/trace"
)

const (
	frameBytes = 1 << 20                // a frame is written when it has as much
	flushEvery = 100 * time.Millisecond // and at least so often
)

// output gathers records into frames. All but pending belongs to the tracing
// thread.
type output struct {
	sw      *trace.StreamWriter
	digest  *digest.Rewriter // nil if nothing is hashed
	buf     []byte
	records uint64 // in buf
	round   uint32
	lost    uint64
	seen    uint64      // no call that is still to be handled returned before
	err     error       // of the writer: from then on records are lost
	pending atomic.Bool // buf is not empty
}

func (o *output) put(r *trace.Record) {
	if o.err != nil {
		o.lost++
		return
	}
	if len(o.buf) == 0 {
		o.pending.Store(true)
	}
	o.buf = trace.AppendRecord(o.buf, r)
	o.records++
	if len(o.buf) >= frameBytes {
		o.flush(o.seen)
	}
}

// flush writes what is buffered. Calls that returned before until have been put.
func (o *output) flush(until uint64) {
	if len(o.buf) == 0 {
		return
	}
	if err := o.sw.WriteRecords(trace.Frame{Round: o.round, Until: until}, o.digest.Payload(o.buf)); err != nil {
		o.err = err
		o.lost += o.records
	}
	o.round++
	o.buf, o.records = o.buf[:0], 0
	o.pending.Store(false)
}

// now reads CLOCK_MONOTONIC in ns.
func now() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}
