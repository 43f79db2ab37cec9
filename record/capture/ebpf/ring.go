// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/trace"
)

// ring is a kernel ring buffer, mapped: a page that the consumer writes, a page
// that the kernel writes, and the data, mapped twice in a row so that every range
// of it is contiguous.
//
//	fd: │ consumer position │ producer position │ data │ data again │
type ring struct {
	m        *ebpf.Map
	size     uint64
	consumer []byte
	producer []byte
	data     []byte
	pos      uint64 // consumer position; ours alone
}

func newRing(size int) (*ring, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(size)})
	if err != nil {
		return nil, fmt.Errorf("make a ring of %d bytes: %w", size, err)
	}
	return mapRing(m)
}

// mapRing maps a ring buffer, which belongs to the ring from then on.
func mapRing(m *ebpf.Map) (*ring, error) {
	size := int(m.MaxEntries())
	r := &ring{m: m, size: uint64(size)}
	page := os.Getpagesize()
	var err error
	if r.consumer, err = unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		m.Close()
		return nil, fmt.Errorf("map a ring's consumer page: %w", err)
	}
	if r.producer, err = unix.Mmap(m.FD(), int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		r.close()
		return nil, fmt.Errorf("map a ring's data: %w", err)
	}
	r.data = r.producer[page:]
	return r, nil
}

func (r *ring) close() {
	if r.consumer != nil {
		_ = unix.Munmap(r.consumer)
	}
	if r.producer != nil {
		_ = unix.Munmap(r.producer)
	}
	r.consumer, r.producer, r.data = nil, nil, nil
	r.m.Close()
}

// produced returns the producer position.
func (r *ring) produced() uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.producer[0])))
}

// consume gives ring memory up to a position back to the kernel.
func (r *ring) consume(to uint64) {
	r.pos = to
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&r.consumer[0])), to)
}

// bytes returns the memory between two positions, which are less than the ring's
// size apart.
func (r *ring) bytes(from, to uint64) []byte {
	at := from & (r.size - 1)
	return r.data[at : at+(to-from)]
}

// span is a range of committed records.
type span struct {
	from, to       uint64
	records, calls uint64
	processes      bool // there are descriptions of processes
}

// scan appends the committed records up to a producer position, in spans of at
// most frameBytes. busy says that it stopped at a record that is being written.
func (r *ring) scan(spans []span, produced uint64) (_ []span, busy bool) {
	s := span{from: r.pos, to: r.pos}
	for s.to < produced {
		at := s.to & (r.size - 1)
		word := atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[at])))
		if word&trace.WordBusy != 0 {
			busy = true
			break
		}
		n := (uint64(word&^trace.WordDiscard)+7)&^7 + trace.WordBytes
		if s.to+n-s.from > frameBytes && s.to > s.from {
			spans = append(spans, s)
			s = span{from: s.to, to: s.to}
		}
		s.to += n
		if word&trace.WordDiscard == 0 {
			s.records++
			switch trace.RecordType(*(*uint16)(unsafe.Pointer(&r.data[at+trace.WordBytes]))) {
			case trace.RecCall:
				s.calls++
			case trace.RecProcess:
				s.processes = true
			}
		}
	}
	if s.to > s.from {
		spans = append(spans, s)
	}
	return spans, busy
}
