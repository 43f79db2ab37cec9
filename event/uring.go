// SPDX-License-Identifier: Apache-2.0

package event

// The requests of io_uring: OpUring stands for opcodes that this version does not
// know, the others follow enum io_uring_op (linux/io_uring.h) without a gap.
const (
	OpUring Op = firstUring + iota
	OpUringNop
	OpUringReadv
	OpUringWritev
	OpUringFsync
	OpUringReadFixed
	OpUringWriteFixed
	OpUringPollAdd
	OpUringPollRemove
	OpUringSyncFileRange
	OpUringSendmsg
	OpUringRecvmsg
	OpUringTimeout
	OpUringTimeoutRemove
	OpUringAccept
	OpUringAsyncCancel
	OpUringLinkTimeout
	OpUringConnect
	OpUringFallocate
	OpUringOpenat
	OpUringClose
	OpUringFilesUpdate
	OpUringStatx
	OpUringRead
	OpUringWrite
	OpUringFadvise
	OpUringMadvise
	OpUringSend
	OpUringRecv
	OpUringOpenat2
	OpUringEpollCtl
	OpUringSplice
	OpUringProvideBuffers
	OpUringRemoveBuffers
	OpUringTee
	OpUringShutdown
	OpUringRenameat
	OpUringUnlinkat
	OpUringMkdirat
	OpUringSymlinkat
	OpUringLinkat
	OpUringMsgRing
	OpUringFsetxattr
	OpUringSetxattr
	OpUringFgetxattr
	OpUringGetxattr
	OpUringSocket
	OpUringCmd
	OpUringSendZC
	OpUringSendmsgZC
	OpUringReadMultishot
	OpUringWaitid
	OpUringFutexWait
	OpUringFutexWake
	OpUringFutexWaitv
	OpUringFixedFDInstall
	OpUringFtruncate
	OpUringBind
	OpUringListen
	OpUringRecvZC
	OpUringEpollWait
	OpUringReadvFixed
	OpUringWritevFixed
	OpUringPipe
)

// The fields of struct io_uring_sqe, named as there.
var (
	sqeFD     = Field{Off: 4, Size: 4, Signed: true}
	sqeOff    = Field{Off: 8, Size: 8} // and addr2
	sqeCmd    = Field{Off: 8, Size: 4}
	sqeAddr   = Field{Off: 16, Size: 8}
	sqeLen    = Field{Off: 24, Size: 4}
	sqeDirLen = Field{Off: 24, Size: 4, Signed: true} // len as a descriptor
	sqeFlags  = Field{Off: 28, Size: 4}
	sqeGroup  = Field{Off: 40, Size: 2} // and buf_index
	sqeIndex  = Field{Off: 44, Size: 4, Signed: true}
	sqeUDLen  = Field{Off: 44, Size: 2} // addr_len
	sqeAddr3  = Field{Off: 48, Size: 8}
	// Lengths of more than 32 bits have a word of their own in newer kernels.
	sqeAddrOrLen = Field{Off: 16, Size: 8, Else: 24, ElseSize: 4}
	sqeOffOrLen  = Field{Off: 8, Size: 8, Else: 24, ElseSize: 4}
	none         = Field{}
)

var (
	sqeFlagNames = bits("io_uring_sqe", "0", b("IOSQE_FIXED_FILE", SQEFixedFile), b("IOSQE_IO_DRAIN", SQEDrain), b("IOSQE_IO_LINK", SQELink), b("IOSQE_IO_HARDLINK", SQEHardLink),
		b("IOSQE_ASYNC", SQEAsync), b("IOSQE_BUFFER_SELECT", SQEBufferSelect), b("IOSQE_CQE_SKIP_SUCCESS", SQESkipSuccess))
	cqeFlagNames = bits("cqe", "0", b("IORING_CQE_F_BUFFER", CQEBuffer), b("IORING_CQE_F_MORE", CQEMore), b("IORING_CQE_F_SOCK_NONEMPTY", 4), b("IORING_CQE_F_NOTIF", 8), b("IORING_CQE_F_BUF_MORE", 16))
	fsyncFlags   = bits("fsync", "0", b("IORING_FSYNC_DATASYNC", 1))
	timeoutFlags = bits("timeout", "0", b("IORING_TIMEOUT_ABS", 1), b("IORING_TIMEOUT_UPDATE", 2), b("IORING_TIMEOUT_BOOTTIME", 4), b("IORING_TIMEOUT_REALTIME", 8),
		b("IORING_LINK_TIMEOUT_UPDATE", 16), b("IORING_TIMEOUT_ETIME_SUCCESS", 32), b("IORING_TIMEOUT_MULTISHOT", 64))
	cancelFlags = bits("cancel", "0", b("IORING_ASYNC_CANCEL_ALL", 1), b("IORING_ASYNC_CANCEL_FD", 2), b("IORING_ASYNC_CANCEL_ANY", 4), b("IORING_ASYNC_CANCEL_FD_FIXED", 8),
		b("IORING_ASYNC_CANCEL_USERDATA", 16), b("IORING_ASYNC_CANCEL_OP", 32))
	pollFlags = bits("poll", "0", b("IORING_POLL_ADD_MULTI", 1), b("IORING_POLL_UPDATE_EVENTS", 2), b("IORING_POLL_UPDATE_USER_DATA", 4), b("IORING_POLL_ADD_LEVEL", 8))
)

// Names of Request.Flags and Request.CQEFlags.
var (
	SQEFlagNames = sqeFlagNames
	CQEFlagNames = cqeFlagNames
)

// uringTable holds the rows from OpUring on.
var uringTable = func() (t [OpUringPipe - firstUring + 1]Spec) {
	add := func(s Spec, fields ...Field) { addRequest(t[:], firstUring, s, fields) }
	add(Spec{Op: OpUring, Name: "uring", Class: Raw,
		Args: args(fd("fd"), hex("off"), hex("addr"), hex("len"), hex("flags"),
			hex("file_index")), Result: KindHex}, sqeFD, sqeOff, sqeAddr, sqeLen, sqeFlags, sqeIndex)
	add(Spec{Op: OpUringNop, Name: "uring_nop", Class: Wait, Result: KindInt})
	add(Spec{Op: OpUringReadv, Name: "uring_readv", Like: OpPreadv2}, sqeFD, sqeAddr, sqeLen, sqeOff, none, sqeFlags)
	add(Spec{Op: OpUringWritev, Name: "uring_writev", Like: OpPwritev2}, sqeFD, sqeAddr, sqeLen, sqeOff, none, sqeFlags)
	add(Spec{Op: OpUringFsync, Name: "uring_fsync", Like: OpFsync,
		Args: args(flags("flags", fsyncFlags), off("offset"), size("len"))}, sqeFD, sqeFlags, sqeOff, sqeLen)
	add(Spec{Op: OpUringReadFixed, Name: "uring_read_fixed", Like: OpPread64, Args: args(flags("flags", rwfFlags))},
		sqeFD, sqeAddr, sqeLen, sqeOff, sqeFlags)
	add(Spec{Op: OpUringWriteFixed, Name: "uring_write_fixed", Like: OpPwrite64, Args: args(flags("flags", rwfFlags))},
		sqeFD, sqeAddr, sqeLen, sqeOff, sqeFlags)
	add(Spec{Op: OpUringPollAdd, Name: "uring_poll_add", Class: Wait,
		Args: args(fd("fd"), flags("events", pollEvents),
			flags("flags", pollFlags)), Result: KindInt}, sqeFD, sqeFlags, sqeLen)
	add(Spec{Op: OpUringPollRemove, Name: "uring_poll_remove", Class: Wait,
		Args: args(hex("user_data"), hex("new_user_data"), flags("events", pollEvents),
			flags("flags", pollFlags)), Result: KindNone}, sqeAddr, sqeOff, sqeFlags, sqeLen)
	add(Spec{Op: OpUringSyncFileRange, Name: "uring_sync_file_range", Like: OpSyncFileRange}, sqeFD, sqeOff, sqeLen,
		sqeFlags)
	add(Spec{Op: OpUringSendmsg, Name: "uring_sendmsg", Like: OpSendmsg}, sqeFD, sqeAddr, sqeFlags)
	add(Spec{Op: OpUringRecvmsg, Name: "uring_recvmsg", Like: OpRecvmsg}, sqeFD, sqeAddr, sqeFlags)
	add(Spec{Op: OpUringTimeout, Name: "uring_timeout", Class: Wait,
		Args: args(sin("ts", LayoutTimespec), size("count"),
			flags("flags", timeoutFlags)), Result: KindNone}, sqeAddr, sqeOff, sqeFlags)
	add(Spec{Op: OpUringTimeoutRemove, Name: "uring_timeout_remove", Class: Wait,
		Args: args(hex("user_data"), sin("ts", LayoutTimespec),
			flags("flags", timeoutFlags)), Result: KindNone}, sqeAddr, sqeOff, sqeFlags)
	add(Spec{Op: OpUringAccept, Name: "uring_accept", Like: OpAccept4}, sqeFD, sqeAddr, sqeOff, sqeFlags)
	add(Spec{Op: OpUringAsyncCancel, Name: "uring_async_cancel", Class: Wait,
		Args: args(hex("user_data"), num("fd"),
			flags("flags", cancelFlags)), Result: KindInt}, sqeAddr, sqeFD, sqeFlags)
	add(Spec{Op: OpUringLinkTimeout, Name: "uring_link_timeout", Class: Wait,
		Args: args(sin("ts", LayoutTimespec), flags("flags", timeoutFlags)), Result: KindNone}, sqeAddr, sqeFlags)
	add(Spec{Op: OpUringConnect, Name: "uring_connect", Like: OpConnect}, sqeFD, sqeAddr, sqeOff)
	add(Spec{Op: OpUringFallocate, Name: "uring_fallocate", Like: OpFallocate}, sqeFD, sqeLen, sqeOff, sqeAddr)
	add(Spec{Op: OpUringOpenat, Name: "uring_openat", Like: OpOpenat}, sqeFD, sqeAddr, sqeFlags, sqeLen)
	add(Spec{Op: OpUringClose, Name: "uring_close", Like: OpClose}, sqeFD)
	add(Spec{Op: OpUringFilesUpdate, Name: "uring_files_update", Class: Descriptor,
		Args: args(slots("fds"), size("nr"), off("offset")), Result: KindInt}, sqeAddr, sqeLen, sqeOff)
	add(Spec{Op: OpUringStatx, Name: "uring_statx", Like: OpStatx}, sqeFD, sqeAddr, sqeFlags, sqeLen, sqeOff)
	add(Spec{Op: OpUringRead, Name: "uring_read", Like: OpPread64, Args: args(flags("flags", rwfFlags))}, sqeFD,
		sqeAddr, sqeLen, sqeOff, sqeFlags)
	add(Spec{Op: OpUringWrite, Name: "uring_write", Like: OpPwrite64, Args: args(flags("flags", rwfFlags))}, sqeFD,
		sqeAddr, sqeLen, sqeOff, sqeFlags)
	add(Spec{Op: OpUringFadvise, Name: "uring_fadvise", Like: OpFadvise64}, sqeFD, sqeOff, sqeAddrOrLen, sqeFlags)
	add(Spec{Op: OpUringMadvise, Name: "uring_madvise", Like: OpMadvise}, sqeAddr, sqeOffOrLen, sqeFlags)
	add(Spec{Op: OpUringSend, Name: "uring_send", Like: OpSendto}, sqeFD, sqeAddr, sqeLen, sqeFlags, sqeOff, sqeUDLen)
	add(Spec{Op: OpUringRecv, Name: "uring_recv", Like: OpRecvfrom}, sqeFD, sqeAddr, sqeLen, sqeFlags, none, none)
	add(Spec{Op: OpUringOpenat2, Name: "uring_openat2", Like: OpOpenat2}, sqeFD, sqeAddr, sqeOff, sqeLen)
	add(Spec{Op: OpUringEpollCtl, Name: "uring_epoll_ctl", Like: OpEpollCtl}, sqeFD, sqeLen, sqeOff, sqeAddr)
	add(Spec{Op: OpUringSplice, Name: "uring_splice", Like: OpSplice,
		Args: args(fd("fd_in"), off("off_in"), fd("fd_out"), off("off_out"), size("len"),
			flags("flags", spliceFlags))}, sqeIndex, sqeAddr, sqeFD, sqeOff, sqeLen, sqeFlags)
	add(Spec{Op: OpUringProvideBuffers, Name: "uring_provide_buffers", Class: Memory,
		Args: args(hex("addr"), size("len"), num("nbufs"), num("bid"),
			num("bgid")), Result: KindNone}, sqeAddr, sqeLen, sqeFD, sqeOff, sqeGroup)
	add(Spec{Op: OpUringRemoveBuffers, Name: "uring_remove_buffers", Class: Memory,
		Args: args(num("nbufs"), num("bgid")), Result: KindInt}, sqeFD, sqeGroup)
	add(Spec{Op: OpUringTee, Name: "uring_tee", Like: OpTee}, sqeIndex, sqeFD, sqeLen, sqeFlags)
	add(Spec{Op: OpUringShutdown, Name: "uring_shutdown", Like: OpShutdown}, sqeFD, sqeLen)
	add(Spec{Op: OpUringRenameat, Name: "uring_renameat", Like: OpRenameat2}, sqeFD, sqeAddr, sqeDirLen, sqeOff,
		sqeFlags)
	add(Spec{Op: OpUringUnlinkat, Name: "uring_unlinkat", Like: OpUnlinkat}, sqeFD, sqeAddr, sqeFlags)
	add(Spec{Op: OpUringMkdirat, Name: "uring_mkdirat", Like: OpMkdirat}, sqeFD, sqeAddr, sqeLen)
	add(Spec{Op: OpUringSymlinkat, Name: "uring_symlinkat", Like: OpSymlinkat}, sqeAddr, sqeFD, sqeOff)
	add(Spec{Op: OpUringLinkat, Name: "uring_linkat", Like: OpLinkat}, sqeFD, sqeAddr, sqeDirLen, sqeOff, sqeFlags)
	add(Spec{Op: OpUringMsgRing, Name: "uring_msg_ring", Class: Wait,
		Args: args(fd("fd"), num("cmd"), hex("data"), hex("len"), num("src_fd"),
			hex("flags")), Result: KindNone}, sqeFD, sqeAddr, sqeOff, sqeLen, sqeAddr3, sqeFlags)
	add(Spec{Op: OpUringFsetxattr, Name: "uring_fsetxattr", Like: OpFsetxattr}, sqeFD, sqeAddr, sqeOff, sqeLen,
		sqeFlags)
	add(Spec{Op: OpUringSetxattr, Name: "uring_setxattr", Like: OpSetxattr}, sqeAddr3, sqeAddr, sqeOff, sqeLen,
		sqeFlags)
	add(Spec{Op: OpUringFgetxattr, Name: "uring_fgetxattr", Like: OpFgetxattr}, sqeFD, sqeAddr, sqeOff, sqeLen)
	add(Spec{Op: OpUringGetxattr, Name: "uring_getxattr", Like: OpGetxattr}, sqeAddr3, sqeAddr, sqeOff, sqeLen)
	add(Spec{Op: OpUringSocket, Name: "uring_socket", Like: OpSocket}, sqeFD, sqeOff, sqeLen)
	add(Spec{Op: OpUringCmd, Name: "uring_cmd", Class: Descriptor,
		Args: args(fd("fd"), hex("cmd_op"), hex("addr"), hex("len"),
			hex("flags")), Result: KindHex}, sqeFD, sqeCmd, sqeAddr, sqeLen, sqeFlags)
	add(Spec{Op: OpUringSendZC, Name: "uring_send_zc", Like: OpSendto}, sqeFD, sqeAddr, sqeLen, sqeFlags, sqeOff,
		sqeUDLen)
	add(Spec{Op: OpUringSendmsgZC, Name: "uring_sendmsg_zc", Like: OpSendmsg}, sqeFD, sqeAddr, sqeFlags)
	add(Spec{Op: OpUringReadMultishot, Name: "uring_read_multishot", Like: OpPread64}, sqeFD, sqeAddr, sqeLen, sqeOff)
	add(Spec{Op: OpUringWaitid, Name: "uring_waitid", Class: Process,
		Args: args(num("which"), pid("upid"), sout("infop", LayoutSiginfo),
			hex("options")), Result: KindNone}, sqeLen, sqeFD, sqeOff, sqeIndex)
	add(Spec{Op: OpUringFutexWait, Name: "uring_futex_wait", Class: Wait,
		Args: args(hex("uaddr"), hex("val"), hex("mask"),
			hex("futex_flags")), Result: KindNone}, sqeAddr, sqeOff, sqeAddr3, sqeFD)
	add(Spec{Op: OpUringFutexWake, Name: "uring_futex_wake", Class: Wait,
		Args: args(hex("uaddr"), hex("val"), hex("mask"),
			hex("futex_flags")), Result: KindInt}, sqeAddr, sqeOff, sqeAddr3, sqeFD)
	add(Spec{Op: OpUringFutexWaitv, Name: "uring_futex_waitv", Class: Wait, Args: args(hex("waiters"), num("nr")),
		Result: KindInt}, sqeAddr, sqeLen)
	add(Spec{Op: OpUringFixedFDInstall, Name: "uring_fixed_fd_install", Class: Descriptor,
		Args: args(fd("slot"), hex("flags")), Result: KindFD}, sqeFD, sqeFlags)
	add(Spec{Op: OpUringFtruncate, Name: "uring_ftruncate", Like: OpFtruncate}, sqeFD, sqeOff)
	add(Spec{Op: OpUringBind, Name: "uring_bind", Like: OpBind}, sqeFD, sqeAddr, sqeOff)
	add(Spec{Op: OpUringListen, Name: "uring_listen", Like: OpListen}, sqeFD, sqeLen)
	add(Spec{Op: OpUringRecvZC, Name: "uring_recv_zc", Class: Socket,
		Args: args(fd("fd"), size("len"), hex("flags"),
			num("ifq")), Result: KindInt}, sqeFD, sqeLen, sqeFlags, sqeIndex)
	add(Spec{Op: OpUringEpollWait, Name: "uring_epoll_wait", Class: Wait,
		Args: args(fd("epfd"), hex("events"), num("maxevents")), Result: KindInt}, sqeFD, sqeAddr, sqeLen)
	add(Spec{Op: OpUringReadvFixed, Name: "uring_readv_fixed", Like: OpPreadv2}, sqeFD, sqeAddr, sqeLen, sqeOff, none,
		sqeFlags)
	add(Spec{Op: OpUringWritevFixed, Name: "uring_writev_fixed", Like: OpPwritev2}, sqeFD, sqeAddr, sqeLen, sqeOff,
		none, sqeFlags)
	add(Spec{Op: OpUringPipe, Name: "uring_pipe", Like: OpPipe2}, sqeAddr, sqeFlags)
	return t
}()

// addRequest completes a row and puts it into its place. The row of a request that is
// like a call has the call's arguments, as many as it has fields for, and then its
// own.
func addRequest(t []Spec, first Op, s Spec, fields []Field) {
	s.Replay, s.Fields = Emulate, fields
	if s.Why == "" {
		s.Why = "no system call does this"
	}
	if s.Like != OpUnknown {
		call := &table[s.Like]
		s.Class, s.Result, s.Replay, s.Why, s.NeedsStop = call.Class, call.Result, call.Replay, call.Why, call.NeedsStop
		own := s.Args
		s.Args = append([]Arg(nil), call.Args[:min(len(call.Args), len(fields)-len(own))]...)
		s.Args = append(s.Args, own...)
	}
	for i := range s.Args {
		if a := &s.Args[i]; a.Kind.IsMemory() && consumed(a) {
			a.When = AtEntry
		}
	}
	t[s.Op-first] = s
}

// consumed reports whether the kernel has done with an argument's memory when it has
// taken the request: the program may use it again before the request completes. Only
// the content itself has to stay.
func consumed(a *Arg) bool {
	return a.Dir == In && (a.Len == LenNUL || a.Len == LenConst || a.Len == LenArg)
}
