package replay

import (
	"iotape/event"
	"iotape/replay/effect"
)

// shadow remembers what the replay wrote to pages of files, so that a read of it need
// not get the same bytes out of the tape once more: they may be far back, and whatever
// was stored around them has to be decompressed to get at them.
//
// The planner knows which stored bytes a page has after each write, and whether a read
// found the same; the bytes themselves are kept by the workers, whose order is that of
// the page's reads and writes.
type shadow struct {
	files map[effect.Inode]map[int64]*shadowPage
	pages int
}

// shadowPage is a page of a file: its bytes, and by sector where the tape has them.
type shadowPage struct {
	bytes   []byte
	sectors [shadowSectors]event.Ref // Chunk 0: not known
}

const (
	shadowBytes   = 4096
	sectorBytes   = 512
	shadowSectors = shadowBytes / sectorBytes
	// maxShadowPages bounds the memory: 64 MiB.
	maxShadowPages = 64 << 20 / shadowBytes
)

func newShadow() *shadow { return &shadow{files: map[effect.Inode]map[int64]*shadowPage{}} }

// within reports whether a range is of whole sectors of one page, and which.
func within(off, n int64) (page int64, first, last int, ok bool) {
	if off < 0 || n <= 0 || off%sectorBytes != 0 || n%sectorBytes != 0 || off/shadowBytes != (off+n-1)/shadowBytes {
		return 0, 0, 0, false
	}
	first = int(off % shadowBytes / sectorBytes)
	return off / shadowBytes, first, first + int(n/sectorBytes), true
}

// wrote notes a write, and returns where its bytes are to be kept; nil if they are not.
func (s *shadow) wrote(ev *event.Event, b *event.Buf) []byte {
	f := &ev.Files[0]
	id := effect.InodeOf(f)
	n, first, last, ok := within(ev.Offset, ev.Ret)
	if !ok || f.Ino == 0 || len(b.Refs) != 1 || b.Refs[0].Chunk == 0 || int64(b.Refs[0].Len) != ev.Ret || ev.Ret != ev.Count {
		s.forgetRange(id, ev.Offset, ev.Ret)
		return nil
	}
	pages := s.files[id]
	p := pages[n]
	if p == nil {
		if s.pages >= maxShadowPages {
			clear(s.files)
			s.pages, pages = 0, nil
		}
		if pages == nil {
			pages = map[int64]*shadowPage{}
			s.files[id] = pages
		}
		p = &shadowPage{bytes: make([]byte, shadowBytes)}
		pages[n] = p
		s.pages++
	}
	ref := b.Refs[0]
	for i := first; i < last; i++ {
		p.sectors[i] = ref
		ref.Off += sectorBytes
	}
	return p.bytes[first*sectorBytes : last*sectorBytes]
}

// read returns where the bytes are that a read found, if the last write of each was of
// the same.
func (s *shadow) read(ev *event.Event, b *event.Buf) []byte {
	f := &ev.Files[0]
	n, first, last, ok := within(ev.Offset, ev.Ret)
	if !ok || len(b.Inline) > 0 {
		return nil
	}
	p := s.files[effect.InodeOf(f)][n]
	if p == nil {
		return nil
	}
	i := first
	for _, r := range b.Refs {
		if r.Len%sectorBytes != 0 || r.Chunk == 0 {
			return nil
		}
		for at := uint32(0); at < r.Len; at += sectorBytes {
			if i == last || p.sectors[i].Chunk != r.Chunk || p.sectors[i].Off != r.Off+at {
				return nil
			}
			i++
		}
	}
	if i != last {
		return nil
	}
	return p.bytes[first*sectorBytes : last*sectorBytes]
}

// forgetRange drops the pages of a range; of one that is not known, or large, the file.
func (s *shadow) forgetRange(id effect.Inode, off, n int64) {
	pages := s.files[id]
	if pages == nil {
		return
	}
	if off < 0 || n > 64*shadowBytes {
		s.forget(id)
		return
	}
	for k := off / shadowBytes; k <= (off+max(n, 1)-1)/shadowBytes; k++ {
		if pages[k] != nil {
			delete(pages, k)
			s.pages--
		}
	}
}

func (s *shadow) forget(id effect.Inode) {
	s.pages -= len(s.files[id])
	delete(s.files, id)
}

// see drops what a task may change that is no plain write.
func (s *shadow) see(t *task) {
	if len(s.files) == 0 {
		return
	}
	ev := &t.ev
	spec := ev.Spec()
	switch {
	case spec.Class != event.Data && spec.Class != event.Descriptor && ev.Op != event.OpIoctl:
		return
	case spec.Class == event.Data && ev.Traffic().Reads && !ev.Traffic().Writes:
		return
	case len(ev.Files) == 0: // truncate by name
		clear(s.files)
		s.pages = 0
		return
	case spec.Class == event.Descriptor && effect.OpenFlags(ev)&(effect.OCreat|effect.OTrunc) == 0 && ev.Op != event.OpIoctl:
		return
	}
	for i := range ev.Files {
		s.forget(effect.InodeOf(&ev.Files[i]))
	}
}
