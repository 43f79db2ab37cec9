// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// redundant is work that was done again: bytes that were read or written although they
// were the same as before, names that were asked for again and again, small writes that
// follow each other, and syncs.
type redundant struct {
	seed    maphash.Seed
	pages   map[pageKey]pageState
	files   map[int]*redundantRow
	names   map[nameKey]*nameRow
	dropped uint64 // pages beyond the limit
}

// pageKey is a piece of a file: content is cut at multiples of 4096 bytes of the file.
type pageKey struct {
	file int
	off  int64
}

// pageState is what a piece of a file last held, and who has read that: one bit for each
// process, by its number. Two processes with one bit are taken for one.
type pageState struct {
	content uint64 // a number of the content
	len     uint32
	readers uint64
}

// maxPages limits the pieces that are followed: 24 bytes each, and the map's own.
const maxPages = 1 << 20

type redundantRow struct {
	File        string `json:"file"`
	Reread      uint64 `json:"reread_bytes"`    // read before by the same process, and the same
	Rewritten   uint64 `json:"rewritten_bytes"` // the same as what was there
	Read        uint64 `json:"read_bytes"`
	Written     uint64 `json:"written_bytes"`
	SmallWrites uint64 `json:"small_writes"`  // of less than 4096 bytes, each right behind the one before
	Unaligned   uint64 `json:"partial_pages"` // writes that begin or end within a page that had been written or read
	Syncs       uint64 `json:"syncs"`

	end     int64
	small   bool
	highest int64
}

type nameKey struct {
	name string
	proc int
}

type nameRow struct {
	Process string `json:"process"`
	Name    string `json:"name"`
	Stats   uint64 `json:"stats"`
	Opens   uint64 `json:"opens"`
	TimeNS  int64  `json:"time_ns"`
}

func newRedundant(*collector) view {
	return &redundant{seed: maphash.MakeSeed(), pages: map[pageKey]pageState{}, files: map[int]*redundantRow{},
		names: map[nameKey]*nameRow{}}
}

func (v *redundant) see(s *seen) {
	if s.Kind != event.Call {
		return
	}
	v.asked(s)
	if s.file == nil || !s.OK() {
		return
	}
	r := v.files[s.file.id]
	if r == nil {
		if len(v.files) >= maxAccess {
			return
		}
		r = &redundantRow{}
		v.files[s.file.id] = r
	}
	switch {
	case s.kind == report.Syncing:
		r.Syncs++
	case s.Offset < 0 || s.io.Bytes() == 0 || s.kind != report.Reading && s.kind != report.Writing:
	case s.io.Writes:
		v.wrote(s, r)
	default:
		r.Read += uint64(s.io.Read)
		v.each(s, func(key pageKey, now pageState) {
			me := uint64(1) << (s.proc.id & 63)
			if was, ok := v.pages[key]; ok && was.content == now.content && was.len == now.len {
				if was.readers&me != 0 {
					r.Reread += uint64(now.len)
				}
				now.readers = was.readers
			}
			now.readers |= me
			v.keep(key, now)
		})
		r.highest = max(r.highest, s.Offset+s.io.Read)
	}
}

func (v *redundant) wrote(s *seen, r *redundantRow) {
	const page = 4096
	n := s.io.Written
	r.Written += uint64(n)
	small := n < page
	if small && r.small && s.Offset == r.end {
		r.SmallWrites++
	}
	if s.Offset%page != 0 && s.Offset < r.highest || (s.Offset+n)%page != 0 && s.Offset+n < r.highest {
		r.Unaligned++
	}
	r.small, r.end, r.highest = small, s.Offset+n, max(r.highest, s.Offset+n)
	v.each(s, func(key pageKey, now pageState) {
		if was, ok := v.pages[key]; ok && was.content == now.content && was.len == now.len {
			r.Rewritten += uint64(now.len)
			return
		}
		v.keep(key, now)
	})
}

// each calls f with the pieces of a call's content that the tape has. Equal pieces have
// one number, since a tape stores content once.
func (v *redundant) each(s *seen, f func(key pageKey, now pageState)) {
	off := s.Offset
	for i := range s.Bufs {
		b := &s.Bufs[i]
		if !s.spec.IsContent(int(b.Arg)) {
			continue
		}
		if len(b.Inline) > 0 && len(b.Refs) == 0 {
			h := maphash.Bytes(v.seed, b.Inline) | 1<<63 // no chunk has such a number
			f(pageKey{s.file.id, off}, pageState{content: h, len: uint32(len(b.Inline))})
		}
		for _, r := range b.Refs {
			if r.Chunk != 0 && r.Off == 0 {
				f(pageKey{s.file.id, off}, pageState{content: r.Chunk, len: r.Len})
			}
			off += int64(r.Len)
		}
		return
	}
}

func (v *redundant) keep(key pageKey, now pageState) {
	if _, ok := v.pages[key]; !ok && len(v.pages) >= maxPages {
		v.dropped++
		return
	}
	v.pages[key] = now
}

// asked counts calls that look a name up.
func (v *redundant) asked(s *seen) {
	if len(s.Paths) == 0 || s.spec.Class != event.Meta && s.spec.Class != event.Descriptor {
		return
	}
	key := nameKey{s.Paths[0].Reached(), s.proc.id}
	if key.name == "" || s.Paths[0].Raw == "" {
		return
	}
	r := v.names[key]
	if r == nil {
		if len(v.names) >= maxTop {
			return
		}
		r = &nameRow{Process: s.proc.name(), Name: key.name}
		v.names[key] = r
	}
	if s.spec.Class == event.Meta {
		r.Stats++
	} else {
		r.Opens++
	}
	r.TimeNS += s.took
}

func (v *redundant) section(c *collector) page.Section {
	var all redundantRow
	list := []redundantRow{}
	for id, r := range v.files {
		r.File = c.files.list[id].path
		all.sum(r)
		if r.Reread+r.Rewritten+r.SmallWrites+r.Unaligned+r.Syncs > 0 {
			list = append(list, *r)
		}
	}
	all.File = "all"
	slices.SortFunc(list, func(a, b redundantRow) int {
		return cmp.Or(cmp.Compare(b.Reread+b.Rewritten, a.Reread+a.Rewritten),
			cmp.Compare(b.SmallWrites, a.SmallWrites), cmp.Compare(b.Syncs, a.Syncs), cmp.Compare(a.File, b.File))
	})
	names := []nameRow{}
	for _, r := range v.names {
		if r.Stats+r.Opens > 2 {
			names = append(names, *r)
		}
	}
	slices.SortFunc(names, func(a, b nameRow) int {
		return cmp.Or(cmp.Compare(b.Stats+b.Opens, a.Stats+a.Opens), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Process, b.Process))
	})
	s := page.Section{ID: "redundant", Title: "Work that was done again",
		Note: "Reread: bytes that the process had read from the same place before, and that were still the same. " +
			"Rewritten: bytes that were the same as what the recording last saw in that place. Small writes have " +
			"less than 4096 bytes and follow each other without a gap: one call could do several. A partial page is " +
			"overwritten in part, which the system has to read first if it is not in memory.",
		Data: map[string]any{"all": all, "files": list[:min(len(list), 1000)], "names": names[:min(len(names), 1000)],
			"pages_not_followed": v.dropped}}
	s.Blocks = []page.Block{
		tableOf("", []string{"reread", "of read", "rewritten", "of written", "small writes", "partial pages", "syncs", "written per sync", "file"}, 0, append([]redundantRow{all}, list...), c.o.Top+1, func(r *redundantRow) []string {
			per := "–"
			if r.Syncs > 0 {
				per = Size(r.Written / r.Syncs)
			}
			return []string{Size(r.Reread), Percent(float64(r.Reread), float64(r.Read)), Size(r.Rewritten),
				Percent(float64(r.Rewritten), float64(r.Written)), Count(r.SmallWrites), Count(r.Unaligned), Count(r.Syncs), per, r.File}
		}),
		tableOf("Names that were asked for more than twice", []string{"attributes", "opens", "time", "process", "name"}, -2, names, c.o.Top, func(r *nameRow) []string {
			return []string{Count(r.Stats), Count(r.Opens), span(r.TimeNS), r.Process, r.Name}
		}),
	}
	if v.dropped > 0 {
		s.Blocks = append(s.Blocks,
			page.Line(fmt.Sprintf("%s pieces of content beyond the first %s were not followed",
				Count(v.dropped), Count(maxPages))))
	}
	return s
}
