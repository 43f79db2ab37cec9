// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// failed explains an error by what the names stood for. Errors with other reasons prove
// nothing.
func (s *state) failed(ev *event.Event, sub *footprint) bool {
	n := sub.names[0]
	switch ev.Errno {
	case syscall.ENOENT:
		return s.missing(ev, sub)
	case syscall.EEXIST, syscall.ENOTEMPTY:
		return s.inTheWay(ev, sub)
	case syscall.EACCES:
		return s.executable(sub, false)
	case syscall.EISDIR:
		return s.isDirectory(sub)
	case syscall.ENOTDIR:
		// Or something on the way is none.
		if v := s.get(s.names[n].value); sub.class == classUnlink && exists(v) {
			return s.mustExist(n, kindNotDir)
		}
	case syscall.EINVAL:
		if sub.class == classReadlink {
			if v := s.get(s.names[n].value); kindOf(v) == kindLink {
				return s.mode == believe || s.tolerates(UnexplainedResult)
			}
			return s.mustExist(n, kindUnknown)
		}
	case syscall.ELOOP:
		switch {
		case sub.class == classOpen && sub.flags&effect.ONoFollow != 0:
			return s.mustExist(n, kindLink)
		case sub.follow:
			return s.circular(n)
		}
	}
	return true
}

// inTheWay explains EEXIST and ENOTEMPTY.
func (s *state) inTheWay(ev *event.Event, sub *footprint) bool {
	n, to := sub.names[0], sub.names[1]
	switch sub.class {
	case classUnlink:
		return s.mustExist(n, kindDir) && s.mustBeEmpty(n, false)
	case classOpen, classMake:
		return s.mustExist(n, kindUnknown)
	case classLink:
		return s.mustExist(n, kindUnknown) && s.mustExist(to, kindUnknown)
	case classRename:
		if ev.Errno == syscall.EEXIST && ev.SparesTarget() {
			return s.mustExist(n, kindUnknown) && s.mustExist(to, kindUnknown)
		}
		return s.mustExist(n, kindDir) && s.mustExist(to, kindDir) && s.mustBeEmpty(to, false)
	}
	return true
}

// isDirectory explains EISDIR.
func (s *state) isDirectory(sub *footprint) bool {
	n := sub.names[0]
	switch sub.class {
	case classUnlink:
		return s.mustExist(n, kindDir)
	case classRename:
		return s.mustExist(n, kindNotDir) && s.mustExist(sub.names[1], kindDir)
	case classOpen:
		r := s.resolve(n, sub.follow)
		return r < 0 || s.mustExist(r, kindDir)
	}
	return true
}

// missing explains ENOENT: a name that is to be found is not there, or the directory
// that one is to be made in.
func (s *state) missing(ev *event.Event, sub *footprint) bool {
	switch sub.class {
	case classMake:
		return s.parentMustBeAbsent(sub.names[0])
	case classOpen:
		n := s.resolve(sub.names[0], sub.follow)
		if n < 0 {
			return true
		}
		if sub.flags&event.OpenCreat != 0 {
			return s.parentMustBeAbsent(n)
		}
		return s.mustBeAbsent(n)
	case classLink, classRename:
		from, to := s.resolve(sub.names[0], sub.follow), sub.names[1]
		if from < 0 {
			return true
		}
		if v := s.peek(s.names[from].value); !exists(v) {
			return s.mustBeAbsent(from)
		}
		if ev.Exchanges() {
			return s.mustBeAbsent(to)
		}
		return s.parentMustBeAbsent(to)
	}
	n := s.resolve(sub.names[0], sub.follow)
	return n < 0 || s.mustBeAbsent(n)
}

// parentMustBeAbsent reports whether a name's directory can be missing.
func (s *state) parentMustBeAbsent(n int32) bool {
	p := s.names[n].parent
	if p < 0 || s.participates(s.names[p].value) {
		return p < 0 || s.mustBeAbsent(p)
	}
	return !exists(s.peek(s.names[p].value)) || s.tolerates(UnexplainedResult)
}
