// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"fmt"
	"sort"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/trace"
)

// ring is memory that holds frames one behind the other, oldest first. Positions
// count all bytes ever written; a frame is never cut by the memory's end.
type ring struct {
	mem    []byte
	frames []*frame // oldest first
	head   uint64   // position of the next frame
	used   uint64   // bytes of the frames
}

// frame is a frame in memory.
type frame struct {
	trace.Frame
	at      uint64 // position of its payload
	n       int    // bytes
	applied bool   // its records were given to the follower
	live    int    // events of these that are not applied
}

func (f *frame) end() uint64 { return f.at + uint64(f.n) }

func newRing(size int64) (*ring, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes for the flight recorder: %w", size, err)
	}
	return &ring{mem: mem}, nil
}

func (r *ring) close() error { return unix.Munmap(r.mem) }

// tail returns the position of the oldest frame.
func (r *ring) tail() uint64 {
	if len(r.frames) == 0 {
		return r.head
	}
	return r.frames[0].at
}

// place returns where a frame of n bytes would go, false if there is no room.
func (r *ring) place(n int) (at uint64, ok bool) {
	size, at := uint64(len(r.mem)), r.head
	if off := at % size; off+uint64(n) > size {
		at += size - off
	}
	return at, len(r.frames) == 0 || at+uint64(n)-r.tail() <= size
}

// add appends a frame whose payload is in place.
func (r *ring) add(f *frame) {
	r.frames = append(r.frames, f)
	r.head = f.end()
	r.used += uint64(f.n)
}

// drop removes the oldest frame.
func (r *ring) drop() {
	r.used -= uint64(r.frames[0].n)
	r.frames[0] = nil
	r.frames = r.frames[1:]
}

// payload returns a frame's bytes.
func (r *ring) payload(f *frame) []byte { return r.bytes(f.at, f.n) }

func (r *ring) bytes(at uint64, n int) []byte {
	off := at % uint64(len(r.mem))
	return r.mem[off : off+uint64(n) : off+uint64(n)]
}

// of returns the frame that has a position.
func (r *ring) of(at uint64) *frame {
	i := sort.Search(len(r.frames), func(i int) bool { return r.frames[i].at > at })
	return r.frames[i-1]
}
