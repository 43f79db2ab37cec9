// SPDX-License-Identifier: Apache-2.0

package order

import (
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// statsOrAccesses reads attributes.
func (o *Order) statsOrAccesses(ev *event.Event) {
	f, n := o.fileOrName(ev)
	if st, ok := effect.DecodeStat(ev, event.AMD64); ok && ev.OK() {
		if n != nil {
			f = n.isFile(o, o.devices.Inode(st))
		} else if f != nil {
			o.devices.Learn(st, f.id)
		}
	}
	if f == nil || !ev.OK() && !ofAttributes(ev.Errno) {
		return
	}
	f.access(o, attr, accessRead)
	if !ev.OK() {
		return
	}
	if ev.Effect() == event.EffectStat {
		f.access(o, size, accessRead)
		f.access(o, links, accessRead)
	}
}

// ofAttributes reports whether a call failed for the attributes of the file that it found:
// what they permit, or that one was not there.
func ofAttributes(e syscall.Errno) bool {
	switch e {
	case syscall.EACCES, syscall.EPERM, syscall.ENODATA, syscall.ERANGE:
		return true
	}
	return false
}

// setsAttributes is a change of attributes; of a directory's, with consequences for all
// that is in it.
func (o *Order) setsAttributes(ev *event.Event) {
	f, n := o.fileOrName(ev)
	if n == nil && (len(ev.Paths) == 0 || ev.Paths[0].Raw == "") {
		if p := o.openOf(ev.FileArg(0)); p != nil {
			n = p.dir
		}
	}
	if f != nil {
		f.access(o, attr, accessWrite)
	}
	if n != nil && len(n.kids) > 0 {
		n.what.access(o, accessWrite)
		n.below(o)
	}
}
