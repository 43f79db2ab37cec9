// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/internal/bpf"
)

// opener changes what a recording leaves out for its filter while it goes on.
type opener struct {
	mu   sync.Mutex
	p    *programs // nil: the recording has ended
	c    *config
	open bool // no row of the table leaves anything out, and no hook has seen one that did
}

// Open implements capture.Control. A call that the hooks are at is waited for: they run
// where the kernel's read-copy-update protects them (membarrier(2)).
func (w *opener) Open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.letAll()
}

func (w *opener) letAll() error {
	if w.p == nil || w.open {
		return nil
	}
	if err := w.rows(nil); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(openWithin) // a kernel with nohz_full CPUs has no such barrier
	}
	w.open = true
	return nil
}

// Narrow implements capture.Control. What is refused by its operation alone is left at its
// entry, so that is a call of later. All else is judged when it returns: there the programs
// let pass what began before.
func (w *opener) Narrow(s *predicate.Prefilter) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.letAll(); err != nil || w.p == nil || s == nil {
		return err
	}
	w.open = false
	bpf.PutPrefilter(w.p.shared, s, w.c.options.Prefilter)
	atomic.StoreUint64(&w.p.shared.Prefiltered, bpf.Now())
	return w.rows(s)
}

// rows has the table of calls leave out what a prefilter refuses.
func (w *opener) rows(s *predicate.Prefilter) error {
	arch, _ := bpf.Arch()
	for nr, r := range bpf.Rows(arch, w.c.content) {
		if nr < bpf.CompatRow {
			r.Prefilter = bpf.PrefilterRow(s, w.c.options.Wakeups, event.Op(r.Op), r.Flags)
		}
		if err := w.p.Table.Put(uint32(nr), r); err != nil {
			return fmt.Errorf("change what is recorded: %w", err)
		}
	}
	return nil
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL (linux/membarrier.h).
const membarrierGlobal = 1

// openWithin is far longer than a hook runs.
const openWithin = 100 * time.Millisecond

func (w *opener) end() {
	w.mu.Lock()
	w.p = nil
	w.mu.Unlock()
}
