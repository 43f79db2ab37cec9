// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"math"
	"unsafe"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/internal/bpf"
)

// Sizes of inproc/layout.h. A test compares them with the compiled code.
const (
	tableCalls  = 512
	tableRows   = 384
	clocks      = 64
	descriptors = 1024
	devices     = 16
	commandRoom = 1024

	watchedFiles = 16
	slotBytes    = 16384
)

// class is what is done with a call, by its number.
type class uint8

const (
	classPass   class = iota // made, not recorded
	classRecord              // made and recorded in the process
	classLate                // made in the process, recorded by the tracer when it has returned
	classCheck               // the process decides, by its arguments
	classTrace               // made and recorded by the tracer
)

// What the code in the process has to look at before a call.
const (
	checkNone = iota
	checkPosition
	checkClose
	checkControl
	checkFiles
	checkMmap
	checkRange
	checkOffer
	checkMask
	checkReturn
	checkWait
	checkAction
	checkOpen
	checkShare
	checkShare1
	checkMove
	checkRing
	checkRequest
)

// What the memory of a command is.
const (
	commandUnused = iota
	commandNone
	commandIn
	commandOut
	commandTrace
)

// What the tracer is stopped for.
const (
	reasonNone = iota
	reasonRecord
	reasonRoom
	reasonSignal
	reasonAgain
)

// Where a thread is.
const (
	stateNone = iota
	stateBefore
	stateCalling
	stateAfter
)

// clock converts the time stamp counter: ns = BaseNS + (tsc - BaseTSC) * Mult / 2^32.
type clock struct {
	BaseTSC, BaseNS, Mult, _ uint64
}

// control is what the recorder tells the code in a process.
type control struct {
	Selectors [arenaSlots]selector // of threads, by their slots
	Lo, Hi    uint64
	Clock     uint64
	Sizes     uint64
	Watched   uint64
	Cgroups   uint64
	Stubs     uint64
	Beyond    uint64
	Clocks    [clocks]clock
	Class     [tableCalls]class
	Fast      [tableCalls]class
	Check     [tableCalls]uint8
	Row       [tableCalls]uint16
	Rows      [tableRows]bpf.Spec
	Inodes    [watchedFiles]uint64
	Commands  [commandRoom]command
	Steps     [predicate.MaxPrefilterSteps]bpf.PrefilterStep
	Stacks    [tableRows]uint16

	StackSteps [predicate.MaxPrefilterSteps]bpf.PrefilterStep
}

// command is a command of fcntl or ioctl.
type command struct {
	Value         uint32
	Bytes         uint16
	IOCtl, Memory uint8
}

// descriptor is what the code in a process remembers of one.
type descriptor struct {
	Generation, Lock uint64
	Owned, Counted   uint64
	Position         int64
	Type             uint64
	_                [64]byte // its trace.Object
}

// files is a process's descriptors.
type files struct {
	Generation, Shared uint64
	Left, Masking      uint64
	Action             [4]uint64
	Epoch, Moves, Asks uint64
	Devices            [devices]uint64
	_                  [descriptors]descriptor
}

// slot is a thread, as the code in its process sees it.
type slot struct {
	NR          uint64
	Args        [6]uint64
	Ret         uint64
	Flags       uint64
	RSP         uint64
	Enter, Exit uint64 // time stamp counter
	Result      int64
	State       uint64
	Pending     uint64
	Reason      uint64
	Self        uint64
	Control     uint64
	Files       uint64
	Ring        uint64
	RingBytes   uint64
	PID, TID    uint32
	Head        uint64
	LapEnd      [2]uint64
	Calls       uint64
	Locked      uint64
	Position    int64
	Blocked     uint64
	Last        uint64
	Entry       uint64
	Stub        uint64
	Tail        uint64
	Mask        uint64
	Given       uint64
	Original    uint64
	Was         uint64
	Act         [4]uint64
	Sixth       [2]uint64
	Open        uint64
	Epoch       uint64
	Offered     uint64
	Who         [7]uint64
	Foreign     uint64
	Inherited   uint64
	Frames      uint64
}

// at returns a value that stands in shared memory.
func at[T any](mem []byte, off int) *T {
	if off < 0 || off+int(unsafe.Sizeof(*new(T))) > len(mem) {
		panic("interpose: an offset outside the arena") // a fault of ours: offsets are constants
	}
	return (*T)(unsafe.Pointer(&mem[off]))
}

// args returns the arguments that the program gave, which those of the kernel may not be.
func (s *slot) args() [6]uint64 {
	a := s.Args
	if s.Given > 0 && s.Given <= uint64(len(a)) {
		a[s.Given-1] = s.Original
	}
	return a
}

// offered returns how much room the call under way was told of, MaxUint64 if that is not known.
func (s *slot) offered() uint64 {
	if checks[int(s.NR)] != checkOffer {
		return math.MaxUint64
	}
	return s.Offered
}
