// SPDX-License-Identifier: Apache-2.0

package linearize

import "github.com/iotape/iotape/event"

// read explains how much was read, and where.
func (s *state) read(ev *event.Event, sub *footprint) bool {
	if ev.Errno != 0 || sub.off < 0 {
		return true
	}
	end, size := sub.off+ev.Ret, s.files[sub.file].size
	switch {
	case ev.Ret == 0 && ev.Count == 0:
	case ev.Ret == 0:
		if !s.atMost(size, sub.off, UnexplainedResult) {
			return false
		}
	case ev.Count > ev.Ret:
		if !s.mustEqual(size, end, UnexplainedResult) {
			return false
		}
	default:
		if !s.atLeast(size, end, UnexplainedResult) {
			return false
		}
	}
	return s.advance(sub.pos, sub.off, end)
}

// advance moves a position.
func (s *state) advance(pos int32, from, to int64) bool {
	if pos < 0 {
		return true
	}
	if !s.mustEqual(pos, from, UnexplainedContent) {
		return false
	}
	s.set(pos, to)
	return true
}

// write explains where an append went, and extends the file.
func (s *state) write(ev *event.Event, sub *footprint) bool {
	if ev.Errno != 0 || ev.Ret <= 0 || sub.op == event.OpMmapPwrite { // which changes no size
		return true
	}
	size := s.files[sub.file].size
	if ev.Appends() {
		if sub.off < 0 {
			if v := s.get(size); v != unknown {
				s.set(size, v+ev.Ret)
			}
			return true
		}
		if !s.mustEqual(size, sub.off, UnexplainedContent) {
			return false
		}
		if sub.pos >= 0 {
			s.set(sub.pos, sub.off+ev.Ret)
		}
		s.set(size, sub.off+ev.Ret)
		return true
	}
	if sub.off < 0 {
		return true
	}
	s.extend(size, sub.off+ev.Ret)
	return s.advance(sub.pos, sub.off, sub.off+ev.Ret)
}

// extend lets a file reach to end at least.
func (s *state) extend(size int32, end int64) {
	if v := s.get(size); v != unknown && v < end {
		s.set(size, end)
	}
}

// Values of lseek's whence (linux/fs.h).
const (
	seekSet = iota
	seekCur
	seekEnd
)

func (s *state) seek(ev *event.Event, sub *footprint) bool {
	if ev.Errno != 0 {
		return true
	}
	switch ev.Args[2] {
	case seekCur:
		return s.advance(sub.pos, ev.Ret-int64(ev.Args[1]), ev.Ret)
	case seekEnd:
		if !s.mustEqual(s.files[sub.file].size, ev.Ret-int64(ev.Args[1]), UnexplainedResult) {
			return false
		}
	}
	s.set(sub.pos, ev.Ret)
	return true
}

// fallocate's modes (linux/falloc.h).
const (
	fallocKeepSize = 1
	fallocCollapse = 8
	fallocInsert   = 32
)

func (s *state) resize(ev *event.Event, sub *footprint) bool {
	if ev.Errno != 0 {
		return true
	}
	size := s.files[sub.file].size
	switch {
	case sub.op == event.OpFtruncate:
		s.set(size, int64(ev.Args[1]))
	case ev.Args[1]&(fallocCollapse|fallocInsert) != 0:
		s.set(size, unknown)
	case ev.Args[1]&fallocKeepSize == 0:
		s.extend(size, int64(ev.Args[2])+int64(ev.Args[3]))
	}
	return true
}

// copied explains a copy inside the kernel. How much was copied may have other reasons
// than the end of the file.
func (s *state) copied(ev *event.Event, sub *footprint) bool {
	if ev.Errno != 0 || ev.Ret < 0 {
		return true
	}
	if sub.file >= 0 && sub.off >= 0 {
		if ev.Ret > 0 && !s.atLeast(s.files[sub.file].size, sub.off+ev.Ret, UnexplainedResult) {
			return false
		}
		if !s.advance(sub.pos, sub.off, sub.off+ev.Ret) {
			return false
		}
	}
	if sub.to >= 0 && sub.toOff >= 0 && ev.Ret > 0 {
		s.extend(s.files[sub.to].size, sub.toOff+ev.Ret)
		return s.advance(sub.toPos, sub.toOff, sub.toOff+ev.Ret)
	}
	return true
}

// fstat explains what fstat reported.
func (s *state) fstat(_ *event.Event, sub *footprint) bool {
	return s.mustEqual(s.files[sub.file].size, sub.size, UnexplainedSize) && s.modeMatches(sub) && s.linksMatch(sub)
}
