// SPDX-License-Identifier: Apache-2.0

package ptrace

import "golang.org/x/sys/unix"

// Exempt is a system call that is not recorded, and why.
type Exempt struct {
	NR     int // on the running architecture
	Name   string
	Reason string
}

// Reasons for not stopping at a call.
const (
	isWait     = "waits for threads, time or descriptors; moves no content"
	isClock    = "reads or sets clocks and timers"
	isSignal   = "signal handling of the thread itself"
	isMemory   = "private memory of the process, no file content"
	isAsk      = "asks for what the thread's identity record holds"
	isThread   = "set-up and scheduling of threads"
	isResource = "limits, randomness and facts about the machine"
)

// Untraced returns the calls that are let through without being recorded: a stop
// at each would cost more than all others together, and neither replay nor the
// trace's storage side needs them. Every other call is recorded; these too if
// capture.Options.EveryCall says so.
func Untraced() []Exempt { return append(archExempt(), exempt...) }

// exempt holds what all architectures have; the most frequent come first.
var exempt = []Exempt{
	{unix.SYS_FUTEX, "futex", isWait},
	{unix.SYS_RT_SIGPROCMASK, "rt_sigprocmask", isSignal},
	{unix.SYS_RT_SIGACTION, "rt_sigaction", isSignal},
	{unix.SYS_RT_SIGRETURN, "rt_sigreturn", isSignal},
	{unix.SYS_CLOCK_GETTIME, "clock_gettime", isClock},
	{unix.SYS_BRK, "brk", isMemory},
	{unix.SYS_MPROTECT, "mprotect", isMemory},
	{unix.SYS_MADVISE, "madvise", isMemory},
	{unix.SYS_SCHED_YIELD, "sched_yield", isThread},
	{unix.SYS_NANOSLEEP, "nanosleep", isWait},
	{unix.SYS_CLOCK_NANOSLEEP, "clock_nanosleep", isWait},
	{unix.SYS_EPOLL_PWAIT, "epoll_pwait", isWait},
	{unix.SYS_EPOLL_PWAIT2, "epoll_pwait2", isWait},
	{unix.SYS_EPOLL_CTL, "epoll_ctl", isWait},
	{unix.SYS_PPOLL, "ppoll", isWait},
	{unix.SYS_PSELECT6, "pselect6", isWait},
	{unix.SYS_FUTEX_WAITV, "futex_waitv", isWait},
	{unix.SYS_RESTART_SYSCALL, "restart_syscall", isWait},
	{unix.SYS_GETTIMEOFDAY, "gettimeofday", isClock},
	{unix.SYS_CLOCK_GETRES, "clock_getres", isClock},
	{unix.SYS_TIMES, "times", isClock},
	{unix.SYS_GETITIMER, "getitimer", isClock},
	{unix.SYS_SETITIMER, "setitimer", isClock},
	{unix.SYS_RT_SIGPENDING, "rt_sigpending", isSignal},
	{unix.SYS_RT_SIGSUSPEND, "rt_sigsuspend", isSignal},
	{unix.SYS_RT_SIGTIMEDWAIT, "rt_sigtimedwait", isSignal},
	{unix.SYS_SIGALTSTACK, "sigaltstack", isSignal},
	{unix.SYS_MINCORE, "mincore", isMemory},
	{unix.SYS_MEMBARRIER, "membarrier", isMemory},
	{unix.SYS_GETPID, "getpid", isAsk},
	{unix.SYS_GETTID, "gettid", isAsk},
	{unix.SYS_GETPPID, "getppid", isAsk},
	{unix.SYS_GETUID, "getuid", isAsk},
	{unix.SYS_GETEUID, "geteuid", isAsk},
	{unix.SYS_GETGID, "getgid", isAsk},
	{unix.SYS_GETEGID, "getegid", isAsk},
	{unix.SYS_GETRESUID, "getresuid", isAsk},
	{unix.SYS_GETRESGID, "getresgid", isAsk},
	{unix.SYS_GETGROUPS, "getgroups", isAsk},
	{unix.SYS_GETPGID, "getpgid", isAsk},
	{unix.SYS_GETSID, "getsid", isAsk},
	{unix.SYS_SET_ROBUST_LIST, "set_robust_list", isThread},
	{unix.SYS_GET_ROBUST_LIST, "get_robust_list", isThread},
	{unix.SYS_SET_TID_ADDRESS, "set_tid_address", isThread},
	{unix.SYS_RSEQ, "rseq", isThread},
	{unix.SYS_SCHED_GETAFFINITY, "sched_getaffinity", isThread},
	{unix.SYS_SCHED_SETAFFINITY, "sched_setaffinity", isThread},
	{unix.SYS_GETCPU, "getcpu", isThread},
	{unix.SYS_PRLIMIT64, "prlimit64", isResource},
	{unix.SYS_GETRANDOM, "getrandom", isResource},
	{unix.SYS_GETRUSAGE, "getrusage", isResource},
	{unix.SYS_UNAME, "uname", isResource},
	{unix.SYS_SYSINFO, "sysinfo", isResource},
}
