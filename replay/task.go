package replay

import (
	"slices"
	"sync/atomic"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/order"
)

// action is what a worker does with a task.
type action uint8

const (
	emulate     action = iota // nothing but what the task closes and publishes
	call                      // the system call itself
	copyIn                    // write recorded bytes in place of a copy from what is simulated
	copyOut                   // read and check in place of a copy to what is simulated
	clone                     // FICLONE and FICLONERANGE, or a copy where the target cannot
	dedupe                    // FIDEDUPERANGE
	enterDir                  // go to the recording's first working directory
	openAtStart               // open what was open at the start
	nameSocket                // make the name that a bind made
	lockFile                  // flock
	lockRange                 // a lock of fcntl
	syncMapped                // msync
)

// handle is an open file of the recording and, unless it is simulated, the
// replay's descriptor for it.
type handle struct {
	fd     int       // set by the task that opens it, before any task that uses it
	broken bool      // the open went wrong; set like fd
	fifo   bool      // set like fd, where there may be FIFOs
	made   order.Ref // the task that opens it
	users  []order.Ref
	path   string
	dir    listing
	// listedFrom is when its listing began, in the recording; 0 if none goes on.
	listedFrom int64
}

// task is one event, ready to be done. It owns everything that it points to.
type task struct {
	ref    order.Ref
	deps   []order.Ref // to be done first
	ev     event.Event
	op     event.Op // as recorded; ev of a request is the call that does its work
	action action
	step   step // for what needs no task
	idle   bool // there is nothing to be done, or to be waited for
	lane   int  // its slot

	eventsource.State
	fds [event.MaxArgs]*handle
	// through are the open files that a path argument goes through, as in
	// /proc/self/fd/7.
	through [event.MaxArgs]*handle
	others  []*handle // that stand in an ioctl's argument; nil: simulated
	result  *handle   // made by this task
	closes  []*handle
	owner   *owner   // of a lock
	unlock  []*owner // locks that end

	dir     uint64   // identity of the working directory that relative names start from; 0 if none do
	setsDir uint64   // identity after a successful change
	publish bool     // other threads will need the working directory
	inline  []byte   // small content of the event
	data    []byte   // content to write
	want    []byte   // content to expect
	parts   []part   // the same, known by hashes: instead of want
	noWant  bool     // the tape does not have all of it, or of what is written
	madeUp  bool     // what it reads is the replay's own invention
	why     reason   // the call is not made
	exited  bool     // last task of its node
	part    int      // of a team, that does it
	think   int64    // ns of computing since the node's last task
	unsure  []string // names that a listing may show or not
	sleep   int64    // ns for which the call waited for nobody here
	awaits  []await
	at      *atomic.Int64 // is told when it was done, on clock; nil: nobody asks
}

func (t *task) reset() {
	*t = task{
		ev: t.ev, State: eventsource.State{Released: t.Released[:0]}, deps: t.deps[:0], awaits: t.awaits[:0], closes: t.closes[:0], others: t.others[:0], inline: t.inline[:0], data: t.data[:0], want: t.want[:0], parts: t.parts[:0],
	}
}

// take copies the state around a task's event, which the reader only lends.
func (t *task) take(s *eventsource.State) {
	released := append(t.Released, s.Released...)
	t.State = *s
	t.Released = released
}

// own copies what the reader only lends: a task outlives many events.
func (t *task) own() {
	n := 0
	for i := range t.ev.Bufs {
		n += len(t.ev.Bufs[i].Inline)
	}
	t.inline = slices.Grow(t.inline, n)
	for i := range t.ev.Bufs {
		b := &t.ev.Bufs[i]
		at := len(t.inline)
		t.inline = append(t.inline, b.Inline...)
		b.Inline = t.inline[at:len(t.inline):len(t.inline)]
	}
}
