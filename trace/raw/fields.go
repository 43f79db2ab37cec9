// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// field is a number of a record, an object or a piece. Only fields that differ
// from zero are written.
type field[T any] struct {
	name string
	base int // 10, 16 or 8: how it is written
	ref  func(*T) any
}

// kind is a record type: its name in the text and its own fields.
type kind struct {
	typ    trace.RecordType
	name   string
	fields []field[trace.Record]
	flags  []flag // of Record.Flags
}

// flag is a bit that is written as a word.
type flag struct {
	bit  uint32
	name string
}

var (
	fPID    = field[trace.Record]{"pid", 10, func(r *trace.Record) any { return &r.PID }}
	fTID    = field[trace.Record]{"tid", 10, func(r *trace.Record) any { return &r.TID }}
	fEnter  = field[trace.Record]{"enter", 10, func(r *trace.Record) any { return &r.Enter }}
	fExit   = field[trace.Record]{"exit", 10, func(r *trace.Record) any { return &r.Exit }}
	fTime   = field[trace.Record]{"time", 10, func(r *trace.Record) any { return &r.Exit }}
	fBefore = field[trace.Record]{"delay_before", 10, func(r *trace.Record) any { return &r.DelayBefore }}
	fWithin = field[trace.Record]{"delay_within", 10, func(r *trace.Record) any { return &r.DelayWithin }}
	fCPU    = field[trace.Record]{"cpu", 10, func(r *trace.Record) any { return &r.CPU }}
	fRet    = field[trace.Record]{"ret", 10, func(r *trace.Record) any { return &r.Ret }}
	fNR     = field[trace.Record]{"nr", 10, func(r *trace.Record) any { return &r.NR }}
	fArgs   = field[trace.Record]{"args", 16, func(r *trace.Record) any { return &r.Args }}
	fOp     = field[trace.Record]{"op", 10, func(r *trace.Record) any { return (*opName)(&r.Op) }}
	fPPID   = field[trace.Record]{"ppid", 10, func(r *trace.Record) any { return &r.PPID }}
	fPGID   = field[trace.Record]{"pgid", 10, func(r *trace.Record) any { return &r.PGID }}
	fSID    = field[trace.Record]{"sid", 10, func(r *trace.Record) any { return &r.SID }}
	fUID    = field[trace.Record]{"uid", 10, func(r *trace.Record) any { return &r.UID }}
	fGID    = field[trace.Record]{"gid", 10, func(r *trace.Record) any { return &r.GID }}
	fNSPID  = field[trace.Record]{"ns_pid", 10, func(r *trace.Record) any { return &r.NSPID }}
	fNSTID  = field[trace.Record]{"ns_tid", 10, func(r *trace.Record) any { return &r.NSTID }}
	fComm   = field[trace.Record]{"comm", 10, func(r *trace.Record) any { return &r.Comm }}
	fChild  = field[trace.Record]{"child", 10, func(r *trace.Record) any { return &r.Child }}
	fCTID   = field[trace.Record]{"child_tid", 10, func(r *trace.Record) any { return &r.ChildTID }}
	fShare  = field[trace.Record]{"share", 16, func(r *trace.Record) any { return &r.Share }}
	fCount  = field[trace.Record]{"count", 10, func(r *trace.Record) any { return &r.Count }}
	fWhy    = field[trace.Record]{"reason", 10, func(r *trace.Record) any { return &r.Reason }}
	fAction = field[trace.Record]{"action", 10, func(r *trace.Record) any { return &r.Flags }}
	fUmask  = field[trace.Record]{"umask", 8, func(r *trace.Record) any { return &r.Umask }}
)

func own(f ...field[trace.Record]) []field[trace.Record] {
	return append([]field[trace.Record]{fPID, fTID, fOp}, f...)
}

var (
	callFlags = []flag{
		{trace.CallMore, "more"}, {trace.CallCompat, "compat"}, {trace.CallInterrupted, "interrupted"}, {trace.CallDelays, "delays"},
		{trace.CallUntimed, "untimed"}, {trace.CallMissed, "missed"}, {trace.CallUnknownArg, "unknown0"}, {trace.CallUnknownArg << 1, "unknown1"},
		{trace.CallUnknownArg << 2, "unknown2"}, {trace.CallUnknownArg << 3, "unknown3"},
		{trace.CallUnknownArg << 4, "unknown4"}, {trace.CallUnknownArg << 5, "unknown5"},
	}
	dataFlags = []flag{{trace.DataLast, "last"}}
	fileFlags = []flag{{trace.FileOwn, "own"}}
	wakeFlags = []flag{{trace.WakeInterrupt, "interrupt"}}

	kinds = []kind{
		{trace.RecCall, "call", own(fNR, fEnter, fExit, fCPU, fBefore, fWithin, fRet, fArgs), callFlags},
		{trace.RecData, "data", own(fEnter), dataFlags},
		{trace.RecEnter, "enter", own(fEnter), nil},
		{trace.RecTask, "task", own(fTime, fPPID, fPGID, fSID, fUID, fGID, fNSPID, fNSTID, fComm), nil},
		{trace.RecFork, "fork", own(fTime, fChild, fCTID, fShare), nil},
		{trace.RecExit, "exit", own(fTime, fRet), nil},
		{trace.RecLoss, "loss", own(fTime, fCount, fWhy), nil},
		{trace.RecFile, "file", own(fTime), fileFlags},
		{trace.RecNote, "note", own(fTime), nil},
		{trace.RecStart, "start", own(fTime, fUmask), nil},
		{trace.RecLink, "link", own(fTime), nil},
		{trace.RecProcess, "process", own(fTime), nil},
		{trace.RecSignal, "signal", own(fTime, fAction), nil},
		{trace.RecWake, "wake", own(fTime, fChild, fCTID), wakeFlags},
	}

	objectFields = []field[trace.Object]{
		{"arg", 10, func(o *trace.Object) any { return &o.Arg }},
		{"fd", 10, func(o *trace.Object) any { return &o.FD }},
		{"ino", 10, func(o *trace.Object) any { return &o.Ino }},
		{"size", 10, func(o *trace.Object) any { return &o.Size }},
		{"pos", 10, func(o *trace.Object) any { return &o.Pos }},
		{"dev", 16, func(o *trace.Object) any { return &o.Dev }},
		{"rdev", 16, func(o *trace.Object) any { return &o.Rdev }},
		{"mode", 8, func(o *trace.Object) any { return &o.Mode }},
		{"flags", 8, func(o *trace.Object) any { return &o.Flags }},
		{"nlink", 10, func(o *trace.Object) any { return &o.Nlink }},
		{"uid", 10, func(o *trace.Object) any { return &o.UID }},
		{"gid", 10, func(o *trace.Object) any { return &o.GID }},
		{"open", 10, func(o *trace.Object) any { return &o.Open }},
		{"past", 10, func(o *trace.Object) any { return &o.Past }},
	}
	pieceFields = []field[trace.Piece]{
		{"arg", 10, func(p *trace.Piece) any { return &p.Arg }},
		{"off", 10, func(p *trace.Piece) any { return &p.Off }},
		{"len", 10, func(p *trace.Piece) any { return &p.Len }},
	}
	pieceFlags = []flag{
		{uint32(trace.PieceMissing), "missing"}, {uint32(trace.PieceMasked), "masked"},
		{uint32(trace.PieceOmitted), "omitted"},
		{uint32(trace.PieceShape), "shape"}, {uint32(trace.PieceTruncated), "truncated"},
		{uint32(trace.PieceHash), "hash"}, {uint32(trace.PieceSketch), "sketch"},
	}
	frameFields = []field[trace.Frame]{
		{"stream", 16, func(f *trace.Frame) any { return &f.Stream }},
		{"seq", 10, func(f *trace.Frame) any { return &f.Seq }},
		{"shard", 10, func(f *trace.Frame) any { return &f.Shard }},
		{"round", 10, func(f *trace.Frame) any { return &f.Round }},
		{"until", 10, func(f *trace.Frame) any { return &f.Until }},
		{"lost", 10, func(f *trace.Frame) any { return &f.Lost }},
	}
)

// opName is an operation's number, written as its name where it has one.
type opName uint16

// format returns the text of a field's value, "" for zero.
func format(p any, base int) string {
	switch p := p.(type) {
	case *uint8:
		return unsigned(uint64(*p), base)
	case *uint32:
		return unsigned(uint64(*p), base)
	case *uint64:
		return unsigned(*p, base)
	case *int8:
		return signed(int64(*p))
	case *int32:
		return signed(int64(*p))
	case *int64:
		return signed(*p)
	case *opName:
		if event.Op(*p).Known() {
			return event.Lookup(event.Op(*p)).Name
		}
		return unsigned(uint64(*p), 10)
	case *[16]byte:
		n := len(p)
		for n > 0 && p[n-1] == 0 {
			n--
		}
		if n == 0 {
			return ""
		}
		return strconv.Quote(string(p[:n]))
	case *[6]uint64:
		return arguments(p[:])
	}
	panic(fmt.Sprintf("raw: field of type %T", p))
}

// arguments returns the text of arguments up to the last that is not zero.
func arguments(args []uint64) string {
	n := len(args)
	for n > 0 && args[n-1] == 0 {
		n--
	}
	s := ""
	for i, v := range args[:n] {
		if i > 0 {
			s += ","
		}
		switch {
		case v < 1<<16:
			s += strconv.FormatUint(v, 10)
		case int64(v) < 0 && int64(v) >= -1<<31:
			s += strconv.FormatInt(int64(v), 10)
		default:
			s += "0x" + strconv.FormatUint(v, 16)
		}
	}
	return s
}

func unsigned(v uint64, base int) string {
	switch {
	case v == 0:
		return ""
	case base == 16:
		return "0x" + strconv.FormatUint(v, 16)
	case base == 8:
		return "0" + strconv.FormatUint(v, 8)
	}
	return strconv.FormatUint(v, 10)
}

func signed(v int64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}

// parse stores the text of a value.
func parse(p any, s string) error {
	switch p := p.(type) {
	case *uint8:
		v, err := strconv.ParseUint(s, 0, 8)
		*p = uint8(v)
		return err
	case *uint32:
		v, err := strconv.ParseUint(s, 0, 32)
		*p = uint32(v)
		return err
	case *uint64:
		v, err := number(s)
		*p = v
		return err
	case *int8:
		v, err := strconv.ParseInt(s, 0, 8)
		*p = int8(v)
		return err
	case *int32:
		v, err := strconv.ParseInt(s, 0, 32)
		*p = int32(v)
		return err
	case *int64:
		v, err := strconv.ParseInt(s, 0, 64)
		*p = v
		return err
	case *opName:
		if op := event.ByName(s); op != event.OpUnknown {
			*p = opName(op)
			return nil
		}
		v, err := strconv.ParseUint(s, 0, 16)
		*p = opName(v)
		return err
	case *[16]byte:
		v, err := strconv.Unquote(s)
		if err != nil {
			return err
		}
		if len(v) > len(p) {
			return fmt.Errorf("%d bytes, at most %d fit", len(v), len(p))
		}
		*p = [16]byte{}
		copy(p[:], v)
		return nil
	case *[6]uint64:
		return parseList(p[:], s)
	}
	panic(fmt.Sprintf("raw: field of type %T", p))
}

func parseList(list []uint64, s string) error {
	clear(list)
	for i := 0; s != ""; i++ {
		if i == len(list) {
			return fmt.Errorf("more than %d values", len(list))
		}
		var one string
		one, s, _ = strings.Cut(s, ",")
		v, err := number(one)
		if err != nil {
			return err
		}
		list[i] = v
	}
	return nil
}

// number reads an unsigned number, or a negative one as its two's complement.
func number(s string) (uint64, error) {
	if len(s) > 0 && s[0] == '-' {
		v, err := strconv.ParseInt(s, 0, 64)
		return uint64(v), err
	}
	return strconv.ParseUint(s, 0, 64)
}
