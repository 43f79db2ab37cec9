// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"github.com/iotape/iotape/event"
)

// Two calls find a file by its name and do something to it a moment later, when the name
// may stand for another file, or for none: an open with O_TRUNC empties what it opened
// (do_open, after the lookup), and link makes the new name (vfs_link, with the directory
// locked). Where a search leaves something unexplained, it is made again with these two
// split: each gets an additional slot for its lookup, which comes before it.
//
// An open with two places is returned as an open without O_TRUNC and an ftruncate, so that a
// replay does each in its place. A link is returned where it made its name, with another
// name of the file that it found if the old name stands for another file by then.

// inSteps reports whether a call may have found its file before others changed what it did
// the rest on.
func (s *state) inSteps(sl *slot) bool {
	ev, sub := &sl.ev, &sl.footprint
	if !ev.OK() || ev.Op != sub.op { // of a request nothing is changed
		return false
	}
	switch sub.class {
	case classOpen:
		return ev.Spec().Arg("flags") >= 0 && sub.file >= 0 &&
			s.raced(s.files[sub.file].size) && truncates(ev, sub)
	case classLink:
		return s.raced(s.names[sub.names[0]].value)
	}
	return false
}

// truncates reports whether an open emptied a file that was there, and that an ftruncate
// could empty as well.
func truncates(ev *event.Event, sub *footprint) bool {
	const accessMode, readOnly = 3, 0
	f := ev.FileArg(event.ResultArg)
	return sub.kind == kindOther && sub.flags&event.OpenTrunc != 0 && sub.flags&event.OpenExcl == 0 &&
		sub.flags&accessMode != readOnly && f.Flags&event.OpenCreat == 0
}

// splitSteps returns the calls of a search with the lookups of those that take effect in steps.
func (r *search) splitSteps(s *state, calls []*slot) []*slot {
	r.parts = r.parts[:0]
	for _, sl := range calls {
		if !s.inSteps(sl) {
			r.parts = append(r.parts, sl)
			continue
		}
		first := &slot{
			n: sl.n, ev: sl.ev, exit: sl.exit, pos: sl.pos, observed: -1, span: span{file: -1}, footprint: sl.footprint,
			tracked: true, of: sl, found: unknown,
		}
		if sl.footprint.class == classOpen {
			first.footprint.flags &^= event.OpenTrunc
		} else {
			first.footprint.class = classFind
			c := s.newCell()
			s.cells[c].racing = s.oldest // it counts
			first.footprint.found, sl.footprint.found = c, c
		}
		r.parts = append(r.parts, first, sl)
		sl.footprint.secondStep = true
	}
	return r.parts
}

// finalOrder returns the order that a search found: without observations, and with the
// lookups that were split from their calls and stay so.
func (r *search) finalOrder(s *state) []*slot {
	r.order = r.order[:0]
	for i, st := range r.path {
		sl := r.calls[st.call]
		switch {
		case sl.observation:
		case sl.of != nil:
			call := sl.of
			call.unexplained |= sl.unexplained
			call.found = sl.found
			call.footprint.secondStep, call.footprint.found = false, -1
			if call.footprint.class == classLink {
				break
			}
			if r.between(i, call, s.files[call.footprint.file].size) {
				r.order = append(r.order, sl)
				break
			}
			r.order = append(r.order, call)
			call.placed = false // so that it is appended once only
		case sl.placed:
			r.order = append(r.order, sl)
		}
	}
	return r.order
}

// between reports whether calls that access a file's size have places between a lookup, the
// i-th of a path, and its call.
func (r *search) between(i int, call *slot, size int32) bool {
	for _, st := range r.path[i+1:] {
		sl := r.calls[st.call]
		if sl == call {
			return false
		}
		for _, t := range sl.accesses {
			if t.cell == size {
				return true
			}
		}
	}
	return false
}

// lookUpSource looks up the file that a link gives a name.
func (s *state) lookUpSource(_ *event.Event, sub *footprint) bool {
	from, v := s.resolve(sub.names[0], sub.follow), int64(someFile)
	if from >= 0 {
		if !s.mustExist(from, kindNotDir) {
			return false
		}
		if at := s.peek(s.names[from].value); exists(at) {
			v = at
		}
	}
	s.set(sub.found, v)
	return true
}

// resolveLinkName lets a link that is given its place go by another name of the file that it found,
// if its old name is not one any more. It returns false if no such name is known.
func (st *Stage) resolveLinkName(sl *slot) bool {
	s, v := st.state, sl.found
	from := s.resolve(sl.footprint.names[0], sl.footprint.follow)
	if !identified(v) || from < 0 {
		return true
	}
	if is := s.get(s.names[from].value); is != absent && !differ(is, v) {
		return true
	}
	for n := range s.names {
		if same(s.get(s.names[n].value), v) {
			sl.footprint.names[0], sl.footprint.follow = int32(n), false
			p := &sl.ev.Paths[0]
			p.Raw, p.Abs = s.names[n].path, s.names[n].path
			return true
		}
	}
	return false
}

// emitLookup returns an open that has a place before its truncation, and leaves the
// ftruncate in its slot.
func (st *Stage) emitLookup(first *slot, ev *event.Event) {
	sl := first.of
	if !st.apply(&first.ev, &first.footprint, strict) {
		st.apply(&first.ev, &first.footprint, believe)
	}
	first.emitted = true
	st.unexplained = sl.unexplained
	*ev, sl.ev = sl.ev, *ev
	rest := &sl.ev
	splitOpen(ev, rest, st.arch)
	if st.found != nil {
		st.found.add(ev.Seq, st.unexplained, partOpen, "")
	}
	sl.tracked = sl.footprint.classify(rest) && st.findFootprint(rest, &sl.footprint)
	sl.span = sl.footprint.spanOf(rest)
	st.state.findAccesses(sl)
}

// splitOpen makes of an open that emptied its file one that did not, and of rest, whose memory it reuses, an ftruncate
// that does.
func splitOpen(ev, rest *event.Event, arch event.Arch) {
	f := ev.FileArg(event.ResultArg)
	files := append(rest.Files[:0], *f)
	files[0].Arg = 0
	*rest = event.Event{
		Seq: ev.Seq, Kind: event.Call, Op: event.OpFtruncate, NR: uint32(event.Number(arch, event.OpFtruncate)),
		Host: ev.Host, PID: ev.PID, TID: ev.TID, PPID: ev.PPID, PGID: ev.PGID, SID: ev.SID, UID: ev.UID, GID: ev.GID,
		NSPID: ev.NSPID,
		NSTID: ev.NSTID, Comm: ev.Comm,
		Enter: ev.Enter, Exit: ev.Exit, CPU: ev.CPU, Args: [event.MaxArgs]uint64{uint64(f.FD)},
		Files: files, Count: -1, Flags: event.Synthetic,
	}
	f.Size = -1 // it was recorded after the truncation
	ev.Args[ev.Spec().Arg("flags")] &^= event.OpenTrunc
}
