// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// durability is what a crash would have cost: how long written data lay unsynced, what
// never was, and names that were put in place before what they name was safe (the
// patterns of ALICE: Pillai et al., OSDI 2014).
type durability struct {
	c        *collector
	files    map[int]*durableRow
	made     map[string]uint64 // names made or removed in a directory since it was synced
	warnings []warning
	more     uint64
	options  map[event.OpenID]bool // opened with O_SYNC or O_DSYNC
}

type durableRow struct {
	File      string `json:"file"`
	Written   uint64 `json:"written_bytes"`
	Syncs     uint64 `json:"syncs"`
	Unsynced  uint64 `json:"unsynced_bytes"` // in the end
	GapMeanNS int64  `json:"gap_mean_ns"`    // from the last write to the sync
	GapMaxNS  int64  `json:"gap_max_ns"`
	// The longest time from the first write that was not synced to the sync, or the end.
	ExposedNS  int64 `json:"exposed_ns"`
	CloseGapNS int64 `json:"close_gap_ns"` // the longest time from the last write to a close

	dirty        uint64
	first, write int64 // times of the first unsynced and the last write
	gaps         int64
	removed      bool
}

type warning struct {
	AtNS int64  `json:"at_ns"`
	Seq  uint64 `json:"seq"`
	What string `json:"what"`
	Name string `json:"name"`
}

const maxWarnings = 1000

func newDurability(c *collector) view {
	return &durability{c: c, files: map[int]*durableRow{}, made: map[string]uint64{}, options: map[event.OpenID]bool{}}
}

func (v *durability) row(f *file) *durableRow {
	r := v.files[f.id]
	if r == nil {
		r = &durableRow{}
		v.files[f.id] = r
	}
	return r
}

func (v *durability) see(s *seen) {
	if s.Kind != event.Call || !s.OK() {
		return
	}
	switch s.Effect() {
	case event.EffectSyncAll:
		for _, r := range v.files { // of other file systems too, with syncfs: a lower bound
			r.synced(s.Exit)
		}
		clear(v.made)
		return
	case event.EffectSync:
		v.sync(s)
		return
	case event.EffectRename:
		v.renamed(s)
		return
	case event.EffectUnlink, event.EffectRmdir:
		if f := v.c.files.named(s.Host, s.firstPath()); f != nil {
			v.row(f).removed = true
		}
		v.entry(s.firstPath())
		return
	case event.EffectClose:
		v.closed(s)
		return
	}
	if f := s.FileArg(event.ResultArg); f != nil && opensByName(s) {
		if f.Flags&oDsync != 0 && len(v.options) < maxAccess {
			v.options[f.Open] = true
		}
		if s.creates() {
			v.entry(f.Reached())
		}
	}
	if s.file != nil && s.io.Writes && s.io.Written > 0 {
		v.wrote(s)
	}
}

// closed notes how long after the last write that was not synced a file is closed.
func (v *durability) closed(s *seen) {
	if s.file == nil || v.files[s.file.id] == nil {
		return
	}
	if r := v.row(s.file); r.dirty > 0 {
		r.CloseGapNS = max(r.CloseGapNS, s.Enter-r.write)
	}
}

// wrote notes bytes that are not synced, if the file was not opened so that they are.
func (v *durability) wrote(s *seen) {
	r := v.row(s.file)
	r.Written += uint64(s.io.Written)
	if f := s.Subject(); f != nil && v.options[f.Open] {
		r.Syncs++
		return
	}
	if r.dirty == 0 {
		r.first = s.Exit
	}
	r.dirty += uint64(s.io.Written)
	r.write = s.Exit
}

// firstPath returns the first path of a call, "" if there is none.
func (s *seen) firstPath() string {
	if len(s.Paths) == 0 {
		return ""
	}
	return s.Paths[0].Reached()
}

// entry notes that a name was made or removed.
func (v *durability) entry(name string) {
	if name == "" || name[0] != '/' {
		return
	}
	if dir := directory(name); len(v.made) < maxTop || v.made[dir] > 0 {
		v.made[dir]++
	}
}

func (v *durability) sync(s *seen) {
	if s.file != nil {
		r := v.row(s.file)
		r.Syncs++
		r.synced(s.Exit)
		return
	}
	if f := s.Subject(); f != nil && f.Known && event.FileType(f.Mode) == event.TypeDir {
		delete(v.made, f.Reached())
	}
}

// synced counts that a file's data are safe from now on.
func (r *durableRow) synced(now int64) {
	if r.dirty == 0 {
		return
	}
	gap := now - r.write
	r.gaps++
	r.GapMeanNS += gap
	r.GapMaxNS = max(r.GapMaxNS, gap)
	r.ExposedNS = max(r.ExposedNS, now-r.first)
	r.dirty = 0
}

func (v *durability) renamed(s *seen) {
	if len(s.Paths) < 2 {
		return
	}
	from, to := s.Paths[0].Reached(), s.Paths[1].Reached()
	v.entry(from)
	v.entry(to)
	f := v.c.files.named(s.Host, from)
	if f == nil || v.files[f.id] == nil || v.files[f.id].dirty == 0 {
		return
	}
	what := "renamed before its data were synced"
	if v.c.files.named(s.Host, to) != nil {
		what = "put in the place of another file before its data were synced: after a crash both may be lost"
	}
	if len(v.warnings) >= maxWarnings {
		v.more++
		return
	}
	v.warnings = append(v.warnings, warning{s.Enter - v.c.first, s.Seq, what, to})
}

type directoryRow struct {
	Directory string `json:"directory"`
	Names     uint64 `json:"names"` // made, removed or renamed since the directory was synced
}

func (v *durability) section(c *collector) page.Section {
	list, dirs := []durableRow{}, []directoryRow{}
	var never, unsynced uint64
	for id, r := range v.files {
		if r.Written == 0 && r.Syncs == 0 {
			continue
		}
		r.File = c.files.list[id].path
		if r.gaps > 0 {
			r.GapMeanNS /= r.gaps
		}
		if r.dirty > 0 && !r.removed {
			r.Unsynced, r.ExposedNS = r.dirty, max(r.ExposedNS, c.last-r.first)
			unsynced += r.dirty
			if r.Syncs == 0 {
				never++
			}
		}
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b durableRow) int {
		return cmp.Or(cmp.Compare(b.Unsynced, a.Unsynced), cmp.Compare(b.ExposedNS, a.ExposedNS),
			cmp.Compare(a.File, b.File))
	})
	for dir, n := range v.made {
		dirs = append(dirs, directoryRow{dir, n})
	}
	slices.SortFunc(dirs, func(a, b directoryRow) int {
		return cmp.Or(cmp.Compare(b.Names, a.Names), cmp.Compare(a.Directory, b.Directory))
	})
	s := page.Section{ID: "durability", Title: "Durability",
		Note: "Data are safe when a sync of their file returns after the write, or the file was opened with O_SYNC " +
			"or O_DSYNC. The gap is from the last write to that; exposed is the longest time from the first write " +
			"that was not safe. A file that was removed is not counted as unsynced. sync_file_range counts as a " +
			"sync, although it does not write metadata; syncfs counts for all file systems.",
		Data: map[string]any{"files": list[:min(len(list), 1000)], "never_synced": never, "unsynced_bytes": unsynced,
			"warnings": v.warnings, "directories": dirs[:min(len(dirs), 1000)]}}
	s.Blocks = []page.Block{
		page.Line(fmt.Sprintf("%s in the end not synced; %s of files that were written were never synced", Size(unsynced), Count(never))),
		tableOf("By file", []string{"written", "syncs", "unsynced", "gap, mean", "gap, most", "exposed", "write to close", "file"}, 0, list, c.o.Top, func(r *durableRow) []string {
			return []string{Size(r.Written), Count(r.Syncs), Size(r.Unsynced), span(r.GapMeanNS), span(r.GapMaxNS),
				span(r.ExposedNS), span(r.CloseGapNS), r.File}
		}),
		tableOf("Warnings", []string{"at", "event", "what", "file"}, 2, v.warnings, 2*c.o.Top, func(w *warning) []string {
			return []string{span(w.AtNS), fmt.Sprint(w.Seq), w.What, w.Name}
		}),
		tableOf("Names that a crash may take back: their directory was not synced afterwards", []string{"names", "directory"}, 0, dirs, c.o.Top, func(d *directoryRow) []string {
			return []string{Count(d.Names), d.Directory}
		}),
	}
	return s
}
