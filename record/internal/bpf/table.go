// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"os"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
)

// Flags of the programs' table (include/record.h).
const (
	capMade   = 2
	capFDs    = 4
	capFDHead = 8
	capFDTail = 16

	specFDResult  = 1
	specFcntl     = 2
	specIdentity  = 4
	specHold      = 8
	specNoReturn  = 16
	specEntry     = 32
	specSends     = 64
	specPosition  = 128
	specBefore    = 256
	specOffer     = 512
	specInner     = 1024
	specEnds      = 1 << 11
	specSlots     = 1 << 12
	specAIOSubmit = 1 << 13
	specAIOReap   = 1 << 14
	specAIOEnd    = 1 << 15

	movesRead     = 1
	movesWritten  = 2
	movesMessages = 4
)

// The table has a row for each call number, then one for each of 32-bit calls; the
// last of both halves stands for all that are not in the operation table.
const (
	specCount = 1024
	CompatRow = specCount / 2 // the first row of 32-bit calls
)

// Rows returns the programs' table for an architecture.
func Rows(arch event.Arch, content capture.Content) []Spec {
	t := make([]Spec, specCount)
	for _, s := range event.Specs() {
		if nr := event.Number(arch, s.Op); nr >= 0 && nr < CompatRow-1 {
			t[nr] = row(&s, arch, content)
			t[nr].Opens = opensBy(s.Op)
		}
	}
	for nr := range CompatRow - 1 {
		if s := event.Spec32(arch, uint32(nr)); s.Op != event.OpUnknown {
			t[CompatRow+nr] = row(s, arch, content)
		}
	}
	return t
}

func row(s *event.Spec, arch event.Arch, content capture.Content) Spec {
	r := Spec{Op: uint16(s.Op), Use: mappedUse(s.Op)}
	for flag, set := range map[uint16]bool{
		specFDResult: s.Result == event.KindFD,
		specFcntl:    s.Op == event.OpFcntl,
		specIdentity: s.Identity,
		specHold:     s.NeedsStop,
		specNoReturn: s.NoReturn,
		specPosition: movesPosition(s.Op),
		specOffer:    s.ValueResultArg > 0,
		specInner:    inner(s),
		specEnds:     s.Op.TellsEnds() == event.EndsAlways,
		specSends:    s.Op.TellsEnds() == event.EndsOfDatagrams,
		specSlots:    s.Op == event.OpIoUringRegister,

		specAIOSubmit: s.Op == event.OpIoSubmit,
		specAIOReap:   s.Op == event.OpIoGetevents || s.Op == event.OpIoPgetevents,
		specAIOEnd:    s.Op == event.OpIoDestroy,
	} {
		if set {
			r.Flags |= flag
		}
	}
	if s.Op == event.OpIoSetup || s.Op == event.OpIoUringSetup {
		r.Queue = 1
	}
	if s.Facts {
		r.Facts = 1
	}
	for i, arg := range s.Objects() {
		r.Objects[i] = uint8(arg)
		r.Nobjects++
	}
	if s.NeedsStop {
		r.HoldArg = uint8(s.MovedFrom())
		r.HoldKeep = content.Of(s, s.MovedFrom()).Bytes()
	}
	if s.ValueResultArg > 0 {
		r.OfferArg = s.ValueResultArg - 1
		if s.Args[r.OfferArg].Len == event.LenMsg {
			r.OfferOff = namelenOffset
		}
	}
	r.Name = uint8(s.NameArg() + 1)
	reads, writes := s.Moves()
	if reads {
		r.Moves |= movesRead
	}
	if writes {
		r.Moves |= movesWritten
	}
	if s.CountsMessages() {
		r.Moves |= movesMessages
	}
	for _, i := range s.Memory() {
		a := &s.Args[i]
		if a.Len == event.LenSlots {
			continue // found by the programs themselves
		}
		r.Caps[r.Ncaps] = memoryOf(a, i, arch)
		r.Caps[r.Ncaps].Keep = keep(s, i, content)
		r.Ncaps++
		switch a.When {
		case event.AtEntry:
			r.Flags |= specEntry
		case event.AtBoth:
			r.Flags |= specBefore
		}
	}
	return r
}

// keep returns how many bytes of the content of an argument are wanted.
func keep(s *event.Spec, i int, content capture.Content) uint32 {
	switch s.Args[i].Len {
	case event.LenMsg, event.LenMsgs:
		i = event.PartData.Of(i)
	}
	return content.Of(s, i).Bytes()
}

// namelenOffset is where struct msghdr has msg_namelen.
const namelenOffset = 8

// memoryOf returns the programs' form of a memory argument.
func memoryOf(a *event.Arg, i int, arch event.Arch) Cap {
	c := Cap{
		Arg: uint8(i), Kind: uint8(a.Kind), Dir: uint8(a.Dir), When: uint8(a.When), Len: uint8(a.Len), LenArg: a.LenArg,
		CondArg: a.Cond.Arg, CondBits: a.Cond.Bits, CondMask: a.Cond.Mask, Bytes: a.Bytes(arch),
		TailOff: a.Tail.Off, TailWidth: a.Tail.Width, TailMax: a.Tail.Max, TailPtr: a.Tail.Ptr, TailElem: a.Tail.Elem,
	}
	switch a.Len {
	case event.LenArg, event.LenRet:
		c.Bytes = a.Const
	case event.LenPages:
		c.Bytes = uint32(os.Getpagesize())
	}
	switch a.Layout {
	case event.LayoutFDPair:
		c.Flags = capFDs
	case event.LayoutCloneRange:
		c.Flags = capFDHead
	case event.LayoutDedupeRange:
		c.Flags = capFDTail
	}
	return c
}

// inner reports whether descriptors may stand in a call's memory.
func inner(s *event.Spec) bool {
	for i := range s.Args {
		switch a := &s.Args[i]; {
		case a.Len == event.LenMsg, a.Len == event.LenMsgs, a.Layout == event.LayoutFDPair, s.Op == event.OpIoctl:
			return true
		}
	}
	return false
}

// CommandRows returns the table of commands by its keys.
func CommandRows(arch event.Arch) (keys []uint64, rows []Cap) {
	for _, c := range event.Commands() {
		row := memoryOf(&c.Arg, 0, arch)
		if c.Made {
			row.Flags |= capMade
		}
		keys, rows = append(keys, uint64(c.Op)<<32|uint64(c.Value)), append(rows, row)
	}
	return keys, rows
}

// movesPosition reports whether a call reads or writes at a file's position.
func movesPosition(op event.Op) bool {
	switch op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		return true
	}
	return false
}

// What calls have to do with mapped files (record/capture/ebpf/bpf/stores.h).
const (
	useNone = iota
	useMmap
	useMprotect
	useMunmap
	useMsync
	useRead
	usePread
	useCopy
	useSend
	useSync
	useSyncAll
	useExec
	useWrite
	usePwrite
	useTruncate
	useFtruncate
	useOpen
	useOpenat
	useOpenat2
	useCreat
	useAllocate
	useClone
)

func mappedUse(op event.Op) uint8 {
	switch op {
	case event.OpMmap:
		return useMmap
	case event.OpMprotect, event.OpPkeyMprotect:
		return useMprotect
	case event.OpMunmap, event.OpMremap:
		return useMunmap
	case event.OpMsync:
		return useMsync
	case event.OpRead, event.OpReadv:
		return useRead
	case event.OpPread64, event.OpPreadv, event.OpPreadv2:
		return usePread
	case event.OpCopyFileRange, event.OpSplice:
		return useCopy
	case event.OpSendfile:
		return useSend
	case event.OpFsync, event.OpFdatasync, event.OpSyncFileRange:
		return useSync
	case event.OpSync, event.OpSyncfs:
		return useSyncAll
	case event.OpExecve, event.OpExecveat:
		return useExec
	}
	return changingUse(op)
}

// changingUse is for calls that change what a file holds.
func changingUse(op event.Op) uint8 {
	switch op {
	case event.OpWrite, event.OpWritev:
		return useWrite
	case event.OpPwrite64, event.OpPwritev, event.OpPwritev2:
		return usePwrite
	case event.OpTruncate:
		return useTruncate
	case event.OpFtruncate:
		return useFtruncate
	case event.OpOpen:
		return useOpen
	case event.OpOpenat:
		return useOpenat
	case event.OpOpenat2:
		return useOpenat2
	case event.OpCreat:
		return useCreat
	case event.OpFallocate:
		return useAllocate
	case event.OpIoctl:
		return useClone
	}
	return useNone
}

// opensBy says in which arguments a call has the name and the flags of what it opens
// (struct spec, opens); 0 if it does not open by a name.
func opensBy(op event.Op) uint16 {
	switch op {
	case event.OpOpen:
		return 1 | 2<<8
	case event.OpOpenat:
		return 2 | 3<<8
	case event.OpCreat:
		return 1
	}
	return 0
}
