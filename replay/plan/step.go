// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"unsafe"

	"github.com/iotape/iotape/event"
)

// StepKind is how a step is done.
type StepKind uint8

// The kinds.
const (
	StepTask  StepKind = iota // a task with everything that it needs
	StepRead                  // a plain read into one buffer
	StepWrite                 // a plain write from one
)

// Step is a task as its worker gets it. The calls that tapes consist of mostly, reads and
// writes of one buffer that succeeded, are no more than a step; all others have a task. A
// batch has many steps, so a step is small: what it takes of the caches is a fraction of what
// its call takes.
type Step struct {
	Kind      StepKind
	Compare   bool   // the content that is to be read is known
	Short     bool   // it took so little that the thread need not give way to others
	HasOffset bool   // Offset is passed; else the call goes on from the file's position
	Number    uint16 // of the system call
	Op        event.Op
	Count     uint32 // bytes asked for
	TID       uint32
	Seq       uint64
	Offset    int64
	Ret       int64 // as recorded
	Handle    *Handle
	Task      *Task
	data      *byte  // what is written or, without sums, to be read
	size      uint32 // bytes of data
	Deps      uint32 // how many of the batch's dependencies it waits for
	SumsAt    uint32 // the first of the batch's sums that are to be read
	Sums      uint32 // how many there are
}

// HasBytes reports whether the step has data.
func (s *Step) HasBytes() bool { return s.data != nil }

// Bytes returns the step's data, nil if there are none.
func (s *Step) Bytes() []byte { return unsafe.Slice(s.data, s.size) }

// SetBytes makes b the step's data.
func (s *Step) SetBytes(b []byte) { s.data, s.size = unsafe.SliceData(b), uint32(len(b)) }

// clearContent takes the step's content away.
func (s *Step) clearContent() { s.data, s.size, s.Sums, s.Compare = nil, 0, 0, false }

// StepBytes is the memory that a Step takes.
const StepBytes = int64(unsafe.Sizeof(Step{}))
