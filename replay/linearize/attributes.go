// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"hash/maphash"
	"syscall"

	"github.com/iotape/iotape/event"
)

// attribute is an extended attribute of a file. The value of its cell is absent, or says
// what the attribute's value is.
type attribute struct {
	file int32
	name uint64 // its hash
}

var attributeSeed = maphash.MakeSeed()

// permissions are the bits of a mode that chmod changes.
const permissions = 0o7777

// findAttribute is of calls on a file's mode or an extended attribute, of a descriptor or
// of a name.
func (st *Stage) findAttribute(ev *event.Event, s *footprint) bool {
	if s.file < 0 {
		return s.names[0] >= 0
	}
	f := &st.state.files[s.file]
	if s.does == event.EffectChmod {
		if f.mode < 0 {
			f.mode = st.state.newCell()
			st.state.more = true
		}
		s.attr, s.value = f.mode, int64(ev.Named("mode")&permissions)
		return true
	}
	name := ev.XattrName()
	if name == "" {
		return s.names[0] >= 0
	}
	key := attribute{s.file, maphash.String(attributeSeed, name)}
	c, ok := st.state.byAttr[key]
	if !ok {
		if len(st.state.byAttr) > maxKnown/8 {
			clear(st.state.byAttr)
		}
		c = st.state.newCell()
		st.state.byAttr[key] = c
	}
	s.attr = c
	if b := ev.XattrValue(); b != nil && len(b.Refs) == 0 && int64(len(b.Inline)) == b.Len &&
		(s.sets() || int64(len(b.Inline)) == ev.Ret) {
		s.value = int64(maphash.Bytes(attributeSeed, b.Inline)&(1<<55-1) | 1)
	}
	return true
}

// sets and removes report whether an extended attribute is given a value, or taken away.
func (s *footprint) sets() bool    { return s.does == event.EffectSetXattr }
func (s *footprint) removes() bool { return s.does == event.EffectRemoveXattr }

// changesMode reports whether the call is a chmod.
func (s *footprint) changesMode() bool { return s.does == event.EffectChmod }

// attribute explains a call on a file's mode or an extended attribute.
func (s *state) attribute(ev *event.Event, sub *footprint) bool {
	if sub.names[0] >= 0 {
		if ev.Errno == syscall.ENOENT {
			return s.missing(ev, sub)
		}
		if n := s.resolve(sub.names[0], sub.follow); ev.Errno == 0 && n >= 0 && !s.mustExist(n, kindUnknown) {
			return false
		}
	}
	if sub.attr < 0 {
		return true
	}
	const create, replace = 1, 2
	v := s.get(sub.attr)
	switch {
	case ev.Errno == 0 && sub.changesMode():
		s.set(sub.attr, sub.value)
	case ev.Errno == syscall.ENODATA:
		return s.mustEqual(sub.attr, absent, UnexplainedResult)
	case ev.Errno == syscall.EEXIST:
		return s.present(v)
	case ev.Errno != 0:
	case sub.sets():
		if ev.Named("flags")&create != 0 && !s.mustEqual(sub.attr, absent, UnexplainedResult) ||
			ev.Named("flags")&replace != 0 && !s.present(v) {
			return false
		}
		s.set(sub.attr, sub.value)
	case sub.removes():
		if !s.present(v) {
			return false
		}
		s.set(sub.attr, absent)
	case sub.value == unknown:
		return s.present(v)
	default:
		return s.mustEqual(sub.attr, sub.value, UnexplainedContent)
	}
	return true
}

// present reports whether an attribute with a value can be there.
func (s *state) present(v int64) bool {
	return v != absent || s.mode == believe || s.tolerates(UnexplainedResult)
}

// findAccess finds the permissions that an access(2) of the superuser asks: it may do all,
// but executes a file without execute permission only if it is a directory. The rights of
// other users depend on more than is modelled.
func (st *Stage) findAccess(ev *event.Event, s *footprint) {
	const execute = 1
	if s.does != event.EffectAccess || s.names[0] < 0 || ev.UID != 0 || ev.Named("mode")&execute == 0 {
		return
	}
	if s.file = st.state.names[s.names[0]].target; s.file >= 0 {
		s.attr = st.state.files[s.file].mode
	}
}

// executable reports whether the file of an access(2) has an execute permission.
func (s *state) executable(sub *footprint, want bool) bool {
	const anybody = 0o111
	if sub.attr < 0 {
		return true
	}
	v := s.get(sub.attr)
	if v == unknown || v&anybody != 0 == want || want && s.files[sub.file].kind.fits(kindDir) {
		return true
	}
	return s.mode == believe || s.tolerates(UnexplainedResult)
}

// modeMatches reports whether a file can have the permissions that stat reported.
func (s *state) modeMatches(sub *footprint) bool {
	if sub.file < 0 || sub.mode < 0 || s.files[sub.file].mode < 0 {
		return true
	}
	return s.mustEqual(s.files[sub.file].mode, sub.mode, UnexplainedMode)
}

// attributeAccess notes what a call on an attribute concerns.
func (t *accessCollector) attributeAccess(ev *event.Event, s *footprint) {
	h := accessRead
	if ev.Errno == 0 && (s.changesMode() || s.sets() || s.removes()) {
		h = accessWrite
	}
	t.add(s.attr, h)
	t.nameAccess(s.names[0], accessRead, s.follow, false)
}
