// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// trees reads the tape's snapshots and its final tree; nil if it has none. Of several
// recordings of one tree of files, the snapshot of that which began first says what it
// began with, and of a file in the end that which ended last.
func trees(t *trace.Tape, layout eventsource.Layout) (snapshots []*tree.Manifest, final *tree.Manifest, err error) {
	hosts := make([][]string, len(layout)) // names of their trees
	for _, name := range slices.Sorted(maps.Keys(t.Manifest().Files)) {
		if host, file := trace.SplitHostFile(name); host < len(layout) &&
			(file == trace.SnapshotName || strings.HasPrefix(file, trace.SnapshotName+"-") || file == trace.FinalName) {
			hosts[host] = append(hosts[host], name)
		}
	}
	byTime := func(when func(*eventsource.Host) int64) []int {
		list := make([]int, len(layout))
		for i := range list {
			list[i] = i
		}
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(when(&layout[a]), when(&layout[b])) })
		return list
	}
	begun := map[int]bool{} // machines
	for _, i := range byTime(func(h *eventsource.Host) int64 { return h.Begun }) {
		h := &layout[i]
		for _, name := range hosts[i] {
			if begun[h.Machine] || isFinal(name) {
				continue
			}
			m, err := readTree(t, name, h)
			if err != nil {
				return nil, nil, err
			}
			if len(begun) > 0 {
				m.Entries = slices.DeleteFunc(m.Entries, func(e tree.Entry) bool { return !h.Own("/" + e.Path) })
			}
			snapshots = append(snapshots, m)
		}
		begun[h.Machine] = true
	}
	for _, i := range byTime(func(h *eventsource.Host) int64 { return -h.Ended }) {
		for _, name := range hosts[i] {
			if !isFinal(name) {
				continue
			}
			m, err := readTree(t, name, &layout[i])
			if err != nil {
				return nil, nil, err
			}
			if final == nil {
				final = m
				continue
			}
			later := final.Entries
			for _, e := range m.Entries {
				if (&tree.Manifest{Entries: later}).Lookup(e.Path) == nil {
					final.Entries = append(final.Entries, e)
				}
			}
			final.Sort()
		}
	}
	return snapshots, final, nil
}

func isFinal(name string) bool {
	_, file := trace.SplitHostFile(name)
	return file == trace.FinalName
}

func readTree(t *trace.Tape, name string, h *eventsource.Host) (*tree.Manifest, error) {
	r, err := t.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	m, err := tree.Decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rename(m, h)
	h.Owners.Tree(m)
	return m, nil
}

// rename gives what is in a host's tree the names, and devices, of the replay.
func rename(m *tree.Manifest, h *eventsource.Host) {
	if len(h.Renames) == 0 {
		return
	}
	relative := func(p string) string {
		if p == "" {
			return p
		}
		return cmp.Or(strings.TrimPrefix(h.Renames.Path(path.Join("/", p)), "/"), ".")
	}
	var left []tree.Entry
	for i := range m.Entries {
		e := &m.Entries[i]
		dir, name := path.Split("/" + e.Path)
		e.Target = h.Renames.From(path.Clean(dir), e.Target)
		e.Path, e.Link, e.Dev = relative(e.Path), relative(e.Link), h.Device(e.Dev)
		if at := path.Join(h.Renames.Path(path.Clean(dir)), name); e.Type == tree.Dir && h.Own(at) &&
			!h.Own("/"+e.Path) {
			left = append(left, tree.Entry{Path: at[1:], Type: tree.Dir}) // a listing shows what is shared where it was
		}
	}
	m.Entries = append(m.Entries, left...)
	m.Sort()
	m.Entries = slices.CompactFunc(m.Entries, func(a, b tree.Entry) bool { return a.Path == b.Path })
}

// withoutPrivileges returns entries without what gives rights, and counts that.
func withoutPrivileges(entries iter.Seq[*tree.Entry], left *LeftOff) iter.Seq[*tree.Entry] {
	count := func(n *uint64, took bool) {
		if took {
			*n++
		}
	}
	return func(yield func(*tree.Entry) bool) {
		for e := range entries {
			changed := *e
			setID, capabilities, device := effect.LeaveOff(&changed)
			count(&left.SetID, setID)
			count(&left.Capabilities, capabilities)
			count(&left.Devices, device)
			if !yield(&changed) {
				return
			}
		}
	}
}
