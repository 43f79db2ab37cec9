// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/pipe/wholefile"
)

// Ledger is what an agent has to know of its last stream even after it was killed: a
// page of memory that is a file. What is stored there is in the kernel's hands at once,
// without a call.
type Ledger struct {
	page []byte
	c    *counters
}

// counters is the layout of the file. The sums come after what they sum, so that a
// reader after a kill may find an event taken that is nowhere, and never one that is
// somewhere and was not taken. What a stream was given is the difference of two
// counters, so that one addition counts an event for the stream and for all time.
type counters struct {
	Magic   uint64
	Handed  atomic.Uint64 // events that this agent and those before it were given
	Dropped atomic.Uint64 // of these, events that it declared lost
	Started atomic.Int64  // ns; the latest start of an agent
	Batches atomic.Uint64 // number of the last batch in the spool
	Events  atomic.Uint64 // in these
	Lost    atomic.Uint64 // declared in these
	Ended   atomic.Uint64 // 1: the stream was ended in order
	Name    [128]byte     // of the stream, with zeros after it
	Base    atomic.Uint64 // Handed when the stream began
}

const (
	ledgerMagic = 0x32726764656c7469 // "itledgr2"
	// firstMagic is of a ledger whose Handed is of its stream alone, and Base zero.
	firstMagic  = 0x31726764656c7469 // "itledgr1"
	ledgerBytes = 4096
)

// OpenLedger opens the ledger beside a spool, or makes it.
func OpenLedger(dir string) (*Ledger, error) {
	name := filepath.Join(dir, "ledger")
	f, err := wholefile.OpenOwn(name, 1, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Written, not only made long: storing to a page that a full disk has no room for
	// would end the agent.
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if fi.Size() == 0 {
		if _, err := f.WriteAt(make([]byte, ledgerBytes), 0); err != nil {
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
	} else if fi.Size() != ledgerBytes { // with a new one, what earlier agents did not come to count would be forgotten
		return nil, notLedger(name)
	}
	page, err := unix.Mmap(int(f.Fd()), 0, ledgerBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	l := &Ledger{page: page, c: (*counters)(unsafe.Pointer(&page[0]))}
	switch l.c.Magic {
	case ledgerMagic:
	case firstMagic:
		l.c.Magic = ledgerMagic
	case 0:
		l.c.Magic, l.c.Name = ledgerMagic, [128]byte{}
		l.c.Ended.Store(1)
	default:
		return nil, errors.Join(notLedger(name), l.Close())
	}
	return l, nil
}

func notLedger(name string) error {
	return fmt.Errorf("%s is damaged: move it away, and the agent begins a new account", name)
}

// CheckLedger refuses a ledger that OpenLedger refuses, and makes none.
func CheckLedger(dir string) error {
	name := filepath.Join(dir, "ledger")
	f, err := wholefile.OpenOwn(name, 1, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // root's, and an ordinary user checks
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return err
	}
	b := make([]byte, ledgerBytes+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return err
	}
	switch magic := binary.NativeEndian.Uint64(b); {
	case n != ledgerBytes, magic != ledgerMagic && magic != firstMagic && magic != 0:
		return notLedger(name)
	}
	return nil
}

// State is what a ledger says.
type State struct {
	Stream                        string // "": there was none
	Ended                         bool
	StartedNS                     int64
	Handed                        uint64 // events that agents were given since the ledger was made
	Taken, Dropped                uint64 // of these, the stream's, and those that were declared lost
	Batches, Events, DeclaredLost uint64
}

// State returns what is in the ledger.
func (l *Ledger) State() State {
	c := l.c
	n := 0
	for n < len(c.Name) && c.Name[n] != 0 {
		n++
	}
	return State{
		Stream: string(c.Name[:n]), Ended: c.Ended.Load() != 0, StartedNS: c.Started.Load(),
		Handed: c.Handed.Load(), Taken: c.Handed.Load() - c.Base.Load(), Dropped: c.Dropped.Load(),
		Batches: c.Batches.Load(), Events: c.Events.Load(), DeclaredLost: c.Lost.Load(),
	}
}

// Started notes when an agent started.
func (l *Ledger) Started(ns int64) { l.c.Started.Store(ns) }

// Begin starts the account of a stream.
func (l *Ledger) Begin(stream string) {
	c := l.c
	c.Ended.Store(1)
	c.Base.Store(c.Handed.Load())
	for _, v := range []*atomic.Uint64{&c.Dropped, &c.Batches, &c.Events, &c.Lost} {
		v.Store(0)
	}
	clear(c.Name[:])
	copy(c.Name[:], stream)
	c.Ended.Store(0)
}

// Take counts events that the agent was given, before anything else is done with them.
// An agent that is killed before it was not given them; one that is killed after it was.
func (l *Ledger) Take(events uint64) { l.c.Handed.Add(events) }

// Handed returns how many events agents were given since the ledger was made.
func (l *Ledger) Handed() uint64 { return l.c.Handed.Load() }

// Drop counts events among them that the agent declared lost.
func (l *Ledger) Drop(events uint64) { l.c.Dropped.Add(events) }

// Spooled notes what is in the spool: batches up to a number, with events, and the
// losses that they declare.
func (l *Ledger) Spooled(batches, events, lost uint64) {
	l.c.Batches.Store(batches)
	l.c.Events.Store(events)
	l.c.Lost.Store(lost)
}

// End notes that the stream has its end.
func (l *Ledger) End() { l.c.Ended.Store(1) }

// Close gives the memory back. The ledger must not be used after it.
func (l *Ledger) Close() error {
	page := l.page
	l.page, l.c = nil, nil
	return unix.Munmap(page)
}
