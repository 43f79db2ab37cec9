// SPDX-License-Identifier: Apache-2.0

package order

import "github.com/iotape/iotape/event"

// locks takes or gives back a lock on a whole file.
func (o *Order) locks(ev *event.Event) {
	f := o.fileOf(ev.FileArg(0))
	if f == nil {
		return
	}
	f.locked = true
	if ev.OK() && unlocks(ev) {
		if f = f.use(o, accessWrite); f != nil {
			f.locks.releaseLock(o, f.tried)
		}
	} else if ev.OK() {
		f.access(o, locks, accessWrite)
	} else {
		f.access(o, locks, accessRead)
		f.tried = latest(f.tried, o.self)
	}
}

// unlocks reports whether a call gives a lock back.
func unlocks(ev *event.Event) bool {
	const unlock, none = 8, 2 // LOCK_UN, F_UNLCK
	if ev.Op == event.OpFlock {
		return ev.Args[1]&unlock != 0
	}
	b := ev.BufArg(2)
	return b != nil && len(b.Inline) >= 2 && b.Inline[0] == none
}

// controls is fcntl: locks on ranges, and flags.
func (o *Order) controls(ev *event.Event) {
	const getFL, setFL, getLk, setLk, setLkw, ofdGetLk, ofdSetLk, ofdSetLkw = 3, 4, 5, 6, 7, 36, 37, 38
	fd := ev.FileArg(0)
	switch ev.Args[1] {
	case getFL:
		if p := o.openOf(fd); p != nil {
			p.pos.access(o, accessRead)
		}
	case setFL:
		if p := o.openOf(fd); p != nil {
			p.pos.access(o, accessWrite)
		}
	case setLk, setLkw, ofdSetLk, ofdSetLkw:
		o.locks(ev)
	case getLk, ofdGetLk:
		if f := o.fileOf(fd); f != nil {
			f.access(o, locks, accessRead)
		}
	}
}
