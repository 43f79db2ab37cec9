// SPDX-License-Identifier: Apache-2.0

package event

import "encoding/binary"

// SiginfoBytes is how much of siginfo_t the kernel fills (struct kernel_siginfo, linux/signal_types.h): what
// follows in the 128 bytes that programs see is zero.
const SiginfoBytes = 48

// SignalAction is what the kernel does with a signal that it delivers. The numbers are part of the formats.
type SignalAction uint8

// The actions.
const (
	SignalUnknown    SignalAction = iota // the source does not say
	SignalHandled                        // the program's handler runs
	SignalIgnored                        // nothing: the program says so, or says nothing and the signal means nothing
	SignalTerminates                     // the process ends
	SignalDumps                          // the process ends with a core dump, where the system makes one
	SignalStops                          // the process stops
)

var signalActions = [...]string{"unknown", "handled", "ignored", "terminates", "core", "stops"}

// String returns the action's word, as --json has it.
func (a SignalAction) String() string {
	if int(a) < len(signalActions) {
		return signalActions[a]
	}
	return signalActions[SignalUnknown]
}

// SignalActionByName returns the action with a word that String writes.
func SignalActionByName(name string) (a SignalAction, ok bool) {
	for i, s := range signalActions {
		if s == name {
			return SignalAction(i), true
		}
	}
	return SignalUnknown, false
}

// DefaultAction returns what the kernel does with a signal that a program neither handles nor ignores (signal(7)).
func DefaultAction(sig int) SignalAction {
	const (
		quit, ill, trap, abrt, bus, fpe, segv, xcpu, xfsz, sys = 3, 4, 5, 6, 7, 8, 11, 24, 25, 31
		chld, cont, urg, winch                                 = 17, 18, 23, 28
		stop, tstp, ttin, ttou                                 = 19, 20, 21, 22
	)
	switch sig {
	case quit, ill, trap, abrt, bus, fpe, segv, xcpu, xfsz, sys:
		return SignalDumps
	case chld, cont, urg, winch:
		return SignalIgnored
	case stop, tstp, ttin, ttou:
		return SignalStops
	}
	return SignalTerminates
}

// SignalInfo describes the memory of a Signalled event.
var SignalInfo = Arg{Name: "info", Kind: KindStruct, Dir: Out, Len: LenConst, LenArg: NoArg, Layout: LayoutSiginfo}

// Signal returns the number of the signal that a Signalled event is about, and what was done with it.
func (e *Event) Signal() (sig int, action SignalAction) {
	return int(int32(e.Args[0])), SignalAction(e.Args[1])
}

// AboutSignal returns the signal that an event is about: one that was delivered, or that ended the thread.
func (e *Event) AboutSignal() (sig int, ok bool) {
	switch e.Kind {
	case Signalled:
		sig, _ = e.Signal()
	case Exited:
		sig = int(e.Ret & 0x7f)
	}
	return sig, sig > 0
}

// SignalNumber returns the number in a siginfo_t (si_signo), 0 if there is none. A source that knows no more has
// these 4 bytes alone.
func SignalNumber(siginfo []byte) int {
	if len(siginfo) < 4 {
		return 0
	}
	return int(int32(binary.LittleEndian.Uint32(siginfo)))
}
