// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// names is the directory tree as the recording saw it at one moment, known in
// part: what a call proved to exist before anything in the trace made it goes into
// the initial tree.
type names struct {
	root *node
	// hint describes objects as they were after the recording, by path without the
	// leading slash. It decides only what the trace leaves open.
	hint   *tree.Manifest
	made   int     // targets that were made up
	filled []*node // entries of fill

	nodes   arena[node]
	objects arena[object]
	dirs    uint32
	texts   texts
	byName  index[node]
	byIno   index[object]
}

// node is a name in a directory. Its object is nil while nothing exists there.
type node struct {
	name string
	in   *dir    // nil for the root
	next *node   // in the same directory
	obj  *object // now
	was  *object // before the first event
	seen bool    // something is known: obj, or that there is none
	// kernel says that the kernel makes up what is there (/proc, /sys, /dev).
	kernel bool
}

// dir is what is known of the names in a directory. It goes with the directory when
// that is renamed.
type dir struct {
	of     *object
	owner  *node // the directory's name at present
	first  *node
	id     uint32
	listed bool // all entries are known
	kernel bool
}

// object is a file, directory or other inode, with one or more names.
type object struct {
	id    effect.Inode
	below *dir     // of a directory
	first *node    // its initial name, of several the first; nil if it was made, or is not known to have one
	more  *details // nil for most

	// As they were before the first event, as far as known tells.
	size           int64
	mode, uid, gid uint32
	known          tree.Known
	links          uint32 // names that it was seen to have; 0 if that is not known

	typ     tree.Type // 0 while unknown
	initial bool      // existed before the first event
	enters  bool      // may be executed, or entered if it is a directory
	data    bool      // was read or written: it is no directory
	changed bool      // by the trace: what is seen of it now is not its initial state
	grown   bool      // content was cut or written: later sizes are not initial
	guessed bool      // the target is made up
	// Set by the trace: what is seen of it now is not initial.
	modeSet, ownerSet, xattrsSet, linksSet bool
}

// details is what is known of few objects only; most have none, which saves memory.
type details struct {
	target    string // of a symbolic link
	length    int64  // of the target, in bytes; 0 if it was not seen
	rdev      uint64
	written   int64  // end of what the trace wrote
	appended  int64  // bytes that the trace wrote behind an end that it does not say
	asked     uint32 // permissions with which an open would have made it
	perhaps   *node  // the name of a file that an open may have made, or found there
	xattrs    map[string][]byte
	others    []*node // further initial names
	content   extents
	entry     *tree.Entry // of a snapshot
	from, end int         // its pieces in the initial tree
}

// none are the details of objects that have none.
var none details

// detail returns an object's details for a change. See details for reading.
func (o *object) detail() *details {
	if o.more == nil {
		o.more = &details{}
	}
	return o.more
}

func (o *object) details() *details {
	if o.more == nil {
		return &none
	}
	return o.more
}

func newNames(hint *tree.Manifest) *names {
	n := &names{hint: hint}
	n.root = n.nodes.make()
	*n.root = node{seen: true}
	o := n.newObject(tree.Dir)
	o.initial = true
	n.root.was = o
	o.first = n.root
	n.assign(n.root, o)
	return n
}

func (n *names) newObject(typ tree.Type) *object {
	o := n.objects.make()
	o.typ = typ
	return o
}

// newFile returns a file of the trace's own.
func (n *names) newFile() *object {
	o := n.newObject(tree.File)
	o.changed, o.grown = true, true
	return o
}

// assign gives a name an object, nil for nothing.
func (n *names) assign(c *node, o *object) {
	if o == nil && c == n.root {
		return // whatever a tape says: it cannot be removed or renamed
	}
	c.obj, c.seen = o, true
	if o != nil && o.below != nil {
		o.below.owner = c
	}
}

// path returns a node's place without the leading slash, "." for the root.
func (c *node) path() string {
	if c.in == nil {
		return "."
	}
	return join(c, func(d *dir) *node { return d.owner })
}

// initialPath returns where a name that existed at the start was then: directories
// above it may have been renamed since.
func (c *node) initialPath() string {
	if c.in == nil {
		return "."
	}
	return join(c, func(d *dir) *node { return d.of.first })
}

// deepest bounds the directories above a name: a hostile tape could lead in a circle.
const deepest = 4096

// join concatenates the names from the root to a node; above returns the name of a
// directory. The result is "" if one of the directories has no name.
func join(c *node, above func(*dir) *node) string {
	var parts []string
	for ; c != nil && c.in != nil; c = above(c.in) {
		if parts = append(parts, c.name); len(parts) > deepest {
			return ""
		}
	}
	if c == nil {
		return ""
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

func (d *dir) hash(name string) uint64 {
	return maphash.String(seed, name) + uint64(d.id)*0x9e3779b97f4a7c15
}

// findChild returns a name of a directory, nil if nothing is known of it.
func (n *names) findChild(d *dir, name string) *node {
	if d == nil {
		return nil
	}
	if s := n.byName.slot(d.hash(name), func(k *node) bool { return k.in == d && k.name == name }); s != nil {
		return *s
	}
	return nil
}

// below returns what is known of the names in an object.
func (n *names) below(c *node) *dir {
	o := c.obj
	if o.below == nil {
		n.dirs++
		o.below = &dir{of: o, owner: c, id: n.dirs, kernel: c.kernel}
	}
	return o.below
}

// child returns a name in a node that has an object.
func (n *names) child(c *node, name string) *node {
	d := n.below(c)
	if k := n.findChild(d, name); k != nil {
		return k
	}
	k := n.nodes.make()
	*k = node{
		name: n.texts.intern(name), in: d, next: d.first, kernel: d.kernel || c.in == nil && effect.Virtual("/"+name),
	}
	if d.kernel && c.in != nil && c.in.owner == n.root {
		k.kernel = effect.Virtual("/" + c.name + "/" + name) // but for /dev/shm
	}
	d.first = k
	// A directory that the trace made holds only what the trace put there; one that
	// was listed held only what the listing had.
	k.seen = d.listed || !d.of.initial && d.of.typ == tree.Dir
	n.byName.insert(k, func(k *node) uint64 { return k.in.hash(k.name) }, func(*node) bool { return false })
	return k
}

// maxLinks is the kernel's limit for one lookup (MAXSYMLINKS).
const maxLinks = 40

// lookup finds the node of an absolute path as the kernel would, following
// symbolic links in the middle and, if follow is set, at the end. Directories on
// the way that nothing was known of are taken to have existed. It returns nil if
// the path cannot be followed.
func (n *names) lookup(abs string, follow bool) *node {
	at, links := n.root, 0
	for rest := abs; rest != ""; {
		name, behind, _ := strings.Cut(rest, "/")
		rest = behind
		switch name {
		case "", ".":
			continue
		case "..":
			if at.in != nil {
				if at = at.in.owner; at == nil {
					return nil
				}
			}
			continue
		}
		if at.obj == nil {
			return nil // what ".." leads to is gone
		}
		more := strings.Trim(rest, "/") != ""
		c := n.child(at, name)
		if !c.seen && (more || follow) {
			n.guess(c, more)
		}
		switch {
		case (more || follow) && c.obj != nil && c.obj.typ == tree.Symlink:
			if links++; links > maxLinks || !n.knowTarget(c) {
				return nil
			}
			target := c.obj.details().target
			if strings.HasPrefix(target, "/") {
				at = n.root
			}
			rest = target + "/" + rest
		case more && !c.enterable():
			return nil
		default:
			at = c
		}
	}
	return at
}

// enterable reports whether a name is a directory, as far as is known.
func (c *node) enterable() bool {
	if c.obj == nil {
		return false
	}
	if c.obj.typ == 0 {
		c.obj.typ = tree.Dir // because a path went through it
	}
	return c.obj.typ == tree.Dir
}

// find returns the node of a path without the leading slash, following nothing, if
// there is something known of it.
func (n *names) find(p string) *node {
	at := n.root
	if p == "." {
		return at
	}
	for name := range strings.SplitSeq(p, "/") {
		if at.obj == nil {
			return nil
		}
		if at = n.findChild(at.obj.below, name); at == nil {
			return nil
		}
	}
	return at
}

// guess decides what a name is that a path goes through: a directory or, if the hint
// says so, a symbolic link. The last name of a path is guessed only to be a link:
// the call's result says the rest.
func (n *names) guess(c *node, middle bool) {
	if n.hint != nil {
		if e := n.hint.Lookup(c.path()); e != nil && (e.Type == tree.Symlink || middle && e.Type == tree.Dir) {
			n.exist(c, e.Type)
			if e.Type == tree.Symlink {
				c.obj.detail().target = e.Target
			}
			return
		}
	}
	if middle {
		n.exist(c, tree.Dir)
	}
}

// exist notes that a name of which nothing was known existed from the start.
func (n *names) exist(c *node, typ tree.Type) *object {
	if c.obj == nil {
		o := n.newObject(typ)
		if c.seen {
			// The trace says that it did not exist, and now it does: a process
			// outside the trace made it. It is treated as made here.
			o.changed = true
			n.assign(c, o)
			return o
		}
		o.initial, o.first, c.was = true, c, o
		n.assign(c, o)
		n.existAbove(c)
	}
	if c.obj.typ == 0 {
		c.obj.typ = typ
	}
	return c.obj
}

// existAbove makes the directories above an initial name initial as well.
func (n *names) existAbove(c *node) {
	for c.in != nil && c.in.owner != nil {
		if c = c.in.owner; c.obj != nil || c.seen {
			return
		}
		n.exist(c, tree.Dir)
	}
}

// identify joins names of one object: the kernel gave them the same inode.
func (n *names) identify(c *node, id effect.Inode) {
	o := c.obj
	if id.Ino == 0 || o == nil || o.id == id || o.id.Ino != 0 {
		return
	}
	o.id = id
	if s := n.byIno.slot(hashInode(id), func(k *object) bool { return k.id == id }); s != nil && *s != nil {
		if first := *s; first != o && o.initial && first.initial && o.typ != tree.Dir && first.typ != tree.Dir {
			first.addNames(o)
			if first.typ == 0 {
				first.typ = o.typ
			}
			c.obj = first
			return
		}
	}
	n.indexInode(o)
}

// indexInode makes an object the one that its inode number stands for.
func (n *names) indexInode(o *object) {
	n.byIno.insert(o, func(o *object) uint64 { return hashInode(o.id) }, func(k *object) bool { return k.id == o.id })
}

func hashInode(id effect.Inode) uint64 { return maphash.Comparable(seed, id) }

// addNames moves the initial names of another object to this one.
func (o *object) addNames(from *object) {
	all := from.details().others
	if from.first != nil {
		all = append([]*node{from.first}, all...)
	}
	for _, c := range all {
		o.addName(c)
	}
	from.first = nil
	if from.more != nil {
		from.more.others = nil
	}
}

// dropName takes an initial name from an object.
func (o *object) dropName(c *node) {
	c.was = nil
	d := o.details()
	if o.first != c {
		d.others = slices.DeleteFunc(d.others, func(k *node) bool { return k == c })
	} else if o.first = nil; len(d.others) > 0 {
		o.first, d.others = d.others[0], d.others[1:]
	}
}

// fill puts an entry into a directory of which nothing is known but that it was
// not empty.
func (n *names) fill(c *node) {
	o := c.obj
	if o == nil || !o.initial {
		return
	}
	d := n.below(c)
	for k := d.first; k != nil; k = k.next {
		if k.obj != nil {
			return
		}
	}
	if !d.listed {
		k := n.child(c, "unknown")
		n.exist(k, tree.File)
		n.filled = append(n.filled, k)
	}
}

// emptyFilled takes the entries of fill from directories of which the trace named another entry later.
func (n *names) emptyFilled() {
	for _, c := range n.filled {
		for k := c.in.first; k != nil && c.was != nil; k = k.next {
			if k != c && k.was != nil {
				if c.obj == c.was {
					n.unlink(c)
				}
				c.was.dropName(c)
			}
		}
	}
}

// unlink empties a name.
func (n *names) unlink(c *node) {
	if o := c.obj; o != nil && o.below != nil && o.below.owner == c {
		o.below.owner = nil
	}
	n.assign(c, nil)
}

// move takes everything below one name to another, which is not below it.
func (n *names) move(from, to *node) {
	if to.inside(from) {
		return
	}
	o := from.obj
	n.unlink(to)
	n.assign(from, nil)
	n.assign(to, o)
}

// swap exchanges what two names hold.
func (n *names) swap(a, b *node) {
	if a.inside(b) || b.inside(a) {
		return
	}
	x, y := a.obj, b.obj
	n.assign(a, y)
	n.assign(b, x)
}

// inside reports whether a node lies below another.
func (c *node) inside(up *node) bool {
	for depth := 0; c.in != nil && c.in.owner != nil; depth++ {
		if c = c.in.owner; c == up || depth > deepest {
			return true
		}
	}
	return false
}

// absent notes that the last name of a path is not there, if all before it is
// known; otherwise any of them may be what is missing. What was there before it is a
// directory, or the call would have failed for that (ENOTDIR).
func (n *names) absent(abs string) {
	at := n.root
	parts := strings.Split(strings.Trim(path.Clean(abs), "/"), "/")
	for i, name := range parts {
		if at.obj != nil && at.obj.typ == 0 {
			at.obj.typ = tree.Dir
		}
		if at.obj == nil || at.obj.typ != tree.Dir {
			return
		}
		c := n.child(at, name)
		if i == len(parts)-1 {
			c.seen = true
		}
		at = c
	}
}
