package settle

import (
	"iotape/event"
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

// keepTold drops what calls told of sizes that another call can have changed between their
// effect and their return. calls are one component's, in the tape's order.
func (s *state) keepTold(calls []*slot, early []int64) {
	for i, sl := range calls {
		if sl.told < 0 {
			continue
		}
		size := s.files[sl.subject.file].size
		for k := i - 1; k >= 0 && calls[k].exit > sl.ev.Enter && sl.told >= 0; k-- {
			s.overlapped(sl, calls[k], size)
		}
		for k := i + 1; k < len(calls) && early[k] < sl.ev.Exit && sl.told >= 0; k++ {
			s.overlapped(sl, calls[k], size)
		}
	}
}

func (s *state) overlapped(sl, other *slot, size int32) {
	if other.ev.Enter >= sl.ev.Exit {
		return
	}
	for _, t := range other.touches {
		if t.cell == size && (t.how == adds || t.how == changes) {
			sl.told = -1
		}
	}
}
