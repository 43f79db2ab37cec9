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
	if to == nil || to.seen {
		return
	}
	n.assign(to, o)
	n.existAbove(to)
	to.was = o
	if o.first == nil {
		o.first = to
	} else {
		d := o.detail()
		d.others = append(d.others, to)
	}
}
