// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/tree"
)

// attributes notes mode and owner that were seen before the trace changed them.
func (o *object) attributes(mode, uid, gid uint32) {
	o.permissions(mode)
	if o.known&tree.KnownOwner == 0 && !o.ownerSet {
		o.uid, o.gid, o.known = uid, gid, o.known|tree.KnownOwner
	}
}

// permissions notes the mode that was seen before the trace changed it.
func (o *object) permissions(mode uint32) {
	if o.known&tree.KnownMode == 0 && !o.modeSet {
		o.mode, o.known = mode&0o7777, o.known|tree.KnownMode
	}
}

// hadSize notes the size of a file that the trace had not changed, but for what it appended.
func (o *object) hadSize(size int64) {
	size -= o.details().appended
	if size >= 0 && !o.grown && o.typ == tree.File && o.initial && o.known&tree.KnownSize == 0 {
		o.size, o.known = size, o.known|tree.KnownSize
	}
}

// xattrCall learns the value of an extended attribute.
func (in *inference) xattrCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	o, name, value := in.object(ev), ev.XattrName(), ev.XattrValue()
	if o == nil || !o.initial || o.changed || o.xattrsSet || name == "" || value == nil || o.details().entry != nil {
		return
	}
	data, err := in.result.tape.Content(value, nil)
	if err != nil {
		return
	}
	d := o.detail()
	if d.xattrs == nil {
		d.xattrs = map[string][]byte{}
	}
	d.xattrs[name] = data
	o.known |= tree.KnownXattrs
}

// touched learns that the name existed; times are not compared.
func (in *inference) touched(ev *event.Event) { in.changedObject(ev) }

// changedObject returns the object of a call that changes an attribute, nil if it failed.
func (in *inference) changedObject(ev *event.Event) *object {
	if !ev.OK() {
		in.failed(ev)
		return nil
	}
	return in.object(ev)
}

// After these calls the mode, the owner or the extended attributes are not initial.

func (in *inference) chmodCall(ev *event.Event) {
	if o := in.changedObject(ev); o != nil {
		o.modeSet = true
	}
}

func (in *inference) chownCall(ev *event.Event) {
	if o := in.changedObject(ev); o != nil {
		o.ownerSet = true
	}
}

func (in *inference) setxattrCall(ev *event.Event) {
	in.cutNames = in.cutNames || ev.OK() && !content.TextKnown(ev)
	if o := in.changedObject(ev); o != nil {
		o.xattrsSet = true
	}
}
