// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

// A recorder can hang: it is stopped or frozen, or its drain reads from a file system that does not answer. Then two
// things end the wait of programs after Options.HoldMax:
//
//   - The programs in the kernel hold no more threads when one that was told to stop was not answered for so long
//     (hangs in bpf/hold.h). What has no room in a ring then is lost and counted.
//   - A thread that is held goes on only if its tracer lets it. The tracing thread does so if the drain stands
//     (supervise). What the drain has yet to read of such a thread is missing, and counted as LossHung.
//
// A tracing thread that does not run is the watchdog's business (package internal/early).
const (
	// answerMargin is how much later than the watchdog the programs in the kernel take the recorder for hung:
	// a recorder that the watchdog continues loses nothing.
	answerMargin = time.Second
	// hungMargin is how much later than the output's limit, which is HoldMax too, the drain is taken for hung.
	hungMargin = 500 * time.Millisecond
	// hung, as the time of a question, makes the programs hold nobody until it is answered.
	hung = 1
)

// answerWithin is how long the programs wait for an answer of the recorder, 0 without end.
func answerWithin(holdMax time.Duration) time.Duration {
	if holdMax <= 0 {
		return 0
	}
	return holdMax + answerMargin
}

// answer tells the programs that both the drain, which calls it, and the tracing thread go on.
func (d *drain) answer() {
	asked := atomic.LoadUint64(&d.p.shared.Asked)
	if asked == 0 || d.tr == nil || d.asking.Swap(true) {
		return
	}
	if limit := answerWithin(d.holdMax); limit > 0 && asked != hung {
		if late := time.Duration(bpf.Now() - asked); late > limit {
			d.note(fmt.Sprintf("the recorder did not go on for %s while programs waited for it: after %s no more of "+
				"them waited, and what its buffers had no room for is counted as lost (--hold-max)",
				late.Round(time.Second/10), limit))
		}
	}
	d.tr.Do(func() {
		atomic.StoreUint64(&d.p.shared.Asked, 0)
		d.asking.Store(false)
	})
}

// letGo lets a held thread go on, unless it does already. It is called on the tracing thread.
func (d *drain) letGo(h *heldThread) {
	if h.free.Swap(true) {
		return
	}
	if h.listed {
		_ = d.p.Holding.Delete(uint32(h.tid))
	}
	h.t.Resume()
}

// tooLate reports whether the thread whose content is being read went on meanwhile: what was read may be newer.
func (d *drain) tooLate() bool { return d.serving != nil && d.serving.free.Load() }

// supervise lets held threads go on when the drain stands for too long, until over is closed.
func (d *drain) supervise(holdMax time.Duration, over chan struct{}) {
	each := max(holdMax/10, 10*time.Millisecond)
	tick := time.NewTicker(each)
	defer tick.Stop()
	for last, stands := uint64(0), time.Duration(0); ; { // looks are counted: this process may have been stopped
		select {
		case <-over:
			return
		case <-tick.C:
		}
		if n := d.passes.Load(); n != last {
			last, stands = n, 0
			continue
		}
		if stands += each; stands < holdMax+hungMargin {
			continue
		}
		d.mu.Lock()
		waiting := append(append([]*heldThread(nil), d.held...), d.fresh...)
		d.mu.Unlock()
		if len(waiting) == 0 {
			continue
		}
		d.note(fmt.Sprintf("the recorder cannot read what a program left for it, for %s: the programs go on, and what "+
			"it cannot read is counted as lost (--hold-max)", stands.Round(time.Second/10)))
		d.tr.Do(func() {
			atomic.StoreUint64(&d.p.shared.Asked, hung)
			for _, h := range waiting {
				d.letGo(h)
			}
		})
		stands = 0
	}
}

// loseLate counts what could not be read of a thread in time.
func (d *drain) loseLate(parts int) {
	if parts > 0 && d.tooLate() {
		d.lose(uint64(parts), trace.LossHung)
	}
}
