// SPDX-License-Identifier: Apache-2.0

package event

// Names of arguments of memory calls (linux/mman.h, linux/memfd.h, linux/mempolicy.h, sys/shm.h).

var (
	mremapFlags = bits("mremap", "0",
		b("MREMAP_MAYMOVE", 1), b("MREMAP_FIXED", 2), b("MREMAP_DONTUNMAP", 4))
	madvice = one("madvise",
		b("MADV_NORMAL", 0), b("MADV_RANDOM", 1), b("MADV_SEQUENTIAL", 2), b("MADV_WILLNEED", 3), b("MADV_DONTNEED", 4), b("MADV_FREE", 8),
		b("MADV_REMOVE", 9), b("MADV_DONTFORK", 10), b("MADV_DOFORK", 11), b("MADV_MERGEABLE", 12), b("MADV_UNMERGEABLE", 13), b("MADV_HUGEPAGE", 14),
		b("MADV_NOHUGEPAGE", 15), b("MADV_DONTDUMP", 16), b("MADV_DODUMP", 17), b("MADV_WIPEONFORK", 18), b("MADV_KEEPONFORK", 19), b("MADV_COLD", 20),
		b("MADV_PAGEOUT", 21), b("MADV_POPULATE_READ", 22), b("MADV_POPULATE_WRITE", 23), b("MADV_DONTNEED_LOCKED", 24), b("MADV_COLLAPSE", 25),
		b("MADV_HWPOISON", 100), b("MADV_SOFT_OFFLINE", 101), b("MADV_GUARD_INSTALL", 102), b("MADV_GUARD_REMOVE", 103))
	mlockFlags = bits("mlock2", "0",
		b("MLOCK_ONFAULT", 1))
	mlockallFlags = bits("mlockall", "0",
		b("MCL_CURRENT", 1), b("MCL_FUTURE", 2), b("MCL_ONFAULT", 4))
	memfdFlags = bits("memfd", "0",
		b("MFD_CLOEXEC", 1), b("MFD_ALLOW_SEALING", 2), b("MFD_HUGETLB", 4), b("MFD_NOEXEC_SEAL", 8), b("MFD_EXEC", 0x10))
	memfdSecretFlags = bits("memfd_secret", "0",
		b("FD_CLOEXEC", 1))
	mempolicyFlags = bits("mempolicy_flags", "0",
		b("MPOL_MF_STRICT", 1), b("MPOL_MF_MOVE", 2), b("MPOL_MF_MOVE_ALL", 4), b("MPOL_MF_LAZY", 8))
	getMempolicyFlags = bits("get_mempolicy", "0",
		b("MPOL_F_NODE", 1), b("MPOL_F_ADDR", 2), b("MPOL_F_MEMS_ALLOWED", 4))
	pkeyRights = bits("pkey", "0",
		b("PKEY_DISABLE_ACCESS", 1), b("PKEY_DISABLE_WRITE", 2))
	shadowStackFlags = bits("shadow_stack", "0",
		b("SHADOW_STACK_SET_TOKEN", 1), b("SHADOW_STACK_SET_MARKER", 2))
	shmCommands = one("shmctl",
		b("IPC_RMID", 0), b("IPC_SET", 1), b("IPC_STAT", 2), b("IPC_INFO", 3), b("SHM_LOCK", 11), b("SHM_UNLOCK", 12), b("SHM_STAT", 13), b("SHM_INFO", 14),
		b("SHM_STAT_ANY", 15))
	semCommands = one("semctl",
		b("IPC_RMID", 0), b("IPC_SET", 1), b("IPC_STAT", 2), b("IPC_INFO", 3), b("GETPID", 11), b("GETVAL", 12), b("GETALL", 13), b("GETNCNT", 14),
		b("GETZCNT", 15), b("SETVAL", 16), b("SETALL", 17), b("SEM_STAT", 18), b("SEM_INFO", 19), b("SEM_STAT_ANY", 20))
	msgCommands = one("msgctl",
		b("IPC_RMID", 0), b("IPC_SET", 1), b("IPC_STAT", 2), b("IPC_INFO", 3), b("MSG_STAT", 11), b("MSG_INFO", 12), b("MSG_STAT_ANY", 13))
	shmatFlags = bits("shmat", "0",
		b("SHM_RDONLY", 0x1000), b("SHM_RND", 0x2000), b("SHM_REMAP", 0x4000), b("SHM_EXEC", 0x8000))
	msgrcvFlags = bits("msgrcv", "0",
		b("IPC_NOWAIT", 0x800), b("MSG_NOERROR", 0x1000), b("MSG_EXCEPT", 0x2000), b("MSG_COPY", 0x4000))
)
