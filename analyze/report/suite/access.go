// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
)

// access is how each process goes through each file: Darshan's consecutive and
// sequential accesses, strides, switches between reads and writes, and what is not
// aligned.
type access struct {
	rows     map[accessKey]*accessRow
	strides  map[int64]uint64
	segments map[int]*segments // by file
	maps     int
	c        *collector
}

type accessKey struct{ file, proc int }

// Limits of what is told apart.
const (
	maxAccess  = 256 << 10
	maxStrides = 1 << 16
	blockBytes = 4096
)

type accessRow struct {
	File        string `json:"file"`
	Process     string `json:"process"`
	Reads       uint64 `json:"reads"`
	Writes      uint64 `json:"writes"`
	Bytes       uint64 `json:"bytes"`
	First       uint64 `json:"first"`       // accesses with none before
	Consecutive uint64 `json:"consecutive"` // begins where the one before ended
	Sequential  uint64 `json:"sequential"`  // begins behind where the one before began; has the consecutive
	Random      uint64 `json:"random"`
	Switches    uint64 `json:"switches"`    // between reading and writing
	Unaligned   uint64 `json:"unaligned"`   // begin or end within a block of 4096 bytes
	AppendOnly  bool   `json:"append_only"` // no read, and each write at or behind all before

	begin, end, highest int64
	wrote               bool
}

// segments are the ranges of a file that were read: distinct bytes.
type segments struct {
	read  intervals // of offsets
	bytes uint64

	where *offsetMap // nil beyond the limit
}

// maxSegmentFiles is how many files have their ranges followed.
const maxSegmentFiles = 16 << 10

func newAccess(c *collector) view {
	return &access{c: c, rows: map[accessKey]*accessRow{}, strides: map[int64]uint64{}, segments: map[int]*segments{}}
}

func (v *access) see(s *seen) {
	if s.file == nil || s.Offset < 0 || s.kind != report.Reading && s.kind != report.Writing ||
		!s.OK() || s.io.Bytes() == 0 {
		return
	}
	off, n := s.Offset, s.io.Bytes()
	key := accessKey{s.file.id, s.proc.id}
	r := v.rows[key]
	if r == nil {
		if len(v.rows) >= maxAccess {
			return
		}
		r = &accessRow{AppendOnly: true}
		v.rows[key] = r
		r.First++
	} else {
		switch {
		case off == r.end:
			r.Consecutive++
			r.Sequential++
		case off > r.begin:
			r.Sequential++
		default:
			r.Random++
		}
		if stride := off - r.end; stride != 0 && (len(v.strides) < maxStrides || v.strides[stride] > 0) {
			v.strides[stride]++
		}
		if s.io.Writes != r.wrote {
			r.Switches++
		}
	}
	if s.io.Writes {
		r.Writes++
		r.AppendOnly = r.AppendOnly && off >= r.highest
	} else {
		r.Reads++
		r.AppendOnly = false
	}
	r.Bytes += uint64(n)
	if off%blockBytes != 0 || n%blockBytes != 0 {
		r.Unaligned++
	}
	r.begin, r.end, r.wrote = off, off+n, s.io.Writes
	r.highest = max(r.highest, off+n)
	v.follow(s, off, n)
}

// follow notes which parts of a file are read.
func (v *access) follow(s *seen, off, n int64) {
	g := v.segments[s.file.id]
	if g == nil {
		if len(v.segments) >= maxSegmentFiles {
			return
		}
		g = &segments{}
		g.read.max = 1 << 12
		v.segments[s.file.id] = g
	}
	if s.io.Reads {
		g.read.add(off, off+n)
		g.bytes += uint64(n)
	}
	if g.where == nil && v.maps < maxOffsetMaps {
		v.maps, g.where = v.maps+1, &offsetMap{}
	}
	if g.where != nil {
		g.where.add(v.c, s.Enter, off, n)
	}
}

type rereadRow struct {
	File     string  `json:"file"`
	Bytes    uint64  `json:"read_bytes"`
	Distinct uint64  `json:"distinct_bytes"`
	Factor   float64 `json:"factor"`
}

func (v *access) section(c *collector) page.Section {
	list := []accessRow{}
	var all accessRow
	for key, r := range v.rows {
		r.File, r.Process = c.files.list[key.file].path, c.procs.list[key.proc].name()
		all.Reads, all.Writes, all.Bytes = all.Reads+r.Reads, all.Writes+r.Writes, all.Bytes+r.Bytes
		all.First, all.Consecutive, all.Sequential, all.Random = all.First+r.First, all.Consecutive+r.Consecutive,
			all.Sequential+r.Sequential, all.Random+r.Random
		all.Switches, all.Unaligned = all.Switches+r.Switches, all.Unaligned+r.Unaligned
		list = append(list, *r)
	}
	all.File = "all"
	slices.SortFunc(list, func(a, b accessRow) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Process, b.Process))
	})
	type stride struct {
		Bytes int64  `json:"bytes"` // from the end of one access to the beginning of the next
		Count uint64 `json:"count"`
	}
	strides := []stride{}
	for n, k := range v.strides {
		strides = append(strides, stride{n, k})
	}
	slices.SortFunc(strides, func(a, b stride) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Bytes, b.Bytes))
	})
	strides = strides[:min(len(strides), 4)]
	reread := []rereadRow{}
	for id, g := range v.segments {
		if d := uint64(g.read.total()); d > 0 {
			reread = append(reread, rereadRow{c.files.list[id].path, g.bytes, d, float64(g.bytes) / float64(d)})
		}
	}
	slices.SortFunc(reread, func(a, b rereadRow) int {
		return cmp.Or(cmp.Compare(b.Factor, a.Factor), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File))
	})
	maps, where := v.offsets(c)
	s := page.Section{ID: "access", Title: "Access patterns",
		Note: "Of each process in each file, by the offsets of its reads and writes: consecutive begins where the " +
			"one before ended; sequential begins behind where the one before began, and includes the consecutive; " +
			"random is the rest. An access is unaligned if it begins or ends within a block of 4096 bytes. The " +
			"reread factor is bytes read by distinct bytes read.",
		Data: map[string]any{"all": all, "files": list[:min(len(list), 1000)], "strides": strides,
			"reread": reread[:min(len(reread), 1000)], "offsets": where}}
	rows := append([]accessRow{all}, list...)
	s.Blocks = append(s.Blocks,
		tableOf("", []string{"reads", "writes", "bytes", "consecutive", "sequential", "random", "switches", "unaligned",
			"append only", "file", "process"}, -2, rows, c.o.Top+1, func(r *accessRow) []string {
			of := float64(r.Consecutive + (r.Sequential - r.Consecutive) + r.Random)
			only := ""
			if r.AppendOnly {
				only = "yes"
			}
			return []string{Count(r.Reads), Count(r.Writes), Size(r.Bytes), Percent(float64(r.Consecutive), of),
				Percent(float64(r.Sequential), of), Percent(float64(r.Random), of), Count(r.Switches), Percent(float64(r.Unaligned), float64(r.Reads+r.Writes)), only, r.File, r.Process}
		}))
	s.Blocks = append(s.Blocks, tableOf("The most common strides", []string{"bytes from end to beginning", "accesses"},
		0, strides, 0, func(x *stride) []string {
			return []string{fmt.Sprint(x.Bytes), report.Count(x.Count)}
		}), tableOf("Read more than once", []string{"read", "distinct", "factor", "file"}, 0,
		slices.DeleteFunc(slices.Clone(reread), func(r rereadRow) bool { return r.Factor < 1.005 }),
		c.o.Top, func(r *rereadRow) []string {
			return []string{Size(r.Bytes), Size(r.Distinct), fmt.Sprintf("%.2f", r.Factor), r.File}
		}))
	for _, m := range maps {
		s.Blocks = append(s.Blocks, m)
	}
	return s
}
