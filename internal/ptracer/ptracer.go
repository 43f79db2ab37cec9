// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/sysmon"
)

// Command is what to run.
type Command struct {
	Argv  []string    // Argv[0] is looked up in PATH unless it has a slash
	Dir   string      // working directory; "" is the recorder's own
	Env   []string    // environment; nil is the recorder's own
	Files [3]*os.File // stdin, stdout, stderr; nil is the recorder's own

	// Credential is who the command runs as; nil is the recorder's own user.
	Credential *syscall.Credential

	// Filter is a seccomp program that the command and its children run under;
	// nil is none. Calls for which it returns SECCOMP_RET_TRACE stop
	// (Handler.Enter). An ordinary user's filter needs no_new_privs, which is set
	// only if the kernel refuses the filter without.
	Filter []unix.SockFilter

	// EveryCall makes all calls stop (Handler.Enter), without a filter: slower, since
	// calls that are not wanted stop too, but the programs can do without a tracer.
	EveryCall bool

	// Gate, if set, is called when the command's process exists and is stopped at
	// the entry of its execve, before the kernel's sys_enter tracepoint: the first
	// call that is to be recorded. An error ends the process and is returned by
	// Run.
	Gate func(pid int) error

	// Keep are signals that the caller takes itself, such as one to read a configuration
	// again: they neither end Run nor reach the command.
	Keep []syscall.Signal

	// Suspend, if set, stops this process in place of a SIGSTOP to itself, when it and the command are to stop
	// together (the terminal's Ctrl-Z).
	Suspend func()

	// Attach, if set, is called instead of starting a command: it follows threads
	// that run already (Engine.Seize). Of the other fields only Keep and Leaving count. Run
	// goes on, whether threads are followed or not, until ctx is cancelled, or until
	// Idle, if set, says that none is to come; it is asked again and again while none
	// is followed.
	Attach func() error
	Idle   func() bool

	// Leaving, if set, is called when Run is cancelled, before threads are let go,
	// while stops are still handled. It may wait.
	Leaving func()
}

// Status is how the command ended.
type Status struct {
	PID      int
	Exit     int            // exit status if Signal is 0
	Signal   syscall.Signal // that ended the command
	Ended    bool           // false if Run was cancelled before the command ended
	Detached bool           // Run was cancelled and left programs running
}

// Tracee is a followed thread. Its fields may be used in callbacks and in
// functions given to Do.
type Tracee struct {
	TID  int
	PID  int // thread group
	Data any // the handler's own
	// Seen is when the stop that a callback is about was taken from the kernel, by
	// Handler.Clock: the callback itself may come after those of up to 31 others.
	Seen uint64

	// EveryCall makes all its calls stop, as Command.EveryCall does for all threads.
	EveryCall bool

	tr        *Engine
	stopped   bool           // in a ptrace stop that nobody has resumed
	at        Stop           // which
	born      bool           // has had its first stop
	wantCall  bool           // its next call is to stop
	held      bool           // stopped until Resume
	sig       syscall.Signal // to deliver on resume
	wantExit  bool           // inside a call that is to stop at its end
	wantLeave bool           // and Handler.Leave is to be told
	gone      bool

	nr          uint64      // of the call under way, if it stopped at its entry
	inCall      bool        // nr is known
	hidden      hiddenFlags // of the call under way
	interrupted bool        // by Gather: its first stop may have ended a call
}

// Syscall is a call at its entry.
type Syscall struct {
	NR     uint64
	Args   [6]uint64
	Arch   uint32 // AUDIT_ARCH_* of the call
	Compat bool   // not the native ABI: NR is of another table
}

// Siginfo is the part of siginfo_t that all senders fill.
type Siginfo struct {
	Signo, Errno, Code int32
	_                  int32
	PID                int32 // for SI_USER, SI_QUEUE, SI_TKILL
	UID                uint32
	_                  [104]byte
}

// SysArch returns the AUDIT_ARCH_* of the call that a SIGSYS is about.
func (i *Siginfo) SysArch() uint32 {
	return *(*uint32)(unsafe.Add(unsafe.Pointer(i), 28)) // _sigsys._arch
}

// Address returns the address that a fault is about.
func (i *Siginfo) Address() uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(i), 16)) // _sigfault._addr
}

// Bytes returns the information as the kernel has it in memory: valid as long as i.
func (i *Siginfo) Bytes() []byte { return unsafe.Slice((*byte)(unsafe.Pointer(i)), unsafe.Sizeof(*i)) }

// Signal codes (asm-generic/siginfo.h).
const (
	SIUser          = 0
	SIKernel        = 0x80
	SysUserDispatch = 2 // of SIGSYS
)

// Verdict is what becomes of a signal.
type Verdict int

// The verdicts.
const (
	Deliver Verdict = iota // unchanged
	Swallow                // the thread goes on without it
	Hold                   // swallowed, and the thread stays stopped until Tracee.Resume
)

// Handler is told what happens. Fields may be nil. See the package's rules for
// what callbacks may do.
type Handler struct {
	// Clock, if set, tells the time for Tracee.Seen.
	Clock func() uint64
	// Fork: child was made by parent and has not run yet. It is called before
	// anything else about child. parent is nil in the rare case that it was killed
	// before it could report, else it is inside its fork, vfork or clone call.
	Fork func(parent, child *Tracee)
	// Exec: t succeeded in execve; its memory is the new program's. If t was not
	// its group's leader it took over the leader's TID: oldTID is what it had and
	// replaced is the leader that vanished (no Exit is reported for it). Otherwise
	// oldTID is t.TID and replaced is nil.
	Exec func(t *Tracee, oldTID int, replaced *Tracee)
	// Enter: t is about to make a call that the filter selects. The result says
	// whether Leave is wanted. The first is the stub's execve of the command.
	Enter func(t *Tracee, c *Syscall) bool
	// Leave: the call of the last Enter returned (raw result, -errno on failure).
	Leave func(t *Tracee, ret int64)
	// Signal: sig is about to be delivered to t.
	Signal func(t *Tracee, sig syscall.Signal, info *Siginfo) Verdict
	// Birth: t, which Fork told of, has not run an instruction yet and is stopped.
	Birth func(t *Tracee)
	// Dispatched: Syscall User Dispatch kept t from making a call.
	Dispatched func(t *Tracee, info *Siginfo)
	// Dispatching, for Dispatched, makes the registers of a thread, which is stopped, such that it can go on
	// with or without the signal. The kernel forgets a signal that the tracer has taken when the tracer is killed.
	Dispatching func(tid int, info *Siginfo)
	// Dying: t has begun to end, and is stopped; its memory and its descriptors are still there. If the call that
	// it was killed in had come to its end, Leave was told of it. (On amd64 alone.)
	Dying func(t *Tracee)
	// Exit: t ended and is reaped.
	Exit func(t *Tracee, status unix.WaitStatus)
}

// Engine runs one command.
type Engine struct {
	cmd   Command
	h     *Handler // what is told now: given, or one without callbacks
	given *Handler // to New: other goroutines ask its clock

	tid     int // of the tracing thread
	root    int // the command's process
	phase   phase
	status  Status
	tracees map[int]*Tracee
	early   map[int]earlyStop // stopped children whose fork event is still to come
	dead    map[int]unix.WaitStatus
	options uintptr
	leaving bool // cancelled: detach at the next stop of each
	// gathering says that threads stay stopped wherever they stop (Gather).
	gathering bool
	parting   bool // they are about to be let go (part)
	gateErr   error

	mu      sync.Mutex
	queue   []func()
	kick    chan struct{} // Do was called: to wake
	called  chan struct{} // the same, to linger
	waiting atomic.Bool   // in wait4
	since   atomic.Uint64 // when the first of the stops was taken that are handled, or were last
	jobs    jobControl
}

// phase is how far the stub has come.
type phase int

const (
	inStub   phase = iota // before its execve
	inExec                // in its execve
	running               // it is the command
	stubDead              // its execve failed
)

type earlyStop struct {
	status unix.WaitStatus
	since  time.Time
	seen   uint64
}

// New returns a tracer for a command. h may be changed until Run is called.
func New(cmd *Command, h *Handler) *Engine {
	return &Engine{
		cmd: *cmd, h: h, given: h, kick: make(chan struct{}, 1), called: make(chan struct{}, 1),
		tracees: map[int]*Tracee{}, early: map[int]earlyStop{}, dead: map[int]unix.WaitStatus{},
	}
}

// ErrBusy is returned by Run for a command when another one is under way in this process:
// the terminal can be only one's. What runs already may be followed beside it.
var ErrBusy = errors.New("a command is being traced already")

var busy sync.Mutex

// SetupError says what Run needs and this machine does not give.
type SetupError struct {
	Feature string // a noun phrase
	Err     error
}

func (e *SetupError) Error() string { return fmt.Sprintf("tracing needs %s: %v", e.Feature, e.Err) }

func (e *SetupError) Unwrap() error { return e.Err }

// Run runs the command and returns when the last followed thread has ended, or,
// without a filter, soon after ctx is cancelled.
//
// It traces on a thread that ends before it returns, and lets go of what is still
// followed by that: the kernel then detaches from threads wherever they are, where
// PTRACE_DETACH would have to stop them first, and so interrupt calls.
func (tr *Engine) Run(ctx context.Context) (st Status, err error) {
	if tr.cmd.Attach == nil {
		if !busy.TryLock() {
			return Status{}, ErrBusy
		}
		defer busy.Unlock()
	}
	const waiting = 2 // the tracing thread, and one of the caller's
	defer sysmon.Calm(waiting)()
	onThread(func() { st, err = tr.run(ctx) })
	return st, err
}

// onThread calls f on a thread that ends with it.
func onThread(f func()) {
	ended := make(chan int)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends here
		if unix.Gettid() == unix.Getpid() {
			// The runtime never ends a process's first thread, which cannot run a
			// second goroutine while this one has it.
			onThread(f)
			runtime.UnlockOSThread()
			close(ended)
			return
		}
		defer func() { ended <- unix.Gettid() }()
		f()
	}()
	tid, ok := <-ended
	for ok && unix.Tgkill(unix.Getpid(), tid, 0) == nil {
		time.Sleep(100 * time.Microsecond)
	}
}

func (tr *Engine) run(ctx context.Context) (Status, error) {
	tr.tid = unix.Gettid()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopWaking, err := tr.startWaking()
	if err != nil {
		return Status{}, err
	}
	defer stopWaking()
	tr.jobs.pause = tr.cmd.Suspend
	defer tr.jobs.start(cancel, tr.cmd.Keep...)()

	if tr.cmd.Attach != nil {
		return tr.attach(ctx)
	}
	stub, err := tr.start()
	if err != nil {
		return Status{}, err
	}
	defer stub.close()
	defer tr.leaveWhen(ctx)()

	if err := tr.loop(); err != nil {
		return tr.status, err
	}
	if tr.gateErr != nil {
		return tr.status, tr.gateErr
	}
	if tr.phase != running && !tr.status.Detached && tr.status.Signal == 0 {
		return tr.status, stub.failure()
	}
	return tr.status, nil
}

// Do runs f on the tracing thread, soon: between two stops, also while all
// programs run. It does not wait. It is safe from any goroutine; after Run has
// returned f is not called.
func (tr *Engine) Do(f func()) {
	tr.mu.Lock()
	tr.queue = append(tr.queue, f)
	tr.mu.Unlock()
	for _, c := range []chan struct{}{tr.kick, tr.called} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Threads calls f for each followed thread. For callbacks and Do.
func (tr *Engine) Threads(f func(*Tracee)) {
	for _, t := range tr.tracees {
		f(t)
	}
}

// Hold keeps the thread where it is after the callback that calls it, Enter or
// Signal, until Resume.
func (t *Tracee) Hold() { t.held = !t.gone }

// Resume lets a held thread go on, without a signal. It does nothing if the
// thread is not held. For callbacks and Do.
func (t *Tracee) Resume() {
	if t.held && !t.gone {
		t.held = false
		t.tr.resume(t)
	}
}

// HandledUntil returns a time before which no stop was taken that is still to be handled, by
// Handler.Clock. It is safe from any goroutine.
func (tr *Engine) HandledUntil() uint64 {
	now := tr.clock()
	if tr.waiting.Load() { // still: what is taken from now on is taken later
		return now
	}
	return tr.since.Load()
}

// StopAtCall makes the thread's next call stop (Handler.Enter). For callbacks.
func (t *Tracee) StopAtCall() { t.wantCall = true }

// CancelStopAtCall takes StopAtCall back.
func (t *Tracee) CancelStopAtCall() { t.wantCall = false }

// Deliver gives the thread a signal, with what its sender said, when it goes on. For
// callbacks about a signal, and Handler.Dispatched.
func (t *Tracee) Deliver(sig syscall.Signal, info *Siginfo) {
	if info.set(t.TID) == nil {
		t.sig = sig
	}
}

// RunTo lets the thread run until it is about to get a signal of some, which it does not get, for callbacks
// that make it execute code of theirs. It gets others meanwhile; a SIGSTOP is sent to it again. RunTo
// returns false if the thread ended, which Handler.Exit was told of.
func (t *Tracee) RunTo(want ...syscall.Signal) bool {
	again, deliver := false, syscall.Signal(0)
	defer func() {
		if again && !t.gone {
			_ = unix.Tgkill(t.PID, t.TID, syscall.SIGSTOP)
		}
	}()
	for {
		if ptrace(unix.PTRACE_CONT, t.TID, 0, uintptr(deliver)) != nil {
			return false // killed: the loop is told
		}
		deliver = 0
		var ws unix.WaitStatus
		for {
			if _, err := unix.Wait4(t.TID, &ws, unix.WALL, nil); err == unix.EINTR {
				continue
			} else if err != nil {
				return false
			}
			break
		}
		switch sig := ws.StopSignal(); {
		case !ws.Stopped():
			t.tr.ended(t, ws)
			return false
		case event(ws) != 0: // an interrupt or a stop of the group
		case slices.Contains(want, sig):
			return true
		case sig == syscall.SIGSTOP:
			again = true
		default:
			deliver = sig
		}
	}
}

// Held reports whether the thread is stopped until Resume.
func (t *Tracee) Held() bool { return t.held && !t.gone }
