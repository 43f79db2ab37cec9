// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// sharedMappings are the addresses at which processes mapped files of the tree to share and write them, by process.
// An unmapping is not followed: a forked process may have the mapping still. What is mapped there next is followed.
type sharedMappings struct{ effect.Ranges }

// observe follows a call that maps memory.
func (m sharedMappings) observe(ev *event.Event, p *Planner) {
	const mapType, mapPrivate, mapAnonymous = 15, 2, 32
	if !ev.OK() || ev.Op != event.OpMmap && ev.Op != event.OpMremap {
		return
	}
	process, length := effect.Inode{Ino: uint64(ev.PID)}, ev.Args[1]
	var shares bool
	if ev.Op == event.OpMremap {
		length = ev.Args[2]
		from, to, ok := addresses(ev.Args[0], ev.Args[1])
		shares = ok && m.overlaps(from, to)
	} else if f := ev.FileArg(4); f != nil {
		shares = ev.Args[3]&mapType != mapPrivate && ev.Args[3]&mapAnonymous == 0 &&
			f.Flags&syscall.O_ACCMODE == syscall.O_RDWR && p.lost(ev, f)
	}
	from, to, ok := addresses(uint64(ev.Ret), length)
	switch {
	case !ok:
	case shares:
		m.Add(process, from, to)
	case len(m.Ranges) > 0:
		m.Remove(process, from, to)
	}
}

// addresses returns a range of addresses, and whether there can be such a range.
func addresses(at, length uint64) (from, to int64, ok bool) {
	if length == 0 || at > math.MaxInt64 || length > math.MaxInt64-at {
		return 0, 0, false
	}
	return int64(at), int64(at + length), true
}

// overlaps reports whether any process has a file there: forked processes have the mappings of others.
func (m sharedMappings) overlaps(from, to int64) bool {
	for process := range m.Ranges {
		if m.Overlaps(process, from, to) {
			return true
		}
	}
	return false
}

// removes reports whether a call made a hole in a mapped file of the tree (MADV_REMOVE).
func (m sharedMappings) removes(ev *event.Event) bool {
	const madvRemove = 9
	if !ev.OK() || ev.Op != event.OpMadvise && ev.Op != event.OpUringMadvise {
		return false
	}
	advice := ev.Args[2]
	from, to, ok := addresses(ev.Args[0], ev.Args[1])
	return ok && uint32(advice) == madvRemove && m.overlaps(from, to)
}
