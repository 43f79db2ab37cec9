// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// failed learns from a call that failed because of what was there.
func (in *inference) failed(ev *event.Event) {
	last := len(ev.Paths) - 1
	if last < 0 {
		return
	}
	switch ev.Errno {
	case syscall.ENOENT:
		// Directories on the way are not made for a name that was not there.
		in.names.absent(ev.Paths[last].Abs)
	case syscall.EEXIST:
		in.existed(ev, last, false, typeInTheWay(ev))
	case syscall.EISDIR:
		in.existed(ev, last, true, tree.Dir)
	case syscall.EINVAL:
		if ev.Effect() == event.EffectReadlink {
			in.existed(ev, 0, false, 0) // and is no link
		}
	case syscall.ENOTDIR:
		if c := in.nodeOf(ev, last, true); c != nil && !c.seen {
			in.names.exist(c, 0)
		}
	case syscall.EPERM:
		if ev.UID != 0 || makesName(ev) {
			return // perhaps of a directory on the way
		}
		in.existed(ev, 0, ev.FollowsLast(), 0)
	case syscall.ENODATA, syscall.ERANGE, syscall.ETXTBSY:
		in.existed(ev, 0, ev.FollowsLast(), 0)
	case syscall.ELOOP:
		// A link of which nothing else is known may as well lead to itself.
		if c := in.nodeOf(ev, last, false); c != nil && c.mayBeLink() {
			in.names.exist(c, tree.Symlink).detail().target = c.name
		}
	case syscall.ENOTEMPTY:
		// Of a rename, the directory that was to be replaced.
		if c := in.nodeOf(ev, last, false); c != nil {
			in.names.exist(c, tree.Dir)
			in.names.fill(c)
		}
	}
}

// typeInTheWay returns the type of what was in the way of a call that makes a name: any gives
// the same error, and a directory is in the way of mkdir nearly always.
func typeInTheWay(ev *event.Event) tree.Type {
	if ev.Effect() == event.EffectMkdir {
		return tree.Dir
	}
	return 0
}

// makesName reports whether a call may make its first name, which then need not have been there.
func makesName(ev *event.Event) bool {
	use, _ := ev.NameUse(0)
	return use == event.NameCreate || use == event.NameOpen && effect.OpenFlags(ev)&event.OpenCreat != 0
}

// existed notes that a path argument stood for something, of a type unless that is 0.
func (in *inference) existed(ev *event.Event, arg int, follow bool, typ tree.Type) {
	if c := in.nodeOf(ev, arg, follow); c != nil {
		in.names.exist(c, typ)
	}
}

// mayBeLink reports whether a name may have been a symbolic link from the start.
func (c *node) mayBeLink() bool {
	return !c.seen || c.obj != nil && c.obj.typ == 0 && c.obj.initial
}

// failedPair learns from a rename or link that failed. The kernel looks up the old
// name, and the directory of the new one, before it can find fault with the two
// together.
func (in *inference) failedPair(ev *event.Event) {
	typ := tree.Type(0)
	switch ev.Errno {
	case syscall.EEXIST:
	case syscall.EISDIR: // a file is not to replace a directory
		typ = tree.File
	case syscall.ENOTEMPTY: // nor a directory one that is in use
		typ = tree.Dir
	case syscall.EINVAL: // nor to move into itself; other reasons are the arguments'
		if len(ev.Paths) < 2 || !strings.HasPrefix(ev.Paths[1].Abs, ev.Paths[0].Abs+"/") {
			return
		}
		typ = tree.Dir
	default:
		in.failed(ev)
		return
	}
	if from := in.nodeOf(ev, 0, ev.FollowsLast()); from != nil {
		in.names.exist(from, typ)
	}
	if to := in.nodeOf(ev, 1, false); to != nil {
		in.names.existAbove(to)
	}
	in.failed(ev)
}
