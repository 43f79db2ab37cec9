// SPDX-License-Identifier: Apache-2.0

package event

import "strconv"

// Names of values that are composed of fields, and of what is not a plain number.

// Sets that structures in memory share with arguments.
var (
	OpenNames       = openFlags
	DescriptorNames = descriptorFlags
	CloneNames      = clone3Flags
	SeekNames       = whence
	FamilyNames     = socketFamilies
	NetlinkNames    = netlinkProtocols
	ProtocolNames   = ipProtocols
	MessageNames    = msgFlags
	IPNames         = ipOptions
	IPv6Names       = ipv6Options
	LevelNames      = sockoptLevels
	ControlNames    = controlKinds
	StatxNames      = statxMask
	ReadWriteNames  = rwfFlags
	UringSetupNames = uringSetupFlags
	FeatureNames    = uringFeatures
	XattrNames      = xattrFlags
	MempolicyNames  = mempolicies
	MountAttrNames  = mountAttrs
	PolicyNames     = schedPolicies
	SchedNames      = schedFlags
	FutexNames      = futex2Flags
	PollNames       = pollEvents
	EpollNames      = epollEvents
	SealNames       = sealFlags
	LeaseNames      = leaseTypes
	AdjustNames     = adjustModes
	CapabilityNames = capabilities
	SocketTypeNames = socketKinds
	LandlockNames   = landlockAccess
	IOPrioNames     = ioprios
)

// architectural marks a set of open flags.
func architectural(s *Set) *Set { s.Open = true; return s }

// resting gives a set another form for what has no name.
func resting(s *Set, rest func([]byte, uint64) []byte) *Set { s.Rest = rest; return s }

// octal writes permissions.
func octal(dst []byte, v uint64) []byte {
	dst = append(dst, '0')
	if v < 0o10 {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, v, 8)
}

// decimal writes a number, an int where it fits one.
func decimal(dst []byte, v uint64) []byte {
	if v>>32 == 0 {
		return strconv.AppendInt(dst, int64(int32(v)), 10)
	}
	return strconv.AppendInt(dst, int64(v), 10)
}

var (
	nullName = one("pointer", b("NULL", 0))

	// descriptorFlags are those of calls that make descriptors without opening.
	descriptorFlags = architectural(bits("descriptor", "0", b("O_EXCL", 0o200), b("O_NONBLOCK", 0o4000), b("O_DIRECT", 0o40000), b("O_CLOEXEC", 0o2000000)))
	fdFlags         = bits("fd", "0", b("FD_CLOEXEC", 1))

	// accessFlags, handleFlags and execveatFlags: what else AT_ bits mean there.
	accessFlags   = bits("access_flags", "0", b("AT_SYMLINK_NOFOLLOW", 0x100), b("AT_EACCESS", 0x200), b("AT_EMPTY_PATH", 0x1000))
	statxFlags    = bits("statx_flags", "0", Item{"AT_STATX_SYNC_AS_STAT", 0, 0x6000}, Item{"AT_STATX_FORCE_SYNC", 0x2000, 0x6000}, Item{"AT_STATX_DONT_SYNC", 0x4000, 0x6000}, b("AT_SYMLINK_NOFOLLOW", 0x100), b("AT_NO_AUTOMOUNT", 0x800), b("AT_EMPTY_PATH", 0x1000))
	handleFlags   = bits("handle", "0", b("AT_HANDLE_MNT_ID_UNIQUE", 1), b("AT_HANDLE_CONNECTABLE", 2), b("AT_HANDLE_FID", 0x200), b("AT_SYMLINK_FOLLOW", 0x400), b("AT_EMPTY_PATH", 0x1000))
	execveatFlags = bits("execveat", "0", b("AT_SYMLINK_NOFOLLOW", 0x100), b("AT_EMPTY_PATH", 0x1000), b("AT_EXECVE_CHECK", 0x10000))
	openTreeFlags = architectural(bits("open_tree", "0", b("OPEN_TREE_CLONE", 1), b("AT_SYMLINK_NOFOLLOW", 0x100), b("AT_NO_AUTOMOUNT", 0x800), b("AT_EMPTY_PATH", 0x1000), b("AT_RECURSIVE", 0x8000), b("OPEN_TREE_CLOEXEC", 0o2000000)))

	// clone's low byte is the signal that the child's end sends.
	clone3Flags = bits("clone3", "0", cloneFlags.Items...)

	socketKinds = bits("socket_type", "0",
		Item{"SOCK_STREAM", 1, 15}, Item{"SOCK_DGRAM", 2, 15}, Item{"SOCK_RAW", 3, 15}, Item{"SOCK_RDM", 4, 15}, Item{"SOCK_SEQPACKET", 5, 15}, Item{"SOCK_DCCP", 6, 15},
		Item{"SOCK_PACKET", 10, 15}, b("SOCK_NONBLOCK", 0o4000), b("SOCK_CLOEXEC", 0o2000000))
	acceptFlags = bits("accept", "0", b("SOCK_NONBLOCK", 0o4000), b("SOCK_CLOEXEC", 0o2000000))

	futexOps = bits("futex", "", append(futexItems(
		"FUTEX_WAIT", "FUTEX_WAKE", "FUTEX_FD", "FUTEX_REQUEUE", "FUTEX_CMP_REQUEUE", "FUTEX_WAKE_OP", "FUTEX_LOCK_PI", "FUTEX_UNLOCK_PI", "FUTEX_TRYLOCK_PI",
		"FUTEX_WAIT_BITSET", "FUTEX_WAKE_BITSET", "FUTEX_WAIT_REQUEUE_PI", "FUTEX_CMP_REQUEUE_PI", "FUTEX_LOCK_PI2"), b("FUTEX_CLOCK_REALTIME", 0x100))...)
	futexMask = resting(one("futex_mask", b("FUTEX_BITSET_MATCH_ANY", 0xffffffff)), nil)

	fanotifyInitFlags = bits("fanotify_init", "",
		Item{"FAN_CLASS_NOTIF", 0, 12}, Item{"FAN_CLASS_CONTENT", 4, 12}, Item{"FAN_CLASS_PRE_CONTENT", 8, 12}, b("FAN_CLOEXEC", 1), b("FAN_NONBLOCK", 2),
		b("FAN_UNLIMITED_QUEUE", 0x10), b("FAN_UNLIMITED_MARKS", 0x20), b("FAN_ENABLE_AUDIT", 0x40), b("FAN_REPORT_PIDFD", 0x80), b("FAN_REPORT_TID", 0x100),
		b("FAN_REPORT_FID", 0x200), b("FAN_REPORT_DIR_FID", 0x400), b("FAN_REPORT_NAME", 0x800), b("FAN_REPORT_TARGET_FID", 0x1000),
		b("FAN_REPORT_FD_ERROR", 0x2000), b("FAN_REPORT_MNT", 0x4000))

	schedPolicies = bits("sched", "",
		Item{"SCHED_OTHER", 0, 0xff}, Item{"SCHED_FIFO", 1, 0xff}, Item{"SCHED_RR", 2, 0xff}, Item{"SCHED_BATCH", 3, 0xff}, Item{"SCHED_IDLE", 5, 0xff},
		Item{"SCHED_DEADLINE", 6, 0xff}, Item{"SCHED_EXT", 7, 0xff}, b("SCHED_RESET_ON_FORK", 0x40000000))
	mempolicies = bits("mempolicy", "",
		Item{"MPOL_DEFAULT", 0, 0xff}, Item{"MPOL_PREFERRED", 1, 0xff}, Item{"MPOL_BIND", 2, 0xff}, Item{"MPOL_INTERLEAVE", 3, 0xff}, Item{"MPOL_LOCAL", 4, 0xff},
		Item{"MPOL_PREFERRED_MANY", 5, 0xff}, Item{"MPOL_WEIGHTED_INTERLEAVE", 6, 0xff}, b("MPOL_F_NUMA_BALANCING", 0x2000), b("MPOL_F_RELATIVE_NODES", 0x4000), b("MPOL_F_STATIC_NODES", 0x8000))

	// Keys and permissions of System V objects.
	ipcFlags = resting(bits("ipc_flags", "0", b("IPC_CREAT", 0x200), b("IPC_EXCL", 0x400), b("IPC_NOWAIT", 0x800)), octal)
	shmFlags = resting(bits("shmget", "0", b("IPC_CREAT", 0x200), b("IPC_EXCL", 0x400), b("SHM_HUGETLB", 0x800), b("SHM_NORESERVE", 0x1000)), octal)
	ipcKeys  = one("ipc_key", b("IPC_PRIVATE", 0))

	// quota commands: QCMD(command, kind of quota) (linux/quota.h, linux/dqblk_xfs.h).
	quotaCommands = resting(one("quotactl"), quotaCommand)
	quotaNames    = one("quota",
		b("Q_XQUOTAON", 0x5801), b("Q_XQUOTAOFF", 0x5802), b("Q_XGETQUOTA", 0x5803), b("Q_XSETQLIM", 0x5804), b("Q_XGETQSTAT", 0x5805), b("Q_XQUOTARM", 0x5806),
		b("Q_XQUOTASYNC", 0x5807), b("Q_XGETQSTATV", 0x5808), b("Q_XGETNEXTQUOTA", 0x5809), b("Q_SYNC", 0x800001), b("Q_QUOTAON", 0x800002), b("Q_QUOTAOFF", 0x800003),
		b("Q_GETFMT", 0x800004), b("Q_GETINFO", 0x800005), b("Q_SETINFO", 0x800006), b("Q_GETQUOTA", 0x800007), b("Q_SETQUOTA", 0x800008), b("Q_GETNEXTQUOTA", 0x800009))
	quotaKinds = one("quota_kind", b("USRQUOTA", 0), b("GRPQUOTA", 1), b("PRJQUOTA", 2))

	// ioprios: IOPRIO_PRIO_VALUE(class, level) (linux/ioprio.h).
	ioprios       = resting(one("ioprio_value"), ioprio)
	ioprioClasses = one("ioprio_class", b("IOPRIO_CLASS_NONE", 0), b("IOPRIO_CLASS_RT", 1), b("IOPRIO_CLASS_BE", 2), b("IOPRIO_CLASS_IDLE", 3))

	clockStates = one("timex_state", b("TIME_OK", 0), b("TIME_INS", 1), b("TIME_DEL", 2), b("TIME_OOP", 3), b("TIME_WAIT", 4), b("TIME_ERROR", 5))
	kexecFlags  = bits("kexec_load", "", Item{"KEXEC_ARCH_DEFAULT", 0, 0xffff0000}, Item{"KEXEC_ARCH_386", 3 << 16, 0xffff0000}, Item{"KEXEC_ARCH_X86_64", 62 << 16, 0xffff0000},
		Item{"KEXEC_ARCH_AARCH64", 183 << 16, 0xffff0000}, b("KEXEC_ON_CRASH", 1), b("KEXEC_PRESERVE_CONTEXT", 2), b("KEXEC_UPDATE_ELFCOREHDR", 4), b("KEXEC_CRASH_HOTPLUG_SUPPORT", 8))
	membarrierBits = bits("membarrier_commands", "0", membarrierCommands.Items[1:]...)
	dumpable       = one("dumpable", b("SUID_DUMP_DISABLE", 0), b("SUID_DUMP_USER", 1), b("SUID_DUMP_ROOT", 2))
	vmaOps         = one("vma", b("PR_SET_VMA_ANON_NAME", 0))
	ambient        = one("ambient", b("PR_CAP_AMBIENT_IS_SET", 1), b("PR_CAP_AMBIENT_RAISE", 2), b("PR_CAP_AMBIENT_LOWER", 3), b("PR_CAP_AMBIENT_CLEAR_ALL", 4))
	secure         = bits("securebits", "0", b("SECBIT_NOROOT", 1), b("SECBIT_NOROOT_LOCKED", 2), b("SECBIT_NO_SETUID_FIXUP", 4), b("SECBIT_NO_SETUID_FIXUP_LOCKED", 8),
		b("SECBIT_KEEP_CAPS", 16), b("SECBIT_KEEP_CAPS_LOCKED", 32), b("SECBIT_NO_CAP_AMBIENT_RAISE", 64), b("SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED", 128))
	ptracer       = resting(one("ptracer", b("PR_SET_PTRACER_ANY", 0xffffffffffffffff)), decimal)
	ptraceOptions = bits("ptrace_options", "0", b("PTRACE_O_TRACESYSGOOD", 1), b("PTRACE_O_TRACEFORK", 2), b("PTRACE_O_TRACEVFORK", 4), b("PTRACE_O_TRACECLONE", 8),
		b("PTRACE_O_TRACEEXEC", 16), b("PTRACE_O_TRACEVFORKDONE", 32), b("PTRACE_O_TRACEEXIT", 64), b("PTRACE_O_TRACESECCOMP", 128), b("PTRACE_O_EXITKILL", 1<<20), b("PTRACE_O_SUSPEND_SECCOMP", 1<<21))
)

// futexItems returns the operations and their forms for memory of one process.
func futexItems(names ...string) []Item {
	const private, mask = 0x80, 0xff
	var items []Item
	for i, n := range names {
		items = append(items, Item{n, uint64(i), mask}, Item{n + "_PRIVATE", uint64(i) | private, mask})
	}
	return items
}

// cloneSignal writes the signal that stands in the low byte of clone's flags.
func cloneSignal(dst []byte, v uint64) []byte {
	if rest := v &^ 0xff; rest != 0 {
		dst = appendHex(dst, rest)
		if rest == v {
			return dst
		}
		dst = append(dst, '|')
	}
	return append(dst, SignalName(int(v&0xff))...)
}

func quotaCommand(dst []byte, v uint64) []byte {
	v &= 0xffffffff
	dst = quotaNames.AppendEnum(append(dst, "QCMD("...), v>>8)
	dst = quotaKinds.AppendEnum(append(dst, ", "...), v&0xff)
	return append(dst, ')')
}

func ioprio(dst []byte, v uint64) []byte {
	dst = ioprioClasses.AppendEnum(append(dst, "IOPRIO_PRIO_VALUE("...), v>>13&7)
	dst = strconv.AppendUint(append(dst, ", "...), v&0x1fff, 10)
	return append(dst, ')')
}

// ioctlRequest writes what a request's number says of itself (asm-generic/ioctl.h).
func ioctlRequest(dst []byte, v uint64) []byte {
	dst = append(dst, "_IOC("...)
	switch v >> 30 & 3 {
	case 0:
		dst = append(dst, "_IOC_NONE"...)
	case 1:
		dst = append(dst, "_IOC_WRITE"...)
	case 2:
		dst = append(dst, "_IOC_READ"...)
	case 3:
		dst = append(dst, "_IOC_READ|_IOC_WRITE"...)
	}
	for _, field := range [...]uint64{v >> 8 & 0xff, v & 0xff, v >> 16 & 0x3fff} {
		dst = append(dst, ", "...)
		if field == 0 {
			dst = append(dst, '0')
			continue
		}
		dst = appendHex(dst, field)
	}
	return append(dst, ')')
}

// processClock writes a clock of a process's or thread's CPU time (linux/posix-timers.h).
func processClock(dst []byte, v uint64) []byte {
	id := int32(v)
	if id >= 0 {
		return strconv.AppendInt(dst, int64(id), 10)
	}
	const perThread, kind, device = 4, 3, 3
	name := "MAKE_PROCESS_CPUTIME("
	switch {
	case id&kind == device:
		dst = append(dst, "FD_TO_CLOCKID("...)
		return append(strconv.AppendInt(dst, int64(^(id>>3)), 10), ')')
	case id&perThread != 0:
		name = "MAKE_THREAD_CPUTIME("
	}
	dst = strconv.AppendInt(append(dst, name...), int64(^(id >> 3)), 10)
	dst = append(dst, ", "...)
	dst = append(dst, [...]string{"CPUCLOCK_PROF", "CPUCLOCK_VIRT", "CPUCLOCK_SCHED"}[id&kind]...)
	return append(dst, ')')
}
