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

// census is what became of the files: how they were used, how long those that were made
// lived, and what was done for nothing.
type census struct {
	rows []*censusRow // by file number
}

type censusRow struct {
	File    string `json:"file"`
	Device  uint64 `json:"dev"`
	Opens   uint64 `json:"opens"`
	Closes  uint64 `json:"closes"`
	Read    uint64 `json:"read_bytes"`
	Written uint64 `json:"written_bytes"`
	Highest int64  `json:"highest_offset"` // behind the last byte that was read or written
	Size    int64  `json:"size"`           // as last seen
	MadeNS  int64  `json:"made_ns,omitempty"`
	GoneNS  int64  `json:"gone_ns,omitempty"`

	made, gone bool
	readers    bool // somebody read it after it was last written
}

func newCensus(*collector) view { return &census{} }

func (v *census) row(f *file) *censusRow {
	for len(v.rows) <= f.id {
		v.rows = append(v.rows, nil)
	}
	if v.rows[f.id] == nil {
		v.rows[f.id] = &censusRow{Device: f.dev}
	}
	return v.rows[f.id]
}

const (
	oDsync = 0o10000 // O_SYNC has this bit too
)

func (v *census) see(s *seen) {
	if s.Kind != event.Call || !s.OK() {
		return
	}
	if s.file != nil {
		v.file(s, v.row(s.file))
	}
	// The file that the bytes come from, where there are two.
	if s.io.Reads && s.io.Writes {
		if from := s.from; from != nil {
			r := v.row(from)
			r.Read += uint64(s.io.Read)
			r.readers = true
		}
	}
}

func (v *census) file(s *seen, r *censusRow) {
	if f := s.Subject(); f != nil && f.Known && event.FileType(f.Mode) == event.TypeRegular {
		r.Size = f.Size
	}
	switch {
	case opensByName(s):
		r.Opens++
		if s.creates() && !r.made && r.Opens == 1 && r.Read+r.Written == 0 {
			r.made, r.MadeNS = true, s.Exit
		}
	case s.Op.Like() == event.OpClose:
		r.Closes++
	}
	if s.io.Reads && !s.io.Writes {
		r.Read += uint64(s.io.Read)
		r.readers = r.readers || s.io.Read > 0
		r.Highest = max(r.Highest, s.Offset+s.io.Read)
	}
	if s.io.Writes {
		r.Written += uint64(s.io.Written)
		r.Highest = max(r.Highest, s.Offset+s.io.Written)
		r.readers = false
	}
}

// opensByName reports whether a call made a descriptor of a file by its name.
func opensByName(s *seen) bool {
	return s.Kind == event.Call && s.OK() && s.spec.Class == event.Descriptor && len(s.Paths) > 0 &&
		s.FileArg(event.ResultArg) != nil
}

// creates reports whether a call opened a file that it may have made: it asked for that,
// and the file is empty.
func (s *seen) creates() bool {
	if s.OpenFlags()&event.OpenCreat == 0 || !opensByName(s) {
		return false
	}
	f := s.FileArg(event.ResultArg)
	return f.Size == 0 && (!f.Known || event.FileType(f.Mode) == event.TypeRegular)
}

type usageRow struct {
	Use     string `json:"use"`
	Files   uint64 `json:"files"`
	Read    uint64 `json:"read_bytes"`
	Written uint64 `json:"written_bytes"`
	Highest int64  `json:"highest_offset"`
}

// add counts a file.
func (u *usageRow) add(r *censusRow) {
	u.Files++
	u.Read += r.Read
	u.Written += r.Written
	u.Highest = max(u.Highest, r.Highest)
}

// What was done with a file.
const (
	useAny = iota
	useRead
	useWritten
	useBoth
	useOpened
	useNone
)

var useNames = [...]string{
	useAny:     "all",
	useRead:    "only read",
	useWritten: "only written",
	useBoth:    "read and written",
	useOpened:  "opened, neither read nor written",
	useNone:    "neither opened nor used by descriptor",
}

// use returns what was done with a file, never useAny.
func (r *censusRow) use() int {
	switch {
	case r.Read > 0 && r.Written > 0:
		return useBoth
	case r.Read > 0:
		return useRead
	case r.Written > 0:
		return useWritten
	case r.Opens > 0:
		return useOpened
	}
	return useNone
}

func (v *census) section(c *collector) page.Section {
	var uses [len(useNames)]usageRow
	for i, name := range useNames {
		uses[i].Use = name
	}
	devices := map[uint64]*usageRow{}
	var small, unread, made, gone uint64
	var churn, lives, wasted []censusRow
	for id, r := range v.rows {
		if r == nil {
			continue
		}
		f := c.files.list[id]
		r.File = f.path
		if g, ok := c.gone[id]; ok {
			r.gone, r.GoneNS = true, g
		}
		uses[useAny].add(r)
		uses[r.use()].add(r)
		d := devices[r.Device]
		if d == nil {
			d = &usageRow{Use: fmt.Sprintf("%d:%d", major(r.Device), minor(r.Device))}
			devices[r.Device] = d
		}
		d.add(r)
		if r.Size < 4096 {
			small++
		}
		if r.made {
			made++
		}
		if r.gone {
			gone++
		}
		if r.made && r.gone {
			lives = append(lives, *r)
		}
		if r.Written > 0 && !r.readers && !r.gone {
			unread++
			if r.made {
				wasted = append(wasted, *r)
			}
		}
		if r.Opens > 1 {
			churn = append(churn, *r)
		}
	}
	slices.SortFunc(churn, func(a, b censusRow) int {
		return cmp.Or(cmp.Compare(b.Opens, a.Opens), cmp.Compare(a.File, b.File))
	})
	slices.SortFunc(lives, func(a, b censusRow) int {
		return cmp.Or(cmp.Compare(a.GoneNS-a.MadeNS, b.GoneNS-b.MadeNS), cmp.Compare(a.File, b.File))
	})
	slices.SortFunc(wasted, func(a, b censusRow) int {
		return cmp.Or(cmp.Compare(b.Written, a.Written), cmp.Compare(a.File, b.File))
	})
	byDevice := []usageRow{}
	for _, d := range devices {
		byDevice = append(byDevice, *d)
	}
	slices.SortFunc(byDevice, func(a, b usageRow) int {
		return cmp.Or(cmp.Compare(b.Files, a.Files), cmp.Compare(a.Use, b.Use))
	})
	cells := func(u *usageRow) []string {
		return []string{u.Use, Count(u.Files), Size(u.Read), Size(u.Written), Size(uint64(max(u.Highest, 0)))}
	}
	limit := func(list []censusRow) []censusRow { return list[:min(len(list), 1000)] }
	s := page.Section{ID: "census", Title: "Files",
		Note: "Regular files by what was done with them. Small files have less than 4096 bytes. " +
			"A file lived from the call that made it to the one that removed its last name that is known.",
		Data: map[string]any{"uses": uses, "devices": byDevice, "small": small, "made": made, "removed": gone,
			"written_and_never_read": unread,
			"lives":                  limit(lives), "never_read": limit(wasted), "reopened": limit(churn)}}
	s.Blocks = []page.Block{
		tableOf("By use", []string{"", "files", "read", "written", "highest offset"}, 1, uses[:], 0, cells),
		tableOf("By device", []string{"device", "files", "read", "written", "highest offset"}, 1, byDevice, 0, cells),
		page.Line(fmt.Sprintf("%s small, %s made, %s removed, %s written and not read afterwards",
			report.Plural(small, "file", "files"), report.Count(made), report.Count(gone), report.Count(unread))),
		tableOf("Opened most often", []string{"opens", "closes", "read", "written", "file"}, 0, churn, c.o.Top, func(r *censusRow) []string {
			return []string{Count(r.Opens), Count(r.Closes), Size(r.Read), Size(r.Written), r.File}
		}),
		tableOf("Made and removed: the shortest lives", []string{"lived", "written", "read", "file"}, 0, lives, c.o.Top, func(r *censusRow) []string {
			return []string{span(r.GoneNS - r.MadeNS), Size(r.Written), Size(r.Read), r.File}
		}),
		tableOf("Made, kept, and not read afterwards: the largest", []string{"written", "file"}, 0, wasted, c.o.Top, func(r *censusRow) []string {
			return []string{Size(r.Written), r.File}
		}),
	}
	return s
}
