// SPDX-License-Identifier: Apache-2.0

package ptrace

import "golang.org/x/sys/unix"

// archExempt holds the calls that only x86-64 has.
func archExempt() []Exempt {
	return []Exempt{
		{unix.SYS_POLL, "poll", isWait},
		{unix.SYS_EPOLL_WAIT, "epoll_wait", isWait},
		{unix.SYS_SELECT, "select", isWait},
		{unix.SYS_PAUSE, "pause", isWait},
		{unix.SYS_TIME, "time", isClock},
		{unix.SYS_ALARM, "alarm", isClock},
		{unix.SYS_GETPGRP, "getpgrp", isAsk},
		{unix.SYS_ARCH_PRCTL, "arch_prctl", isThread},
		{unix.SYS_GETRLIMIT, "getrlimit", isResource},
	}
}
