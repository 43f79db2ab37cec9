package settle

import (
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// explain does a call on the state. It returns false if what the call returned
// contradicts the state; in part of it may have been done then.
func (s *state) explain(ev *event.Event, sub *subject, marks bool) bool {
	switch sub.class {
	case classRead:
		return s.read(ev, sub)
	case classWrite:
		return s.write(ev, sub)
	case classSeek:
		return s.seek(ev, sub)
	case classResize:
		return s.resize(ev, sub)
	case classFstat:
		return s.is(s.files[sub.file].size, sub.size, DoubtSize) && s.permits(sub) && s.has(sub)
	case classAttribute:
		return s.attribute(ev, sub)
	case classCopy:
		return s.copied(ev, sub)
	case classList:
		return s.lists(sub)
	case classLock:
		return s.locking(ev, sub)
	}
	if ev.Errno != 0 {
		return s.failed(ev, sub)
	}
	switch sub.class {
	case classOpen:
		return s.open(ev, sub, marks)
	case classStat:
		return s.stat(sub)
	case classLookup:
		n := s.resolve(sub.names[0], sub.follow)
		return (n < 0 || s.there(n, kindUnknown)) && s.executable(sub, true)
	case classReadlink:
		return s.readlink(sub)
	case classUnlink:
		return s.unlink(sub)
	case classMake:
		return s.vacant(sub.names[0]) && s.within(sub.names[0]) && s.create(sub.names[0], sub.made)
	case classLink:
		return s.link(sub)
	case classFind:
		return s.finds(sub)
	case classRename:
		return s.rename(ev, sub)
	case classTruncate:
		return s.truncate(ev, sub)
	}
	return true
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
		v := s.peek(s.names[n].at)
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
		v := s.peek(s.names[n].at)
		switch k := kindOf(v); {
		case v == absent || !k.fits(kindLink):
			return s.mode == believe || s.overlooks(DoubtResult)
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

// there reports whether a name can stand for something of a kind.
func (s *state) there(n int32, k kind) bool {
	v := s.get(s.names[n].at)
	if v != unknown && exists(v) && kindOf(v).fits(k) {
		if kindOf(v) == kindUnknown && k != kindUnknown && !identified(v) {
			s.learn(n, someOf(k))
		}
		return true
	}
	if v != unknown && s.mode != believe {
		return s.overlooks(DoubtResult)
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

// vacant reports whether a name can stand for nothing.
func (s *state) vacant(n int32) bool {
	v := s.get(s.names[n].at)
	if v != unknown && v != absent && s.mode != believe {
		return s.overlooks(DoubtResult)
	}
	s.learn(n, absent)
	return true
}

// within reports whether the directory that a name is in can exist.
func (s *state) within(n int32) bool {
	p := s.names[n].parent
	return p < 0 || s.there(p, kindDir)
}

// stands reports whether a name can stand for a file. If the call followed symbolic
// links, it may be one where nothing was known.
func (s *state) stands(n int32, f int32, k kind, followed bool) bool {
	v := s.get(s.names[n].at)
	known := v < madeTag || v&perhaps == 0
	switch {
	case v == unknown:
	case v == absent || known && (!kindOf(v).fits(k) || fileOf(v) >= 0 && fileOf(v) != f) || !known && followed && fileOf(v) != f:
		if s.mode != believe {
			return s.overlooks(DoubtResult)
		}
	case fileOf(v) == f && (followed || known && (k == kindUnknown || kindOf(v) == k)):
		return true
	case v >= madeTag && v < inodeTag && k == kindLink:
		return true // where it leads is worth more than which inode it is
	}
	want := inodeValue(f, k)
	if followed && !s.searching && !(known && identified(v)) {
		want |= perhaps
	}
	s.learn(n, want)
	return true
}

// learn says what a name stands for, as a call found it.
func (s *state) learn(n int32, v int64) {
	at := s.names[n].at
	if p := s.names[n].parent; p >= 0 && s.counts(at) {
		if was, is := exists(s.cells[at].value), exists(v); is != was {
			s.count(p, is)
		}
	}
	s.set(at, v)
}

// create makes a name that stood for nothing stand for v; remove is the opposite.
func (s *state) create(n int32, v int64) bool {
	if at, p := s.names[n].at, s.names[n].parent; p >= 0 && (!s.counts(at) || !exists(s.cells[at].value)) {
		s.count(p, true)
	}
	s.set(s.names[n].at, v)
	if v >= madeTag && v < inodeTag && kindOf(v) == kindDir {
		s.set(s.names[n].kids, 1)
		if !s.searching {
			s.emptied(n)
		}
	}
	return true
}

func (s *state) remove(n int32) bool {
	if at, p := s.names[n].at, s.names[n].parent; p >= 0 && (!s.counts(at) || exists(s.cells[at].value)) {
		s.count(p, false)
	}
	s.set(s.names[n].at, absent)
	return true
}

// The value of kids is twice the number of names that are known to be in a directory,
// and one more if those are all: the trace made it.

func (s *state) count(dir int32, more bool) {
	c := s.names[dir].kids
	v := s.get(c)
	switch {
	case !s.counts(c):
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

// empty reports whether a directory can be, or not be, without names.
func (s *state) empty(n int32, want bool) bool {
	v := s.get(s.names[n].kids)
	if v == unknown || want && v <= 1 || !want && v != 1 {
		return true
	}
	return s.mode == believe || s.overlooks(DoubtResult)
}

// emptied says of a directory that the trace made: nothing was in it then.
func (s *state) emptied(n int32) {
	for c := s.names[n].child; c >= 0; c = s.names[c].sibling {
		s.cells[s.names[c].at].value = absent
	}
}

// moved says of the names in a directory that has another name now: nothing is known.
func (s *state) moved(n int32, depth int) {
	s.set(s.names[n].kids, unknown)
	for c := s.names[n].child; c >= 0 && depth < maxDepth; c = s.names[c].sibling {
		s.set(s.names[c].at, unknown)
		s.moved(c, depth+1)
	}
}

// maxDepth bounds how far below a directory names are followed that move with it.
const maxDepth = 64

func (s *state) open(ev *event.Event, sub *subject, marks bool) bool {
	if sub.flags&effect.OTmpfile == effect.OTmpfile {
		return true
	}
	if sub.rest {
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
	f := ev.FileArg(event.ResultArg)
	created := sub.flags&effect.OCreat != 0 && (sub.flags&effect.OExcl != 0 || f != nil && f.Flags&effect.OCreat != 0)
	if sub.flags&effect.OCreat != 0 && !created && !marks {
		created = s.get(s.names[n].at) == absent // the capture does not tell
	}
	if created && !(s.vacant(n) && s.within(n)) {
		return false
	}
	switch {
	case sub.file < 0 && created:
		return s.create(n, someFile)
	case sub.file < 0:
		return s.there(n, kindUnknown)
	case created:
		s.create(n, inodeValue(sub.file, sub.kind))
		s.set(s.files[sub.file].size, 0)
		s.set(s.files[sub.file].mode, unknown) // of the file that had the inode before
		s.set(s.files[sub.file].links, 1)
		return true
	}
	if !s.stands(n, sub.file, sub.kind, sub.follow) {
		return false
	}
	s.revived(sub.file)
	if sub.flags&effect.OTrunc != 0 && sub.kind == kindOther {
		s.set(s.files[sub.file].size, 0)
	}
	return true
}

func (s *state) stat(sub *subject) bool {
	n := s.resolve(sub.names[0], sub.follow)
	switch {
	case n < 0:
		return true
	case sub.file < 0:
		return s.there(n, sub.kind)
	}
	if !s.stands(n, sub.file, sub.kind, sub.follow) {
		return false
	}
	s.revived(sub.file)
	return s.has(sub) && (sub.size < 0 || s.is(s.files[sub.file].size, sub.size, DoubtSize)) && s.permits(sub)
}

func (s *state) readlink(sub *subject) bool {
	n := sub.names[0]
	if !s.there(n, kindLink) {
		return false
	}
	v := s.get(s.names[n].at)
	switch {
	case sub.leads < 0 || !identified(v):
	case fileOf(v) >= 0:
		return s.is(s.files[fileOf(v)].target, int64(sub.leads), DoubtContent)
	case s.leadsTo(v) >= 0 && s.leadsTo(v) != sub.leads:
		return s.mode == believe || s.overlooks(DoubtContent)
	}
	return true
}

func (s *state) unlink(sub *subject) bool {
	n := sub.names[0]
	if !s.there(n, sub.kind) || sub.kind == kindDir && !s.empty(n, true) {
		return false
	}
	if sub.kind != kindDir {
		s.linked(n, -1)
	}
	return s.remove(n)
}

func (s *state) link(sub *subject) bool {
	from, to := s.resolve(sub.names[0], sub.follow), sub.names[1]
	if !s.vacant(to) || !s.within(to) {
		return false
	}
	if sub.rest {
		v := s.get(sub.found)
		if f := fileOf(v); f >= 0 && s.get(s.files[f].links) == 0 {
			return s.overlooks(DoubtResult) // which had failed
		}
		s.named(sub.names[0], v, false, +1)
		return s.create(to, v)
	}
	if from < 0 {
		return s.create(to, someFile)
	}
	if !s.there(from, kindNotDir) {
		return false
	}
	s.linked(from, +1)
	v := s.peek(s.names[from].at)
	if !exists(v) {
		v = someFile
	}
	return s.create(to, v)
}

// Flags of renameat2 (linux/fs.h).
const (
	renameNoReplace = 1
	renameExchange  = 2
)

func (s *state) rename(ev *event.Event, sub *subject) bool {
	from, to := sub.names[0], sub.names[1]
	flags := uint64(0)
	if sub.op == event.OpRenameat2 {
		flags = ev.Args[4]
	}
	if !s.there(from, kindUnknown) {
		return false
	}
	if from == to {
		return true
	}
	v, old := s.peek(s.names[from].at), s.peek(s.names[to].at)
	if !exists(v) {
		v = some
	}
	if k := kindOf(v); k == kindDir || k == kindUnknown {
		defer s.moved(from, 0)
		defer s.moved(to, 0)
	}
	switch {
	case flags&renameExchange != 0:
		if !s.there(to, kindUnknown) {
			return false
		}
		s.learn(from, s.peek(s.names[to].at))
		s.learn(to, v)
		return true
	case flags&renameNoReplace != 0:
		if !s.vacant(to) {
			return false
		}
	case same(v, old):
		return true // two names of one file: nothing is done (rename(2))
	case exists(old):
		if kindOf(v) == kindDir && (!s.there(to, kindDir) || !s.empty(to, true)) {
			return false
		}
		if k := kindOf(v); k != kindDir && k != kindUnknown && !s.there(to, kindNotDir) {
			return false
		}
	}
	if !s.within(to) {
		return false
	}
	if old != absent && flags&renameNoReplace == 0 {
		s.linked(to, -1)
		if !differ(v, old) {
			s.blur(to)
		}
	}
	if exists(old) && !differ(v, old) && flags&renameNoReplace == 0 {
		s.learn(from, unknown) // they may have been two names of one file
	} else {
		s.remove(from)
	}
	if flags&renameNoReplace != 0 {
		return s.create(to, v)
	}
	s.learn(to, v)
	return true
}

func (s *state) truncate(ev *event.Event, sub *subject) bool {
	n := s.resolve(sub.names[0], sub.follow)
	if n < 0 {
		return true
	}
	if !s.there(n, kindOther) {
		return false
	}
	f := fileOf(s.peek(s.names[n].at))
	if f < 0 && s.searching {
		f = sub.file
	}
	if f >= 0 {
		s.set(s.files[f].size, int64(ev.Args[1]))
	}
	return true
}

// failed explains an error by what the names stood for. Errors with other reasons say
// nothing.
func (s *state) failed(ev *event.Event, sub *subject) bool {
	n, last := sub.names[0], sub.names[0]
	if sub.class == classLink || sub.class == classRename {
		last = sub.names[1]
	}
	switch ev.Errno {
	case syscall.ENOENT:
		return s.missing(ev, sub)
	case syscall.EEXIST, syscall.ENOTEMPTY:
		switch sub.class {
		case classUnlink:
			return s.there(n, kindDir) && s.empty(n, false)
		case classOpen, classMake:
			return s.there(n, kindUnknown)
		case classLink:
			return s.there(n, kindUnknown) && s.there(last, kindUnknown)
		case classRename:
			if ev.Errno == syscall.EEXIST && sub.op == event.OpRenameat2 && ev.Args[4]&renameNoReplace != 0 {
				return s.there(n, kindUnknown) && s.there(last, kindUnknown)
			}
			return s.there(n, kindDir) && s.there(last, kindDir) && s.empty(last, false)
		}
	case syscall.EACCES:
		return s.executable(sub, false)
	case syscall.EISDIR:
		switch sub.class {
		case classUnlink:
			return s.there(n, kindDir)
		case classRename:
			return s.there(n, kindNotDir) && s.there(last, kindDir)
		case classOpen:
			r := s.resolve(n, sub.follow)
			return r < 0 || s.there(r, kindDir)
		}
	case syscall.ENOTDIR:
		// Or something on the way is none.
		if v := s.get(s.names[n].at); sub.class == classUnlink && exists(v) {
			return s.there(n, kindNotDir)
		}
	case syscall.EINVAL:
		if sub.class == classReadlink {
			if v := s.get(s.names[n].at); kindOf(v) == kindLink {
				return s.mode == believe || s.overlooks(DoubtResult)
			}
			return s.there(n, kindUnknown)
		}
	case syscall.ELOOP:
		switch {
		case sub.class == classOpen && sub.flags&effect.ONoFollow != 0:
			return s.there(n, kindLink)
		case sub.follow:
			return s.circular(n)
		}
	}
	return true
}

// missing explains ENOENT: a name that is to be found is not there, or the directory
// that one is to be made in.
func (s *state) missing(ev *event.Event, sub *subject) bool {
	switch sub.class {
	case classMake:
		return s.lost(sub.names[0])
	case classOpen:
		n := s.resolve(sub.names[0], sub.follow)
		if n < 0 {
			return true
		}
		if sub.flags&effect.OCreat != 0 {
			return s.lost(n)
		}
		return s.vacant(n)
	case classLink, classRename:
		from, to := s.resolve(sub.names[0], sub.follow), sub.names[1]
		exchange := sub.op == event.OpRenameat2 && ev.Args[4]&renameExchange != 0
		if from < 0 {
			return true
		}
		if v := s.peek(s.names[from].at); !exists(v) {
			return s.vacant(from)
		}
		if exchange {
			return s.vacant(to)
		}
		return s.lost(to)
	}
	n := s.resolve(sub.names[0], sub.follow)
	return n < 0 || s.vacant(n)
}

// lost reports whether the directory that a name is in can be missing.
func (s *state) lost(n int32) bool {
	p := s.names[n].parent
	if p < 0 || s.counts(s.names[p].at) {
		return p < 0 || s.vacant(p)
	}
	return !exists(s.peek(s.names[p].at)) || s.overlooks(DoubtResult)
}
