package stracetext

import (
	"slices"

	"iotape/event"
)

// Commands and flags that decide what another argument means (linux/fcntl.h).
const (
	fGETFD, fSETFD, fGETFL, fSETFL = 1, 2, 3, 4
	fDUPFD, fDUPFDCloexec          = 0, 1030
	fGETOWN, fGETSIG, fGETLEASE    = 9, 11, 1025
	fGETPIPESZ, fGETSEALS          = 1032, 1034

	oCREAT   = 0o100
	oTMPFILE = 0o20000000
)

// openNames is the catalogue's set of open flags; descriptorNames is the same
// without the access modes, for calls that make descriptors without opening.
var (
	openNames       = event.Lookup(event.OpOpen).Args[1].Set
	descriptorNames = &event.Set{Name: "descriptor", Items: slices.DeleteFunc(slices.Clone(openNames.Items), func(i event.Item) bool { return i.Mask == 3 })}
)

// argument returns what argument i of a call means, given the others. show is
// false where the kernel does not look at it.
func (p *Printer) argument(e *event.Event, spec *event.Spec, i int) (a event.Arg, show bool) {
	a = spec.Argument(i, &e.Args)
	switch e.Op {
	case event.OpOpen, event.OpOpenat:
		if a.Kind == event.KindMode {
			flags := event.OpenFlags(p.archOf(e), e.Args[i-1])
			return a, flags&oCREAT != 0 || flags&oTMPFILE == oTMPFILE
		}
	case event.OpDup3, event.OpPipe2:
		if a.Kind == event.KindFlags {
			a.Set = descriptorNames
		}
	case event.OpFaccessat2:
		if a.Name == "flags" {
			a.Set = accessFlags
		}
	case event.OpPreadv, event.OpPwritev, event.OpPreadv2, event.OpPwritev2:
		return a, a.Name != "offset_high" // part of the offset on 32 bits only
	case event.OpFcntl:
		if i == 2 {
			return fcntlArgument(e.Args[1], a)
		}
	}
	return a, true
}

func fcntlArgument(cmd uint64, a event.Arg) (event.Arg, bool) {
	if a.Kind.IsMemory() {
		return a, true
	}
	switch cmd {
	case fGETFD, fGETFL, fGETOWN, fGETSIG, fGETLEASE, fGETPIPESZ, fGETSEALS:
		return a, false
	case fSETFD:
		return event.Arg{Name: a.Name, Kind: event.KindFlags, Set: fdFlags}, true
	case fSETFL:
		return event.Arg{Name: a.Name, Kind: event.KindFlags, Set: openNames}, true
	}
	return event.Arg{Name: a.Name, Kind: event.KindInt}, true
}

// result returns what the result of a call means and, where it is a set of flags,
// their names.
func result(e *event.Event, spec *event.Spec) (k event.Kind, names *event.Set) {
	if e.Op == event.OpFcntl {
		switch e.Args[1] {
		case fDUPFD, fDUPFDCloexec:
			return event.KindFD, nil
		case fGETFD:
			return event.KindFlags, fdFlags
		case fGETFL:
			return event.KindFlags, openNames
		}
	}
	return spec.Result, nil
}

// flagNames writes a flags argument.
func flagNames(a event.Arch, op event.Op, set *event.Set, v uint64) string {
	switch {
	case set == nil:
		return string(appendHex(nil, v))
	case set == openNames || set == descriptorNames:
		v = event.OpenFlags(a, v&0xffffffff)
	case op == event.OpClone:
		if sig := v & cloneSignalMask; sig != 0 {
			s := event.SignalName(int(sig))
			if v == sig {
				return s
			}
			return set.FormatFlags(v&^cloneSignalMask) + "|" + s
		}
	default:
		v &= 0xffffffff // the kernel takes an int
	}
	return set.FormatFlags(v)
}

// intOf returns an argument that the kernel takes as an int: what is in the
// upper half of the register does not count. Longer numbers stay.
func intOf(v uint64) int64 {
	if v>>32 == 0 || v>>32 == 0xffffffff {
		return int64(int32(v))
	}
	return int64(v)
}

// isSockaddr reports whether an argument points to a socket address.
func isSockaddr(a *event.Arg) bool { return a.Layout == event.LayoutSockaddr }

// isDirents reports whether a buffer argument holds directory entries.
func isDirents(e *event.Event, a *event.Arg) bool {
	return a.Kind == event.KindBuf && (e.Op == event.OpGetdents64 || e.Op == event.OpGetdents)
}
