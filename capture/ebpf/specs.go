package ebpf

import (
	"runtime"

	"iotape/capture"
	"iotape/event"
)

// Flags of the programs' table (bpf/record.h).
const (
	capOmit = 1

	specFDResult  = 1
	specFcntl     = 2
	specIdentity  = 4
	specHold      = 8
	specNoReturn  = 16
	specEntry     = 32
	specOmitMoved = 64
	specPosition  = 128
	specSlots     = 1 << 12
	specAIOSubmit = 1 << 13
	specAIOReap   = 1 << 14
	specAIOEnd    = 1 << 15
)

// specCount is the size of the table; its last row stands for calls that are not
// in the catalogue.
const specCount = 512

// rows returns the programs' table for an architecture.
func rows(arch event.Arch, content capture.Content) []iotapeSpec {
	t := make([]iotapeSpec, specCount)
	for _, s := range event.Catalogue() {
		if nr := event.Number(arch, s.Op); nr >= 0 && nr < specCount-1 {
			t[nr] = row(&s, arch, content)
		}
	}
	return t
}

func row(s *event.Spec, arch event.Arch, content capture.Content) iotapeSpec {
	r := iotapeSpec{Op: uint16(s.Op)}
	for flag, set := range map[uint16]bool{
		specFDResult: s.Result == event.KindFD,
		specFcntl:    s.Op == event.OpFcntl,
		specIdentity: s.Identity,
		specHold:     s.Hold,
		specNoReturn: s.NoReturn,
		specPosition: movesPosition(s.Op),
		specSlots:    s.Op == event.OpIoUringRegister,

		specAIOSubmit: s.Op == event.OpIoSubmit,
		specAIOReap:   s.Name == "io_getevents" || s.Name == "io_pgetevents",
		specAIOEnd:    s.Op == event.OpIoDestroy,
	} {
		if set {
			r.Flags |= flag
		}
	}
	for i, arg := range s.Objects() {
		r.Objects[i] = uint8(arg)
		r.Nobjects++
	}
	bare := content == capture.ContentNone && (s.Class == event.Data || s.Class == event.Socket)
	if s.Hold {
		r.HoldArg = uint8(movedFrom(s.Op))
		if bare {
			r.Flags |= specOmitMoved
		}
	}
	for _, i := range s.Memory() {
		a := &s.Args[i]
		if a.Len == event.LenSlots {
			continue // found by the programs themselves
		}
		c := &r.Caps[r.Ncaps]
		r.Ncaps++
		c.Arg, c.Kind, c.Dir, c.When, c.Len, c.LenArg = uint8(i), uint8(a.Kind), uint8(a.Dir), uint8(a.When), uint8(a.Len), a.LenArg
		c.CondArg, c.CondMask = a.Cond.Arg, a.Cond.Mask
		c.Bytes = a.Bytes(arch)
		if bare && (a.Kind == event.KindBuf || a.Kind == event.KindVec) {
			c.Flags |= capOmit
		}
		if a.When == event.AtEntry {
			r.Flags |= specEntry
		}
	}
	return r
}

// movesPosition reports whether a call reads or writes at a file's position.
func movesPosition(op event.Op) bool {
	switch op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		return true
	}
	return false
}

// movedFrom returns the argument of the descriptor whose content a Hold operation
// moves.
func movedFrom(op event.Op) int {
	if op == event.OpSendfile {
		return 1
	}
	return 0
}

// nativeArch returns the architecture of this program.
func nativeArch() (event.Arch, bool) { return event.ParseArch(runtime.GOARCH) }
