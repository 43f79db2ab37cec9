// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// class is what the model knows of a call: which of the functions in names.go and
// files.go explains it.
type class uint8

const (
	classNone class = iota // accesses nothing that is modelled
	classOpen
	classStat      // of a name
	classLookup    // a name must exist, that is all
	classAttribute // chmod, extended attributes
	classReadlink
	classUnlink // and rmdir
	classMake   // mkdir, symlink, mknod, bind to a name
	classLink
	classFind // the lookup of a link (see steps.go)
	classRename
	classTruncate // of a name
	classList     // of the names in a directory
	classLock     // flock, fcntl, and close
	classRead
	classWrite
	classSeek
	classResize // ftruncate, fallocate
	classFstat
	classCopy
	numClasses
)

// classes is by what calls do, of names; see classOf.
var classes = [event.NumEffects]class{
	event.EffectOpen:        classOpen,
	event.EffectStat:        classStat,
	event.EffectReadlink:    classReadlink,
	event.EffectAccess:      classLookup,
	event.EffectChown:       classLookup,
	event.EffectSetTimes:    classLookup,
	event.EffectListXattr:   classLookup,
	event.EffectStatFS:      classLookup,
	event.EffectChdir:       classLookup,
	event.EffectChmod:       classAttribute,
	event.EffectSetXattr:    classAttribute,
	event.EffectGetXattr:    classAttribute,
	event.EffectRemoveXattr: classAttribute,
	event.EffectUnlink:      classUnlink,
	event.EffectRmdir:       classUnlink,
	event.EffectMkdir:       classMake,
	event.EffectSymlink:     classMake,
	event.EffectMknod:       classMake,
	event.EffectBind:        classMake,
	event.EffectLink:        classLink,
	event.EffectRename:      classRename,
	event.EffectTruncate:    classTruncate,
	event.EffectList:        classList,
	event.EffectLock:        classLock,
	event.EffectControl:     classLock,
	event.EffectClose:       classLock,
	event.EffectRead:        classRead,
	event.EffectWrite:       classWrite,
	event.EffectSeek:        classSeek,
	event.EffectAllocate:    classResize,
	event.EffectCopy:        classCopy,
}

// footprint is what an event accesses, in the terms of the state: found once in each
// round, before the model is used.
type footprint struct {
	class      class
	op         event.Op // the call, also of a request
	does       event.Effect
	follow     bool     // a symbolic link at the end of the first path is followed
	flags      uint64   // of an open
	kind       kind     // of what was opened, looked at or made
	names      [2]int32 // of the paths, in their order; -1: not followed
	file       int32    // inode in the event, -1 if there is none
	to         int32    // inode that a copy writes to, -1
	pos        int32    // cell of a position that is used or moved, -1
	toPos      int32    // the same of a copy's target
	off        int64    // where a transfer began, -1 if that is not known
	toOff      int64    // the same of a copy's target
	size       int64    // what stat said, -1 if it said nothing
	made       int64    // value of what a call made
	number     int64    // of what it made, 0 if none; it stays over the rounds
	mode       int64    // permissions that stat said, -1 if it said nothing
	links      int64    // names that stat said the file has, -1 if it said nothing
	listed     []int32  // names that a listing had, of those that are followed, in their order
	whole      bool     // it had all that there were
	attr       int32    // cell of an attribute, or of locks, -1
	ranges     int32    // of a close: cell of locks on ranges, -1
	lock       lock     // of a call on locks
	value      int64    // that the attribute was given, or had; unknown
	leads      int32    // name that a symbolic link was read to lead to, -1
	secondStep bool     // its lookup is a slot of its own (see steps.go)
	found      int32    // cell of what that found for a link, -1
}

// classify finds the class of an event. It returns false if it has none.
func (s *footprint) classify(ev *event.Event) bool {
	s.class = classNone
	if ev.Kind == event.Call && ev.Flags&event.Interrupted == 0 {
		s.op, s.does = ev.Op.Like(), ev.Effect()
		s.class = classOf(ev, s.does)
	}
	return s.class != classNone
}

func classOf(ev *event.Event, does event.Effect) class {
	byName := len(ev.Paths) > 0
	switch {
	case does == event.EffectStat && !byName:
		return classFstat
	case does == event.EffectTruncate && !byName:
		return classResize
	case does == event.EffectControl:
		return lockOf(ev)
	case ev.Op == event.OpGetdents: // which has another layout, and is not modelled
		return classNone
	}
	return classes[does]
}

// moves reports whether calls of a class change or report sizes, positions and content
// alone.
func (c class) moves() bool { return c >= classRead }

// findFootprint finds the footprint of an event that has a class. It returns false if the
// event accesses nothing that calls can race for.
func (st *Stage) findFootprint(ev *event.Event, s *footprint) bool {
	*s = footprint{
		class: s.class, op: s.op, does: s.does, number: s.number,
		listed: s.listed[:0], links: -1,
		names: [2]int32{-1, -1}, file: -1, to: -1, pos: -1, toPos: -1, ranges: -1, off: -1, toOff: -1, size: -1,
		mode: -1, attr: -1, value: unknown, leads: -1, found: -1,
	}
	if s.op != ev.Op {
		// The functions below read a request as the call that it is like.
		op := ev.Op
		ev.Op = s.op
		ok := st.findCallFootprint(ev, s)
		ev.Op = op
		return ok
	}
	return st.findCallFootprint(ev, s)
}

func (st *Stage) findCallFootprint(ev *event.Event, s *footprint) bool {
	switch s.class {
	case classRead, classWrite, classSeek, classResize, classFstat:
		return st.findFile(ev, s)
	case classCopy:
		return st.findCopy(ev, s)
	case classList:
		return st.findListing(ev, s)
	case classLock:
		return st.findLock(ev, s)
	case classAttribute:
		if len(ev.Paths) == 0 {
			s.file = st.state.fileOfOpen(ev.FileArg(0))
			return st.findAttribute(ev, s)
		}
	}
	return st.findNames(ev, s)
}

// regular returns the inode of a descriptor that is an ordinary file's, -1 of others.
func (st *Stage) regular(f *event.File) int32 {
	if !f.Is(event.TypeRegular) {
		return -1
	}
	n := st.state.file(effect.InodeOf(f))
	if n < 0 {
		return -1
	}
	file := &st.state.files[n]
	if file.virtual == unseen {
		file.virtual = real
		if effect.Virtual(f.Path) {
			file.virtual = virtual
		}
	}
	if file.virtual == virtual {
		return -1
	}
	return n
}

// Whether the kernel makes a file up, by its name.
const (
	unseen = iota
	real
	virtual
)

func (st *Stage) findFile(ev *event.Event, s *footprint) bool {
	if s.class == classFstat {
		return st.findFstat(ev, s)
	}
	f := ev.FileArg(0)
	if s.file = st.regular(f); s.file < 0 {
		return false
	}
	if s.class == classRead && f.Size == 0 && ev.Ret > 0 && f.Dev>>8&0xfff == 0 &&
		st.state.cells[st.state.files[s.file].size].value <= 0 {
		st.state.files[s.file].virtual = virtual // no file of a disk, and it has no size
		return false
	}
	s.kind, s.off = kindOther, ev.Offset
	switch s.class {
	case classSeek:
		s.pos = st.state.position(f.Open, s.file)
	case classRead, classWrite:
		if ev.AtPosition() {
			s.pos = st.state.position(f.Open, s.file)
		}
		if s.class == classWrite && s.pos < 0 && f.Flags&event.OpenAppend != 0 {
			s.off = -1 // it is appended all the same (pwrite(2), Bugs)
		}
	}
	return true
}

func (st *Stage) findCopy(ev *event.Event, s *footprint) bool {
	src, dst := ev.CopySides()
	from, to := ev.FileArg(src.FD), ev.FileArg(dst.FD)
	s.file, s.to = st.regular(from), st.regular(to)
	if s.file >= 0 {
		s.off = src.Start(ev)
		if src.AtPosition(ev) {
			s.pos = st.state.position(from.Open, s.file)
		}
	}
	if s.to >= 0 {
		s.toOff = dst.Start(ev)
		if dst.AtPosition(ev) {
			s.toPos = st.state.position(to.Open, s.to)
		}
	}
	return s.file >= 0 || s.to >= 0
}

// A finder completes the footprint of a call on names. It returns false if the call accesses
// nothing that calls can race for.
type finder func(*Stage, *event.Event, *footprint) bool

// finders are by class; other calls only look a name up.
var finders = [numClasses]finder{
	classLink:      (*Stage).findPair,
	classRename:    (*Stage).findPair,
	classOpen:      (*Stage).findOpen,
	classStat:      (*Stage).findStat,
	classMake:      (*Stage).findMade,
	classUnlink:    (*Stage).findUnlink,
	classTruncate:  (*Stage).findTruncate,
	classReadlink:  (*Stage).findReadlink,
	classAttribute: (*Stage).findNamedAttribute,
	classLookup:    (*Stage).findLookup,
}

// findNames finds the footprint of a call on names.
func (st *Stage) findNames(ev *event.Event, s *footprint) bool {
	if len(ev.Paths) == 0 {
		return false
	}
	if ev.Paths[0].Raw == "" {
		s.class = classFstat // on a descriptor in place of a name (AT_EMPTY_PATH)
		return st.findFstat(ev, s)
	}
	for i := range min(len(ev.Paths), 2) {
		s.names[i] = st.state.name(ev.Paths[i].Abs)
	}
	if f := finders[s.class]; f != nil {
		return f(st, ev, s)
	}
	s.follow = ev.FollowsLast()
	return s.names[0] >= 0
}

// findPair finds the footprint of a link or rename.
func (st *Stage) findPair(ev *event.Event, s *footprint) bool {
	if len(ev.Paths) < 2 || s.names[0] < 0 || s.names[1] < 0 {
		return false
	}
	s.follow = ev.FollowsLast()
	if ev.OK() {
		for _, f := range st.state.names[s.names[0]].files {
			st.state.noteTarget(s.names[1], f)
		}
		st.state.noteTarget(s.names[1], st.state.names[s.names[0]].target)
	}
	return true
}

func (st *Stage) findOpen(ev *event.Event, s *footprint) bool {
	const both = event.OpenCreat | event.OpenExcl
	s.flags = effect.OpenFlags(ev)
	s.follow = s.flags&effect.ONoFollow == 0 && s.flags&both != both
	if f := ev.FileArg(event.ResultArg); f != nil && f.Known && ev.OK() {
		s.file, s.kind = st.state.file(effect.InodeOf(f)), kindOfMode(f.Mode)
		st.state.marks = st.state.marks || f.Flags&event.OpenCreat != 0
		if s.kind == kindOther {
			s.pos = st.state.position(f.Open, s.file)
		}
		st.noteTarget(s)
	}
	return s.names[0] >= 0
}

func (st *Stage) findStat(ev *event.Event, s *footprint) bool {
	s.follow = ev.FollowsLast()
	if d, ok := effect.DecodeStat(ev, st.arch); ok && ev.OK() {
		s.file, s.kind = st.state.file(st.state.devices.Inode(d)), kindOfMode(d.Mode)
		s.mode = int64(d.Mode & permissions)
		if effect.TypeOf(d.Mode) == 'f' {
			s.size, s.links = d.Size, int64(d.Nlink)
		}
		st.noteTarget(s)
	}
	return s.names[0] >= 0
}

func (st *Stage) findUnlink(ev *event.Event, s *footprint) bool {
	s.kind = kindNotDir
	if s.does == event.EffectRmdir {
		s.kind = kindDir
	}
	return s.names[0] >= 0
}

func (st *Stage) findTruncate(ev *event.Event, s *footprint) bool {
	s.follow = true
	if s.names[0] >= 0 && ev.OK() {
		s.file = st.state.names[s.names[0]].target
	}
	return s.names[0] >= 0
}

func (st *Stage) findReadlink(ev *event.Event, s *footprint) bool {
	b := ev.BufArg(len(ev.Spec().Args) - 2)
	if b != nil && s.names[0] >= 0 && ev.OK() && int64(len(b.Inline)) == ev.Ret {
		s.leads = st.state.target(s.names[0], string(b.Inline))
		st.state.noteLinkTarget(s.names[0], s.leads)
	}
	return s.names[0] >= 0
}

func (st *Stage) findNamedAttribute(ev *event.Event, s *footprint) bool {
	s.follow = ev.FollowsLast()
	if s.names[0] >= 0 {
		s.file = st.state.names[s.names[0]].target
	}
	return st.findAttribute(ev, s)
}

func (st *Stage) findLookup(ev *event.Event, s *footprint) bool {
	s.follow = ev.FollowsLast()
	st.findAccess(ev, s)
	return s.names[0] >= 0
}

// findFstat takes the file's identity from what fstat said: it has no facts of its own.
func (st *Stage) findFstat(ev *event.Event, s *footprint) bool {
	d, ok := effect.DecodeStat(ev, st.arch)
	if !ok || !ev.OK() || effect.TypeOf(d.Mode) != 'f' {
		return false
	}
	if f := st.state.fileOfOpen(ev.FileArg(0)); f >= 0 {
		st.state.devices.Learn(d, st.state.files[f].id)
	}
	s.file, s.kind, s.size = st.state.file(st.state.devices.Inode(d)), kindOther, d.Size
	s.mode, s.links = int64(d.Mode&permissions), int64(d.Nlink)
	return s.file >= 0
}

// findMade gives a new file an identity. The identity stays with the event, which is
// analyzed in every round that it is in the window for.
func (st *Stage) findMade(ev *event.Event, s *footprint) bool {
	if s.names[0] < 0 || !ev.OK() {
		return s.names[0] >= 0
	}
	k, leads := kindOther, int32(-1)
	switch s.does {
	case event.EffectMkdir:
		k = kindDir
	case event.EffectSymlink:
		k = kindLink
		if b := ev.BufArg(0); b != nil {
			leads = st.state.target(s.names[0], effect.CString(b.Inline))
			st.state.noteLinkTarget(s.names[0], leads)
		}
	}
	if s.number == 0 {
		st.state.made++
		s.number = st.state.made
	}
	s.kind, s.made = k, newValue(s.number, k, leads)
	return true
}

// noteTarget notes which file a name stood for, and of which kind that is, for calls on the
// name that do not say it.
func (st *Stage) noteTarget(s *footprint) {
	if s.names[0] >= 0 {
		st.state.noteTarget(s.names[0], s.file)
		if s.file >= 0 {
			st.state.files[s.file].kind = s.kind
		}
	}
}
