// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// handle is an open file of a caller.
type handle struct {
	fd     int           // in the lower directory
	number int32         // the descriptor that records call it
	node   *node         // nil for none
	flags  atomic.Uint32 // open flags as the caller has them

	mu      sync.Mutex // of what follows
	list    listing
	mapping uint64   // address that records call its mapping, 0 if none was seen
	mapped  uint64   // bytes
	closer  identity // who closed a descriptor of it last, or opened it
}

// files are the open files. A number is given again when what had it is closed, the
// lowest first, as a process would.
type files struct {
	mu   sync.RWMutex
	open []*handle // by number - firstNumber
	free int       // the lowest number that may be free, likewise
}

const firstNumber = 3

func (f *files) add(h *handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.free < len(f.open) && f.open[f.free] != nil {
		f.free++
	}
	if f.free == len(f.open) {
		f.open = append(f.open, nil)
	}
	f.open[f.free] = h
	h.number = int32(f.free) + firstNumber
	f.free++
}

// get returns the open file of a request, nil if the number is none.
func (f *files) get(fh uint64) *handle {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if i := fh - firstNumber; i < uint64(len(f.open)) {
		return f.open[i]
	}
	return nil
}

// of returns an open file of a node, nil if there is none; one to write to if there is.
func (f *files) of(n *node) *handle {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var found *handle
	for _, h := range f.open {
		if h != nil && h.node == n && (found == nil || h.writable()) {
			found = h
		}
	}
	return found
}

func (f *files) remove(h *handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := int(h.number) - firstNumber
	f.open[i] = nil
	f.free = min(f.free, i)
}

func (f *files) each(do func(*handle)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, h := range f.open {
		if h != nil {
			do(h)
		}
	}
}

func (f *files) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.open {
		if h != nil {
			unix.Close(h.fd)
		}
	}
	f.open = nil
}

func (h *handle) writable() bool { return h.flags.Load()&unix.O_ACCMODE != unix.O_RDONLY }
