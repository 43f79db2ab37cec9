// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// A cell is one piece of the shared state: what a name stands for, where a file ends.
// It has a value, which may be unknown, and what is needed to see whether calls race for
// it. Of calls it has their numbers in the tape's order, from 1.
type cell struct {
	value int64

	reads, adds, sets int64  // when the last call returned that did so
	racing            uint64 // the last call that raced for it
	changed           uint64 // the last call that changes it
	cut               uint64 // of a size: the last call that makes the file shorter
	floor             int64  // and what it is not less than since the window began

	round     uint32 // the search that the rest is of
	root      int32  // the cell that stands for its component, as in union-find
	component int32  // of the root: number of the component, -1 if it has none yet
}

// unknown is the value of a cell that no call has reported; never is before all times.
const (
	unknown = -1 << 63
	never   = -1 << 63
)

// What a name may stand for. The last three are all that is known of something that
// exists; others are files with an identity: an inode, or the call that made them.
const (
	absent   = 0
	some     = 1
	someDir  = 2
	someFile = 3 // anything but a directory

	perhaps  = 1 << 55 // in an inode's: or the name is a symbolic link that leads to it
	madeTag  = 1 << 60 // made by a mkdir, symlink or mknod, which do not say the inode
	inodeTag = 1 << 61
	kindAt   = 56 // bits of the kind, in both
	kindMask = 15 << kindAt
	lowMask  = 1<<32 - 1 // the inode's number in its table; of a symbolic link made, the name that it leads to
)

// kind is what is known of the type of a file.
type kind int64

const (
	kindUnknown kind = iota
	kindDir
	kindLink
	kindOther  // neither of the two
	kindNotDir // a link or another
)

func kindOf(v int64) kind {
	switch {
	case v == someDir:
		return kindDir
	case v == someFile:
		return kindNotDir
	case v >= madeTag && v&perhaps == 0:
		return kind(v & kindMask >> kindAt)
	}
	return kindUnknown
}

// fits reports whether a file known to be of kind k can be one of kind want.
func (k kind) fits(want kind) bool {
	switch {
	case k == kindUnknown || want == kindUnknown || k == want:
		return true
	case k == kindNotDir:
		return want != kindDir
	case want == kindNotDir:
		return k != kindDir
	}
	return false
}

func kindOfMode(mode uint32) kind {
	switch effect.TypeOf(mode) {
	case 0:
		return kindUnknown
	case 'd':
		return kindDir
	case 'l':
		return kindLink
	}
	return kindOther
}

// same reports whether two values are certainly those of one file, differ whether they
// are of two.
func same(a, b int64) bool {
	return (a|b)&perhaps == 0 && (fileOf(a) >= 0 && fileOf(a) == fileOf(b) || a == b && identified(a))
}

func differ(a, b int64) bool {
	switch {
	case !kindOf(a).fits(kindOf(b)):
		return true
	case fileOf(a) >= 0 && fileOf(b) >= 0:
		return fileOf(a) != fileOf(b)
	}
	return fileOf(a) < 0 && fileOf(b) < 0 && identified(a) && identified(b) && a != b
}

// exists reports whether a value is that of a name which stands for something.
func exists(v int64) bool { return v >= some }

// identified reports whether it is known which file a value is.
func identified(v int64) bool { return v >= madeTag }

// name is a path of the recording. Its cells are what it stands for and, if that is a
// directory, how many names are in it (see kids).
type name struct {
	path           string
	value, kids    int32   // cells
	parent         int32   // -1 of the root
	child, sibling int32   // -1 if there is none
	linkTargets    []int32 // where symbolic links here led, the last ones
	target         int32   // the last file that it was seen to stand for, -1 if none
	files          []int32 // those that it stood for, the last ones
	listed         uint64  // of a directory: the last call that listed it
	skip           bool    // the kernel makes it up: not followed
}

// file is an inode. Its cells are where it ends, how many names it has, and the name that
// it leads to if it is a symbolic link; that of its content has a value in searches alone
// (see version).
type file struct {
	id                    effect.Inode
	size, target, content int32
	links                 int32
	mode                  int32 // permissions; -1 while nothing changes them
	flocks, ranges        int32 // locks (see lockTable); -1 while there are none
	epoch                 uint32
	virtual               uint8
	kind                  kind  // as calls reported that used its name
	last                  *slot // the last call that read or wrote it
	lastN                 uint64
}

// openFile is an open file: the cell of its position, and its inode, -1 if that is not
// known.
type openFile struct{ pos, file int32 }

// state is what is known of the files. In a search it can be taken back.
type state struct {
	cells []cell
	names []name
	files []file

	byPath      map[string]int32
	byInode     map[effect.Inode]int32
	devices     effect.Devices
	byOpen      map[event.OpenID]openFile
	byAttr      map[attribute]int32 // cells: see attributes.go
	locks       lockTable
	recentFiles [64]int32 // numbers of files used lately and 1, by inode
	epoch       uint32    // sizes and positions learnt in an earlier one may have changed
	made        int64     // files that were given an identity

	searching   bool   // what is set is logged, and only cells that are raced for count
	round       uint32 // number of the search
	oldest      uint64 // the first call of the window
	racing      uint64 // the last call that raced for something
	more        bool   // a cell is new that calls of the window may access as well
	mode        mode
	unexplained Unexplained
	log         []change
	hash        uint64 // of what was changed since the search began
	collector   accessCollector
	marks       bool // the capture reports whether an open made its file
}

type change struct {
	cell int32
	was  int64
}

// maxKnown bounds names, inodes and positions: when there are more, everything is
// forgotten, which costs only what was known.
const maxKnown = 1 << 17

func newState() *state {
	s := &state{
		byPath: map[string]int32{}, byInode: map[effect.Inode]int32{}, devices: effect.Devices{},
		byOpen: map[event.OpenID]openFile{}, byAttr: map[attribute]int32{},
	}
	s.forget()
	return s
}

func (s *state) forget() {
	clear(s.byPath)
	clear(s.byInode)
	clear(s.byOpen)
	clear(s.byAttr)
	s.locks.forget()
	clear(s.names)
	s.recentFiles = [64]int32{}
	clear(s.files)
	s.cells, s.names, s.files = s.cells[:0], s.names[:0], s.files[:0]
}

func (s *state) full() bool {
	return len(s.names) > maxKnown || len(s.files) > maxKnown || len(s.cells) > 6*maxKnown ||
		len(s.locks.sets) > maxKnown || len(s.locks.released) > maxKnown
}

func (s *state) newCell() int32 {
	s.cells = append(s.cells, cell{value: unknown, reads: never, adds: never, sets: never})
	return int32(len(s.cells) - 1)
}

// name returns the number of an absolute path, -1 if it is not followed.
func (s *state) name(path string) int32 {
	if n, ok := s.byPath[path]; ok {
		if s.names[n].skip {
			return -1
		}
		return n
	}
	if path == "" || path[0] != '/' {
		return -1
	}
	parent := int32(-1)
	if path != "/" {
		i := strings.LastIndexByte(path, '/')
		parent = s.addName(path[:max(i, 1)])
	}
	n := int32(len(s.names))
	s.names = append(s.names, name{
		path: path, value: s.newCell(), kids: s.newCell(), parent: parent, child: -1, sibling: -1, target: -1,
		skip: effect.Virtual(path),
	})
	s.byPath[path] = n
	if parent >= 0 {
		p := &s.names[parent]
		s.names[n].sibling, p.child = p.child, n
		if p.listed >= s.oldest && p.listed > 0 {
			s.more = true // the listing reported this name, too
		}
	}
	if s.names[n].skip {
		return -1
	}
	return n
}

// addName is name, but returns the number also if it is not followed.
func (s *state) addName(path string) int32 {
	s.name(path)
	return s.byPath[path]
}

// file returns the number of an inode, -1 if there is none.
func (s *state) file(id effect.Inode) int32 {
	if id.Ino == 0 {
		return -1
	}
	near := &s.recentFiles[id.Ino%uint64(len(s.recentFiles))]
	if f := *near; f > 0 && s.files[f-1].id == id {
		return s.current(f - 1)
	}
	n, ok := s.byInode[id]
	if !ok {
		n = int32(len(s.files))
		s.files = append(s.files, file{
			id: id, size: s.newCell(), target: s.newCell(), content: s.newCell(), links: s.newCell(), mode: -1,
			flocks: -1, ranges: -1, epoch: s.epoch,
		})
		s.byInode[id] = n
	}
	*near = n + 1
	return s.current(n)
}

// current forgets what may not be so any more.
func (s *state) current(n int32) int32 {
	if f := &s.files[n]; f.epoch != s.epoch {
		f.epoch = s.epoch
		s.cells[f.size].value = unknown
	}
	return n
}

// noteTarget notes that a name was seen to stand for a file.
func (s *state) noteTarget(n, f int32) {
	m := &s.names[n]
	m.target = f
	if f < 0 || slices.Contains(m.files, f) {
		return
	}
	const most = 8
	if len(m.files) == most {
		m.files = slices.Delete(m.files, 0, 1)
	}
	m.files = append(m.files, f)
	s.more = true
}

// position returns the cell of an open file's position. file is its inode, -1 if the event
// does not have it.
func (s *state) position(open event.OpenID, file int32) int32 {
	o, ok := s.byOpen[open]
	if !ok {
		if len(s.byOpen) > maxKnown/8 {
			clear(s.byOpen)
		}
		o = openFile{s.newCell(), file}
		s.byOpen[open] = o
	}
	return o.pos
}

// fileOfOpen returns the inode of an open file, -1 if it is not known.
func (s *state) fileOfOpen(f *event.File) int32 {
	if f == nil {
		return -1
	}
	if f.Known {
		return s.file(effect.InodeOf(f))
	}
	if o, ok := s.byOpen[f.Open]; ok {
		return o.file
	}
	return -1
}

// inodeValue is what a name stands for that leads to a file.
func inodeValue(file int32, k kind) int64 { return inodeTag | int64(k)<<kindAt | int64(file) }

// newValue is the value of a file that a call made without saying which inode it is.
// low is, of a symbolic link, the name that it leads to.
func newValue(n int64, k kind, low int32) int64 {
	const numbers = 1<<24 - 1
	return madeTag | int64(k)<<kindAt | n&numbers<<32 | int64(uint32(low))
}

// fileOf returns the inode of a value, -1 if it is not known.
func fileOf(v int64) int32 {
	if v >= inodeTag {
		return int32(v & lowMask)
	}
	return -1
}

// participates reports whether a cell takes part: in a search only raced cells do; all
// others have the right values.
func (s *state) participates(c int32) bool {
	if c < 0 {
		return false
	}
	return !s.searching || s.raced(c)
}

// get returns a cell's value, unknown if it takes no part.
func (s *state) get(c int32) int64 {
	if !s.participates(c) {
		return unknown
	}
	return s.plain(s.cells[c].value)
}

// plain takes a name for what it seemed to be in a search: that it might be a symbolic
// link would explain too much.
func (s *state) plain(v int64) int64 {
	if s.searching && v >= madeTag {
		v &^= perhaps
	}
	return v
}

// peek is get, but returns the value also of a cell that takes no part if no call of the
// window changes it.
func (s *state) peek(c int32) int64 {
	if s.searching && !s.raced(c) && s.cells[c].changed < s.oldest {
		return s.plain(s.cells[c].value)
	}
	return s.get(c)
}

func (s *state) set(c int32, v int64) {
	if !s.participates(c) || s.cells[c].value == v {
		return
	}
	if s.searching {
		was := s.cells[c].value
		s.log = append(s.log, change{c, was})
		s.hash ^= mix(uint64(c), uint64(was)) ^ mix(uint64(c), uint64(v))
	}
	s.cells[c].value = v
}

// rollback undoes changes, up to the first mark of them.
func (s *state) rollback(mark int) {
	for i := len(s.log) - 1; i >= mark; i-- {
		ch := s.log[i]
		s.hash ^= mix(uint64(ch.cell), uint64(s.cells[ch.cell].value)) ^ mix(uint64(ch.cell), uint64(ch.was))
		s.cells[ch.cell].value = ch.was
	}
	s.log = s.log[:mark]
}

// mix is the finalizer of splitmix64 over two words.
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// mode says what to do where the result of a call contradicts the state.
type mode uint8

const (
	strict   mode = iota // the call is not explained
	tolerate             // it is noted as unexplained, and the state stays
	believe              // the state was wrong
)

// tolerates notes a contradiction, and reports whether the call goes on in spite of it.
func (s *state) tolerates(d Unexplained) bool {
	s.unexplained |= d
	return s.mode == tolerate
}

// mustEqual reports whether a cell can have a value, and sets it.
func (s *state) mustEqual(c int32, want int64, d Unexplained) bool {
	if v := s.get(c); v != want && v != unknown && s.mode != believe {
		return s.tolerates(d)
	}
	s.set(c, want)
	return true
}

// atLeast and atMost report whether a cell's value can be in a range; they do not set it.
func (s *state) atLeast(c int32, low int64, d Unexplained) bool {
	if v := s.get(c); v != unknown && v < low && s.mode != believe {
		return s.tolerates(d)
	}
	return true
}

func (s *state) atMost(c int32, high int64, d Unexplained) bool {
	if v := s.get(c); v > high && s.mode != believe {
		return s.tolerates(d)
	}
	return true
}

// maxLeads bounds name.leads.
const maxLeads = 8

// noteLinkTarget notes where a symbolic link leads.
func (s *state) noteLinkTarget(link, target int32) {
	n := &s.names[link]
	if target < 0 || slices.Contains(n.linkTargets, target) {
		return
	}
	if len(n.linkTargets) == maxLeads {
		n.linkTargets = slices.Delete(n.linkTargets, 0, 1)
	}
	n.linkTargets = append(n.linkTargets, target)
	s.more = true
}

// target returns the name that a symbolic link leads to, -1 if it is not followed.
func (s *state) target(link int32, target string) int32 {
	if target == "" {
		return -1
	}
	if dir := s.names[link].parent; target[0] != '/' && dir >= 0 {
		target = s.names[dir].path + "/" + target
	}
	return s.name(path.Clean(target))
}
