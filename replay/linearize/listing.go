// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// maxListed bounds the names of a directory that a listing is compared with: those that
// calls named last.
const maxListed = 256

// fullListing is how many bytes getdents leaves of its buffer at most while there are more
// names: a name has up to 255 bytes, and 24 of its own.
const fullListing = 288

// findListing finds which of the names that are followed a listing had. The kernel holds
// a directory while it lists it, so that no name comes or goes within one call; what many
// calls list together is not of one moment.
func (st *Stage) findListing(ev *event.Event, s *footprint) bool {
	f := ev.FileArg(0)
	if !f.Is(event.TypeDir) || !ev.OK() || ev.Ret <= 0 {
		return false
	}
	if s.names[0] = st.state.name(f.Path); s.names[0] < 0 {
		return false
	}
	b := ev.BufArg(1)
	if b == nil {
		return false
	}
	content := b.Inline
	if int64(len(content)) != ev.Ret || len(b.Refs) > 0 {
		if st.search.content.load == nil || b.Kept() != ev.Ret {
			return false
		}
		var err error
		if content, err = st.search.content.load(b, nil); err != nil {
			return false
		}
	}
	dir, first := st.state.names[s.names[0]].path, false
	if dir == "/" {
		dir = ""
	}
	for _, e := range effect.Dirents(content) {
		if e.Name == "." {
			first = true
		}
		if n, ok := st.state.byPath[dir+"/"+e.Name]; ok {
			s.listed = append(s.listed, n)
		}
	}
	slices.Sort(s.listed)
	s.whole = first && ev.Ret+fullListing <= int64(ev.Args[2])
	return true
}

// listingMatches reports whether the names in a directory can be those that a listing had. Where
// they are not raced for, it only proves what exists: a name that it lacks may exist in a
// part of the listing that the trace does not have.
func (s *state) listingMatches(_ *event.Event, sub *footprint) bool {
	left := maxListed
	for n := s.names[sub.names[0]].child; n >= 0 && left > 0; n = s.names[n].sibling {
		left--
		at := s.names[n].value
		_, there := slices.BinarySearch(sub.listed, n)
		switch {
		case s.names[n].skip || s.searching && !s.raced(at):
		case !s.searching:
			if v := s.get(at); there && (v == unknown || v == absent) {
				s.learn(n, some)
			}
		case there && !s.mustExist(n, kindUnknown), !there && sub.whole && !s.mustBeAbsent(n):
			return false
		}
	}
	return true
}

// listingAccess adds the accesses of a listing.
func (t *accessCollector) listingAccess(_ *event.Event, s *footprint) {
	left := maxListed
	for n := t.names[s.names[0]].child; n >= 0 && left > 0; n = t.names[n].sibling {
		left--
		t.list = append(t.list, access{cell: t.names[n].value, mode: accessRead})
	}
}
