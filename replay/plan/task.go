// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"sync/atomic"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/order"
)

// Action is what is done for a task.
type Action uint8

// The actions.
const (
	Emulate     Action = iota // nothing but what the task closes and publishes
	MakeCall                  // the system call itself
	CopyIn                    // write recorded bytes in place of a copy from what is simulated
	CopyOut                   // read and check in place of a copy to what is simulated
	CloneRange                // FICLONE and FICLONERANGE, or a copy where the target cannot
	DedupeRange               // FIDEDUPERANGE
	EnterDir                  // go to the recording's first working directory
	OpenAtStart               // open what was open at the start
	NameSocket                // make the name that a bind made
	LockFile                  // flock
	LockRange                 // a lock of fcntl
	SyncMapped                // msync
)

// Handle is an open file of the recording and, unless it is simulated, the replay's
// descriptor for it.
type Handle struct {
	FD      int    // set by the task that opens it, before any task that uses it; -1: none
	FIFO    bool   // set like FD, where there may be FIFOs
	Path    string // as recorded
	Listing Listing
	opener  order.Ref // the task that opens it
	users   []order.Ref
	// listedFrom is when a directory was opened or rewound for its listing, in the recording, ns; 0 if
	// that is not known.
	listedFrom int64
}

// NewHandle returns the handle of a file that is not open yet.
func NewHandle(path string) *Handle { return &Handle{FD: -1, Path: path} }

// Task is what is done for one event. It owns everything that it points to, but for handles
// and lock owners.
type Task struct {
	Event  event.Event
	Op     event.Op // as recorded; the Event of a request is the call that does its work
	Action Action
	Why    Reason // the call is not made
	Omits  bool   // what is not made changed the recording's tree
	Step   Step   // for a plain read or write: all that it needs
	// State is what the event's thread had around it.
	eventsource.State

	Order   Order
	Files   Files
	Locks   Locks
	Dir     Dir
	Content Content
	Time    Time
	// Unsure are names that a listing may show or not.
	Unsure []string
}

// Order is when a task is done.
type Order struct {
	Ref    order.Ref
	Deps   []order.Ref // to be done first
	Waits  []Wait      // to be done first, by the tape's annotations
	Idle   bool        // there is nothing to be done, or to be waited for
	Member int         // of a team: the one that does it
	// Done gets the time when it was done, by the replay's clock; nil: it is not wanted.
	Done *atomic.Int64
}

// Files are the open files of a task. Nil ones are simulated.
type Files struct {
	FDs [event.MaxArgs]*Handle // by argument
	// Through are the open files that a path argument goes through, as in /proc/self/fd/7.
	Through [event.MaxArgs]*Handle
	Others  []*Handle // that are named in an ioctl's argument
	Result  *Handle   // opened by the task
	Closes  []*Handle
}

// Locks are the locks of fcntl that a task takes or ends.
type Locks struct {
	Owner *LockOwner
	Ends  []*LockOwner
}

// Dir is what a task has to do with working directories, which have the identities of
// package posix; 0 is none.
type Dir struct {
	From    uint64 // where relative names start; 0 if there are none
	Sets    uint64 // after a successful change
	Publish bool   // other threads will need it
}

// Content is what a task writes and should read.
type Content struct {
	Data    []byte             // to write
	Want    []byte             // to be read
	Sums    []content.ChunkSum // the same, known by sums, in place of Want
	Missing bool               // the tape does not have all of Want or Data
	Tainted bool               // what it reads was made up by the replay
	// Large is what a write of very many bytes writes, in place of Data: it is taken out of the tape
	// a part at a time.
	Large  *event.Buf
	inline []byte // small content of the event
}

// Time is how long a thread takes before a task, as recorded, ns.
type Time struct {
	Think int64 // computing since the thread's last task
	Sleep int64 // after all that the task waits for
}

// MemoryBytes is about how much memory a task takes, with what it points to but its content.
const MemoryBytes = 4096

// ContentBytes returns how much memory the task's content takes.
func (t *Task) ContentBytes() int64 {
	c := &t.Content
	return int64(cap(c.Data)+cap(c.Want)+cap(c.inline)) + int64(cap(c.Sums))*content.ChunkSumBytes
}

// Shrink lets go of the memory of large content.
func (t *Task) Shrink() {
	if cap(t.Content.Data)+cap(t.Content.Want) > 1<<20 {
		t.Content.Data, t.Content.Want = nil, nil
	}
}

// MakesCall reports whether the task makes a recorded call, or does what stands for it.
func (t *Task) MakesCall() bool { return t.Action != Emulate && t.Event.Kind == event.Call }

// reset makes the task ready for another event, and keeps its memory.
func (t *Task) reset() {
	*t = Task{
		Event: t.Event,
		State: eventsource.State{Released: t.Released[:0]},
		Order: Order{Deps: t.Order.Deps[:0], Waits: t.Order.Waits[:0]},
		Files: Files{Closes: t.Files.Closes[:0], Others: t.Files.Others[:0]},
		Content: Content{
			inline: t.Content.inline[:0], Data: t.Content.Data[:0], Want: t.Content.Want[:0], Sums: t.Content.Sums[:0],
		},
	}
}

// copyState copies the state around the event, which belongs to the event source.
func (t *Task) copyState(s *eventsource.State) {
	released := append(t.Released, s.Released...)
	t.State = *s
	t.Released = released
}

// copyBuffers copies the content of the event, which belongs to the tape's reader: a task
// outlives many events.
func (t *Task) copyBuffers() {
	n := 0
	for i := range t.Event.Bufs {
		n += len(t.Event.Bufs[i].Inline)
	}
	inline := slices.Grow(t.Content.inline, n)
	for i := range t.Event.Bufs {
		b := &t.Event.Bufs[i]
		at := len(inline)
		inline = append(inline, b.Inline...)
		b.Inline = inline[at:len(inline):len(inline)]
	}
	t.Content.inline = inline
}

// IsRequest reports whether a task's call was a request.
func (t *Task) IsRequest() bool { return t.Op != t.Event.Op && t.Event.Kind == event.Call }

// Bytes returns how many bytes a task moves.
func (t *Task) Bytes() int64 { return t.Event.Traffic().Bytes() }
