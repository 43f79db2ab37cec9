// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// conflicts are accesses of different processes to the same bytes, at least one of them a
// write (Recorder's verifyio): what a file system with weaker rules than POSIX may answer
// otherwise. Under commit rules a write is visible when its writer has synced or closed
// the file; under session rules when, after that close, the reader has opened it.
type conflicts struct {
	files map[int]*sharedFile
	cut   uint64 // files of which only the last pieces were followed
}

// sharedFile is who did what last to each part of a file.
type sharedFile struct {
	parts   []part // sorted, disjoint
	procs   map[int]*procState
	rows    [3]conflictRow
	several bool // processes
	first   int
	cut     bool
}

type part struct {
	from, to       int64
	writer, reader int   // process numbers; -1: none
	wrote          int64 // sequence number of the write
}

// procState is when a process last opened, synced and closed a file, as sequence numbers.
type procState struct{ opened, committed, closed int64 }

// maxParts limits the parts of a file.
const maxParts = 4096

// Kinds of conflicts: what comes second after what came first.
const (
	readAfterWrite = iota
	writeAfterWrite
	writeAfterRead
)

var conflictNames = [3]string{"read after write", "write after write", "write after read"}

type conflictRow struct {
	File      string `json:"file"`
	Kind      string `json:"kind"`
	Count     uint64 `json:"count"`
	Bytes     uint64 `json:"bytes"`
	NoCommit  uint64 `json:"not_committed"`  // not ordered under commit rules
	NoSession uint64 `json:"not_in_session"` // nor under session rules
	From      string `json:"first"`          // the processes of the first of them
	To        string `json:"second"`
	Seq       uint64 `json:"seq"` // the event of the first of them
}

func newConflicts(*collector) view { return &conflicts{files: map[int]*sharedFile{}} }

func (v *conflicts) see(s *seen) {
	if s.file == nil || s.Kind != event.Call || !s.OK() {
		return
	}
	f := v.files[s.file.id]
	if f == nil {
		if len(v.files) >= maxAccess {
			return
		}
		f = &sharedFile{procs: map[int]*procState{}, first: s.proc.id}
		v.files[s.file.id] = f
	}
	f.several = f.several || f.first != s.proc.id
	p := f.procs[s.proc.id]
	if p == nil {
		p = &procState{-1, -1, -1}
		if len(f.procs) < maxThreads {
			f.procs[s.proc.id] = p
		}
	}
	now := int64(s.Seq)
	switch {
	case opensByName(s):
		p.opened = now
	case s.kind == report.Syncing:
		p.committed = now
	case s.Op.Like() == event.OpClose:
		p.closed, p.committed = now, now
	case s.Offset < 0 || s.io.Bytes() == 0:
	case s.io.Writes:
		f.access(s, s.Offset, s.Offset+s.io.Written, true)
	case s.io.Reads:
		f.access(s, s.Offset, s.Offset+s.io.Read, false)
	}
}

// access compares a read or write of [from, to) with who was there before, and notes it.
func (f *sharedFile) access(s *seen, from, to int64, write bool) {
	me := s.proc.id
	i, _ := slices.BinarySearchFunc(f.parts, from, func(p part, off int64) int { return cmp.Compare(p.to, off+1) })
	var out []part
	at := from
	j := i
	for ; j < len(f.parts) && f.parts[j].from < to; j++ {
		p := f.parts[j]
		if p.from < from {
			left := p
			left.to = from
			out = append(out, left)
			p.from = from
		}
		if at < p.from {
			out = append(out, f.fresh(at, p.from, me, write, int64(s.Seq)))
		}
		rest := p
		p.to = min(p.to, to)
		f.compare(s, &p, write)
		if write {
			p.writer, p.reader, p.wrote = me, -1, int64(s.Seq)
		} else {
			p.reader = me
		}
		out = append(out, p)
		at = p.to
		if rest.to > to {
			rest.from = to
			out = append(out, rest)
		}
	}
	if at < to {
		out = append(out, f.fresh(at, to, me, write, int64(s.Seq)))
	}
	f.parts = slices.Replace(f.parts, i, j, join(out)...)
	if len(f.parts) > maxParts {
		f.parts, f.cut = slices.Delete(f.parts, 0, maxParts/2), true
	}
}

func (f *sharedFile) fresh(from, to int64, me int, write bool, seq int64) part {
	if write {
		return part{from, to, me, -1, seq}
	}
	return part{from, to, -1, me, -1}
}

// join makes one of neighbours of which the same is known.
func join(list []part) []part {
	out := list[:0]
	for _, p := range list {
		if n := len(out) - 1; n >= 0 && out[n].to == p.from && out[n].writer == p.writer && out[n].reader == p.reader &&
			out[n].wrote == p.wrote {
			out[n].to = p.to
			continue
		}
		out = append(out, p)
	}
	return out
}

func (f *sharedFile) compare(s *seen, p *part, write bool) {
	me, n := s.proc.id, uint64(p.to-p.from)
	if write && p.reader >= 0 && p.reader != me {
		f.count(writeAfterRead, s, p.reader, n, true, true)
	}
	if p.writer < 0 || p.writer == me {
		return
	}
	kind := readAfterWrite
	if write {
		kind = writeAfterWrite
	}
	committed, inSession := false, false
	if w := f.procs[p.writer]; w != nil {
		committed = w.committed > p.wrote
		r := f.procs[me]
		inSession = w.closed > p.wrote && r != nil && r.opened > w.closed
	}
	f.count(kind, s, p.writer, n, committed, inSession)
}

func (f *sharedFile) count(kind int, s *seen, before int, n uint64, committed, inSession bool) {
	r := &f.rows[kind]
	if r.Count == 0 {
		r.Seq, r.From, r.To = s.Seq, fmt.Sprint(before), s.proc.name()
	}
	r.Count++
	r.Bytes += n
	if !committed {
		r.NoCommit++
	}
	if !inSession {
		r.NoSession++
	}
}

func (v *conflicts) section(c *collector) page.Section {
	list := []conflictRow{}
	shared := 0
	for id, f := range v.files {
		if f.several {
			shared++
		}
		if f.cut {
			v.cut++
		}
		for k := range f.rows {
			r := f.rows[k]
			if r.Count == 0 {
				continue
			}
			var before int
			fmt.Sscan(r.From, &before)
			r.File, r.Kind, r.From = c.files.list[id].path, conflictNames[k], c.procs.list[before].name()
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b conflictRow) int {
		return cmp.Or(cmp.Compare(b.NoCommit, a.NoCommit), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Kind, b.Kind))
	})
	s := page.Section{ID: "conflicts", Title: "Conflicts between processes",
		Note: "Ranges of files that one process wrote and another one read or wrote before or after, in the order of " +
			"the recording, which POSIX file systems keep. Under commit rules a write counts when its writer has " +
			"synced or closed the file; under session rules when, after it was closed, the other one has opened the " +
			"file. Whether messages between the processes order them is not looked at.",
		Data: map[string]any{"files_of_several_processes": shared, "conflicts": list[:min(len(list), 1000)],
			"files_cut": v.cut}}
	s.Blocks = []page.Block{
		page.Line(fmt.Sprintf("%d files were used by several processes", shared)),
		tableOf("", []string{"kind", "file", "times", "bytes", "not committed", "not in session", "first", "second", "event"}, 2, list, 2*c.o.Top, func(r *conflictRow) []string {
			return []string{r.Kind, r.File, Count(r.Count), Size(r.Bytes), Count(r.NoCommit), Count(r.NoSession),
				r.From, r.To, fmt.Sprint(r.Seq)}
		}),
	}
	if v.cut > 0 {
		s.Blocks = append(s.Blocks,
			page.Line(fmt.Sprintf("of %d files with very many parts, only the last parts were followed", v.cut)))
	}
	return s
}
