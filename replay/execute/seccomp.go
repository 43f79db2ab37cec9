// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/plan"
)

// A tape chooses which calls a replay makes, and with which arguments. The filter of the process that
// makes them has those that a replay can make, and those that the run-time systems of Go and C
// need; all others fail with EPERM, so that the report names the call.

// runtimeCalls are those of the run-time systems, and of the replayer itself.
var runtimeCalls = []int{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK, unix.SYS_MMAP, unix.SYS_MPROTECT,
	unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_MADVISE, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_TGKILL,
	unix.SYS_RESTART_SYSCALL, unix.SYS_IOCTL, unix.SYS_FCNTL, unix.SYS_FLOCK, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_GETPID, unix.SYS_GETTID,
	unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETGROUPS, unix.SYS_EXIT,
	unix.SYS_EXIT_GROUP, unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MEMBARRIER,
	unix.SYS_GETRANDOM, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	unix.SYS_PIPE2, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE,
	unix.SYS_SETITIMER, unix.SYS_PRLIMIT64, unix.SYS_CAPGET, unix.SYS_CAPSET, unix.SYS_PRCTL, unix.SYS_STATFS,
	unix.SYS_FSTATFS, unix.SYS_UMASK, unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_GETDENTS64, unix.SYS_OPENAT,
	unix.SYS_COPY_FILE_RANGE, unix.SYS_MKNODAT, unix.SYS_FCHMODAT, unix.SYS_FDATASYNC, unix.SYS_FALLOCATE,
	unix.SYS_FTRUNCATE, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRUSAGE,
	unix.SYS_LANDLOCK_RESTRICT_SELF,
}

// requestCalls are those by which requests of io_uring and AIO are made.
var requestCalls = []int{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_SETUP,
	unix.SYS_IO_SUBMIT, unix.SYS_IO_GETEVENTS, unix.SYS_IO_DESTROY,
}

// allowedCalls returns the numbers of the calls that a replay may make with any arguments.
func allowedCalls(requests bool) []int {
	numbers := slices.Clone(runtimeCalls)
	if requests {
		numbers = append(numbers, requestCalls...)
	}
	for op := range event.Op(event.NumOps) {
		if spec := event.Lookup(op); spec.Replay != event.Native || op == event.OpUnknown {
			continue
		}
		if nr := plan.NativeNumber(op); nr >= 0 {
			numbers = append(numbers, nr)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// filterProgram returns the seccomp program that allows calls of some numbers, threads, and working
// directories of threads.
func filterProgram(numbers []int) ([]unix.SockFilter, error) {
	// Offsets in struct seccomp_data (linux/seccomp.h), of a little-endian machine.
	const nr, arch, firstArg = 0, 4, 16
	const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	machine, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("not known for %s", runtime.GOARCH)
	}
	load := func(off uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
	}
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	const allow = unix.SECCOMP_RET_ALLOW
	fails := func(e unix.Errno) unix.SockFilter { return ret(unix.SECCOMP_RET_ERRNO | uint32(e)) }
	f := []unix.SockFilter{
		load(arch), jump(unix.BPF_JEQ, machine, 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS), load(nr),
	}
	for _, n := range numbers {
		f = append(f, jump(unix.BPF_JEQ, uint32(n), 0, 1), ret(allow))
	}
	return append(f,
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4), load(firstArg), jump(unix.BPF_JSET, spaces, 0, 1), fails(unix.EPERM),
		ret(allow),
		jump(unix.BPF_JEQ, unix.SYS_UNSHARE, 0, 4), load(firstArg), jump(unix.BPF_JEQ, unix.CLONE_FS, 1, 0),
		fails(unix.EPERM), ret(allow),
		// The flags of clone3 cannot be seen; libraries use clone if there is none.
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), fails(unix.ENOSYS),
		fails(unix.EPERM)), nil
}

// filterCalls lets this process make only the calls of a replay, with any thread, from now on.
func filterCalls(requests bool) error {
	program, err := filterProgram(allowedCalls(requests))
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	const every = unix.SECCOMP_FILTER_FLAG_TSYNC
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, every, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	switch {
	case errno != 0:
		return errno
	case r != 0:
		return fmt.Errorf("thread %d has another filter", r)
	}
	return nil
}
