// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"runtime/debug"
	"runtime/metrics"
)

// What is planned stays for long, and is much: to collect it again and again would cost
// what the calls should have. So the collector lets the heap grow to five times of what
// is in use, but not beyond heapBytes while what is in use leaves a quarter of that.
const (
	heapPercent = 400
	heapBytes   = 384 << 20
)

// heapLimit is the collector's limit while a tape is replayed.
type heapLimit struct {
	percent int   // before
	limit   int64 // before
	now     int64
	live    [1]metrics.Sample
}

func limitHeap() *heapLimit {
	h := &heapLimit{percent: debug.SetGCPercent(heapPercent), limit: debug.SetMemoryLimit(heapBytes), now: heapBytes}
	h.live[0].Name = "/gc/heap/live:bytes"
	return h
}

// grow raises the limit where what is in use comes near to it: state, of which a tape
// with millions of files has much.
func (h *heapLimit) grow() {
	metrics.Read(h.live[:])
	if v := h.live[0].Value; v.Kind() == metrics.KindUint64 {
		if need := int64(v.Uint64()) / 3 * 4; need > h.now {
			h.now = need
			debug.SetMemoryLimit(need)
		}
	}
}

func (h *heapLimit) release() {
	debug.SetGCPercent(h.percent)
	debug.SetMemoryLimit(h.limit)
}
