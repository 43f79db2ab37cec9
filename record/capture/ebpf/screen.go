package ebpf

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
)

// What a row of the programs' table says of the filter (bpf/screen.h).
const (
	rowLet    = 0
	rowRefuse = 1
	rowSteps  = 2 // + the step to begin at
)

// putScreen writes a screen's steps where the programs walk them. No row of the table may
// lead to them. given are the suffixes that the programs were loaded with: what the names of
// open files end in is known of these only, so a test of another lets the call through.
func putScreen(shared *iotapeCommon, s *predicate.Screen, given []string) {
	if s == nil {
		return
	}
	for i, st := range s.Steps {
		p := iotapeScreenStep{Field: uint8(st.Field), Yes: st.Yes, No: st.No, Lo: st.Lo, Hi: st.Hi}
		if st.Field == predicate.ScreenSuffix {
			k := slices.Index(given, s.Suffixes[st.Lo])
			if p.Lo = int64(k); k < 0 {
				p = iotapeScreenStep{Field: uint8(predicate.ScreenPID), Yes: predicate.ScreenLet, No: predicate.ScreenLet}
			}
		}
		shared.Screen[i] = p
	}
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

func suffixCount(s *predicate.Screen) uint32 { return uint32(len(suffixesOf(s))) }

func suffixesOf(s *predicate.Screen) []string {
	if s == nil {
		return nil
	}
	return s.Suffixes
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
func screenRow(s *predicate.Screen, wakeups bool, op event.Op, flags uint16) uint16 {
	if s == nil {
		return rowLet
	}
	entry, ok := s.Entries[op]
	const atEntry = specEntry | specBefore | specAIOSubmit | specAIOEnd
	switch {
	case !ok || entry == predicate.ScreenLet:
	case entry == predicate.ScreenRefuse && !wakeups:
		return rowRefuse
	case entry >= 0 && flags&atEntry == 0:
		return rowSteps + uint16(entry)
	}
	return rowLet
}

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
func (w *opener) Narrow(s *predicate.Screen) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.letAll(); err != nil || w.p == nil || s == nil {
		return err
	}
	w.open = false
	putScreen(w.p.shared, s, suffixesOf(w.c.options.Screen))
	atomic.StoreUint64(&w.p.shared.Screened, now())
	return w.rows(s)
}

// rows has the table of calls leave out what a screen refuses.
func (w *opener) rows(s *predicate.Screen) error {
	arch, _ := nativeArch()
	for nr, r := range rows(arch, w.c.content) {
		if nr < compatRow {
			r.Screen, r.Opens = screenRow(s, w.c.options.Wakeups, event.Op(r.Op), r.Flags), opensBy(event.Op(r.Op))
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
