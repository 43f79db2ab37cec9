// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"github.com/iotape/iotape/event"
)

// An explainer applies a call to the state. It returns false if the call's result
// contradicts the state; part of the call may have been applied then.
type explainer func(*state, *event.Event, *footprint) bool

// explainers are by class. Those of calls on names are only for calls that succeeded.
var explainers = [numClasses]explainer{
	classOpen:      (*state).open,
	classStat:      (*state).stat,
	classLookup:    (*state).lookup,
	classAttribute: (*state).attribute,
	classReadlink:  (*state).readlink,
	classUnlink:    (*state).unlink,
	classMake:      (*state).makeName,
	classLink:      (*state).link,
	classFind:      (*state).lookUpSource,
	classRename:    (*state).rename,
	classTruncate:  (*state).truncate,
	classList:      (*state).listingMatches,
	classLock:      (*state).locking,
	classRead:      (*state).read,
	classWrite:     (*state).write,
	classSeek:      (*state).seek,
	classResize:    (*state).resize,
	classFstat:     (*state).fstat,
	classCopy:      (*state).copied,
}

// explain applies a call to the state, as an explainer does.
func (s *state) explain(ev *event.Event, sub *footprint) bool {
	if ev.Errno != 0 && sub.class < classList && sub.class != classAttribute {
		return s.failed(ev, sub)
	}
	if f := explainers[sub.class]; f != nil {
		return f(s, ev, sub)
	}
	return true
}

// lookup explains that a name could be looked up.
func (s *state) lookup(_ *event.Event, sub *footprint) bool {
	n := s.resolve(sub.names[0], sub.follow)
	return (n < 0 || s.mustExist(n, kindUnknown)) && s.executable(sub, true)
}

// makeName explains mkdir, symlink and mknod.
func (s *state) makeName(_ *event.Event, sub *footprint) bool {
	n := sub.names[0]
	return s.mustBeAbsent(n) && s.parentMustExist(n) && s.create(n, sub.made)
}

// maxLinks is the kernel's limit for one lookup (MAXSYMLINKS).
const maxLinks = 40

// resolve follows symbolic links whose targets are known. It returns -1 if one's is
// not: nothing can be said then.
func (s *state) resolve(n int32, follow bool) int32 {
	for range maxLinks {
		if n < 0 || !follow {
			return n
		}
		v := s.peek(s.names[n].value)
		if kindOf(v) != kindLink {
			return n
		}
		n = s.leadsTo(v)
	}
	return -1
}

// circular reports whether symbolic links can lead on for ever from a name.
func (s *state) circular(n int32) bool {
	for range maxLinks {
		if n < 0 || s.names[n].skip {
			return true
		}
		v := s.peek(s.names[n].value)
		switch k := kindOf(v); {
		case v == absent || !k.fits(kindLink):
			return s.mode == believe || s.tolerates(UnexplainedResult)
		case k != kindLink: // unknown, or it may be one
			return true
		}
		n = s.leadsTo(v)
	}
	return true
}

// leadsTo returns the name that a symbolic link leads to, -1 if it is not known.
func (s *state) leadsTo(v int64) int32 {
	if f := fileOf(v); f >= 0 {
		t := s.cells[s.files[f].target].value
		if t == unknown {
			return -1
		}
		return int32(t)
	}
	return int32(uint32(v & lowMask))
}

// mustExist reports whether a name can stand for a file of a kind.
func (s *state) mustExist(n int32, k kind) bool {
	v := s.get(s.names[n].value)
	if v != unknown && exists(v) && kindOf(v).fits(k) {
		if kindOf(v) == kindUnknown && k != kindUnknown && !identified(v) {
			s.learn(n, someOf(k))
		}
		return true
	}
	if v != unknown && s.mode != believe {
		return s.tolerates(UnexplainedResult)
	}
	s.learn(n, someOf(k))
	return true
}

// someOf is the value of what exists, and is of a kind.
func someOf(k kind) int64 {
	switch k {
	case kindUnknown:
		return some
	case kindDir:
		return someDir
	}
	return someFile
}

// mustBeAbsent reports whether a name can be absent.
func (s *state) mustBeAbsent(n int32) bool {
	v := s.get(s.names[n].value)
	if v != unknown && v != absent && s.mode != believe {
		return s.tolerates(UnexplainedResult)
	}
	s.learn(n, absent)
	return true
}

// parentMustExist reports whether a name's directory can exist.
func (s *state) parentMustExist(n int32) bool {
	p := s.names[n].parent
	return p < 0 || s.mustExist(p, kindDir)
}

// mustBeFile reports whether a name can stand for a certain file. If the call followed
// symbolic links, the name may be a link where nothing was known.
func (s *state) mustBeFile(n int32, f int32, k kind, followed bool) bool {
	v := s.get(s.names[n].value)
	certain := v < madeTag || v&perhaps == 0
	switch {
	case v == unknown:
	case v == absent || !mayBe(v, f, k, certain, followed):
		if s.mode != believe {
			return s.tolerates(UnexplainedResult)
		}
	case fileOf(v) == f && (followed || certain && (k == kindUnknown || kindOf(v) == k)):
		return true
	case v >= madeTag && v < inodeTag && k == kindLink:
		return true // the target of a link matters more than its inode
	}
	want := inodeValue(f, k)
	if followed && !s.searching && !(certain && identified(v)) {
		want |= perhaps
	}
	s.learn(n, want)
	return true
}

// mayBe reports whether what a name stands for, which is known for certain or not, may be
// a certain file.
func mayBe(v int64, f int32, k kind, certain, followed bool) bool {
	is := fileOf(v)
	if certain {
		return kindOf(v).fits(k) && (is < 0 || is == f)
	}
	return !followed || is == f
}

// learn sets what a name stands for, as a call found it.
func (s *state) learn(n int32, v int64) {
	at := s.names[n].value
	if p := s.names[n].parent; p >= 0 && s.participates(at) {
		if was, is := exists(s.cells[at].value), exists(v); is != was {
			s.count(p, is)
		}
	}
	s.set(at, v)
}

// create makes a name that stood for nothing stand for v; remove is the opposite.
func (s *state) create(n int32, v int64) bool {
	if at, p := s.names[n].value, s.names[n].parent; p >= 0 && (!s.participates(at) || !exists(s.cells[at].value)) {
		s.count(p, true)
	}
	s.set(s.names[n].value, v)
	if v >= madeTag && v < inodeTag && kindOf(v) == kindDir {
		s.set(s.names[n].kids, 1)
		if !s.searching {
			s.emptied(n)
		}
	}
	return true
}

func (s *state) remove(n int32) bool {
	if at, p := s.names[n].value, s.names[n].parent; p >= 0 && (!s.participates(at) || exists(s.cells[at].value)) {
		s.count(p, false)
	}
	s.set(s.names[n].value, absent)
	return true
}

// The value of kids is twice the number of names that are known to be in a directory,
// and one more if those are all: the trace made it.

func (s *state) count(dir int32, more bool) {
	c := s.names[dir].kids
	v := s.get(c)
	switch {
	case !s.participates(c):
		return
	case v == unknown:
		v = 0
	}
	if more {
		v += 2
	} else {
		v = max(v-2, v&1)
	}
	s.set(c, v)
}

// mustBeEmpty reports whether a directory can be, or not be, without names.
func (s *state) mustBeEmpty(n int32, want bool) bool {
	v := s.get(s.names[n].kids)
	if v == unknown || want && v <= 1 || !want && v != 1 {
		return true
	}
	return s.mode == believe || s.tolerates(UnexplainedResult)
}

// emptied says of a directory that the trace made: nothing was in it then.
func (s *state) emptied(n int32) {
	for c := s.names[n].child; c >= 0; c = s.names[c].sibling {
		s.cells[s.names[c].value].value = absent
	}
}

// forgetBelow says of the names in a directory that has another name now: nothing is known.
func (s *state) forgetBelow(n int32, depth int) {
	s.set(s.names[n].kids, unknown)
	for c := s.names[n].child; c >= 0 && depth < maxDepth; c = s.names[c].sibling {
		s.set(s.names[c].value, unknown)
		s.forgetBelow(c, depth+1)
	}
}

// maxDepth bounds how far below a directory names are followed that move with it.
const maxDepth = 64

func (s *state) open(ev *event.Event, sub *footprint) bool {
	if sub.flags&event.OpenTmpfile == event.OpenTmpfile {
		return true
	}
	if sub.secondStep {
		s.set(s.files[sub.file].size, 0)
		return true
	}
	if sub.pos >= 0 {
		s.set(sub.pos, 0)
	}
	n := s.resolve(sub.names[0], sub.follow)
	if n < 0 {
		return true
	}
	if s.createdBy(ev, sub, n) {
		return s.mustBeAbsent(n) && s.parentMustExist(n) && s.createFile(n, sub)
	}
	if sub.file < 0 {
		return s.mustExist(n, kindUnknown)
	}
	if !s.mustBeFile(n, sub.file, sub.kind, sub.follow) {
		return false
	}
	s.revived(sub.file)
	if sub.flags&event.OpenTrunc != 0 && sub.kind == kindOther {
		s.set(s.files[sub.file].size, 0)
	}
	return true
}

// createdBy reports whether an open made its file.
func (s *state) createdBy(ev *event.Event, sub *footprint, n int32) bool {
	if sub.flags&event.OpenCreat == 0 {
		return false
	}
	f := ev.FileArg(event.ResultArg)
	if sub.flags&event.OpenExcl != 0 || f != nil && f.Flags&event.OpenCreat != 0 {
		return true
	}
	return !s.marks && s.get(s.names[n].value) == absent
}

// createFile makes the file of an open.
func (s *state) createFile(n int32, sub *footprint) bool {
	if sub.file < 0 {
		return s.create(n, someFile)
	}
	f := &s.files[sub.file]
	if !s.atMost(f.links, 0, UnexplainedLinks) { // the inode was another file's, which had lost all its names by then
		return false
	}
	s.create(n, inodeValue(sub.file, sub.kind))
	s.set(f.size, 0)
	s.set(f.mode, unknown) // of the file that had the inode before
	s.set(f.links, 1)
	return true
}

func (s *state) stat(_ *event.Event, sub *footprint) bool {
	n := s.resolve(sub.names[0], sub.follow)
	switch {
	case n < 0:
		return true
	case sub.file < 0:
		return s.mustExist(n, sub.kind)
	}
	if !s.mustBeFile(n, sub.file, sub.kind, sub.follow) {
		return false
	}
	s.revived(sub.file)
	return s.linksMatch(sub) && (sub.size < 0 || s.mustEqual(s.files[sub.file].size, sub.size, UnexplainedSize)) &&
		s.modeMatches(sub)
}

func (s *state) readlink(_ *event.Event, sub *footprint) bool {
	n := sub.names[0]
	if !s.mustExist(n, kindLink) {
		return false
	}
	v := s.get(s.names[n].value)
	switch {
	case sub.leads < 0 || !identified(v):
	case fileOf(v) >= 0:
		return s.mustEqual(s.files[fileOf(v)].target, int64(sub.leads), UnexplainedContent)
	case s.leadsTo(v) >= 0 && s.leadsTo(v) != sub.leads:
		return s.mode == believe || s.tolerates(UnexplainedContent)
	}
	return true
}

func (s *state) unlink(_ *event.Event, sub *footprint) bool {
	n := sub.names[0]
	if !s.mustExist(n, sub.kind) || sub.kind == kindDir && !s.mustBeEmpty(n, true) {
		return false
	}
	if sub.kind != kindDir {
		s.linked(n, -1)
	}
	return s.remove(n)
}

func (s *state) link(_ *event.Event, sub *footprint) bool {
	from, to := s.resolve(sub.names[0], sub.follow), sub.names[1]
	if !s.mustBeAbsent(to) || !s.parentMustExist(to) {
		return false
	}
	if sub.secondStep {
		v := s.get(sub.found)
		if f := fileOf(v); f >= 0 && s.get(s.files[f].links) == 0 {
			return s.tolerates(UnexplainedResult) // which had failed
		}
		s.named(sub.names[0], v, false, +1)
		return s.create(to, v)
	}
	if from < 0 {
		return s.create(to, someFile)
	}
	if !s.mustExist(from, kindNotDir) {
		return false
	}
	s.linked(from, +1)
	v := s.peek(s.names[from].value)
	if !exists(v) {
		v = someFile
	}
	return s.create(to, v)
}

func (s *state) rename(ev *event.Event, sub *footprint) bool {
	if !s.renameName(ev, sub) {
		return false
	}
	if from := sub.names[0]; ev.LeavesWhiteout() && from != sub.names[1] {
		return s.create(from, some)
	}
	return true
}

func (s *state) renameName(ev *event.Event, sub *footprint) bool {
	from, to := sub.names[0], sub.names[1]
	if !s.mustExist(from, kindUnknown) {
		return false
	}
	if from == to {
		return true
	}
	v := s.peek(s.names[from].value)
	if !exists(v) {
		v = some
	}
	if k := kindOf(v); k == kindDir || k == kindUnknown {
		defer s.forgetBelow(from, 0)
		defer s.forgetBelow(to, 0)
	}
	switch {
	case ev.Exchanges():
		if !s.mustExist(to, kindUnknown) {
			return false
		}
		s.learn(from, s.peek(s.names[to].value))
		s.learn(to, v)
		return true
	case ev.SparesTarget():
		if !s.mustBeAbsent(to) || !s.parentMustExist(to) {
			return false
		}
		s.remove(from)
		return s.create(to, v)
	}
	return s.replace(from, to, v)
}

// replace is a rename without flags, of a name that stands for v.
func (s *state) replace(from, to int32, v int64) bool {
	old := s.peek(s.names[to].value)
	switch k := kindOf(v); {
	case same(v, old):
		return true // two names of one file: rename(2) does nothing
	case !exists(old):
	case k == kindDir:
		if !s.mustExist(to, kindDir) || !s.mustBeEmpty(to, true) {
			return false
		}
	case k != kindUnknown:
		if !s.mustExist(to, kindNotDir) {
			return false
		}
	}
	if !s.parentMustExist(to) {
		return false
	}
	distinct := differ(v, old)
	if old != absent {
		s.linked(to, -1)
		if !distinct {
			s.blur(to)
		}
	}
	if exists(old) && !distinct {
		s.learn(from, unknown) // they may have been two names of one file
	} else {
		s.remove(from)
	}
	s.learn(to, v)
	return true
}

func (s *state) truncate(ev *event.Event, sub *footprint) bool {
	n := s.resolve(sub.names[0], sub.follow)
	if n < 0 {
		return true
	}
	if !s.mustExist(n, kindOther) {
		return false
	}
	f := fileOf(s.peek(s.names[n].value))
	if f < 0 && s.searching {
		f = sub.file
	}
	if f >= 0 {
		s.set(s.files[f].size, int64(ev.Args[1]))
	}
	return true
}
