// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/trace"
)

// Mmap is the policy for files that programs map into memory.
type Mmap string

// The policies.
const (
	// MmapData records pages read through mappings, with content, and what is stored
	// through shared ones. Of programs and libraries, only that a page was used for
	// the first time in the recording, without its content.
	MmapData    Mmap = "data"
	MmapFull    Mmap = "full"    // programs and libraries like other files
	MmapWritten Mmap = "written" // stores only
	MmapOff     Mmap = "off"
)

// ParseMmap checks a policy's name.
func ParseMmap(s string) (Mmap, error) {
	switch m := Mmap(s); m {
	case MmapData, MmapFull, MmapWritten, MmapOff:
		return m, nil
	}
	return "", fmt.Errorf("mmap %q is none of data, full, written and off", s)
}

// Overflow is what happens when a program produces faster than the recorder
// writes.
type Overflow string

// The choices.
const (
	OverflowBlock Overflow = "block" // the producing thread is held; nothing is lost
	OverflowDrop  Overflow = "drop"  // records are dropped, counted, and the loss is written where it happened
)

// ParseOverflow checks a choice's name.
func ParseOverflow(s string) (Overflow, error) {
	switch o := Overflow(s); o {
	case OverflowBlock, OverflowDrop:
		return o, nil
	}
	return "", fmt.Errorf("on-overflow %q is neither block nor drop", s)
}

// Options says what to record and how: a command, or what runs already, and then
// one of PIDs, Cgroup and All. The zero value of each other field is its default.
type Options struct {
	Command []string
	PIDs    []int  // processes, with all that descend from them
	Cgroup  string // directory of a version 2 control group, with those below it
	All     bool   // the whole machine but for the recorder

	Dir string   // working directory; "" is the recorder's own
	Env []string // environment; nil is the recorder's own
	// Credential is who the command runs as; nil is the recorder's own user.
	Credential *syscall.Credential

	Content  Content
	Overflow Overflow    // "" is block
	Environ  running.Env // of the recorded processes; "" is names
	// EveryCall makes a back end that lets frequent calls without meaning for storage
	// through record them too.
	EveryCall bool
	// Survive makes a back end whose programs would end with a killed recorder record
	// in another way, slower, in which they do not.
	Survive bool
	Mmap    Mmap // "" is data
	// Sizes asks for the size of each call's files, also where that costs time: for a part of a
	// recording, which may not have what made them.
	Sizes bool
	// Prefilter, if set, says which calls need not be recorded: a back end may leave out
	// what it refuses. It refuses no call that others need to be understood.
	Prefilter *predicate.Prefilter
	// RingBytes is the total size of the buffers between kernel and recorder,
	// rounded up to what the kernel takes. 0 is 128 MiB, or less where threads are held rather
	// than records lost.
	RingBytes int
	// Latency is how long a record may stay in these buffers while they have room: each look
	// at them costs processor time. 0 is 20 ms.
	Latency time.Duration
	// HoldMax is how long threads are held for a recorder that does not go on, because it reads from a file system
	// that does not answer, for example. Then they go on, and what that loses is counted. 0 is without end.
	HoldMax time.Duration
	// Keep are signals to the recorder that its caller takes itself: they neither end the
	// recording nor reach the command.
	Keep []syscall.Signal
	// Suspend, if set, stops the recorder in place of a SIGSTOP to itself, when it and the command are to stop
	// together (the terminal's Ctrl-Z).
	Suspend func()
	// Stacks, if set, says of which calls the stacks are recorded, too. A back end that cannot returns an
	// UnsupportedError.
	Stacks *Stacks
	// Wakeups records who woke whom.
	Wakeups bool
	// BlockRequests records the requests to block devices, of the whole machine.
	BlockRequests bool
	Stdin         *os.File // nil is the recorder's own
	Stdout        *os.File
	Stderr        *os.File
	// Started, if set, is called with the command's process id once it runs; with 0
	// when processes that run already are followed.
	Started func(pid int)
	// Attached, if set, is called before Started with what runs already and is followed now.
	Attached func(running.Count)
	// Control, if set, is called before Started with what changes the recording while it
	// goes on. A back end that cannot be changed does not call it.
	Control func(Control)
	// Note, if set, is called with a line about something that the user should know
	// while the recording goes on.
	Note func(line string)
}

// Running reports whether the recording is of what runs already. Such a recording is
// ended by the recorder's own signals, and ends by itself with the last process of
// PIDs or with Cgroup.
func (o *Options) Running() bool { return len(o.PIDs) > 0 || o.Cgroup != "" || o.All }

// Control changes a recording that is under way. It may be used from any goroutine until
// Run returns; then it does nothing.
type Control interface {
	// Open makes the recording have all calls that are made when it returns and after,
	// whatever Options.Prefilter or Narrow's refuses.
	Open() error
	// Narrow lets the recording leave out what a prefilter refuses, of calls that begin when
	// it is called or after. It may leave out less. nil is as Open.
	Narrow(s *predicate.Prefilter) error
}

// Result is what came of a recording.
type Result struct {
	ExitStatus int    // of the command
	Signal     int    // that ended the command; 0 if it exited
	Events     uint64 // calls recorded
	Lost       uint64 // records
	Stops      uint64 // times that a thread was held back; interpose: stopped for a call
	Unpatched  uint64 // interpose: calls at places that were not patched when they were made
	Elapsed    time.Duration
	// WriteErr is the first error of the stream's writer, if recording had to go
	// on without one (a full disk): what came after is lost, and counted.
	WriteErr error
}

// Backend is a back end. Run records until the last followed process has ended.
// It passes nothing to the program but what the program would have got without
// it; when ctx is cancelled it stops recording and leaves the programs running.
type Backend interface {
	Name() string
	Run(ctx context.Context, o *Options, sw *trace.StreamWriter) (*Result, error)
}

// UnsupportedError says which feature a back end lacks on this machine.
type UnsupportedError struct {
	Backend string
	Feature string // what is missing, as a noun phrase
	Reason  error
}

func (e *UnsupportedError) Error() string {
	if e.Reason != nil {
		return fmt.Sprintf("%s capture needs %s: %v", e.Backend, e.Feature, e.Reason)
	}
	return fmt.Sprintf("%s capture needs %s", e.Backend, e.Feature)
}

// Short is Error without the reason where that says no more than the feature: that the recorder has not the right.
func (e *UnsupportedError) Short() string {
	if errors.Is(e.Reason, syscall.EPERM) || errors.Is(e.Reason, syscall.EACCES) {
		return fmt.Sprintf("%s capture needs %s", e.Backend, e.Feature)
	}
	return e.Error()
}

func (e *UnsupportedError) Unwrap() error { return e.Reason }
