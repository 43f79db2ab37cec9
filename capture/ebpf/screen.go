package ebpf

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"iotape/capture"
	"iotape/event"
	"iotape/predicate"
)

// What a row of the programs' table says of the filter (bpf/screen.h).
const (
	rowLet    = 0
	rowRefuse = 1
	rowSteps  = 2 // + the step to begin at
)

// screenSteps returns the programs' form of a screen's steps.
func screenSteps(s *predicate.Screen) (steps [predicate.MaxScreenSteps]iotapeScreenStep) {
	if s == nil {
		return steps
	}
	for i, st := range s.Steps {
		steps[i] = iotapeScreenStep{Field: uint8(st.Field), Yes: st.Yes, No: st.No, Lo: st.Lo, Hi: st.Hi}
	}
	return steps
}

// screenSuffixes returns the programs' form of a screen's suffixes: at the end of 16
// bytes, as two words.
func screenSuffixes(s *predicate.Screen) (list [predicate.MaxScreenSuffixes]iotapeSuffix) {
	if s == nil {
		return list
	}
	for i, text := range s.Suffixes {
		var value, mask [16]byte
		for k := range len(text) {
			at := len(value) - len(text) + k
			value[at], mask[at] = text[k], 0xff
		}
		le := binary.LittleEndian
		list[i].Value = [2]uint64{le.Uint64(value[:]), le.Uint64(value[8:])}
		list[i].Mask = [2]uint64{le.Uint64(mask[:]), le.Uint64(mask[8:])}
	}
	return list
}

func suffixCount(s *predicate.Screen) uint32 {
	if s == nil {
		return 0
	}
	return uint32(len(s.Suffixes))
}

// opensBy says in which arguments a call has the name and the flags of what it opens
// (struct spec, opens); 0 if it does not open by a name.
func opensBy(op event.Op) uint16 {
	switch op {
	case event.OpOpen:
		return 1 | 2<<8
	case event.OpOpenat:
		return 2 | 3<<8
	case event.OpCreat:
		return 1
	}
	return 0
}

// screenRow returns what the table says of a call. What has been written of it at its
// entry cannot be taken back, and who was woken up has to be in a call.
func screenRow(o *capture.Options, op event.Op, flags uint16) uint16 {
	if o.Screen == nil {
		return rowLet
	}
	entry, ok := o.Screen.Entries[op]
	const atEntry = specEntry | specBefore | specAIOSubmit | specAIOEnd
	switch {
	case !ok || entry == predicate.ScreenLet:
	case entry == predicate.ScreenRefuse && !o.Wakeups:
		return rowRefuse
	case entry >= 0 && flags&atEntry == 0:
		return rowSteps + uint16(entry)
	}
	return rowLet
}

// opener lets a recording have all calls again that its filter leaves out.
type opener struct {
	mu sync.Mutex
	p  *programs // nil: the recording has ended
	c  *config
}

// Open implements capture.Control. A call that the hooks are at is waited for: they run
// where the kernel's read-copy-update protects them (membarrier(2)).
func (w *opener) Open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.p == nil || w.c.options.Screen == nil {
		return nil
	}
	arch, _ := nativeArch()
	for nr, r := range rows(arch, w.c.content) {
		if nr < compatRow {
			r.Screen, r.Opens = rowLet, opensBy(event.Op(r.Op))
		}
		if err := w.p.Table.Put(uint32(nr), r); err != nil {
			return fmt.Errorf("record all calls: %w", err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(openWithin) // a kernel with nohz_full CPUs has no such barrier
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
