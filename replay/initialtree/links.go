// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"fmt"
	"strings"

	"github.com/iotape/iotape/tree"
)

// knowTarget finds the target of a symbolic link that only a listing showed.
func (n *names) knowTarget(c *node) bool {
	d := c.obj.detail()
	if d.target == "" && n.hint != nil {
		if e := n.hint.Lookup(c.path()); e != nil {
			d.target = e.Target
		}
	}
	if d.target == "" && c.obj.initial {
		// A call followed it, so it had a target; any target gives the same results.
		n.made++
		d.target = fmt.Sprintf("/.iotape/%0*d", int(min(max(d.length, 10), 255))-len("/.iotape/"), n.made)
		c.obj.guessed = true
	}
	return d.target != ""
}

// becomeLink notes that a name that was taken for the file itself is a symbolic
// link to it.
func (n *names) becomeLink(c *node, target string) {
	o := c.obj
	if o == nil || !o.initial || target == "" || c.in == nil {
		return
	}
	o.dropName(c)
	link := n.newObject(tree.Symlink)
	link.initial, link.first, c.was = true, c, link
	link.detail().target = target
	n.assign(c, link)
	n.moveToTarget(c, o)
}

// turnsOutLink notes that a name that was taken for a directory is a symbolic link, whose target the trace does not
// say. length is that of the target in bytes, 0 if that is not known either.
func (n *names) turnsOutLink(c *node, length int64) {
	o := c.obj
	if o == nil || c.was != o || o.changed || o.typ != tree.Dir && !o.enters || c.in == nil {
		return
	}
	n.becomeLink(c, n.probableTarget(c, length))
	if c.obj != o {
		c.obj.guessed, c.obj.detail().length = true, length
	}
}

// probableTarget makes a target up: what has the same name in a directory beside the link, as usr/lib for /lib, if the
// length allows it.
func (n *names) probableTarget(c *node, length int64) string {
	probable := ""
	for k := c.in.first; k != nil; k = k.next {
		o := k.obj
		if k == c || o == nil || !o.initial || o.typ != tree.Dir ||
			length > 0 && int64(len(k.name)+1+len(c.name)) != length {
			continue
		}
		if there := n.findChild(o.below, c.name); there != nil && there.obj != nil {
			return k.name + "/" + c.name
		}
		if length > 0 {
			probable = k.name + "/" + c.name
		}
	}
	if probable == "" {
		probable = strings.Repeat("?", int(min(max(length, 1), 255)))
	}
	return probable
}

// leadTo gives a symbolic link its target, in place of one that was made up.
func (n *names) leadTo(c *node, target string) {
	l := c.obj
	if target == "" || c.in == nil {
		return
	}
	var was *node
	if l.guessed {
		was = n.lookup(l.details().target, false)
	}
	l.detail().target, l.guessed = target, false
	if was == nil || was.obj == nil || !was.obj.initial {
		return
	}
	o := was.obj
	o.dropName(was)
	was.obj, was.seen = nil, false
	n.moveToTarget(c, o)
}

// moveToTarget assigns what is known of a link's target to the name that the link
// leads to, unless something is known of that name already.
func (n *names) moveToTarget(c *node, o *object) {
	target := c.obj.details().target
	if !strings.HasPrefix(target, "/") {
		target = c.in.owner.path() + "/" + target
	}
	to := n.lookup(target, true)
	if to != nil && to.obj != nil && o.enters && !to.obj.changed {
		to.obj.enters = true
	}
	switch {
	case to == nil:
	case !to.seen:
		n.assign(to, o)
		n.existAbove(to)
		o.addName(to)
	case to.was == to.obj && to.obj != nil && to.obj != o:
		n.takeIn(to, o, 0)
	}
}

// addName gives an object an initial name.
func (o *object) addName(c *node) {
	c.was = o
	if o.first == nil {
		o.first = c
	} else {
		d := o.detail()
		d.others = append(d.others, c)
	}
}

// takeIn gives a directory the entries of another, which is the same one, as far as nothing is known of these names.
func (n *names) takeIn(to *node, from *object, depth int) {
	if from.below == nil || to.obj.typ != tree.Dir || depth > deepest {
		return
	}
	for k := from.below.first; k != nil; k = k.next {
		o := k.obj
		if o == nil || k.was != o {
			continue
		}
		switch t := n.child(to, k.name); {
		case !t.seen:
			o.dropName(k)
			n.assign(t, o)
			o.addName(t)
		case t.obj != nil && t.was == t.obj && t.obj != o:
			n.takeIn(t, o, depth+1)
		}
	}
}
