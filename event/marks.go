// SPDX-License-Identifier: Apache-2.0

package event

import "math"

// Events that are no calls are marks. What a mark says beside time, process, thread, names and files is in the types
// below; only this file knows in which fields of Event it is stored.

// Fork is what a Forked event says of the thread that was made.
type Fork struct {
	PID, TID uint32 // the child
	Share    uint64 // ShareVM …: what it shares with its maker
}

// IsThread reports whether the child is a thread of its maker's process.
func (f Fork) IsThread() bool { return f.Share&ShareThread != 0 }

// Fork returns what a Forked event says.
func (e *Event) Fork() Fork { return Fork{PID: uint32(e.Ret), TID: e.Child, Share: e.Args[0]} }

// SetFork makes the event one that says that a thread was made.
func (e *Event) SetFork(f Fork) {
	e.Kind, e.Child, e.Ret, e.Args[0] = Forked, f.TID, int64(f.PID), f.Share
}

// Wakeup is what a Woken event says.
type Wakeup struct {
	PID, TID uint32 // the thread that woke this one; TID is 0 of an interrupt
	In       Op     // the call that this one waited in, OpUnknown if that is not known
}

// Wakeup returns what a Woken event says.
func (e *Event) Wakeup() Wakeup { return Wakeup{PID: uint32(e.Ret), TID: e.Child, In: Op(e.Args[0])} }

// SetWakeup makes the event one that says that its thread was woken.
func (e *Event) SetWakeup(w Wakeup) {
	e.Kind, e.Child, e.Ret, e.Args[0] = Woken, w.TID, int64(w.PID), uint64(w.In)
}

// Loss is what a LossMark says.
type Loss struct {
	Records uint64 // how many were lost
	Reason  uint32 // why: one of the reasons of package trace
}

// Loss returns what a LossMark says.
func (e *Event) Loss() Loss { return Loss{Records: uint64(max(e.Ret, 0)), Reason: uint32(e.Args[0])} }

// SetLoss makes the event one that says that records were lost.
func (e *Event) SetLoss(l Loss) {
	e.Kind, e.Ret, e.Args[0] = LossMark, int64(min(l.Records, math.MaxInt64)), uint64(l.Reason)
}

// ExitStatus is how a thread ended, as wait4(2) gives it.
type ExitStatus int64

// Signal returns the signal that ended it, 0 if it ended by itself.
func (s ExitStatus) Signal() int { return int(s & 0x7f) }

// DumpedCore reports whether the signal wrote a core file.
func (s ExitStatus) DumpedCore() bool { return s&0x80 != 0 }

// Code returns what it gave to exit(2), from 0 to 255.
func (s ExitStatus) Code() int { return int(s >> 8 & 0xff) }

// ExitStatus returns how the thread of an Exited event ended.
func (e *Event) ExitStatus() ExitStatus { return ExitStatus(e.Ret) }

// SetExitStatus makes the event one that says that its thread ended.
func (e *Event) SetExitStatus(s ExitStatus) { e.Kind, e.Ret = Exited, int64(s) }

// Umask returns the file mode creation mask that a Started event says.
func (e *Event) Umask() uint32 { return uint32(e.Args[0]) }

// SetUmask sets what Umask returns, and makes the event a Started one.
func (e *Event) SetUmask(mask uint32) { e.Kind, e.Args[0] = Started, uint64(mask) }

const ownFile = 1

// OwnsFile reports whether the descriptor of an Inherited event is the program's own, and not part of its
// surroundings: the recording, or the part of it that was kept, began while the program ran.
func (e *Event) OwnsFile() bool { return e.Args[0]&ownFile != 0 }

// SetOwnsFile sets what OwnsFile returns.
func (e *Event) SetOwnsFile(own bool) {
	if e.Args[0] = 0; own {
		e.Args[0] = ownFile
	}
}

// Mapping returns the addresses at which the file of an Inherited event is mapped, from the first to before the
// last; ok is false if the event tells of a descriptor.
func (e *Event) Mapping() (from, to uint64, ok bool) {
	if len(e.Files) == 0 || e.Files[0].FD != MappedFD {
		return 0, 0, false
	}
	return e.Args[1], e.Args[2], true
}

// SetMapping sets the addresses of an Inherited event whose descriptor is MappedFD.
func (e *Event) SetMapping(from, to uint64) { e.Args[1], e.Args[2] = from, to }

// OpenedOver returns the number of the mount that the file of an Inherited event was opened over, 0 if there is none
// (Mounts).
func (e *Event) OpenedOver() uint32 { return uint32(e.Args[3]) }

// SetOpenedOver sets what OpenedOver returns.
func (e *Event) SetOpenedOver(mount uint32) { e.Args[3] = uint64(mount) }

// SetSignal makes the event one that says that a signal was delivered; its siginfo_t is Bufs[0].
func (e *Event) SetSignal(sig int, action SignalAction) {
	e.Kind, e.Args[0], e.Args[1] = Signalled, uint64(sig), uint64(action)
}
