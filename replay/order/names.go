// SPDX-License-Identifier: Apache-2.0

package order

import (
	"strings"
)

// name is a place in the tree of names, whether or not something is there.
type name struct {
	parent *name
	label  string
	kids   map[string]*name
	what   resource // what the name stands for
	list   resource // which names are in it
	target string   // of a symbolic link
	file   *file    // what it stands for; nil while unknown
}

// cached is what a path led to, as long as no directory or link was moved since.
type cached struct {
	leaf  *name
	links []*name // on the way
	at    uint64
}

// maxLinks is the kernel's limit for one lookup (MAXSYMLINKS).
const maxLinks = 40

// maxNames is how many names are remembered before those are dropped that no task
// has to wait for.
const maxNames = 1 << 17

// lookup returns the name that an absolute path stands for, following symbolic links
// that are known, the last one if follow is set. It is nil for paths that go round in
// circles. The links that were followed are added to links, unless it is nil.
func (o *Order) lookup(path string, follow bool, links *[]*name) *name {
	n, followed := &o.root, 0
	for len(path) > 0 {
		var label string
		label, path, _ = strings.Cut(path, "/")
		switch label {
		case "", ".":
			continue
		case "..":
			if n.parent != nil {
				n = n.parent
			}
			continue
		}
		k := n.kids[label]
		if k == nil {
			if n.kids == nil {
				n.kids = map[string]*name{}
			}
			k = &name{parent: n, label: strings.Clone(label)}
			n.kids[k.label] = k
			o.names++
		}
		if k.target != "" && (path != "" || follow) {
			if followed++; followed > maxLinks {
				return nil
			}
			if links != nil {
				*links = append(*links, k)
			}
			if k.target[0] == '/' {
				n = &o.root
			}
			if path == "" {
				path = k.target
			} else {
				path = k.target + "/" + path
			}
			continue
		}
		n = k
	}
	return n
}

// find is lookup for what a task names: the task waits for whatever last changed a
// directory on the way.
func (o *Order) find(path string, follow bool) *name {
	if path == "" || path[0] != '/' {
		return nil
	}
	key := path
	if follow {
		key += "/"
	}
	c, ok := o.byPath[key]
	if !ok || c.at != o.moved {
		if len(o.byPath) >= maxNames {
			clear(o.byPath)
		}
		c = cached{at: o.moved}
		if c.leaf = o.lookup(path, follow, &c.links); c.leaf == nil { // in circles
			for _, l := range c.links {
				l.what.access(o, accessRead)
			}
			return nil
		}
		o.byPath[key] = c
	}
	for _, l := range c.links {
		l.what.access(o, accessRead)
	}
	for n := c.leaf.parent; n != nil; n = n.parent {
		n.what.awaitChange(o)
	}
	return c.leaf
}

// below makes the task wait for every access to a name in a directory, however
// deep.
func (n *name) below(o *Order) {
	for _, k := range n.kids {
		k.what.await(o)
		k.list.await(o)
		k.below(o)
	}
}

// changed is a change of what a name stands for: paths through it are others now.
func (n *name) changed(o *Order) {
	n.what.access(o, accessWrite)
	n.below(o)
	if n.parent != nil {
		n.parent.list.access(o, accessCommute)
	}
}

// setFile is a write that made the name stand for another file.
func (n *name) setFile(o *Order, f *file) {
	n.changed(o)
	if n.parent != nil { // what is new has its group, its access list and its flags
		n.parent.fileOrNew().access(o, attr, accessRead)
	}
	n.file = f
	if len(n.kids) > 0 || n.target != "" {
		n.target = ""
		o.moved++
	}
	n.list = resource{cur: n.list.cur[:0], prev: n.list.prev[:0]}
	n.list.since(o.self)
}

// remove is a write after which the name stands for nothing.
func (n *name) remove(o *Order) {
	n.changed(o)
	n.file = nil
	if n.target != "" {
		n.target = ""
		o.moved++
	}
}

// move takes what one name stands for, and all below it, to another.
func (n *name) move(o *Order, to *name) {
	to.file, to.target, to.kids = n.file, n.target, n.kids
	n.file, n.target, n.kids = nil, "", nil
	for _, k := range to.kids {
		k.parent = to
	}
	to.list.since(o.self)
	o.moved++
}

// swap exchanges what two names stand for.
func (n *name) swap(o *Order, m *name) {
	n.file, m.file = m.file, n.file
	n.target, m.target = m.target, n.target
	n.kids, m.kids = m.kids, n.kids
	for _, p := range []*name{n, m} {
		for _, k := range p.kids {
			k.parent = p
		}
		p.list.since(o.self)
	}
	o.moved++
}

// within reports whether n is m or below it.
func (n *name) within(m *name) bool {
	for ; n != nil; n = n.parent {
		if n == m {
			return true
		}
	}
	return false
}

// forget drops names that no later task has to wait for.
func (o *Order) forget() {
	o.names = 0
	o.prune(&o.root)
	clear(o.byPath)
	o.moved++
	for id, f := range o.files {
		if f.done(o) && f.names == 0 {
			delete(o.files, id)
		}
	}
}

func (o *Order) prune(n *name) (empty bool) {
	for label, k := range n.kids {
		if o.prune(k) {
			delete(n.kids, label)
		}
	}
	if len(n.kids) == 0 && n.target == "" && n.what.done(o) && n.list.done(o) {
		if n.file != nil {
			n.file.names--
		}
		return n.parent != nil
	}
	o.names++
	return false
}
