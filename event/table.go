package event

// The catalogue numbers. They are part of the formats: append only.
const (
	OpUnknown Op = iota // not in the catalogue
	OpRead
	OpWrite
	OpPread64
	OpPwrite64
	OpReadv
	OpWritev
	OpPreadv
	OpPwritev
	OpPreadv2
	OpPwritev2
	OpSendfile
	OpCopyFileRange
	OpSplice
	OpTee
	OpVmsplice
	OpLseek
	OpTruncate
	OpFtruncate
	OpFallocate
	OpFadvise64
	OpReadahead
	OpSyncFileRange
	OpFsync
	OpFdatasync
	OpSync
	OpSyncfs
	OpOpen
	OpOpenat
	OpOpenat2
	OpCreat
	OpClose
	OpCloseRange
	OpDup
	OpDup2
	OpDup3
	OpFcntl
	OpFlock
	OpIoctl
	OpMemfdCreate
	OpPipe
	OpPipe2
	OpStat
	OpFstat
	OpLstat
	OpNewfstatat
	OpStatx
	OpStatfs
	OpFstatfs
	OpAccess
	OpFaccessat
	OpFaccessat2
	OpChmod
	OpFchmod
	OpFchmodat
	OpFchmodat2
	OpChown
	OpFchown
	OpLchown
	OpFchownat
	OpUtime
	OpUtimes
	OpFutimesat
	OpUtimensat
	OpUmask
	OpSetxattr
	OpLsetxattr
	OpFsetxattr
	OpGetxattr
	OpLgetxattr
	OpFgetxattr
	OpListxattr
	OpLlistxattr
	OpFlistxattr
	OpRemovexattr
	OpLremovexattr
	OpFremovexattr
	OpMkdir
	OpMkdirat
	OpRmdir
	OpUnlink
	OpUnlinkat
	OpRename
	OpRenameat
	OpRenameat2
	OpLink
	OpLinkat
	OpSymlink
	OpSymlinkat
	OpReadlink
	OpReadlinkat
	OpMknod
	OpMknodat
	OpGetdents
	OpGetdents64
	OpChdir
	OpFchdir
	OpGetcwd
	OpChroot
	OpMount
	OpUmount2
	OpMmap
	OpMunmap
	OpMremap
	OpMsync
	OpExecve
	OpExecveat
	OpFork
	OpVfork
	OpClone
	OpClone3
	OpWait4
	OpWaitid
	OpExit
	OpExitGroup
	OpSetuid
	OpSetgid
	OpSetreuid
	OpSetregid
	OpSetresuid
	OpSetresgid
	OpSetfsuid
	OpSetfsgid
	OpSetgroups
	OpSetpgid
	OpSetsid
	OpUnshare
	OpSetns
	OpKill
	OpTgkill
	OpSocket
	OpSocketpair
	OpBind
	OpConnect
	OpListen
	OpAccept
	OpAccept4
	OpSendto
	OpRecvfrom
	OpSendmsg
	OpRecvmsg
	OpShutdown
	OpEventfd
	OpEventfd2
	OpEpollCreate
	OpEpollCreate1
	OpSignalfd4
	OpTimerfdCreate
	OpInotifyInit
	OpInotifyInit1
	OpIoUringSetup
	OpPidfdOpen
	OpPidfdGetfd
	OpOpenByHandleAt
	OpPrctl
	OpBrk
	OpMprotect
	OpMadvise
	OpMincore
	OpMlock
	OpMunlock
	OpMemfdSecret
	OpFutex
	OpPoll
	OpPpoll
	OpSelect
	OpPselect6
	OpEpollCtl
	OpEpollWait
	OpEpollPwait
	OpEpollPwait2
	OpTimerfdSettime
	OpTimerfdGettime
	OpInotifyAddWatch
	OpInotifyRmWatch
	OpNanosleep
	OpClockNanosleep
	OpPause
	OpSchedYield
	OpRtSigaction
	OpRtSigprocmask
	OpRtSigsuspend
	OpRtSigtimedwait
	OpSigaltstack
	OpTkill
	OpGetpid
	OpGettid
	OpGetppid
	OpGetpgid
	OpGetpgrp
	OpGetsid
	OpGetuid
	OpGeteuid
	OpGetgid
	OpGetegid
	OpGetresuid
	OpGetresgid
	OpGetgroups
	OpSetTidAddress
	OpSetRobustList
	OpRseq
	OpArchPrctl
	OpPrlimit64
	OpGetrlimit
	OpSetrlimit
	OpGetrandom
	OpUname
	OpSysinfo
	OpGetrusage
	OpTimes
	OpClockGettime
	OpClockGetres
	OpGettimeofday
	OpTime
	OpAlarm
	OpSetitimer
	OpGetpriority
	OpSetpriority
	OpSchedGetaffinity
	OpSchedSetaffinity
	OpSchedGetscheduler
	OpSchedSetscheduler
	OpGetcpu
	OpMembarrier
	OpCapget
	OpCapset
	OpSeccomp
	OpPersonality
	OpPidfdSendSignal
	OpSetsockopt
	OpGetsockopt
	OpGetsockname
	OpGetpeername
	OpSendmmsg
	OpRecvmmsg
	OpIoSetup
	OpIoDestroy
	OpIoSubmit
	OpIoGetevents
	OpIoCancel
	OpIoUringEnter
	OpIoUringRegister
	OpNameToHandleAt
	OpPivotRoot
	numOps
)

// table is the catalogue, in the order of the numbers.
var table = [...]Spec{
	{Op: OpUnknown, Name: "syscall", Class: Raw, Args: args(hex("a0"), hex("a1"), hex("a2"), hex("a3"), hex("a4"), hex("a5")), Result: KindHex, Replay: Skip, Why: "the call is not in the catalogue"},
	{Op: OpRead, Name: "read", Class: Data, Args: args(fd("fd"), out("buf", 2), size("count")), Result: KindSize},
	{Op: OpWrite, Name: "write", Class: Data, Args: args(fd("fd"), in("buf", 2), size("count")), Result: KindSize},
	{Op: OpPread64, Name: "pread64", Class: Data, Args: args(fd("fd"), out("buf", 2), size("count"), off("offset")), Result: KindSize},
	{Op: OpPwrite64, Name: "pwrite64", Class: Data, Args: args(fd("fd"), in("buf", 2), size("count"), off("offset")), Result: KindSize},
	{Op: OpReadv, Name: "readv", Class: Data, Args: args(fd("fd"), vout("iov", 2), num("iovcnt")), Result: KindSize},
	{Op: OpWritev, Name: "writev", Class: Data, Args: args(fd("fd"), vin("iov", 2), num("iovcnt")), Result: KindSize},
	{Op: OpPreadv, Name: "preadv", Class: Data, Args: args(fd("fd"), vout("iov", 2), num("iovcnt"), off("offset"), hex("offset_high")), Result: KindSize},
	{Op: OpPwritev, Name: "pwritev", Class: Data, Args: args(fd("fd"), vin("iov", 2), num("iovcnt"), off("offset"), hex("offset_high")), Result: KindSize},
	{Op: OpPreadv2, Name: "preadv2", Class: Data, Args: args(fd("fd"), vout("iov", 2), num("iovcnt"), off("offset"), hex("offset_high"), flags("flags", rwfFlags)), Result: KindSize},
	{Op: OpPwritev2, Name: "pwritev2", Class: Data, Args: args(fd("fd"), vin("iov", 2), num("iovcnt"), off("offset"), hex("offset_high"), flags("flags", rwfFlags)), Result: KindSize},
	{Op: OpSendfile, Name: "sendfile", Class: Data, Args: args(fd("out_fd"), fd("in_fd"), sout("offset", LayoutOffset), size("count")), Result: KindSize, Hold: true},
	{Op: OpCopyFileRange, Name: "copy_file_range", Class: Data, Args: args(fd("fd_in"), sout("off_in", LayoutOffset), fd("fd_out"), sout("off_out", LayoutOffset), size("len"), hex("flags")), Result: KindSize, Hold: true},
	{Op: OpSplice, Name: "splice", Class: Data, Args: args(fd("fd_in"), sout("off_in", LayoutOffset), fd("fd_out"), sout("off_out", LayoutOffset), size("len"), flags("flags", spliceFlags)), Result: KindSize, Hold: true},
	{Op: OpTee, Name: "tee", Class: Data, Args: args(fd("fd_in"), fd("fd_out"), size("len"), flags("flags", spliceFlags)), Result: KindSize, Replay: Emulate, Why: "both ends are pipes"},
	{Op: OpVmsplice, Name: "vmsplice", Class: Data, Args: args(fd("fd"), vin("iov", 2), num("nr_segs"), flags("flags", spliceFlags)), Result: KindSize, Replay: Emulate, Why: "one end is a pipe"},
	{Op: OpLseek, Name: "lseek", Class: Data, Args: args(fd("fd"), off("offset"), enum("whence", whence)), Result: KindOff},
	{Op: OpTruncate, Name: "truncate", Class: Data, Args: args(path("path"), off("length")), Result: KindNone},
	{Op: OpFtruncate, Name: "ftruncate", Class: Data, Args: args(fd("fd"), off("length")), Result: KindNone},
	{Op: OpFallocate, Name: "fallocate", Class: Data, Args: args(fd("fd"), flags("mode", fallocFlags), off("offset"), off("len")), Result: KindNone},
	{Op: OpFadvise64, Name: "fadvise64", Class: Data, Args: args(fd("fd"), off("offset"), off("len"), enum("advice", fadvice)), Result: KindNone},
	{Op: OpReadahead, Name: "readahead", Class: Data, Args: args(fd("fd"), off("offset"), size("count")), Result: KindNone},
	{Op: OpSyncFileRange, Name: "sync_file_range", Class: Sync, Args: args(fd("fd"), off("offset"), off("nbytes"), flags("flags", syncRangeFlags)), Result: KindNone},
	{Op: OpFsync, Name: "fsync", Class: Sync, Args: args(fd("fd")), Result: KindNone},
	{Op: OpFdatasync, Name: "fdatasync", Class: Sync, Args: args(fd("fd")), Result: KindNone},
	{Op: OpSync, Name: "sync", Class: Sync, Result: KindNone, Replay: Emulate, Why: "would flush the whole host; the target's file system is synced instead"},
	{Op: OpSyncfs, Name: "syncfs", Class: Sync, Args: args(fd("fd")), Result: KindNone},
	{Op: OpOpen, Name: "open", Class: Descriptor, Args: args(path("path"), flags("flags", openFlags), mode("mode")), Result: KindFD},
	{Op: OpOpenat, Name: "openat", Class: Descriptor, Args: args(dirfd("dirfd"), path("path"), flags("flags", openFlags), mode("mode")), Result: KindFD},
	{Op: OpOpenat2, Name: "openat2", Class: Descriptor, Args: args(dirfd("dirfd"), path("path"), sin("how", LayoutOpenHow), size("size")), Result: KindFD},
	{Op: OpCreat, Name: "creat", Class: Descriptor, Args: args(path("path"), mode("mode")), Result: KindFD},
	{Op: OpClose, Name: "close", Class: Descriptor, Args: args(num("fd")), Result: KindNone},
	{Op: OpCloseRange, Name: "close_range", Class: Descriptor, Args: args(num("first"), num("last"), flags("flags", closeRangeFlags)), Result: KindNone},
	{Op: OpDup, Name: "dup", Class: Descriptor, Args: args(fd("fd")), Result: KindFD},
	{Op: OpDup2, Name: "dup2", Class: Descriptor, Args: args(fd("oldfd"), num("newfd")), Result: KindFD},
	{Op: OpDup3, Name: "dup3", Class: Descriptor, Args: args(fd("oldfd"), num("newfd"), flags("flags", openFlags)), Result: KindFD},
	{Op: OpFcntl, Name: "fcntl", Class: Descriptor, Args: args(fd("fd"), enum("cmd", fcntlCmds), onlyIf(sout("arg", LayoutFlock), 1, 5, 6, 7, 36, 37, 38)), Result: KindInt},
	{Op: OpFlock, Name: "flock", Class: Lock, Args: args(fd("fd"), flags("operation", flockOps)), Result: KindNone},
	{Op: OpIoctl, Name: "ioctl", Class: Descriptor, Args: args(fd("fd"), enum("cmd", ioctlCmds), hex("arg")), Result: KindInt},
	{Op: OpMemfdCreate, Name: "memfd_create", Class: Descriptor, Args: args(text("name"), hex("flags")), Result: KindFD},
	{Op: OpPipe, Name: "pipe", Class: Socket, Args: args(sout("fds", LayoutFDPair)), Result: KindNone, Replay: Emulate, Why: "pipes are simulated"},
	{Op: OpPipe2, Name: "pipe2", Class: Socket, Args: args(sout("fds", LayoutFDPair), flags("flags", openFlags)), Result: KindNone, Replay: Emulate, Why: "pipes are simulated"},
	{Op: OpStat, Name: "stat", Class: Meta, Args: args(path("path"), sout("statbuf", LayoutStat)), Result: KindNone},
	{Op: OpFstat, Name: "fstat", Class: Meta, Args: args(fd("fd"), sout("statbuf", LayoutStat)), Result: KindNone},
	{Op: OpLstat, Name: "lstat", Class: Meta, Args: args(path("path"), sout("statbuf", LayoutStat)), Result: KindNone},
	{Op: OpNewfstatat, Name: "newfstatat", Class: Meta, Args: args(dirfd("dirfd"), path("path"), sout("statbuf", LayoutStat), flags("flags", atFlags)), Result: KindNone},
	{Op: OpStatx, Name: "statx", Class: Meta, Args: args(dirfd("dirfd"), path("path"), flags("flags", atFlags), hex("mask"), sout("statxbuf", LayoutStatx)), Result: KindNone},
	{Op: OpStatfs, Name: "statfs", Class: Meta, Args: args(path("path"), sout("buf", LayoutStatfs)), Result: KindNone},
	{Op: OpFstatfs, Name: "fstatfs", Class: Meta, Args: args(fd("fd"), sout("buf", LayoutStatfs)), Result: KindNone},
	{Op: OpAccess, Name: "access", Class: Meta, Args: args(path("path"), flags("mode", accessModes)), Result: KindNone},
	{Op: OpFaccessat, Name: "faccessat", Class: Meta, Args: args(dirfd("dirfd"), path("path"), flags("mode", accessModes)), Result: KindNone},
	{Op: OpFaccessat2, Name: "faccessat2", Class: Meta, Args: args(dirfd("dirfd"), path("path"), flags("mode", accessModes), flags("flags", atFlags)), Result: KindNone},
	{Op: OpChmod, Name: "chmod", Class: Meta, Args: args(path("path"), mode("mode")), Result: KindNone},
	{Op: OpFchmod, Name: "fchmod", Class: Meta, Args: args(fd("fd"), mode("mode")), Result: KindNone},
	{Op: OpFchmodat, Name: "fchmodat", Class: Meta, Args: args(dirfd("dirfd"), path("path"), mode("mode")), Result: KindNone},
	{Op: OpFchmodat2, Name: "fchmodat2", Class: Meta, Args: args(dirfd("dirfd"), path("path"), mode("mode"), flags("flags", atFlags)), Result: KindNone},
	{Op: OpChown, Name: "chown", Class: Meta, Args: args(path("path"), id("owner"), id("group")), Result: KindNone},
	{Op: OpFchown, Name: "fchown", Class: Meta, Args: args(fd("fd"), id("owner"), id("group")), Result: KindNone},
	{Op: OpLchown, Name: "lchown", Class: Meta, Args: args(path("path"), id("owner"), id("group")), Result: KindNone},
	{Op: OpFchownat, Name: "fchownat", Class: Meta, Args: args(dirfd("dirfd"), path("path"), id("owner"), id("group"), flags("flags", atFlags)), Result: KindNone},
	{Op: OpUtime, Name: "utime", Class: Meta, Args: args(path("path"), sin("times", LayoutUtimbuf)), Result: KindNone},
	{Op: OpUtimes, Name: "utimes", Class: Meta, Args: args(path("path"), sin("times", LayoutTimeval2)), Result: KindNone},
	{Op: OpFutimesat, Name: "futimesat", Class: Meta, Args: args(dirfd("dirfd"), path("path"), sin("times", LayoutTimeval2)), Result: KindNone},
	{Op: OpUtimensat, Name: "utimensat", Class: Meta, Args: args(dirfd("dirfd"), path("path"), sin("times", LayoutTimespec2), flags("flags", atFlags)), Result: KindNone},
	{Op: OpUmask, Name: "umask", Class: Meta, Args: args(mode("mask")), Result: KindMode},
	{Op: OpSetxattr, Name: "setxattr", Class: Meta, Args: args(path("path"), text("name"), inAll("value", 3), size("size"), hex("flags")), Result: KindNone},
	{Op: OpLsetxattr, Name: "lsetxattr", Class: Meta, Args: args(path("path"), text("name"), inAll("value", 3), size("size"), hex("flags")), Result: KindNone},
	{Op: OpFsetxattr, Name: "fsetxattr", Class: Meta, Args: args(fd("fd"), text("name"), inAll("value", 3), size("size"), hex("flags")), Result: KindNone},
	{Op: OpGetxattr, Name: "getxattr", Class: Meta, Args: args(path("path"), text("name"), out("value", 3), size("size")), Result: KindSize},
	{Op: OpLgetxattr, Name: "lgetxattr", Class: Meta, Args: args(path("path"), text("name"), out("value", 3), size("size")), Result: KindSize},
	{Op: OpFgetxattr, Name: "fgetxattr", Class: Meta, Args: args(fd("fd"), text("name"), out("value", 3), size("size")), Result: KindSize},
	{Op: OpListxattr, Name: "listxattr", Class: Meta, Args: args(path("path"), out("list", 2), size("size")), Result: KindSize},
	{Op: OpLlistxattr, Name: "llistxattr", Class: Meta, Args: args(path("path"), out("list", 2), size("size")), Result: KindSize},
	{Op: OpFlistxattr, Name: "flistxattr", Class: Meta, Args: args(fd("fd"), out("list", 2), size("size")), Result: KindSize},
	{Op: OpRemovexattr, Name: "removexattr", Class: Meta, Args: args(path("path"), text("name")), Result: KindNone},
	{Op: OpLremovexattr, Name: "lremovexattr", Class: Meta, Args: args(path("path"), text("name")), Result: KindNone},
	{Op: OpFremovexattr, Name: "fremovexattr", Class: Meta, Args: args(fd("fd"), text("name")), Result: KindNone},
	{Op: OpMkdir, Name: "mkdir", Class: Namespace, Args: args(path("path"), mode("mode")), Result: KindNone},
	{Op: OpMkdirat, Name: "mkdirat", Class: Namespace, Args: args(dirfd("dirfd"), path("path"), mode("mode")), Result: KindNone},
	{Op: OpRmdir, Name: "rmdir", Class: Namespace, Args: args(path("path")), Result: KindNone},
	{Op: OpUnlink, Name: "unlink", Class: Namespace, Args: args(path("path")), Result: KindNone},
	{Op: OpUnlinkat, Name: "unlinkat", Class: Namespace, Args: args(dirfd("dirfd"), path("path"), flags("flags", atFlags)), Result: KindNone},
	{Op: OpRename, Name: "rename", Class: Namespace, Args: args(path("oldpath"), path("newpath")), Result: KindNone},
	{Op: OpRenameat, Name: "renameat", Class: Namespace, Args: args(dirfd("olddirfd"), path("oldpath"), dirfd("newdirfd"), path("newpath")), Result: KindNone},
	{Op: OpRenameat2, Name: "renameat2", Class: Namespace, Args: args(dirfd("olddirfd"), path("oldpath"), dirfd("newdirfd"), path("newpath"), flags("flags", renameFlags)), Result: KindNone},
	{Op: OpLink, Name: "link", Class: Namespace, Args: args(path("oldpath"), path("newpath")), Result: KindNone},
	{Op: OpLinkat, Name: "linkat", Class: Namespace, Args: args(dirfd("olddirfd"), path("oldpath"), dirfd("newdirfd"), path("newpath"), flags("flags", atFlags)), Result: KindNone},
	{Op: OpSymlink, Name: "symlink", Class: Namespace, Args: args(text("target"), path("linkpath")), Result: KindNone},
	{Op: OpSymlinkat, Name: "symlinkat", Class: Namespace, Args: args(text("target"), dirfd("newdirfd"), path("linkpath")), Result: KindNone},
	{Op: OpReadlink, Name: "readlink", Class: Namespace, Args: args(path("path"), out("buf", 2), size("bufsiz")), Result: KindSize},
	{Op: OpReadlinkat, Name: "readlinkat", Class: Namespace, Args: args(dirfd("dirfd"), path("path"), out("buf", 3), size("bufsiz")), Result: KindSize},
	{Op: OpMknod, Name: "mknod", Class: Namespace, Args: args(path("path"), mode("mode"), dev("dev")), Result: KindNone},
	{Op: OpMknodat, Name: "mknodat", Class: Namespace, Args: args(dirfd("dirfd"), path("path"), mode("mode"), dev("dev")), Result: KindNone},
	{Op: OpGetdents, Name: "getdents", Class: Namespace, Args: args(fd("fd"), out("dirp", 2), size("count")), Result: KindSize},
	{Op: OpGetdents64, Name: "getdents64", Class: Namespace, Args: args(fd("fd"), out("dirp", 2), size("count")), Result: KindSize},
	{Op: OpChdir, Name: "chdir", Class: Namespace, Args: args(path("path")), Result: KindNone},
	{Op: OpFchdir, Name: "fchdir", Class: Namespace, Args: args(fd("fd")), Result: KindNone},
	{Op: OpGetcwd, Name: "getcwd", Class: Namespace, Args: args(out("buf", 1), size("size")), Result: KindSize},
	{Op: OpChroot, Name: "chroot", Class: Namespace, Args: args(path("path")), Result: KindNone, Replay: Skip, Why: "a replay does not leave its target"},
	{Op: OpMount, Name: "mount", Class: Namespace, Args: args(text("source"), path("target"), text("fstype"), hex("flags"), hex("data")), Result: KindNone, Replay: Skip, Why: "mounts are not repeated unless asked"},
	{Op: OpUmount2, Name: "umount2", Class: Namespace, Args: args(path("target"), hex("flags")), Result: KindNone, Replay: Skip, Why: "mounts are not repeated unless asked"},
	{Op: OpMmap, Name: "mmap", Class: Memory, Args: args(hex("addr"), size("length"), flags("prot", protFlags), flags("flags", mmapFlags), fd("fd"), off("offset")), Result: KindHex, Replay: Emulate, Why: "mapped pages are replayed as reads and writes"},
	{Op: OpMunmap, Name: "munmap", Class: Memory, Args: args(hex("addr"), size("length")), Result: KindNone, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpMremap, Name: "mremap", Class: Memory, Args: args(hex("old_addr"), size("old_size"), size("new_size"), hex("flags"), hex("new_addr")), Result: KindHex, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpMsync, Name: "msync", Class: Memory, Args: args(hex("addr"), size("length"), flags("flags", msyncFlags)), Result: KindNone, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpExecve, Name: "execve", Class: Process, Args: args(atEntry(path("path")), strs("argv"), hex("envp")), Result: KindNone, Replay: Emulate, Why: "programs are not run again", Identity: true},
	{Op: OpExecveat, Name: "execveat", Class: Process, Args: args(dirfd("dirfd"), atEntry(path("path")), strs("argv"), hex("envp"), flags("flags", atFlags)), Result: KindNone, Replay: Emulate, Why: "programs are not run again", Identity: true},
	{Op: OpFork, Name: "fork", Class: Process, Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpVfork, Name: "vfork", Class: Process, Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpClone, Name: "clone", Class: Process, Args: args(flags("flags", cloneFlags), hex("stack"), hex("parent_tid"), hex("child_tid"), hex("tls")), Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpClone3, Name: "clone3", Class: Process, Args: args(sin("args", LayoutCloneArgs), size("size")), Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpWait4, Name: "wait4", Class: Process, Args: args(pid("pid"), hex("wstatus"), hex("options"), hex("rusage")), Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpWaitid, Name: "waitid", Class: Process, Args: args(num("idtype"), pid("id"), hex("infop"), hex("options"), hex("rusage")), Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpExit, Name: "exit", Class: Process, Args: args(num("status")), Result: KindNone, Replay: Emulate, Why: "processes are modelled", NoReturn: true},
	{Op: OpExitGroup, Name: "exit_group", Class: Process, Args: args(num("status")), Result: KindNone, Replay: Emulate, Why: "processes are modelled", NoReturn: true},
	{Op: OpSetuid, Name: "setuid", Class: Process, Args: args(id("uid")), Result: KindNone, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetgid, Name: "setgid", Class: Process, Args: args(id("gid")), Result: KindNone, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetreuid, Name: "setreuid", Class: Process, Args: args(id("ruid"), id("euid")), Result: KindNone, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetregid, Name: "setregid", Class: Process, Args: args(id("rgid"), id("egid")), Result: KindNone, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetresuid, Name: "setresuid", Class: Process, Args: args(id("ruid"), id("euid"), id("suid")), Result: KindNone, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetresgid, Name: "setresgid", Class: Process, Args: args(id("rgid"), id("egid"), id("sgid")), Result: KindNone, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetfsuid, Name: "setfsuid", Class: Process, Args: args(id("uid")), Result: KindID, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetfsgid, Name: "setfsgid", Class: Process, Args: args(id("gid")), Result: KindID, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetgroups, Name: "setgroups", Class: Process, Args: args(size("size"), hex("list")), Result: KindNone, Replay: Emulate, Why: "identity is applied to the calls that follow", Identity: true},
	{Op: OpSetpgid, Name: "setpgid", Class: Process, Args: args(pid("pid"), pid("pgid")), Result: KindNone, Replay: Emulate, Why: "processes are modelled", Identity: true},
	{Op: OpSetsid, Name: "setsid", Class: Process, Result: KindPID, Replay: Emulate, Why: "processes are modelled", Identity: true},
	{Op: OpUnshare, Name: "unshare", Class: Process, Args: args(flags("flags", cloneFlags)), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSetns, Name: "setns", Class: Process, Args: args(fd("fd"), hex("nstype")), Result: KindNone, Replay: Skip, Why: "a replay does not leave its target"},
	{Op: OpKill, Name: "kill", Class: Process, Args: args(pid("pid"), sig("sig")), Result: KindNone, Replay: Emulate, Why: "signals are not sent"},
	{Op: OpTgkill, Name: "tgkill", Class: Process, Args: args(pid("tgid"), pid("tid"), sig("sig")), Result: KindNone, Replay: Emulate, Why: "signals are not sent"},
	{Op: OpSocket, Name: "socket", Class: Socket, Args: args(enum("domain", socketDomains), hex("type"), num("protocol")), Result: KindFD, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpSocketpair, Name: "socketpair", Class: Socket, Args: args(enum("domain", socketDomains), hex("type"), num("protocol"), sout("fds", LayoutFDPair)), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpBind, Name: "bind", Class: Socket, Args: args(fd("fd"), inAll("addr", 2), size("addrlen")), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpConnect, Name: "connect", Class: Socket, Args: args(fd("fd"), inAll("addr", 2), size("addrlen")), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpListen, Name: "listen", Class: Socket, Args: args(fd("fd"), num("backlog")), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpAccept, Name: "accept", Class: Socket, Args: args(fd("fd"), hex("addr"), hex("addrlen")), Result: KindFD, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpAccept4, Name: "accept4", Class: Socket, Args: args(fd("fd"), hex("addr"), hex("addrlen"), hex("flags")), Result: KindFD, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpSendto, Name: "sendto", Class: Socket, Args: args(fd("fd"), in("buf", 2), size("len"), hex("flags"), inAll("addr", 5), size("addrlen")), Result: KindSize, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpRecvfrom, Name: "recvfrom", Class: Socket, Args: args(fd("fd"), out("buf", 2), size("len"), hex("flags"), hex("addr"), hex("addrlen")), Result: KindSize, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpSendmsg, Name: "sendmsg", Class: Socket, Args: args(fd("fd"), hex("msg"), hex("flags")), Result: KindSize, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpRecvmsg, Name: "recvmsg", Class: Socket, Args: args(fd("fd"), hex("msg"), hex("flags")), Result: KindSize, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpShutdown, Name: "shutdown", Class: Socket, Args: args(fd("fd"), num("how")), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpEventfd, Name: "eventfd", Class: Wait, Args: args(num("initval")), Result: KindFD, Replay: Emulate, Why: "event descriptors are simulated"},
	{Op: OpEventfd2, Name: "eventfd2", Class: Wait, Args: args(num("initval"), hex("flags")), Result: KindFD, Replay: Emulate, Why: "event descriptors are simulated"},
	{Op: OpEpollCreate, Name: "epoll_create", Class: Wait, Args: args(num("size")), Result: KindFD, Replay: Emulate, Why: "event descriptors are simulated"},
	{Op: OpEpollCreate1, Name: "epoll_create1", Class: Wait, Args: args(hex("flags")), Result: KindFD, Replay: Emulate, Why: "event descriptors are simulated"},
	{Op: OpSignalfd4, Name: "signalfd4", Class: Wait, Args: args(num("fd"), hex("mask"), size("sizemask"), hex("flags")), Result: KindFD, Replay: Emulate, Why: "event descriptors are simulated"},
	{Op: OpTimerfdCreate, Name: "timerfd_create", Class: Wait, Args: args(num("clockid"), hex("flags")), Result: KindFD, Replay: Emulate, Why: "event descriptors are simulated"},
	{Op: OpInotifyInit, Name: "inotify_init", Class: Wait, Result: KindFD, Replay: Emulate, Why: "event descriptors are simulated"},
	{Op: OpInotifyInit1, Name: "inotify_init1", Class: Wait, Args: args(hex("flags")), Result: KindFD, Replay: Emulate, Why: "event descriptors are simulated"},
	{Op: OpIoUringSetup, Name: "io_uring_setup", Class: Wait, Args: args(num("entries"), hex("params")), Result: KindFD, Replay: Emulate, Why: "submission queues are simulated"},
	{Op: OpPidfdOpen, Name: "pidfd_open", Class: Process, Args: args(pid("pid"), hex("flags")), Result: KindFD, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpPidfdGetfd, Name: "pidfd_getfd", Class: Descriptor, Args: args(fd("pidfd"), num("targetfd"), hex("flags")), Result: KindFD, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpOpenByHandleAt, Name: "open_by_handle_at", Class: Descriptor, Args: args(fd("mount_fd"), hex("handle"), flags("flags", openFlags)), Result: KindFD, Replay: Emulate, Why: "handles belong to the recorded file system"},
	{Op: OpPrctl, Name: "prctl", Class: Process, Args: args(num("option"), hex("arg2"), hex("arg3"), hex("arg4"), hex("arg5")), Result: KindInt, Replay: Emulate, Why: "processes are modelled", Identity: true},
	{Op: OpBrk, Name: "brk", Class: Memory, Args: args(hex("addr")), Result: KindHex, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpMprotect, Name: "mprotect", Class: Memory, Args: args(hex("addr"), size("length"), flags("prot", protFlags)), Result: KindNone, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpMadvise, Name: "madvise", Class: Memory, Args: args(hex("addr"), size("length"), num("advice")), Result: KindNone, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpMincore, Name: "mincore", Class: Memory, Args: args(hex("addr"), size("length"), hex("vec")), Result: KindNone, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpMlock, Name: "mlock", Class: Memory, Args: args(hex("addr"), size("length")), Result: KindNone, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpMunlock, Name: "munlock", Class: Memory, Args: args(hex("addr"), size("length")), Result: KindNone, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpMemfdSecret, Name: "memfd_secret", Class: Memory, Args: args(hex("flags")), Result: KindFD, Replay: Emulate, Why: "address spaces are not rebuilt"},
	{Op: OpFutex, Name: "futex", Class: Wait, Args: args(hex("uaddr"), hex("op"), num("val"), hex("timeout"), hex("uaddr2"), num("val3")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpPoll, Name: "poll", Class: Wait, Args: args(hex("fds"), size("nfds"), num("timeout")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpPpoll, Name: "ppoll", Class: Wait, Args: args(hex("fds"), size("nfds"), hex("timeout"), hex("sigmask")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpSelect, Name: "select", Class: Wait, Args: args(num("nfds"), hex("readfds"), hex("writefds"), hex("exceptfds"), hex("timeout")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpPselect6, Name: "pselect6", Class: Wait, Args: args(num("nfds"), hex("readfds"), hex("writefds"), hex("exceptfds"), hex("timeout"), hex("sigmask")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpEpollCtl, Name: "epoll_ctl", Class: Wait, Args: args(fd("epfd"), num("op"), num("fd"), hex("event")), Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpEpollWait, Name: "epoll_wait", Class: Wait, Args: args(fd("epfd"), hex("events"), num("maxevents"), num("timeout")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpEpollPwait, Name: "epoll_pwait", Class: Wait, Args: args(fd("epfd"), hex("events"), num("maxevents"), num("timeout"), hex("sigmask")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpEpollPwait2, Name: "epoll_pwait2", Class: Wait, Args: args(fd("epfd"), hex("events"), num("maxevents"), hex("timeout"), hex("sigmask")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpTimerfdSettime, Name: "timerfd_settime", Class: Wait, Args: args(fd("fd"), hex("flags"), hex("new"), hex("old")), Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpTimerfdGettime, Name: "timerfd_gettime", Class: Wait, Args: args(fd("fd"), hex("curr")), Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpInotifyAddWatch, Name: "inotify_add_watch", Class: Wait, Args: args(fd("fd"), path("path"), hex("mask")), Result: KindInt, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpInotifyRmWatch, Name: "inotify_rm_watch", Class: Wait, Args: args(fd("fd"), num("wd")), Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpNanosleep, Name: "nanosleep", Class: Wait, Args: args(hex("request"), hex("remain")), Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpClockNanosleep, Name: "clock_nanosleep", Class: Wait, Args: args(num("clockid"), hex("flags"), hex("request"), hex("remain")), Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpPause, Name: "pause", Class: Wait, Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpSchedYield, Name: "sched_yield", Class: Wait, Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpRtSigaction, Name: "rt_sigaction", Class: Process, Args: args(sig("signum"), hex("act"), hex("oldact"), size("sigsetsize")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpRtSigprocmask, Name: "rt_sigprocmask", Class: Process, Args: args(num("how"), hex("set"), hex("oldset"), size("sigsetsize")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpRtSigsuspend, Name: "rt_sigsuspend", Class: Wait, Args: args(hex("mask"), size("sigsetsize")), Result: KindNone, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpRtSigtimedwait, Name: "rt_sigtimedwait", Class: Wait, Args: args(hex("set"), hex("info"), hex("timeout"), size("sigsetsize")), Result: KindSignal, Replay: Emulate, Why: "waits are not repeated"},
	{Op: OpSigaltstack, Name: "sigaltstack", Class: Process, Args: args(hex("ss"), hex("old_ss")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpTkill, Name: "tkill", Class: Process, Args: args(pid("tid"), sig("sig")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetpid, Name: "getpid", Class: Process, Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGettid, Name: "gettid", Class: Process, Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetppid, Name: "getppid", Class: Process, Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetpgid, Name: "getpgid", Class: Process, Args: args(pid("pid")), Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetpgrp, Name: "getpgrp", Class: Process, Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetsid, Name: "getsid", Class: Process, Args: args(pid("pid")), Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetuid, Name: "getuid", Class: Process, Result: KindID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGeteuid, Name: "geteuid", Class: Process, Result: KindID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetgid, Name: "getgid", Class: Process, Result: KindID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetegid, Name: "getegid", Class: Process, Result: KindID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetresuid, Name: "getresuid", Class: Process, Args: args(hex("ruid"), hex("euid"), hex("suid")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetresgid, Name: "getresgid", Class: Process, Args: args(hex("rgid"), hex("egid"), hex("sgid")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetgroups, Name: "getgroups", Class: Process, Args: args(num("size"), hex("list")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSetTidAddress, Name: "set_tid_address", Class: Process, Args: args(hex("tidptr")), Result: KindPID, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSetRobustList, Name: "set_robust_list", Class: Process, Args: args(hex("head"), size("len")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpRseq, Name: "rseq", Class: Process, Args: args(hex("rseq"), size("len"), hex("flags"), hex("sig")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpArchPrctl, Name: "arch_prctl", Class: Process, Args: args(hex("code"), hex("addr")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpPrlimit64, Name: "prlimit64", Class: Process, Args: args(pid("pid"), num("resource"), sin("new", LayoutRlimit), sout("old", LayoutRlimit)), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetrlimit, Name: "getrlimit", Class: Process, Args: args(num("resource"), sout("rlim", LayoutRlimit)), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSetrlimit, Name: "setrlimit", Class: Process, Args: args(num("resource"), sin("rlim", LayoutRlimit)), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetrandom, Name: "getrandom", Class: Process, Args: args(hex("buf"), size("buflen"), hex("flags")), Result: KindSize, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpUname, Name: "uname", Class: Process, Args: args(hex("buf")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSysinfo, Name: "sysinfo", Class: Process, Args: args(hex("info")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetrusage, Name: "getrusage", Class: Process, Args: args(num("who"), hex("usage")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpTimes, Name: "times", Class: Process, Args: args(hex("buf")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpClockGettime, Name: "clock_gettime", Class: Process, Args: args(num("clockid"), hex("tp")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpClockGetres, Name: "clock_getres", Class: Process, Args: args(num("clockid"), hex("res")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGettimeofday, Name: "gettimeofday", Class: Process, Args: args(hex("tv"), hex("tz")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpTime, Name: "time", Class: Process, Args: args(hex("tloc")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpAlarm, Name: "alarm", Class: Process, Args: args(num("seconds")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSetitimer, Name: "setitimer", Class: Process, Args: args(num("which"), hex("new"), hex("old")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetpriority, Name: "getpriority", Class: Process, Args: args(num("which"), num("who")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSetpriority, Name: "setpriority", Class: Process, Args: args(num("which"), num("who"), num("prio")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSchedGetaffinity, Name: "sched_getaffinity", Class: Process, Args: args(pid("pid"), size("cpusetsize"), hex("mask")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSchedSetaffinity, Name: "sched_setaffinity", Class: Process, Args: args(pid("pid"), size("cpusetsize"), hex("mask")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSchedGetscheduler, Name: "sched_getscheduler", Class: Process, Args: args(pid("pid")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSchedSetscheduler, Name: "sched_setscheduler", Class: Process, Args: args(pid("pid"), num("policy"), hex("param")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpGetcpu, Name: "getcpu", Class: Process, Args: args(hex("cpu"), hex("node"), hex("tcache")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpMembarrier, Name: "membarrier", Class: Process, Args: args(num("cmd"), hex("flags"), num("cpu_id")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpCapget, Name: "capget", Class: Process, Args: args(hex("header"), hex("data")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpCapset, Name: "capset", Class: Process, Args: args(hex("header"), hex("data")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSeccomp, Name: "seccomp", Class: Process, Args: args(hex("op"), hex("flags"), hex("args")), Result: KindInt, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpPersonality, Name: "personality", Class: Process, Args: args(hex("persona")), Result: KindHex, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpPidfdSendSignal, Name: "pidfd_send_signal", Class: Process, Args: args(fd("pidfd"), sig("sig"), hex("info"), hex("flags")), Result: KindNone, Replay: Emulate, Why: "processes are modelled"},
	{Op: OpSetsockopt, Name: "setsockopt", Class: Socket, Args: args(fd("fd"), num("level"), num("optname"), inAll("optval", 4), size("optlen")), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpGetsockopt, Name: "getsockopt", Class: Socket, Args: args(fd("fd"), num("level"), num("optname"), hex("optval"), hex("optlen")), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpGetsockname, Name: "getsockname", Class: Socket, Args: args(fd("fd"), hex("addr"), hex("addrlen")), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpGetpeername, Name: "getpeername", Class: Socket, Args: args(fd("fd"), hex("addr"), hex("addrlen")), Result: KindNone, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpSendmmsg, Name: "sendmmsg", Class: Socket, Args: args(fd("fd"), hex("msgvec"), size("vlen"), hex("flags")), Result: KindInt, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpRecvmmsg, Name: "recvmmsg", Class: Socket, Args: args(fd("fd"), hex("msgvec"), size("vlen"), hex("flags"), hex("timeout")), Result: KindInt, Replay: Emulate, Why: "sockets are simulated"},
	{Op: OpIoSetup, Name: "io_setup", Class: Data, Args: args(size("nr_events"), hex("ctxp")), Result: KindNone, Replay: Emulate, Why: "their requests are repeated, not the queues"},
	{Op: OpIoDestroy, Name: "io_destroy", Class: Data, Args: args(hex("ctx")), Result: KindNone, Replay: Emulate, Why: "their requests are repeated, not the queues"},
	{Op: OpIoSubmit, Name: "io_submit", Class: Data, Args: args(hex("ctx"), num("nr"), hex("iocbpp")), Result: KindInt, Replay: Emulate, Why: "their requests are repeated, not the queues"},
	{Op: OpIoGetevents, Name: "io_getevents", Class: Data, Args: args(hex("ctx"), num("min_nr"), num("nr"), hex("events"), hex("timeout")), Result: KindInt, Replay: Emulate, Why: "their requests are repeated, not the queues"},
	{Op: OpIoCancel, Name: "io_cancel", Class: Data, Args: args(hex("ctx"), hex("iocb"), hex("result")), Result: KindNone, Replay: Emulate, Why: "their requests are repeated, not the queues"},
	{Op: OpIoUringEnter, Name: "io_uring_enter", Class: Data, Args: args(fd("fd"), num("to_submit"), num("min_complete"), flags("flags", uringEnterFlags), hex("sig")), Result: KindInt, Replay: Emulate, Why: "their requests are repeated, not the queues"},
	{Op: OpIoUringRegister, Name: "io_uring_register", Class: Data, Args: args(fd("fd"), enum("opcode", uringRegisters), slots("arg"), num("nr_args")), Result: KindInt, Replay: Emulate, Why: "their requests are repeated, not the queues"},
	{Op: OpNameToHandleAt, Name: "name_to_handle_at", Class: Meta, Args: args(dirfd("dirfd"), path("path"), hex("handle"), hex("mount_id"), hex("flags")), Result: KindNone, Replay: Emulate, Why: "handles belong to the recorded file system"},
	{Op: OpPivotRoot, Name: "pivot_root", Class: Namespace, Args: args(path("new_root"), path("put_old")), Result: KindNone, Replay: Skip, Why: "mounts are not repeated unless asked"},
}
