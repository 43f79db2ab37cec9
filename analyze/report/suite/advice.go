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

// advice is what of the other views is worth a change of the program, with what could be
// changed. Each finding has a limit below which it says nothing, so that a list without
// findings means something.
type advice struct {
	redundant  *redundant
	durability *durability
	reads      uint64
	writes     uint64
	ioNS       int64 // in calls of files
	syncNS     int64
	syncs      uint64
	syncMaxNS  int64
	failedNS   int64
	failed     uint64 // looks for names that are not there
	looks      uint64
}

// What is worth a word.
const (
	leastCalls  = 100
	leastBytes  = 1 << 20
	leastShare  = 0.1       // of calls, or of bytes
	smallCommit = 256 << 10 // bytes for each sync, below which it is said
)

func newAdvice(*collector) view { return &advice{} }

// ask finds the views that it sums up, once all are there.
func (v *advice) ask(c *collector) {
	v.redundant, v.durability = shared[*redundant](c, newRedundant), shared[*durability](c, newDurability)
}

// shared returns a view that another section makes anyway, or makes one that has no
// section.
func shared[T view](c *collector, make func(*collector) view) T {
	for _, v := range slices.Concat(c.views, c.hidden) {
		if x, ok := v.(T); ok {
			return x
		}
	}
	x := make(c).(T)
	c.hidden = append(c.hidden, x)
	return x
}

func (v *advice) see(s *seen) {
	if s.Kind != event.Call {
		return
	}
	if s.kind.IsIO() {
		v.ioNS += s.took
	}
	switch s.kind {
	case report.Reading:
		v.reads++
	case report.Writing:
		v.writes++
	case report.Syncing:
		v.syncs++
		v.syncNS += s.took
		v.syncMaxNS = max(v.syncMaxNS, s.took)
	case report.Metadata:
		if len(s.Paths) == 0 {
			return
		}
		if v.looks++; !s.OK() {
			v.failed++
			v.failedNS += s.took
		}
	}
}

// finding is one piece of advice.
type finding struct {
	ID     string  `json:"id"`
	What   string  `json:"what"`
	Advice string  `json:"advice"`
	Count  uint64  `json:"count"` // calls, or files
	Bytes  uint64  `json:"bytes"`
	TimeNS int64   `json:"time_ns"`
	Share  float64 `json:"share"` // of what it is a part of, 0 to 1
	Where  string  `json:"where"` // the file with the most of it
}

func (v *advice) section(c *collector) page.Section {
	list := v.findings(c)
	s := page.Section{ID: "advice", Title: "What could be better", Data: list,
		Note: "What other sections show that a change of the program, or of its settings, may save. " +
			"Each is said only from a limit on, which docs/reports.md names; " +
			"nothing here means that none was reached."}
	t := &page.Table{Head: []string{"what", "what to do", "most of it in", "section"}, Left: 4}
	for i := range list {
		f := &list[i]
		t.Add(f.What, f.Advice, f.Where, sectionOf[f.ID])
	}
	s.Blocks = []page.Block{t}
	return s
}

// sectionOf is where the numbers of a finding are.
var sectionOf = map[string]string{"small-writes": "redundant", "partial-pages": "redundant",
	"small-commits": "redundant", "sync-time": "cost",
	"reread": "redundant", "rewritten": "redundant",
	"names": "redundant", "missing-names": "failures", "rename": "durability"}

// findings returns what reached its limit, what takes the most time first.
func (v *advice) findings(c *collector) []finding {
	var all redundantRow
	for _, r := range v.redundant.files {
		all.sum(r)
	}
	list := []finding{} // not null in the data
	list = append(list, v.ofWrites(c, &all)...)
	list = append(list, v.ofSyncs(c, &all)...)
	list = append(list, v.ofContent(c, &all)...)
	list = append(list, v.ofNames()...)
	slices.SortStableFunc(list, func(a, b finding) int { return cmp.Compare(b.TimeNS, a.TimeNS) })
	return list
}

// most returns the file with the most of something, "" if none has any of it.
func (v *advice) most(c *collector, value func(*redundantRow) uint64) string {
	best, at := uint64(0), -1
	for id, r := range v.redundant.files {
		if n := value(r); n > best || n == best && n > 0 && id < at {
			best, at = n, id
		}
	}
	if at < 0 {
		return ""
	}
	return c.files.list[at].path
}

// ofWrites returns what writes have in common. all is the sum over the files.
func (v *advice) ofWrites(c *collector, all *redundantRow) (list []finding) {
	if n := all.SmallWrites; n >= leastCalls && share(float64(n), float64(v.writes)) >= leastShare {
		list = append(list, finding{ID: "small-writes", Count: n, Share: share(float64(n), float64(v.writes)),
			Where: v.most(c, func(r *redundantRow) uint64 { return r.SmallWrites }),
			What: fmt.Sprintf("%s of %s have less than 4 KiB and follow the one before without a gap",
				report.Count(n), report.Plural(v.writes, "write", "writes")),
			Advice: "collect them in a buffer of some pages, or write several with one writev"})
	}
	if n := all.Unaligned; n >= leastCalls && share(float64(n), float64(v.writes)) >= leastShare {
		list = append(list, finding{ID: "partial-pages", Count: n, Share: share(float64(n), float64(v.writes)),
			Where: v.most(c, func(r *redundantRow) uint64 { return r.Unaligned }),
			What: fmt.Sprintf("%s of %s begin or end within a page that was there",
				report.Count(n), report.Plural(v.writes, "write", "writes")),
			Advice: "write whole pages of 4096 bytes: what is not in memory has to be read first"})
	}
	return list
}

// ofSyncs returns what syncs cost.
func (v *advice) ofSyncs(c *collector, all *redundantRow) (list []finding) {
	if per := all.Written / max(all.Syncs, 1); all.Syncs >= leastCalls && per < smallCommit {
		list = append(list, finding{ID: "small-commits", Count: all.Syncs, Bytes: per, TimeNS: v.syncNS,
			Where: v.most(c, func(r *redundantRow) uint64 { return r.Syncs }),
			What:  fmt.Sprintf("%s for each of %s", report.Bytes(per), report.Plural(all.Syncs, "sync", "syncs")),
			Advice: "let several changes share one sync (group commit), " +
				"or use fdatasync and a file of fixed size, which leaves metadata alone"})
	}
	if part := share(float64(v.syncNS), float64(v.ioNS)); v.syncs > 0 && part >= 0.25 {
		list = append(list, finding{ID: "sync-time", Count: v.syncs, TimeNS: v.syncNS, Share: part,
			Where: v.most(c, func(r *redundantRow) uint64 { return r.Syncs }),
			What: fmt.Sprintf("syncs take %s, %.0f %% of the time in input and output; the longest took %s",
				report.Duration(v.syncNS), 100*part, report.Duration(v.syncMaxNS)),
			Advice: "sync less often, in a thread of its own, or to a device with a cache that survives power loss"})
	}
	return list
}

// ofContent returns which content was moved again.
func (v *advice) ofContent(c *collector, all *redundantRow) (list []finding) {
	if part := share(float64(all.Reread), float64(all.Read)); all.Reread >= leastBytes && part >= leastShare {
		list = append(list, finding{ID: "reread", Bytes: all.Reread, Share: part,
			Where: v.most(c, func(r *redundantRow) uint64 { return r.Reread }),
			What: fmt.Sprintf("%s, %.0f %% of what was read, the same process had read before, and it was the same",
				report.Bytes(all.Reread), 100*part),
			Advice: "keep it in memory, or read it through a mapping"})
	}
	if part := share(float64(all.Rewritten), float64(all.Written)); all.Rewritten >= leastBytes && part >= leastShare {
		list = append(list, finding{ID: "rewritten", Bytes: all.Rewritten, Share: part,
			Where: v.most(c, func(r *redundantRow) uint64 { return r.Rewritten }),
			What: fmt.Sprintf("%s, %.0f %% of what was written, was there already",
				report.Bytes(all.Rewritten), 100*part),
			Advice: "write only what has changed"})
	}
	return list
}

// ofNames returns what was done with names: looked for and replaced.
func (v *advice) ofNames() (list []finding) {
	if r := v.mostAsked(); r != nil && r.Stats+r.Opens >= leastCalls {
		list = append(list, finding{ID: "names", Count: r.Stats + r.Opens, TimeNS: r.TimeNS, Where: r.Name,
			What: fmt.Sprintf("%s asked %s for the attributes of one name, and opened it %s",
				r.Process, report.Plural(r.Stats, "time", "times"), report.Plural(r.Opens, "time", "times")),
			Advice: "keep the file open, and remember what it is; inotify says when it changes"})
	}
	if part := share(float64(v.failed), float64(v.looks)); v.failed >= leastCalls && part >= 0.25 {
		list = append(list, finding{ID: "missing-names", Count: v.failed, TimeNS: v.failedNS, Share: part,
			What: fmt.Sprintf("%s of %s for a name fail",
				report.Count(v.failed), report.Plural(v.looks, "look", "looks")),
			Advice: "shorten the search path, or put first where most is found"})
	}
	if n := uint64(len(v.durability.warnings)) + v.durability.more; n > 0 {
		list = append(list, finding{ID: "rename", Count: n, Where: v.durability.warnings[0].Name,
			What: fmt.Sprintf("%s put in place before their data were synced",
				report.Plural(n, "file was", "files were")),
			Advice: "fsync the file before rename, and its directory afterwards: a crash can leave an empty file"})
	}
	return list
}

// mostAsked returns the name that one process asked for most often.
func (v *advice) mostAsked() (best *nameRow) {
	for _, r := range v.redundant.names {
		if best == nil || cmp.Or(cmp.Compare(r.Stats+r.Opens, best.Stats+best.Opens), cmp.Compare(best.Name, r.Name),
			cmp.Compare(best.Process, r.Process)) > 0 {
			best = r
		}
	}
	return best
}

// sum adds another file's numbers.
func (r *redundantRow) sum(o *redundantRow) {
	r.Reread, r.Rewritten, r.Read, r.Written = r.Reread+o.Reread, r.Rewritten+o.Rewritten,
		r.Read+o.Read, r.Written+o.Written
	r.SmallWrites, r.Unaligned, r.Syncs = r.SmallWrites+o.SmallWrites, r.Unaligned+o.Unaligned, r.Syncs+o.Syncs
}
