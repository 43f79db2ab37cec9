package replay

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"iotape/tree"
)

// names is the directory tree as the recording saw it at one moment, known in
// part: what a call proved to exist before anything in the trace made it goes into
// the skeleton.
type names struct {
	root *node
	// hint describes objects as they were after the recording, by path without the
	// leading slash. It decides only what the trace leaves open.
	hint  *tree.Manifest
	byIno map[inode]*object
	// initial are the objects that existed before the first event.
	initial []*object
	made    int // targets that were made up
}

type inode struct{ dev, ino uint64 }

// node is a name. Its object is nil while nothing exists there.
type node struct {
	name     string
	parent   *node
	children map[string]*node
	obj      *object
	seen     bool // something is known: obj, or that there is none
	listed   bool // a directory whose initial entries are all known
}

// object is a file, directory, …, with one or more names.
type object struct {
	typ     tree.Type // 0 while unknown
	target  string    // of a symbolic link
	length  int64     // of the target, in bytes; 0 if it was not seen
	guessed bool      // the target is made up
	// Set by the trace: what is seen of it now is not initial.
	modeSet, ownerSet, xattrsSet bool
	written                      int64 // end of what the trace wrote
	initial                      *tree.Entry
	paths                        []string // initial names
	id                           inode
	links                        uint32 // names that it was seen to have; 0 if that is not known
	enters                       bool   // may be executed, or entered if it is a directory
	changed                      bool   // by the trace: what is seen of it now is not its initial state
	content                      extents
	grown                        bool // content was cut or written: later sizes are not initial
}

func newNames(hint *tree.Manifest) *names {
	n := &names{root: &node{name: "/", seen: true}, hint: hint, byIno: map[inode]*object{}}
	n.root.obj = &object{typ: tree.Dir, initial: &tree.Entry{Path: ".", Type: tree.Dir}, paths: []string{"."}}
	return n
}

// path returns a node's place without the leading slash, "." for the root.
func (n *node) path() string {
	if n.parent == nil {
		return "."
	}
	var parts []string
	for ; n.parent != nil; n = n.parent {
		parts = append(parts, n.name)
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, "/")
}

// initialPath returns where a name that existed at the start was then: directories
// above it may have been renamed since.
func (n *node) initialPath() string {
	if p := n.parent; p != nil && p.obj != nil && len(p.obj.paths) > 0 && p.obj.paths[0] != "." {
		return p.obj.paths[0] + "/" + n.name
	}
	return n.path()
}

func (n *node) child(name string) *node {
	if c := n.children[name]; c != nil {
		return c
	}
	c := &node{name: name, parent: n}
	if n.children == nil {
		n.children = map[string]*node{}
	}
	n.children[name] = c
	// What the trace made has only what the trace put there; what was listed had
	// only what the list said.
	if n.listed || n.obj != nil && n.obj.initial == nil && n.obj.typ == tree.Dir {
		c.seen = true
	}
	return c
}

// maxLinks is the kernel's limit for one lookup (MAXSYMLINKS).
const maxLinks = 40

// lookup finds the node of an absolute path as the kernel would, following
// symbolic links in the middle and, if follow is set, at the end. Directories on
// the way that nothing was known of are taken to have existed. It returns nil if
// the path cannot be followed.
func (n *names) lookup(abs string, follow bool) *node {
	at, links := n.root, 0
	rest := strings.Split(strings.Trim(abs, "/"), "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if at.parent != nil {
				at = at.parent
			}
			continue
		}
		c := at.child(name)
		if !c.seen && (len(rest) > 0 || follow) {
			n.guess(c, len(rest) > 0)
		}
		if c.obj != nil && c.obj.typ == tree.Symlink && (len(rest) > 0 || follow) {
			if links++; links > maxLinks || !n.knowTarget(c) {
				return nil
			}
			target := strings.Split(c.obj.target, "/")
			if strings.HasPrefix(c.obj.target, "/") {
				at = n.root
			}
			rest = append(target, rest...)
			continue
		}
		if len(rest) > 0 && c.obj != nil && c.obj.typ == 0 {
			c.obj.typ = tree.Dir
		}
		if len(rest) > 0 && (c.obj == nil || c.obj.typ != tree.Dir) {
			return nil
		}
		at = c
	}
	return at
}

// guess decides on a name that a path goes through: a directory or, if the hint
// says so, a symbolic link. The last name of a path is only a guess when it is a
// link, because what the call did tells the rest.
func (n *names) guess(c *node, middle bool) {
	if n.hint != nil {
		if e := n.hint.Lookup(c.path()); e != nil && (e.Type == tree.Symlink || middle && e.Type == tree.Dir) {
			n.exist(c, e.Type)
			c.obj.target = e.Target
			return
		}
	}
	if middle {
		n.exist(c, tree.Dir)
	}
}

// knowTarget finds where a symbolic link leads that was only seen in a listing.
func (n *names) knowTarget(c *node) bool {
	if c.obj.target == "" && n.hint != nil {
		if e := n.hint.Lookup(c.path()); e != nil {
			c.obj.target = e.Target
		}
	}
	if o := c.obj; o.target == "" && o.initial != nil {
		// Somebody followed it: it led somewhere, and wherever that was will do.
		n.made++
		o.target = fmt.Sprintf("/.iotape/%0*d", int(min(max(o.length, 10), 255))-len("/.iotape/"), n.made)
		o.guessed = true
	}
	return c.obj.target != ""
}

// exist notes that a name of which nothing was known existed from the start.
func (n *names) exist(c *node, typ tree.Type) *object {
	if c.obj == nil {
		if c.seen {
			// The trace says that it did not exist, and now it does: somebody
			// outside made it. It is treated as made here.
			c.obj = &object{typ: typ, changed: true}
			return c.obj
		}
		c.seen = true
		c.obj = &object{typ: typ, initial: &tree.Entry{}}
		n.existAbove(c)
		c.obj.paths = []string{c.initialPath()}
		n.initial = append(n.initial, c.obj)
	}
	if c.obj.typ == 0 {
		c.obj.typ = typ
	}
	return c.obj
}

// existAbove makes the directories above an initial name initial as well.
func (n *names) existAbove(c *node) {
	for p := c.parent; p != nil && p.obj == nil && !p.seen; p = p.parent {
		n.exist(p, tree.Dir)
	}
}

// identify joins names of one object: the kernel gave them the same inode.
func (n *names) identify(c *node, id inode) {
	if id.ino == 0 || c.obj == nil || c.obj.id == id {
		return
	}
	o := c.obj
	if o.id.ino != 0 {
		return
	}
	o.id = id
	if first := n.byIno[id]; first != nil && first != o && o.initial != nil && first.initial != nil && o.typ != tree.Dir {
		first.paths, o.paths = append(first.paths, o.paths...), nil
		if first.typ == 0 {
			first.typ = o.typ
		}
		c.obj = first
		return
	}
	n.byIno[id] = o
}

// becomeLink notes that a name that was taken for the file itself is a symbolic
// link to it.
func (n *names) becomeLink(c *node, target string) {
	o := c.obj
	if o == nil || o.initial == nil || target == "" || c.parent == nil {
		return
	}
	at := c.initialPath()
	link := &object{typ: tree.Symlink, target: target, initial: &tree.Entry{}, paths: []string{at}}
	n.initial = append(n.initial, link)
	o.paths = slices.DeleteFunc(o.paths, func(p string) bool { return p == at })
	children := c.children
	c.obj, c.children, c.listed = link, nil, false
	n.settle(c, o, children)
}

// leadTo gives a symbolic link its target, in place of one that was made up.
func (n *names) leadTo(c *node, target string) {
	l := c.obj
	if target == "" || c.parent == nil {
		return
	}
	var was *node
	if l.guessed {
		was = n.lookup(l.target, false)
	}
	l.target, l.guessed = target, false
	if was == nil || was.obj == nil || was.obj.initial == nil {
		return
	}
	o, children, at := was.obj, was.children, was.initialPath()
	o.paths = slices.DeleteFunc(o.paths, func(p string) bool { return p == at })
	was.obj, was.seen, was.children = nil, false, nil
	n.settle(c, o, children)
}

// settle puts what is known of a link's target where that is, unless it is known
// by itself.
func (n *names) settle(c *node, o *object, children map[string]*node) {
	target := c.obj.target
	if !strings.HasPrefix(target, "/") {
		target = c.parent.path() + "/" + target
	}
	to := n.lookup(target, true)
	if to == nil || to.seen {
		return
	}
	to.obj, to.seen, to.children = o, true, children
	for _, k := range to.children {
		k.parent = to
	}
	n.existAbove(to)
	o.paths = append(o.paths, to.initialPath())
}

// fill puts something into a directory of which nothing is known but that it was
// not empty.
func (n *names) fill(c *node) {
	for _, k := range c.children {
		if k.obj != nil {
			return
		}
	}
	if c.obj != nil && c.obj.initial != nil && !c.listed {
		n.exist(c.child("unknown"), tree.File)
	}
}

// gone empties a name.
func (n *names) gone(c *node) {
	c.obj, c.seen, c.children, c.listed = nil, true, nil, false
}

// move takes everything below one name to another.
func (n *names) move(from, to *node) {
	to.obj, to.children, to.seen, to.listed = from.obj, from.children, true, from.listed
	for _, c := range to.children {
		c.parent = to
	}
	from.obj, from.children, from.seen, from.listed = nil, nil, true, false
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
		c := at.child(name)
		if i == len(parts)-1 {
			c.seen = true
		}
		at = c
	}
}

// current returns the present name of every object that has one, without the
// leading slash.
func (n *names) current() map[*object]string {
	m := map[*object]string{}
	n.each(func(p string, c *node) {
		if old, ok := m[c.obj]; !ok || p < old {
			m[c.obj] = p
		}
	})
	return m
}

// each calls f for every name that exists at present.
func (n *names) each(f func(path string, c *node)) {
	var walk func(*node, string)
	walk = func(at *node, prefix string) {
		for _, c := range at.children {
			if c.obj != nil {
				f(prefix+c.name, c)
			}
			walk(c, prefix+c.name+"/")
		}
	}
	walk(n.root, "")
}

// swap exchanges what two names hold.
func (n *names) swap(a, b *node) {
	a.obj, b.obj = b.obj, a.obj
	a.children, b.children = b.children, a.children
	a.listed, b.listed = b.listed, a.listed
	for _, p := range []*node{a, b} {
		p.seen = true
		for _, c := range p.children {
			c.parent = p
		}
	}
}

// virtual reports whether a path lies where the kernel makes up the files: replay
// does not repeat what happens there.
func virtual(abs string) bool {
	abs = path.Clean(abs)
	for _, dir := range [...]string{"/proc", "/sys", "/dev"} {
		if abs == dir || strings.HasPrefix(abs, dir+"/") {
			return !strings.HasPrefix(abs, "/dev/shm/") && abs != "/dev/shm"
		}
	}
	return false
}
