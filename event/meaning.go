// SPDX-License-Identifier: Apache-2.0

package event

// A meaning is what the value of one argument makes of another, or of the result,
// where no memory is involved; of memory, the commands say it.
type meaning struct {
	of     int    // argument, or ResultArg
	by     int    // the argument whose value decides
	mask   uint64 // the bits of it that count; none: always
	values []uint64
	as     Arg // KindNone: the kernel does not look at it
}

const (
	anyBit = ^uint64(0)
	low32  = 0xffffffff
)

// Argument returns argument i as the values of the others determine it: of
// KindNone if the kernel does not look at it.
func (s *Spec) Argument(i int, args *[MaxArgs]uint64) Arg {
	a := s.Args[i]
	if a.Len == LenCommand && a.Kind.IsMemory() {
		c, _, ok := CommandArg(s.Op, args[a.LenArg])
		if ok {
			c.Name = a.Name
			return c
		}
		a = Arg{Name: a.Name, Kind: KindHex}
	}
	if m := s.meaning(i, args); m != nil {
		c := m.as
		c.Name = a.Name
		return c
	}
	return a
}

// Returns returns what the result is, as the arguments determine it: its Kind, and
// Set where it has names.
func (s *Spec) Returns(args *[MaxArgs]uint64) Arg {
	if m := s.meaning(ResultArg, args); m != nil {
		return m.as
	}
	return Arg{Kind: s.Result}
}

func (s *Spec) meaning(of int, args *[MaxArgs]uint64) *meaning {
	op := s.Op.Like()
	if int(op) >= len(meanings) {
		return nil
	}
	list := meanings[op]
	for i := range list {
		m := &list[i]
		if m.of != of {
			continue
		}
		if m.mask == 0 {
			return m
		}
		for _, v := range m.values {
			if args[m.by]&m.mask == v {
				return m
			}
		}
	}
	return nil
}

// The constructors of the table below.

func by(arg, by int, as Arg, values ...uint64) meaning {
	return meaning{of: arg, by: by, mask: low32, values: values, as: as}
}

// without hides an argument where none of some bits is set.
func without(arg, by int, bits uint64) meaning {
	return meaning{of: arg, by: by, mask: bits, values: []uint64{0}, as: hidden}
}

func always(arg int, as Arg) meaning { return meaning{of: arg, as: as} }

var hidden = Arg{Kind: KindNone}

// span hides arguments from first to last for some values of argument by.
func span(first, last, byArg int, values ...uint64) []meaning {
	var list []meaning
	for i := first; i <= last; i++ {
		list = append(list, by(i, byArg, hidden, values...))
	}
	return list
}

func all(lists ...[]meaning) []meaning {
	var list []meaning
	for _, l := range lists {
		list = append(list, l...)
	}
	return list
}

func set(m ...meaning) []meaning { return m }

// byFutex is by for futex's operation, whose upper bits are flags.
func byFutex(arg int, as Arg, ops ...uint64) meaning {
	return meaning{of: arg, by: 1, mask: 0x7f, values: ops, as: as}
}

const (
	oCreate  = 0o100
	oTmpfile = 0o20000000 // the bit that only O_TMPFILE has
)

var (
	sockopts = set(
		by(2, 1, enum("", socketOptions), 1), by(2, 1, enum("", ipOptions), 0), by(2, 1, enum("", ipv6Options), 41), by(2, 1, enum("", tcpOptions), 6),
		by(2, 1, enum("", udpOptions), 17, 136), by(2, 1, enum("", netlinkOptions), 270), by(2, 1, enum("", packetOptions), 263))
	protocols = set(by(2, 0, enum("", ipProtocols), 2, 10), by(2, 0, enum("", netlinkProtocols), 16))
	offsets   = set(always(4, hidden)) // the upper half on 32 bits
	capable   = enum("", capabilities)
)

var meanings = [numOps][]meaning{
	OpPreadv: offsets, OpPwritev: offsets, OpPreadv2: offsets, OpPwritev2: offsets,

	OpOpen:   set(without(2, 1, oCreate|oTmpfile)),
	OpOpenat: set(without(3, 2, oCreate|oTmpfile)),
	OpMqOpen: set(without(2, 1, oCreate), without(3, 1, oCreate)),
	OpMremap: set(without(4, 3, 2|4)), // MREMAP_FIXED, MREMAP_DONTUNMAP

	// linux/fcntl.h
	OpFcntl: all(
		span(2, 2, 1, 1, 3, 9, 11, 1025, 1032, 1034), // F_GETFD, F_GETFL, F_GETOWN, F_GETSIG, F_GETLEASE, F_GETPIPE_SZ, F_GET_SEALS
		set(by(2, 1, flags("", fdFlags), 2), by(2, 1, flags("", openFlags), 4), by(2, 1, sig(""), 10), by(2, 1, flags("", sealFlags), 1033),
			by(2, 1, enum("", leaseTypes), 1024), by(2, 1, flags("", notifyFlags), 1026), by(2, 1, num(""), 0, 8, 1030, 1031),
			by(ResultArg, 1, fd(""), 0, 1030), by(ResultArg, 1, flags("", fdFlags), 1), by(ResultArg, 1, flags("", openFlags), 3),
			by(ResultArg, 1, flags("", sealFlags), 1034), by(ResultArg, 1, enum("", leaseTypes), 1025), by(ResultArg, 1, sig(""), 11))),

	OpSocket: protocols, OpSocketpair: protocols,
	OpSetsockopt: sockopts, OpGetsockopt: sockopts,

	// linux/futex.h: val2 stands in the place of the timeout
	OpFutex: set(
		byFutex(2, hidden, 6, 7, 8, 13), // …_LOCK_PI
		byFutex(3, hidden, 1, 2, 7, 8, 10), byFutex(3, num(""), 3, 4, 5, 12),
		byFutex(4, hidden, 0, 1, 2, 6, 7, 8, 9, 10, 13),
		byFutex(5, hidden, 0, 1, 2, 3, 6, 7, 8, 13, 11), byFutex(5, enum("", futexMask), 9, 10), byFutex(5, hex(""), 5)),

	// linux/prctl.h, linux/securebits.h
	OpPrctl: all(
		span(1, 4, 0, 3, 7, 21, 27, 30, 31, 32, 34, 66), // PR_GET_DUMPABLE, …_KEEPCAPS, …_SECCOMP, …_SECUREBITS, …_TIMERSLACK, PR_TASK_…, PR_MCE_KILL_GET
		span(2, 4, 0, 1, 2, 4, 5, 8, 9, 11, 15, 16, 19, 23, 24, 25, 26, 28, 29, 36, 37, 40, 0x59616d61),
		set(by(1, 0, sig(""), 1), by(1, 0, enum("", dumpable), 4), by(1, 0, enum("", seccompModes), 22), by(1, 0, capable, 23, 24), by(1, 0, flags("", secure), 28),
			by(1, 0, num(""), 8, 29, 36, 38, 41), by(1, 0, enum("", ambient), 47), by(1, 0, enum("", ptracer), 0x59616d61), by(1, 0, enum("", vmaOps), 0x53564d41),
			by(2, 0, capable, 47), by(3, 0, size(""), 0x53564d41), by(ResultArg, 0, flags("", secure), 27), by(ResultArg, 0, enum("", dumpable), 3), by(ResultArg, 0, enum("", seccompModes), 21))),

	OpKcmp:   all(set(by(3, 2, num(""), 0, 7), by(4, 2, num(""), 0)), span(3, 4, 2, 1, 2, 3, 4, 5, 6)),
	OpSemctl: set(by(3, 2, num(""), 16), always(3, ptr(""))), // SETVAL
	OpShmctl: set(always(2, ptr(""))), OpMsgctl: set(always(2, ptr(""))),
	OpPtrace:      set(by(3, 0, flags("", ptraceOptions), 0x4200, 0x4206)),
	OpIoprioGet:   set(always(ResultArg, Arg{Kind: KindEnum, Set: ioprios})),
	OpPersonality: set(always(ResultArg, Arg{Kind: KindFlags, Set: personas})),
	OpKeyctl:      set(by(1, 0, enum("", keyrings), 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 17, 21, 30, 32), by(2, 0, enum("", keyrings), 8, 9)),

	OpMembarrier:   set(by(ResultArg, 0, flags("", membarrierBits), 0)),
	OpAdjtimex:     set(always(ResultArg, Arg{Kind: KindEnum, Set: clockStates})),
	OpClockAdjtime: set(always(ResultArg, Arg{Kind: KindEnum, Set: clockStates})),

	OpSchedGetscheduler: set(always(ResultArg, Arg{Kind: KindFlags, Set: schedPolicies})),
}
