package seal

import "iotape/event"

// pages is where the content of files' pages stands that were read through mappings:
// a capture does not repeat a page whose content it has recorded and that cannot
// have changed.
type pages map[pageKey]event.Ref

type pageKey struct {
	dev, ino uint64
	page     int64
}

const (
	pageBytes = 4096
	maxPages  = 1 << 18 // remembered; beyond it, content of pages that were seen before is left out
)

// note remembers the pages of a buffer.
func (p *pages) note(ev *event.Event, b *event.Buf) {
	f := ev.FileArg(0)
	if ev.Op != event.OpMmapPread || f == nil || ev.Offset < 0 {
		return
	}
	if *p == nil || len(*p) >= maxPages {
		*p = pages{}
	}
	at := ev.Offset
	for _, r := range b.Refs {
		if r.Chunk != 0 && at%pageBytes == 0 {
			for off := uint32(0); off < r.Len; off += pageBytes {
				n := min(r.Len-off, pageBytes)
				(*p)[pageKey{f.Dev, f.Ino, (at + int64(off)) / pageBytes}] = event.Ref{Chunk: r.Chunk, Off: r.Off + off, Len: n}
			}
		}
		at += int64(r.Len)
	}
}

// fill gives a buffer the content of n bytes from the event's offset on. It reports
// false, and does nothing, if one of the pages is not known.
func (p *pages) fill(ev *event.Event, b *event.Buf, n int64) bool {
	f := ev.FileArg(0)
	if f == nil || ev.Offset < 0 || len(b.Refs) > 0 || len(b.Inline) > 0 {
		return false
	}
	refs := b.Refs
	for at := ev.Offset; at < ev.Offset+n; at += pageBytes {
		r, ok := (*p)[pageKey{f.Dev, f.Ino, at / pageBytes}]
		if !ok || int64(r.Len) != min(pageBytes, ev.Offset+n-at) {
			return false
		}
		if k := len(refs) - 1; k >= 0 && refs[k].Chunk == r.Chunk && refs[k].Off+refs[k].Len == r.Off {
			refs[k].Len += r.Len
		} else {
			refs = append(refs, r)
		}
	}
	b.Refs = refs
	return true
}
