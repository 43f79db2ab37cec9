// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
)

// FileSystem answers what a trace does not tell of the files that it names. It stands for
// the file system that the recorded programs saw.
type FileSystem interface {
	// Readlink returns what is known of a symbolic link; the zero Link if the name is not one.
	Readlink(name string) Link
	// Inode returns the device and the number of the file that a name without links leads
	// to; 0 if that is not known.
	Inode(name string) (dev, ino uint64)
	// Loaders returns the names of the programs that execve maps beside the one of a
	// name: the interpreter of a script, the dynamic loader.
	Loaders(name string) []string
}

// Link is a symbolic link that a FileSystem has, maybe some time after the events. Its times are in ns of the
// events' clock.
type Link struct {
	Target string
	Since  int64 // when it was last changed or renamed
	Born   int64 // when it was made; Since if that is not known
}

// links is what is known of symbolic links: a tree of the names that were asked for.
type links struct {
	root  *entry
	count int
	fs    FileSystem // nil: what the trace tells is all that is known
	began int64      // ns; when the first event ended
	now   int64      // ns; when the present one ended
	made  *madeLinks // of all file systems; nil: of none
}

// at says when the present event ended.
func (l *links) at(now int64) {
	if l.began == 0 {
		l.began = now
	}
	l.now = now
}

// coarse is how much too early a file system's time stamps can be, in ns: a tick of the slowest clock.
const coarse = 10e6

// was reports since when a link that the file system has is known to have its name. The trace tells of a link that was
// made during the recording, unless others made it, who have done nothing to it since.
func (l *links) was(k *Link) (since int64) {
	if k.Born+coarse < l.began {
		return math.MinInt64
	}
	return k.Since + coarse
}

// entry is a name in a directory.
type entry struct {
	below  map[string]*entry
	target string // of a symbolic link
	known  bool   // whether it is a link
	again  int64  // ns; from then on it is to be asked for again
	told   bool   // by the trace
	file   *byte  // the same for all names that calls gave to one file; nil: there was no such call
}

// maxEntries bounds the names that are kept. Beyond it all are forgotten, unless most of them are gone anyway.
const maxEntries = 1 << 18

// find returns the entry of a name without links, which it makes if create is set.
func (l *links) find(name string, create bool) *entry {
	if create && l.count > maxEntries {
		if l.count = l.root.size(); l.count > maxEntries/2 { // those that were removed are counted as well
			l.root = nil
			if l.made != nil {
				*l.made = madeLinks{}
			}
		}
	}
	if l.root == nil {
		l.root, l.count = &entry{}, 0
	}
	at := l.root
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		next := at.below[part]
		if next == nil {
			if !create {
				return nil
			}
			next = &entry{}
			l.count++
			if at.below == nil {
				at.below = map[string]*entry{}
			}
			at.below[part] = next
		}
		at = next
	}
	return at
}

// target returns where a symbolic link leads to; "" if the name is not known to be one. told
// says that the trace told it.
func (l *links) target(name string) (target string, told bool) {
	if to, ok := devLinks[name]; ok {
		return to, true
	}
	if l.fs == nil || strings.HasPrefix(name, "/proc/") { // which says of itself only
		if e := l.find(name, false); e != nil {
			return e.target, e.told
		}
		return "", false
	}
	e := l.find(name, true)
	if !e.known || e.again != 0 && e.again <= l.now {
		k := l.fs.Readlink(name)
		if k.Target != "" && l.made != nil && l.made.told(&k, name, l.fs) {
			k = Link{}
		}
		e.known, e.target, e.again = true, k.Target, 0
		if since := l.was(&k); k.Target != "" && since > l.now {
			e.target, e.again = "", since
		}
	}
	return e.target, e.told
}

// tell notes what the trace tells of a name: that it is a link to target, or is none if
// that is "".
func (l *links) tell(name, target string) {
	if e := l.find(name, target != "" || l.fs != nil); e != nil {
		*e = entry{target: target, known: true, told: true}
	}
}

// join notes that two names are of one file.
func (l *links) join(a, b string) {
	e := l.find(a, true)
	if e.file == nil {
		e.file = new(byte)
	}
	file, target := e.file, *e
	e = l.find(b, true) // which may have forgotten the first one
	*e = entry{target: target.target, known: target.known, told: true, file: file}
}

// same reports whether two names are known to be of one file.
func (l *links) same(a, b string) bool {
	x, y := l.find(a, false), l.find(b, false)
	return x != nil && y != nil && x.file != nil && x.file == y.file
}

// Link notes where a symbolic link leads to, as a trace can say before its first event.
func (m *Model) Link(name, target string) {
	if strings.HasPrefix(name, "/") && target != "" && len(name)+len(target) < 2*event.MaxPath {
		m.links.tell(name, target)
	}
}

// Links returns the symbolic links that the trace told of, and their targets.
func (m *Model) Links() iter.Seq2[string, string] {
	return func(yield func(name, target string) bool) {
		if m.links.root != nil {
			m.links.root.each("", yield)
		}
	}
}

// size returns how many entries there are below an entry.
func (e *entry) size() int {
	n := len(e.below)
	for _, b := range e.below {
		n += b.size()
	}
	return n
}

// each yields the links below an entry, in the order of their names.
func (e *entry) each(name string, yield func(name, target string) bool) bool {
	if e.told && e.target != "" && !yield(name, e.target) {
		return false
	}
	for _, part := range slices.Sorted(maps.Keys(e.below)) {
		if !e.below[part].each(name+"/"+part, yield) {
			return false
		}
	}
	return true
}

// move gives what is known of a name, and of all below it, to another name.
func (l *links) move(from, to string, exchange bool) {
	a := l.take(from)
	if b := l.take(to); exchange {
		l.put(from, b)
	} else {
		l.put(from, &entry{known: true, told: true})
	}
	l.put(to, a)
}

// take removes a name's entry and returns it; nil if there is none.
func (l *links) take(name string) *entry {
	dir, last := split(name)
	d := l.find(dir, false)
	if dir == "/" {
		d = l.root
	}
	if d == nil {
		return nil
	}
	e := d.below[last]
	delete(d.below, last)
	return e
}

// put gives a name an entry, if there is one.
func (l *links) put(name string, e *entry) {
	if e == nil {
		return
	}
	*l.find(name, true) = *e
}

// devLinks are the links of /dev to descriptors.
var devLinks = map[string]string{
	"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
	"/dev/stderr": "/proc/self/fd/2",
}

// split takes the last part off an absolute name.
func split(name string) (dir, last string) {
	i := strings.LastIndexByte(name, '/')
	if i <= 0 {
		return "/", strings.TrimPrefix(name, "/")
	}
	return name[:i], name[i+1:]
}
