// SPDX-License-Identifier: Apache-2.0

// Package mapped makes the records of files that programs read and write through mappings, the
// same for all back ends.
//
// A store makes no call, so a back end looks at a file's pages when their content matters. Pages
// remembers them by their hashes; what changed since becomes records of event.OpMmapPwrite.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package mapped

import (
	"hash/maphash"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// Arg is the argument of mmap_pread and mmap_pwrite that stands for the pages.
const Arg = 1

// What stands for the descriptor and the system-call number of what is no call.
const (
	NoDescriptor = 0xffffffff
	NoNumber     = 0xffffffff
)

// Moment is where a record belongs.
type Moment struct {
	PID, TID uint32
	Time     uint64 // ns
}

// Pages remembers the pages of a file as they were when it was last looked at.
type Pages struct {
	size int64 // of a page, in bytes
	seed maphash.Seed
	seen map[int64]uint64 // hash by page
	all  bool             // what is not among them may have been changed by calls, too
}

// doubt is the hash of a page that something else than a store may have changed since it was looked at.
const doubt = 1

// NewPages returns Pages that remembers nothing. size is that of a page, in bytes.
func NewPages(size int64) *Pages {
	return &Pages{size: size, seed: maphash.MakeSeed(), seen: map[int64]uint64{}}
}

// Compare remembers the pages of data, which begin at a page's offset off, and calls changed for each
// stretch of pages that are not as they were. A page that was never seen is one that changed; if
// holes is set, it was a hole before, and only changed if it is not zero.
func (p *Pages) Compare(off int64, data []byte, holes bool, changed func(off int64, data []byte)) {
	from := -1 // of the stretch
	for i := 0; i < len(data); i += int(p.size) {
		page, n := data[i:min(i+int(p.size), len(data))], (off+int64(i))/p.size
		hash := maphash.Bytes(p.seed, page)
		old, seen := p.seen[n]
		is := hash != old || !seen
		if is {
			p.seen[n] = hash
		}
		if is && holes && !seen && !p.all && zero(page) {
			is = false
		}
		if is && from < 0 {
			from = i
		}
		if !is && from >= 0 {
			changed(off+int64(from), data[from:i])
			from = -1
		}
	}
	if from >= 0 {
		changed(off+int64(from), data[from:])
	}
}

// Forget forgets the whole pages in a range of bytes, which are holes now.
func (p *Pages) Forget(from, to int64) {
	first, end := (from+p.size-1)/p.size, to/p.size
	if end-first > int64(len(p.seen)) {
		for n := range p.seen {
			if n >= first && n < end {
				delete(p.seen, n)
			}
		}
		return
	}
	for n := first; n < end; n++ {
		delete(p.seen, n)
	}
}

// maxDoubt is how many pages are doubted one by one.
const maxDoubt = 1 << 16

// Doubt is told that a call may have changed the pages of a range of bytes. What they held when they were looked at
// says nothing any more: a store can bring it back.
func (p *Pages) Doubt(from, to int64) {
	first, end := from/p.size, to/p.size
	if to%p.size != 0 {
		end++
	}
	if end-first <= maxDoubt {
		for n := first; n < end; n++ {
			p.seen[n] = doubt
		}
		return
	}
	p.all = true
	for n := range p.seen {
		if n >= first && n < end {
			p.seen[n] = doubt
		}
	}
}

// Shift is told that all from a page's offset on was moved by some bytes; backwards if that is negative, over what
// was there.
func (p *Pages) Shift(from, by int64) {
	first, far := from/p.size, by/p.size
	seen := make(map[int64]uint64, len(p.seen))
	for n, hash := range p.seen {
		switch {
		case n < first:
			seen[n] = hash
		case n+far >= first:
			seen[n+far] = hash
		}
	}
	p.seen = seen
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Pieces appends n bytes of pages as pieces, as far as their content is there, in data, and
// wanted.
func Pieces(to []trace.Piece, content capture.Content, op event.Op, data []byte, n uint64) []trace.Piece {
	got := uint64(len(data))
	keep := min(got, uint64(content.Of(event.Lookup(op), Arg).Bytes()))
	if keep > 0 {
		to = append(to, trace.Piece{Arg: Arg, Len: uint32(keep), Data: data[:keep]})
	}
	if keep < got {
		to = append(to, trace.Piece{Arg: Arg, Flags: trace.PieceOmitted, Len: uint32(got - keep), Off: keep})
	}
	if got < n {
		to = append(to, trace.Piece{Arg: Arg, Flags: trace.PieceMissing, Len: uint32(n - got), Off: got})
	}
	return to
}

// Store returns the record of a store of n bytes at off of a file, whose object's size grows with it.
func Store(o *trace.Object, off int64, n uint64, pieces []trace.Piece, at *Moment) *trace.Record {
	o.Size = max(o.Size, off+int64(n))
	return &trace.Record{
		Type: trace.RecCall, Op: uint16(event.OpMmapPwrite), NR: NoNumber, PID: at.PID, TID: at.TID,
		Enter: at.Time, Exit: at.Time, Ret: int64(n), Args: [6]uint64{NoDescriptor, 0, n, uint64(off)},
		Objects: []trace.Object{*o}, Pieces: pieces,
	}
}
