// SPDX-License-Identifier: Apache-2.0

package event

// The requests of Linux AIO: OpAIO stands for commands that this version does not
// know, the others follow IOCB_CMD_… (linux/aio_abi.h). Number 4 was never used.
const (
	OpAIO Op = firstAIO + iota
	OpAIOPread
	OpAIOPwrite
	OpAIOFsync
	OpAIOFdsync
	_
	OpAIOPoll
	OpAIONoop
	OpAIOPreadv
	OpAIOPwritev
)

// The fields of struct iocb.
var (
	iocbRWFlags = Field{Off: 12, Size: 4}
	iocbFD      = Field{Off: 20, Size: 4, Signed: true}
	iocbBuf     = Field{Off: 24, Size: 8}
	iocbBytes   = Field{Off: 32, Size: 8}
	iocbOffset  = Field{Off: 40, Size: 8}
)

// aioTable holds the rows from OpAIO on.
var aioTable = func() (t [OpAIOPwritev - firstAIO + 1]Spec) {
	add := func(s Spec, fields ...Field) { addRequest(t[:], firstAIO, s, fields) }
	add(Spec{Op: OpAIO, Name: "aio", Class: Raw,
		Args: args(fd("fd"), hex("buf"), size("nbytes"), off("offset"),
			hex("rw_flags")), Result: KindHex}, iocbFD, iocbBuf, iocbBytes, iocbOffset, iocbRWFlags)
	add(Spec{Op: OpAIOPread, Name: "aio_pread", Like: OpPread64, Args: args(flags("flags", rwfFlags))}, iocbFD, iocbBuf,
		iocbBytes, iocbOffset, iocbRWFlags)
	add(Spec{Op: OpAIOPwrite, Name: "aio_pwrite", Like: OpPwrite64, Args: args(flags("flags", rwfFlags))}, iocbFD,
		iocbBuf, iocbBytes, iocbOffset, iocbRWFlags)
	add(Spec{Op: OpAIOFsync, Name: "aio_fsync", Like: OpFsync}, iocbFD)
	add(Spec{Op: OpAIOFdsync, Name: "aio_fdsync", Like: OpFdatasync}, iocbFD)
	add(Spec{Op: OpAIOPoll, Name: "aio_poll", Class: Wait, Args: args(fd("fd"), flags("events", pollEvents)),
		Result: KindInt}, iocbFD, iocbBuf)
	add(Spec{Op: OpAIONoop, Name: "aio_noop", Class: Wait, Result: KindInt})
	add(Spec{Op: OpAIOPreadv, Name: "aio_preadv", Like: OpPreadv2}, iocbFD, iocbBuf, iocbBytes, iocbOffset, none,
		iocbRWFlags)
	add(Spec{Op: OpAIOPwritev, Name: "aio_pwritev", Like: OpPwritev2}, iocbFD, iocbBuf, iocbBytes, iocbOffset, none,
		iocbRWFlags)
	return t
}()
