// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/record/capture/digest"
	"github.com/iotape/iotape/trace"
)

const (
	frameBytes = 1 << 20                // a frame is written when it has as much
	flushEvery = 100 * time.Millisecond // and at least so often, unless capture.Options.Latency is less
)

// output gathers records into frames. It is safe for concurrent use.
type output struct {
	mu      sync.Mutex
	sw      *trace.StreamWriter
	digest  *digest.Rewriter // nil if nothing is hashed
	buf     []byte
	records uint64 // in buf
	others  uint64 // of them, calls that append brought
	round   uint32
	lost    uint64
	seen    uint64      // no call that is still to be put returned before
	shared  bool        // others add records: they say what seen is (append)
	err     error       // of the writer: from then on records are lost
	pending atomic.Bool // buf is not empty
}

func (o *output) put(r *trace.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
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
		o.write(o.seen)
	}
}

// lose says that something is lost, by a RecLoss.
func (o *output) lose(r *trace.Record) {
	o.put(r)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += r.Count
}

// append adds encoded records, n of them.
func (o *output) append(records []byte, n, until uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		o.lost += n
		return
	}
	o.others += n
	o.seen = max(o.seen, until)
	if len(records) > 0 {
		o.pending.Store(true)
	}
	o.buf = append(o.buf, records...)
	o.records += n
	if len(o.buf) >= frameBytes {
		o.write(o.seen)
	}
}

// noteSeen says when the stop that is handled now was taken.
func (o *output) noteSeen(at uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.shared {
		o.seen = at
	}
}

// flush writes what is buffered. Calls that returned before until have been put.
func (o *output) flush(until uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shared {
		until = o.seen
	}
	o.write(until)
}

// end writes the rest: nobody adds records any more.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(now())
}

func (o *output) write(until uint64) {
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
