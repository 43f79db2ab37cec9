// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// CompareOptions say what to leave out. Nil compares all that is known but
// modification times.
type CompareOptions struct {
	// Ignore are attributes not to compare, for example KnownOwner. KnownListing
	// ignores entries that exist only in got.
	Ignore Known

	// MTime also compares modification times.
	MTime bool
}

// Difference is one thing that is not as it was wanted.
type Difference struct {
	Path  string
	Field string // entry, type, mode, owner, size, content, target, rdev, mtime, links, xattrs or "xattr NAME"
	Want  string // for people
	Got   string
}

// String describes the difference in one line, its path quoted where needed.
func (d Difference) String() string {
	path := d.Path
	if q := fmt.Sprintf("%q", path); q != `"`+path+`"` {
		path = q
	}
	return fmt.Sprintf("%s: %s: want %s, got %s", path, d.Field, d.Want, d.Got)
}

const (
	absent  = "absent"
	unknown = "unknown"
)

// Compare returns what in got differs from want, in the order of paths. It compares
// only what want knows; if got does not know that, it is a difference. A missing or
// superfluous directory is one difference, whatever it holds. The sizes of
// directories, the modes of symbolic links and the layout of holes are never
// compared; content is compared by Hash. Both manifests have to be in order.
func Compare(want, got *Manifest, opt *CompareOptions) []Difference {
	c := &comparer{got: got, links: groupLinks(want, got)}
	if opt != nil {
		c.ignore = opt.Ignore
	}
	if opt == nil || !opt.MTime {
		c.ignore |= KnownMTime
	}
	missing := "" // the topmost directory that is not there
	for i := range want.Entries {
		w := &want.Entries[i]
		if missing != "" && isAncestor(missing, w.Path) {
			continue
		}
		g := got.Lookup(w.Path)
		if g == nil || g.Type != w.Type && w.Type == Dir {
			missing = w.Path
		}
		if g == nil {
			c.add(w.Path, "entry", describe(want, w), absent)
			continue
		}
		c.entry(w, g)
	}
	if c.ignore&KnownListing == 0 {
		c.extra(want)
	}
	slices.SortStableFunc(c.diffs, func(a, b Difference) int { return ComparePaths(a.Path, b.Path) })
	return c.diffs
}

type comparer struct {
	got    *Manifest
	ignore Known
	links  map[string]linkSets
	diffs  []Difference
}

func (c *comparer) add(path, field, want, got string) {
	c.diffs = append(c.diffs, Difference{path, field, want, got})
}

// attr compares one attribute that want knows, given as text.
func (c *comparer) attr(w, g *Entry, k Known, field string, text func(*Entry) string) {
	if !w.Has(k) || c.ignore&k != 0 {
		return
	}
	a, b := text(w), unknown
	if g.Has(k) {
		b = text(g)
	}
	if a != b {
		c.add(w.Path, field, a, b)
	}
}

func (c *comparer) entry(w, g *Entry) {
	if w.Type != g.Type {
		c.add(w.Path, "type", w.Type.String(), g.Type.String())
		return
	}
	if w.Type != Symlink {
		c.attr(w, g, KnownMode, "mode", func(e *Entry) string { return fmt.Sprintf("%04o", e.Mode) })
	}
	c.attr(w, g, KnownOwner, "owner", func(e *Entry) string { return fmt.Sprintf("%d:%d", e.UID, e.GID) })
	c.attr(w, g, KnownMTime, "mtime", func(e *Entry) string {
		return time.Unix(0, e.MTime).UTC().Format(time.RFC3339Nano)
	})
	c.attr(w, g, KnownSize, "size", func(e *Entry) string { return fmt.Sprint(e.Size) })
	c.attr(w, g, KnownHash, "content", func(e *Entry) string { return fmt.Sprintf("%x", e.Hash) })
	c.attr(w, g, KnownBlocks, "content", func(e *Entry) string { return fmt.Sprintf("%x", e.Hash) })
	if w.Target != g.Target {
		c.add(w.Path, "target", clip(w.Target), clip(g.Target))
	}
	if w.Rdev != g.Rdev {
		c.add(w.Path, "rdev", fmt.Sprintf("%#x", w.Rdev), fmt.Sprintf("%#x", g.Rdev))
	}
	c.xattrs(w, g)
	c.linked(w, g)
}

func (c *comparer) xattrs(w, g *Entry) {
	if !w.Has(KnownXattrs) || c.ignore&KnownXattrs != 0 {
		return
	}
	if !g.Has(KnownXattrs) {
		c.add(w.Path, "xattrs", fmt.Sprint(len(w.Xattrs)), unknown)
		return
	}
	all := map[string]bool{}
	for name := range w.Xattrs {
		all[name] = true
	}
	for name := range g.Xattrs {
		all[name] = true
	}
	value := func(v []byte, ok bool) string {
		if !ok {
			return absent
		}
		return clip(string(v))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, inWant := w.Xattrs[name]
		b, inGot := g.Xattrs[name]
		if inWant != inGot || !bytes.Equal(a, b) {
			c.add(w.Path, "xattr "+name, value(a, inWant), value(b, inGot))
		}
	}
}

// linked compares hard-link groups as sets of paths. A group that is split or merged
// is told once for each wanted group, at its first path; of single files merged into
// one group only the first is told.
func (c *comparer) linked(w, g *Entry) {
	if !w.Has(KnownLinks) || c.ignore&KnownLinks != 0 {
		return
	}
	if !g.Has(KnownLinks) {
		c.add(w.Path, "links", "known", unknown)
		return
	}
	s, ok := c.links[w.Path]
	if !ok {
		return // the only name on both sides, as of nearly all files
	}
	if slices.Equal(s.want, s.got) || s.want[0] != w.Path || len(s.want) == 1 && s.got[0] != w.Path {
		return
	}
	// What got has: for each of the wanted names the set that it is in.
	var sets []string
	for _, path := range s.want {
		if set := c.links[path].got; len(set) > 0 {
			if text := set.String(); !slices.Contains(sets, text) {
				sets = append(sets, text)
			}
		}
	}
	c.add(w.Path, "links", s.want.String(), strings.Join(sets, " and "))
}

// linkSets are the names that one object has in both manifests. Names that only one
// of them has are told as missing or extra, and would only repeat that here.
type linkSets struct{ want, got pathSet }

type pathSet []string

func (s pathSet) String() string { return fmt.Sprintf("%q", []string(s)) }

func groupLinks(want, got *Manifest) map[string]linkSets {
	firstOf := func(e *Entry) string {
		if e.Link != "" {
			return e.Link
		}
		return e.Path
	}
	linked := func(m *Manifest) map[string]bool {
		paths := map[string]bool{}
		for i := range m.Entries {
			if e := &m.Entries[i]; e.Link != "" {
				paths[e.Path], paths[e.Link] = true, true
			}
		}
		return paths
	}
	inWant, inGot := linked(want), linked(got)
	var common []*Entry // of want, with the same in got
	wantSets, gotSets := map[string]pathSet{}, map[string]pathSet{}
	for i := range want.Entries {
		w := &want.Entries[i]
		if !inWant[w.Path] && !inGot[w.Path] {
			continue
		}
		g := got.Lookup(w.Path)
		if g == nil || g.Type != w.Type || !w.Has(KnownLinks) || !g.Has(KnownLinks) {
			continue
		}
		common = append(common, w)
		wantSets[firstOf(w)] = append(wantSets[firstOf(w)], w.Path)
		gotSets[firstOf(g)] = append(gotSets[firstOf(g)], w.Path)
	}
	sets := make(map[string]linkSets, len(common))
	for _, w := range common {
		sets[w.Path] = linkSets{wantSets[firstOf(w)], gotSets[firstOf(got.Lookup(w.Path))]}
	}
	return sets
}

// extra adds the entries of got that should not be in a directory that want lists.
func (c *comparer) extra(want *Manifest) {
	for i := range c.got.Entries {
		g := &c.got.Entries[i]
		parent := Parent(g.Path)
		if parent == "" {
			continue
		}
		if d := want.Lookup(parent); d == nil || d.Type != Dir || !d.Has(KnownListing) {
			continue
		}
		if want.Lookup(g.Path) == nil {
			c.add(g.Path, "entry", absent, describe(c.got, g))
		}
	}
}

func describe(m *Manifest, e *Entry) string {
	if e.Type == Dir {
		if n := len(m.Below(e.Path)); n > 0 {
			return fmt.Sprintf("directory with %d entries below", n)
		}
	}
	return e.Type.String()
}
