// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
)

// tables say what is done with each call. They are the same for all processes.
type tables struct {
	class, fast [tableCalls]class
	check       [tableCalls]uint8
	row         [tableCalls]uint16
	rows        []bpf.Spec
	commands    [commandRoom]command
	steps       [predicate.MaxPrefilterSteps]bpf.PrefilterStep // of the filter
	stacks      [tableRows]uint16                              // which calls of rows have a stack
	stackSteps  [predicate.MaxPrefilterSteps]bpf.PrefilterStep
}

// checks are the calls that need a look before they are made.
var checks = map[int]uint8{
	unix.SYS_READ: checkPosition, unix.SYS_WRITE: checkPosition, unix.SYS_READV: checkPosition, unix.SYS_WRITEV: checkPosition,
	unix.SYS_LSEEK: checkPosition, unix.SYS_FTRUNCATE: checkPosition,
	unix.SYS_PREADV2: checkMove, unix.SYS_PWRITEV2: checkMove,
	unix.SYS_OPEN: checkOpen, unix.SYS_OPENAT: checkOpen, unix.SYS_CREAT: checkOpen,
	unix.SYS_CLOSE: checkClose, unix.SYS_FCNTL: checkControl, unix.SYS_DUP2: checkShare1, unix.SYS_DUP3: checkShare1,
	unix.SYS_DUP: checkShare, unix.SYS_SENDMSG: checkShare, unix.SYS_SENDMMSG: checkShare, unix.SYS_PIDFD_GETFD: checkShare,
	unix.SYS_IO_URING_SETUP: checkRing, unix.SYS_IO_URING_ENTER: checkRing, unix.SYS_IO_URING_REGISTER: checkRing,
	unix.SYS_MMAP: checkMmap, unix.SYS_MUNMAP: checkRange, unix.SYS_MREMAP: checkRange, unix.SYS_MPROTECT: checkRange,
	unix.SYS_PKEY_MPROTECT: checkRange, unix.SYS_MADVISE: checkRange,
	unix.SYS_CHMOD: checkFiles, unix.SYS_FCHMOD: checkFiles, unix.SYS_FCHMODAT: checkFiles,
	unix.SYS_CHOWN: checkFiles, unix.SYS_FCHOWN: checkFiles, unix.SYS_LCHOWN: checkFiles, unix.SYS_FCHOWNAT: checkFiles,
	unix.SYS_LINK: checkFiles, unix.SYS_LINKAT: checkFiles, unix.SYS_UNLINK: checkFiles, unix.SYS_UNLINKAT: checkFiles,
	unix.SYS_RENAME: checkFiles, unix.SYS_RENAMEAT: checkFiles, unix.SYS_RENAMEAT2: checkFiles, unix.SYS_RMDIR: checkFiles,
	unix.SYS_RECVFROM: checkOffer, unix.SYS_ACCEPT: checkOffer, unix.SYS_ACCEPT4: checkOffer,
	unix.SYS_GETSOCKNAME: checkOffer, unix.SYS_GETPEERNAME: checkOffer, unix.SYS_GETSOCKOPT: checkOffer,
	unix.SYS_IOCTL:          checkRequest,
	unix.SYS_RT_SIGPROCMASK: checkMask, unix.SYS_RT_SIGRETURN: checkReturn, unix.SYS_RT_SIGACTION: checkAction,
	unix.SYS_RT_SIGSUSPEND: checkWait, unix.SYS_PPOLL: checkWait, unix.SYS_PSELECT6: checkWait,
	unix.SYS_EPOLL_PWAIT: checkWait, unix.SYS_EPOLL_PWAIT2: checkWait, unix.SYS_IO_PGETEVENTS: checkWait,
}

// stops are the calls that the tracer has to see before they are made: those that make
// threads or programs, end them, change what our code rests on, or submit requests.
var stops = []int{
	unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_ARCH_PRCTL, unix.SYS_PRCTL, unix.SYS_SECCOMP, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_PTRACE, unix.SYS_CLOSE_RANGE, unix.SYS_SHMAT, unix.SYS_SHMDT, unix.SYS_REMAP_FILE_PAGES,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

func newTables(o *capture.Options, exempt []int) *tables {
	content, filter := o.Content, o.Prefilter
	t := &tables{commands: commandTable()}
	pass := map[int]bool{}
	for _, nr := range exempt {
		pass[nr] = true
	}
	all := bpf.Rows(event.AMD64, content)
	var shared bpf.Common
	bpf.PutPrefilter(&shared, filter, nil)
	t.steps = shared.Prefilter
	if o.Stacks != nil {
		shared = bpf.Common{}
		bpf.PutPrefilter(&shared, o.Stacks.Prefilter, nil)
		t.stackSteps = shared.Prefilter
	}
	for nr := range tableCalls {
		spec := event.Lookup(event.ByNumber(event.AMD64, nr))
		c := classTrace
		switch {
		case pass[nr]:
			c = classPass
		case spec.Op == event.OpUnknown:
		case nr == unix.SYS_RT_SIGRETURN: // it does not return to our code
		case recordable(spec, checks[nr]) && nr != unix.SYS_PIDFD_GETFD: // whose descriptor comes from elsewhere
			c = classRecord
			t.row[nr] = uint16(len(t.rows))
			row := all[nr]
			row.Prefilter = bpf.PrefilterRow(filter, false, spec.Op, row.Flags)
			t.stacks[len(t.rows)] = stackRow(o.Stacks, spec.Op)
			t.rows = append(t.rows, row)
		case late(spec):
			c = classLate
		}
		t.class[nr], t.fast[nr] = c, c
		if check := checks[nr]; check != checkNone && c != classTrace {
			t.class[nr], t.check[nr] = classCheck, check
		}
	}
	for _, nr := range stops {
		t.class[nr] = classTrace
	}
	return t
}

// stackRow says which calls of an operation have a stack, in the form of bpf.Spec.Prefilter.
func stackRow(o *capture.Stacks, op event.Op) uint16 {
	if o == nil {
		return bpf.RowRefuse
	}
	return bpf.ExactRow(o.Prefilter, op)
}

// write puts the tables into a program's control block.
func (t *tables) write(c *control) {
	c.Class, c.Fast, c.Check, c.Row = t.class, t.fast, t.check, t.row
	copy(c.Rows[:], t.rows)
	c.Commands, c.Steps = t.commands, t.steps
	c.Stacks, c.StackSteps = t.stacks, t.stackSteps
}

// recordable reports whether the code in the process can record an operation: all its memory
// is read when it has returned, and its length is a matter of numbers.
func recordable(s *event.Spec, check uint8) bool {
	if !late(s) && check != checkOffer {
		return false
	}
	for i := range s.Args {
		a := &s.Args[i]
		if !a.Kind.IsMemory() || check == checkOffer && a.Len == event.LenPtr {
			continue // the code in the process notes the room that there was
		}
		if a.When != event.AtExit || a.Kind == event.KindStrings {
			return false
		}
		switch a.Len {
		case event.LenNUL, event.LenConst, event.LenArg, event.LenRet, event.LenVec, event.LenVecAll,
			event.LenArray, event.LenRetArray, event.LenPositive, event.LenInterrupted:
		case event.LenCommand:
			if !hasCommands(s.Op) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// late reports whether an operation can be recorded when it has returned.
func late(s *event.Spec) bool {
	if s.NoReturn || s.NeedsStop || s.Identity || s.Facts || s.ValueResultArg > 0 {
		return false
	}
	switch s.Op {
	case event.OpIoSubmit, event.OpIoGetevents, event.OpIoPgetevents, event.OpIoDestroy, event.OpIoSetup:
		return false
	}
	for i := range s.Args {
		if a := &s.Args[i]; a.Kind.IsMemory() && a.When != event.AtExit {
			return false
		}
	}
	return true
}

// hasCommands reports whether commandTable has the commands of an operation.
func hasCommands(op event.Op) bool { return op == event.OpFcntl || op == event.OpIoctl }

// commandTable returns the commands of fcntl and ioctl whose numbers do not say what their memory is, as
// command_at of inproc/command.h finds them.
func commandTable() (t [commandRoom]command) {
	for _, c := range event.Commands() {
		if !hasCommands(c.Op) {
			continue
		}
		row := command{Value: c.Value, Memory: commandTrace}
		if c.Op == event.OpIoctl {
			row.IOCtl = 1
		}
		n := c.Arg.Bytes(event.AMD64)
		switch {
		case c.Made || c.Arg.Kind == event.KindFD:
		case !c.Arg.Kind.IsMemory():
			row.Memory = commandNone
		case c.Arg.Len != event.LenConst || c.Arg.When != event.AtExit || n > math.MaxUint16,
			c.Arg.Layout == event.LayoutCloneRange, c.Arg.Layout == event.LayoutFDPair:
		case c.Arg.Dir == event.Out:
			row.Bytes, row.Memory = uint16(n), commandOut
		default:
			row.Bytes, row.Memory = uint16(n), commandIn
		}
		i := (c.Value ^ c.Value>>8) % commandRoom
		for t[i].Memory != commandUnused {
			i = (i + 1) % commandRoom
		}
		t[i] = row
	}
	return t
}
