// SPDX-License-Identifier: Apache-2.0

package linearize

// linksMatch reports whether a file can have as many names as stat reported.
func (s *state) linksMatch(sub *footprint) bool {
	return sub.links < 0 || sub.file < 0 || s.mustEqual(s.files[sub.file].links, sub.links, UnexplainedLinks)
}

// linked counts a name of a file more or less: of the one that a name stands for. If that
// is not known, it may be any of those that it was seen to stand for.
func (s *state) linked(n int32, by int64) {
	at := s.names[n].value
	s.named(n, s.peek(at), s.cells[at].value >= madeTag && s.cells[at].value&perhaps != 0, by)
}

// named is linked of the file that has the value v, which the name stands or stood for,
// unless unsure.
func (s *state) named(n int32, v int64, unsure bool, by int64) {
	if k := kindOf(v); k == kindLink || k == kindDir {
		return // their names are not counted; for a link, name.files are the files that it led to
	}
	f := fileOf(v)
	if f < 0 || unsure {
		s.blur(n)
		return
	}
	if c := s.files[f].links; s.get(c) != unknown {
		s.set(c, max(s.get(c)+by, 0))
	}
}

// blur says that one of the files that a name was seen to stand for may have a name more
// or less.
func (s *state) blur(n int32) {
	for _, f := range s.names[n].files {
		s.set(s.files[f].links, unknown)
	}
}

// revived says of a file that it has a name: if it had none any more, its inode is
// another file's now.
func (s *state) revived(f int32) {
	if c := s.files[f].links; s.get(c) == 0 {
		s.set(c, unknown)
	}
}

// linkCountAccess notes that a call gives one of the files a name, or takes one, that a name was
// seen to stand for.
func (t *accessCollector) linkCountAccess(n int32) {
	for _, f := range t.names[n].files {
		t.add(t.files[f].links, accessCommute)
		t.couple(t.files[f].links) // the file depends on what the name stands for
	}
}
