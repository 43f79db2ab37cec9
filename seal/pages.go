// SPDX-License-Identifier: Apache-2.0

package seal

import "github.com/iotape/iotape/event"

// pages is where the content of files' pages stands that were read through mappings:
// a capture does not repeat a page whose content it has recorded and that cannot
// have changed.
type pages map[pageKey]content

type pageKey struct {
	dev, ino uint64
	page     int64
}

// content is that of one page: a part of a chunk or, when small, the bytes themselves.
type content struct {
	event.Ref
	small string
}

const (
	pageBytes = 4096
	maxPages  = 1 << 18 // remembered; beyond it, content of pages that were seen before is left out
)

// see takes an mmap_pread: its content, or, if an earlier one has it, what that had.
func (p *pages) see(ev *event.Event, before bool) {
	f, b := ev.FileArg(0), ev.BufArg(1)
	switch {
	case f == nil || b == nil || ev.Offset < 0:
	case before:
		b.Omitted = !p.fill(f, ev.Offset, b)
	case !b.Omitted:
		p.note(f, ev.Offset, b)
	}
}

// note remembers the pages of a buffer.
func (p *pages) note(f *event.File, at int64, b *event.Buf) {
	if *p == nil || len(*p) >= maxPages {
		*p = pages{}
	}
	if len(b.Refs) == 0 && len(b.Inline) > 0 {
		(*p)[pageKey{f.Dev, f.Ino, at / pageBytes}] = content{small: string(b.Inline),
			Ref: event.Ref{Len: uint32(len(b.Inline))}}
	}
	for _, r := range b.Refs {
		if r.Chunk != 0 && at%pageBytes == 0 {
			for off := uint32(0); off < r.Len; off += pageBytes {
				n := min(r.Len-off, pageBytes)
				(*p)[pageKey{f.Dev, f.Ino, (at + int64(off)) / pageBytes}] = content{Ref: event.Ref{Chunk: r.Chunk,
					Off: r.Off + off, Len: n}}
			}
		}
		at += int64(r.Len)
	}
}

// fill gives a buffer its content. It reports false, and does nothing, if that of one
// of the pages is not known.
func (p *pages) fill(f *event.File, from int64, b *event.Buf) bool {
	refs, end := b.Refs, from+b.Len
	if len(refs) > 0 || len(b.Inline) > 0 || end <= from {
		return false
	}
	for at := from; at < end; at += pageBytes {
		r, ok := (*p)[pageKey{f.Dev, f.Ino, at / pageBytes}]
		if !ok || int64(r.Len) != min(pageBytes, end-at) {
			return false
		}
		if r.small != "" {
			b.Inline = append(b.Inline, r.small...) // a file of less than a page
			return true
		}
		if k := len(refs) - 1; k >= 0 && refs[k].Chunk == r.Chunk && refs[k].Off+refs[k].Len == r.Off {
			refs[k].Len += r.Len
		} else {
			refs = append(refs, r.Ref)
		}
	}
	b.Refs = refs
	return true
}
