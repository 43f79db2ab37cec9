// SPDX-License-Identifier: Apache-2.0

package event

// Names of flags and enumerated values (linux/fcntl.h, linux/fs.h, linux/stat.h,
// linux/mman.h, linux/sched.h; the values are those of x86-64 and, unless noted,
// of arm64).

func bits(name, zero string, items ...Item) *Set { return Bits(name, zero, items...) }
func one(name string, items ...Item) *Set        { return Enum(name, items...) }
func b(name string, v uint64) Item               { return Item{Name: name, Value: v} }

var (
	openFlags = architectural(bits("open", "",
		Item{"O_RDONLY", 0, 3}, Item{"O_WRONLY", 1, 3}, Item{"O_RDWR", 2, 3},
		b("O_CREAT", 0o100), b("O_EXCL", 0o200), b("O_NOCTTY", 0o400), b("O_TRUNC", 0o1000),
		b("O_APPEND", 0o2000), b("O_NONBLOCK", 0o4000), b("O_SYNC", 0o4010000), b("O_DSYNC", 0o10000),
		b("O_ASYNC", 0o20000), b("O_DIRECT", 0o40000), b("O_LARGEFILE", 0o100000),
		b("O_TMPFILE", 0o20200000), b("O_DIRECTORY", 0o200000), b("O_NOFOLLOW", 0o400000), b("O_NOATIME", 0o1000000),
		b("O_CLOEXEC", 0o2000000), b("O_PATH", 0o10000000)))
	atFlags = bits("at", "0",
		b("AT_SYMLINK_NOFOLLOW", 0x100), b("AT_REMOVEDIR", 0x200), b("AT_SYMLINK_FOLLOW", 0x400),
		b("AT_NO_AUTOMOUNT", 0x800), b("AT_EMPTY_PATH", 0x1000), b("AT_STATX_FORCE_SYNC", 0x2000), b("AT_STATX_DONT_SYNC", 0x4000), b("AT_RECURSIVE", 0x8000))
	rwfFlags    = bits("rwf", "0", b("RWF_HIPRI", 1), b("RWF_DSYNC", 2), b("RWF_SYNC", 4), b("RWF_NOWAIT", 8), b("RWF_APPEND", 16), b("RWF_NOAPPEND", 32), b("RWF_ATOMIC", 64), b("RWF_DONTCACHE", 128))
	spliceFlags = bits("splice", "0", b("SPLICE_F_MOVE", 1), b("SPLICE_F_NONBLOCK", 2), b("SPLICE_F_MORE", 4), b("SPLICE_F_GIFT", 8))
	whence      = one("whence", b("SEEK_SET", 0), b("SEEK_CUR", 1), b("SEEK_END", 2), b("SEEK_DATA", 3), b("SEEK_HOLE", 4))
	fallocFlags = bits("fallocate", "0",
		b("FALLOC_FL_KEEP_SIZE", 1), b("FALLOC_FL_PUNCH_HOLE", 2), b("FALLOC_FL_NO_HIDE_STALE", 4), b("FALLOC_FL_COLLAPSE_RANGE", 8),
		b("FALLOC_FL_ZERO_RANGE", 16), b("FALLOC_FL_INSERT_RANGE", 32), b("FALLOC_FL_UNSHARE_RANGE", 64), b("FALLOC_FL_WRITE_ZEROES", 128))
	fadvice = one("fadvise", b("POSIX_FADV_NORMAL", 0), b("POSIX_FADV_RANDOM", 1), b("POSIX_FADV_SEQUENTIAL", 2),
		b("POSIX_FADV_WILLNEED", 3), b("POSIX_FADV_DONTNEED", 4), b("POSIX_FADV_NOREUSE", 5))
	syncRangeFlags  = bits("sync_file_range", "0", b("SYNC_FILE_RANGE_WAIT_BEFORE", 1), b("SYNC_FILE_RANGE_WRITE", 2), b("SYNC_FILE_RANGE_WAIT_AFTER", 4))
	closeRangeFlags = bits("close_range", "0", b("CLOSE_RANGE_UNSHARE", 2), b("CLOSE_RANGE_CLOEXEC", 4))
	fcntlCmds       = one("fcntl",
		b("F_DUPFD", 0), b("F_GETFD", 1), b("F_SETFD", 2), b("F_GETFL", 3), b("F_SETFL", 4), b("F_GETLK", 5), b("F_SETLK", 6), b("F_SETLKW", 7),
		b("F_SETOWN", 8), b("F_GETOWN", 9), b("F_SETSIG", 10), b("F_GETSIG", 11), b("F_SETOWN_EX", 15), b("F_GETOWN_EX", 16), b("F_GETOWNER_UIDS", 17),
		b("F_OFD_GETLK", 36), b("F_OFD_SETLK", 37), b("F_OFD_SETLKW", 38),
		b("F_SETLEASE", 1024), b("F_GETLEASE", 1025), b("F_NOTIFY", 1026), b("F_DUPFD_QUERY", 1027), b("F_CREATED_QUERY", 1028), b("F_CANCELLK", 1029), b("F_DUPFD_CLOEXEC", 1030), b("F_SETPIPE_SZ", 1031), b("F_GETPIPE_SZ", 1032),
		b("F_ADD_SEALS", 1033), b("F_GET_SEALS", 1034), b("F_GET_RW_HINT", 1035), b("F_SET_RW_HINT", 1036), b("F_GET_FILE_RW_HINT", 1037), b("F_SET_FILE_RW_HINT", 1038),
		b("F_GETDELEG", 1039), b("F_SETDELEG", 1040))
	epollOps    = one("epoll_ctl", b("EPOLL_CTL_ADD", 1), b("EPOLL_CTL_DEL", 2), b("EPOLL_CTL_MOD", 3))
	flockOps    = bits("flock", "0", b("LOCK_SH", 1), b("LOCK_EX", 2), b("LOCK_NB", 4), b("LOCK_UN", 8))
	accessModes = bits("access", "F_OK", b("X_OK", 1), b("W_OK", 2), b("R_OK", 4))
	renameFlags = bits("rename", "0", b("RENAME_NOREPLACE", 1), b("RENAME_EXCHANGE", 2), b("RENAME_WHITEOUT", 4))
	protFlags   = bits("prot", "PROT_NONE", b("PROT_READ", 1), b("PROT_WRITE", 2), b("PROT_EXEC", 4), b("PROT_SEM", 8), b("PROT_GROWSDOWN", 0x1000000), b("PROT_GROWSUP", 0x2000000))
	mmapFlags   = bits("mmap", "MAP_FILE", Item{"MAP_SHARED", 1, 15}, Item{"MAP_PRIVATE", 2, 15}, Item{"MAP_SHARED_VALIDATE", 3, 15}, Item{"MAP_DROPPABLE", 8, 15},
		b("MAP_FIXED", 0x10), b("MAP_ANONYMOUS", 0x20), b("MAP_32BIT", 0x40), b("MAP_GROWSDOWN", 0x100), b("MAP_DENYWRITE", 0x800), b("MAP_EXECUTABLE", 0x1000),
		b("MAP_LOCKED", 0x2000), b("MAP_NORESERVE", 0x4000), b("MAP_POPULATE", 0x8000), b("MAP_NONBLOCK", 0x10000), b("MAP_STACK", 0x20000), b("MAP_HUGETLB", 0x40000),
		b("MAP_SYNC", 0x80000), b("MAP_FIXED_NOREPLACE", 0x100000), b("MAP_UNINITIALIZED", 0x4000000))
	mappedFlags = bits("mapped", "PRIVATE", b("SHARED", MappedShared), b("STORE", MappedStore), b("CODE", MappedCode), b("CALL", MappedInCall))
	blockFlags  = bits("block", "0", b("SYNC", BlockSync), b("META", BlockMeta), b("FUA", BlockFUA), b("FLUSH", BlockPreFlush),
		b("AHEAD", BlockAhead), b("BACKGROUND", BlockBackground), b("ZEROES", BlockZeroes))
	msyncFlags = bits("msync", "0", b("MS_ASYNC", 1), b("MS_INVALIDATE", 2), b("MS_SYNC", 4))
	cloneFlags = resting(bits("clone", "0",
		b("CLONE_VM", 0x100), b("CLONE_FS", 0x200), b("CLONE_FILES", 0x400), b("CLONE_SIGHAND", 0x800), b("CLONE_PIDFD", 0x1000), b("CLONE_PTRACE", 0x2000),
		b("CLONE_VFORK", 0x4000), b("CLONE_PARENT", 0x8000), b("CLONE_THREAD", 0x10000), b("CLONE_NEWNS", 0x20000), b("CLONE_SYSVSEM", 0x40000), b("CLONE_SETTLS", 0x80000),
		b("CLONE_PARENT_SETTID", 0x100000), b("CLONE_CHILD_CLEARTID", 0x200000), b("CLONE_CHILD_SETTID", 0x1000000), b("CLONE_DETACHED", 0x400000), b("CLONE_UNTRACED", 0x800000),
		b("CLONE_NEWCGROUP", 0x2000000), b("CLONE_NEWUTS", 0x4000000), b("CLONE_NEWIPC", 0x8000000), b("CLONE_NEWUSER", 0x10000000), b("CLONE_NEWPID", 0x20000000), b("CLONE_NEWNET", 0x40000000), b("CLONE_IO", 0x80000000),
		b("CLONE_CLEAR_SIGHAND", 1<<32), b("CLONE_INTO_CGROUP", 1<<33)), cloneSignal)
)
