package replay

import (
	"iotape/event"
	"iotape/tree"
)

// attributes notes mode and owner that were seen before the trace changed them.
func (in *inference) attributes(o *object, mode, uid, gid uint32) {
	e := o.initial
	if e.Known&tree.KnownMode == 0 && !o.modeSet {
		e.Mode, e.Known = mode&0o7777, e.Known|tree.KnownMode
	}
	if e.Known&tree.KnownOwner == 0 && !o.ownerSet {
		e.UID, e.GID, e.Known = uid, gid, e.Known|tree.KnownOwner
	}
}

// xattrCall learns the value of an extended attribute.
func (in *inference) xattrCall(ev *event.Event) {
	if !ev.OK() {
		in.failed(ev)
		return
	}
	o, name, value := in.object(ev), ev.BufArg(1), ev.BufArg(2)
	if o == nil || o.initial == nil || o.changed || o.xattrsSet || name == nil || value == nil {
		return
	}
	data, err := in.sk.tape.Content(value, nil)
	if err != nil {
		return
	}
	if o.initial.Xattrs == nil {
		o.initial.Xattrs = map[string][]byte{}
	}
	o.initial.Xattrs[cstring(name.Inline)] = data
	o.initial.Known |= tree.KnownXattrs
}

// touched: times are not compared, so nothing comes of a change but the name.
func (in *inference) touched(ev *event.Event) { in.subject(ev) }

// subject returns the object of a call that changes an attribute, nil if it failed.
func (in *inference) subject(ev *event.Event) *object {
	if !ev.OK() {
		in.failed(ev)
		return nil
	}
	return in.object(ev)
}

// From now on the mode, the owner, the extended attributes are the trace's.

func (in *inference) chmodCall(ev *event.Event) {
	if o := in.subject(ev); o != nil {
		o.modeSet = true
	}
}

func (in *inference) chownCall(ev *event.Event) {
	if o := in.subject(ev); o != nil {
		o.ownerSet = true
	}
}

func (in *inference) setxattrCall(ev *event.Event) {
	if o := in.subject(ev); o != nil {
		o.xattrsSet = true
	}
}
