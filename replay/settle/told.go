package settle

import (
	"github.com/iotape/iotape/event"
)

// told returns the size that the capture found the call's file to have when it returned,
// -1 if it does not say.
func (s *subject) told(ev *event.Event) int64 {
	arg := 0
	switch s.class {
	case classOpen:
		arg = event.ResultArg
	case classRead, classWrite, classResize, classSeek:
	default:
		return -1
	}
	f := ev.FileArg(arg)
	if s.file < 0 || s.kind != kindOther || f == nil || !f.Known {
		return -1
	}
	return max(f.Size, -1)
}

// withTold returns the calls of a search, in the tape's order. What a call told of a size was
// so when it returned: if others may have changed it between its effect and its return, that
// is a look of its own behind the call.
func (r *search) withTold(s *state, calls []*slot) []*slot {
	r.list, r.looks = r.list[:0], r.looks[:0]
	for i, sl := range calls {
		r.list = append(r.list, sl)
		if sl.later = sl.told >= 0 && s.overlapped(calls, r.early, i); !sl.later {
			continue
		}
		r.looks = append(r.looks, slot{n: sl.n, exit: sl.exit, pos: sl.pos, told: -1, span: span{file: -1}, look: true})
		look := &r.looks[len(r.looks)-1]
		look.ev.Enter, look.ev.Exit, look.ev.TID = sl.ev.Enter, sl.ev.Exit, sl.ev.TID
		look.subject = subject{class: classFstat, file: sl.subject.file, size: sl.told, mode: -1, links: -1}
		r.list = append(r.list, nil) // r.looks may move
	}
	if len(r.looks) == 0 {
		return calls
	}
	n := 0
	for i := range r.list {
		if r.list[i] == nil {
			r.list[i] = &r.looks[n]
			n++
		}
	}
	return r.list
}

// overlapped reports whether another call can have changed the size of the i-th call's file
// between its effect and its return.
func (s *state) overlapped(calls []*slot, early []int64, i int) bool {
	sl := calls[i]
	size := s.files[sl.subject.file].size
	alters := func(other *slot) bool {
		if other.ev.Enter >= sl.ev.Exit {
			return false
		}
		for _, t := range other.touches {
			if t.cell == size && (t.how == adds || t.how == changes) {
				return true
			}
		}
		return false
	}
	for k := i - 1; k >= 0 && calls[k].exit > sl.ev.Enter; k-- {
		if alters(calls[k]) {
			return true
		}
	}
	for k := i + 1; k < len(calls) && early[k] < sl.ev.Exit; k++ {
		if alters(calls[k]) {
			return true
		}
	}
	return false
}
