// SPDX-License-Identifier: Apache-2.0

package event

// Command says what the value of one argument, such as fcntl's command or ioctl's
// request, makes of another: an argument whose rule is LenCommand.
type Command struct {
	Op    Op
	Value uint32
	Arg   Arg // in place of the row's; KindFD: a descriptor and no memory, KindHex: a plain value
	Made  bool
}

// CommandArg returns what an argument of LenCommand is for the value of the
// argument that it depends on. The second result is false if it points to nothing
// that is known; made says that the result is a descriptor.
func CommandArg(op Op, value uint64) (a Arg, made, ok bool) {
	if c := commandIndex[commandKey{op, uint32(value)}]; c != nil {
		return c.Arg, c.Made, c.Arg.Kind.IsMemory() || c.Arg.Kind == KindFD
	}
	if op == OpIoctl {
		a, ok = ioctlArg(uint32(value))
	}
	return a, false, ok
}

// Commands returns the table of commands. The caller must not change it.
func Commands() []Command { return commands }

// ioctlArg decodes what most requests say of themselves (asm-generic/ioctl.h): 14
// bits of size, 2 bits of direction as the program sees it: 1 writes, 2 reads.
func ioctlArg(request uint32) (Arg, bool) {
	size, dir := request>>16&0x3fff, request>>30
	if size == 0 || dir == 0 || dir > 3 {
		return Arg{}, false
	}
	a := Arg{Kind: KindStruct, Len: LenConst, LenArg: NoArg, Const: size, Layout: LayoutIoctl, Dir: In}
	if dir == 2 {
		a.Dir = Out
	}
	return a, true
}

type commandKey struct {
	op    Op
	value uint32
}

var commandIndex = func() map[commandKey]*Command {
	m := make(map[commandKey]*Command, len(commands))
	for i := range commands {
		m[commandKey{commands[i].Op, commands[i].Value}] = &commands[i]
	}
	return m
}()

// The constructors of the table below.

func reads(op Op, l Layout, values ...uint32) []Command  { return every(op, sin("", l), values...) }
func writes(op Op, l Layout, values ...uint32) []Command { return every(op, sout("", l), values...) }

func readsBytes(op Op, n uint32, values ...uint32) []Command {
	return every(op, raw(sin("", LayoutNone), n), values...)
}
func writesBytes(op Op, n uint32, values ...uint32) []Command {
	return every(op, raw(sout("", LayoutNone), n), values...)
}

// makes are commands whose result is a descriptor.
func makes(op Op, values ...uint32) []Command {
	c := every(op, num(""), values...)
	for i := range c {
		c[i].Made = true
	}
	return c
}

func every(op Op, a Arg, values ...uint32) []Command {
	c := make([]Command, len(values))
	for i, v := range values {
		c[i] = Command{Op: op, Value: v, Arg: a}
	}
	return c
}

func join(lists ...[]Command) []Command {
	var all []Command
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// quota makes commands of quotactl from the low bits of subcommands (linux/quota.h:
// Q_GETFMT …): the kind of quota, of which there are three, stands below them.
func quota(lists ...[]Command) []Command {
	var all []Command
	for _, c := range join(lists...) {
		for kind := range uint32(3) {
			for _, op := range []Op{OpQuotactl, OpQuotactlFd} {
				all = append(all, Command{Op: op, Value: (0x800000|c.Value)<<8 | kind, Arg: c.Arg})
			}
		}
	}
	return all
}

// commands holds what the generic rules do not say. Commands without a line point
// to no memory that is known.
var commands = join(
	// linux/fcntl.h. F_DUPFD and F_DUPFD_CLOEXEC, which make descriptors, are not here:
	// fcntl is too frequent to be looked up for them.
	reads(OpFcntl, LayoutFlock, 6, 7, 37, 38),    // F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
	writes(OpFcntl, LayoutFlock, 5, 36),          // F_GETLK, F_OFD_GETLK
	reads(OpFcntl, LayoutOwner, 15),              // F_SETOWN_EX
	writes(OpFcntl, LayoutOwner, 16),             // F_GETOWN_EX
	writesBytes(OpFcntl, 8, 17),                  // F_GETOWNER_UIDS
	writes(OpFcntl, LayoutU64, 1035, 1037),       // F_GET_RW_HINT, F_GET_FILE_RW_HINT
	reads(OpFcntl, LayoutU64, 1036, 1038),        // F_SET_RW_HINT, F_SET_FILE_RW_HINT
	writesBytes(OpFcntl, 8, 1039),                // F_GETDELEG
	readsBytes(OpFcntl, 8, 1040),                 // F_SETDELEG
	every(OpIoctl, fd(""), 0x40049409, 0x4c00),   // FICLONE, LOOP_SET_FD
	reads(OpIoctl, LayoutCloneRange, 0x4020940d), // FICLONERANGE
	every(OpIoctl, tailed(sin("", LayoutDedupeRange), 0, Tail{Off: 16, Width: 2, Elem: 32}), 0xc0189436),     // FIDEDUPERANGE
	every(OpIoctl, tailed(sin("", LayoutFiemap), 0, Tail{Off: 20, Width: 4, Max: 24, Elem: 56}), 0xc020660b), // FS_IOC_FIEMAP

	// linux/fs.h: these say "long" and mean int
	writes(OpIoctl, LayoutU32, 0x80086601, 0x80087601),                                     // FS_IOC_GETFLAGS, FS_IOC_GETVERSION
	reads(OpIoctl, LayoutU32, 0x40086602, 0x40087602),                                      // FS_IOC_SETFLAGS, FS_IOC_SETVERSION
	writes(OpIoctl, LayoutFsxattr, 0x801c581f),                                             // FS_IOC_FSGETXATTR
	reads(OpIoctl, LayoutFsxattr, 0x401c5820),                                              // FS_IOC_FSSETXATTR
	reads(OpIoctl, LayoutFstrim, 0xc0185879),                                               // FITRIM
	reads(OpIoctl, LayoutU32, 1),                                                           // FIBMAP
	writes(OpIoctl, LayoutU32, 2),                                                          // FIGETBSZ
	writes(OpIoctl, LayoutU64, 0x5460, 0x1260),                                             // FIOQSIZE, BLKGETSIZE
	writes(OpIoctl, LayoutU64, 0x80081272, 0x1263),                                         // BLKGETSIZE64, BLKRAGET
	writes(OpIoctl, LayoutU32, 0x125e, 0x1268, 0x127b, 0x80081270, 0x127c, 0x1278, 0x127a), // BLKROGET, BLKSSZGET, BLKPBSZGET, BLKBSZGET, BLKDISCARDZEROES, BLKIOMIN, BLKALIGNOFF
	reads(OpIoctl, LayoutU32, 0x125d, 0x40081271),                                          // BLKROSET, BLKBSZSET
	readsBytes(OpIoctl, 16, 0x1277, 0x127d, 0x127f),                                        // BLKDISCARD, BLKSECDISCARD, BLKZEROOUT

	// asm-generic/ioctls.h
	writes(OpIoctl, LayoutTermios, 0x5401),                                                            // TCGETS
	reads(OpIoctl, LayoutTermios, 0x5402, 0x5403, 0x5404),                                             // TCSETS, TCSETSW, TCSETSF
	writesBytes(OpIoctl, 18, 0x5405),                                                                  // TCGETA
	readsBytes(OpIoctl, 18, 0x5406, 0x5407, 0x5408),                                                   // TCSETA, TCSETAW, TCSETAF
	writes(OpIoctl, LayoutWinsize, 0x5413),                                                            // TIOCGWINSZ
	reads(OpIoctl, LayoutWinsize, 0x5414),                                                             // TIOCSWINSZ
	writes(OpIoctl, LayoutU32, 0x540f, 0x5411, 0x5415, 0x5419, 0x541b, 0x5424, 0x5429),                // TIOCGPGRP, TIOCOUTQ, TIOCMGET, TIOCGSOFTCAR, FIONREAD, TIOCGETD, TIOCGSID
	reads(OpIoctl, LayoutU32, 0x5410, 0x5416, 0x5417, 0x5418, 0x541a, 0x5420, 0x5421, 0x5423, 0x5452), // TIOCSPGRP, TIOCMBIS, TIOCMBIC, TIOCMSET, TIOCSSOFTCAR, TIOCPKT, FIONBIO, TIOCSETD, FIOASYNC
	readsBytes(OpIoctl, 1, 0x5412),                                                                    // TIOCSTI
	makes(OpIoctl, 0x5441),                                                                            // TIOCGPTPEER

	// linux/sockios.h, net/if.h: struct ifconf, struct ifreq
	readsBytes(OpIoctl, 16, 0x8912),
	readsBytes(OpIoctl, 40, 0x8910, 0x8913, 0x8914, 0x8915, 0x8916, 0x8917, 0x8918, 0x8919, 0x891a, 0x891b, 0x891c, 0x891d, 0x891e, 0x8921, 0x8922, 0x8924, 0x8927, 0x8933, 0x8942, 0x8943, 0x8946, 0x8970, 0x8971),
	reads(OpIoctl, LayoutU32, 0x8901, 0x8902),          // FIOSETOWN, SIOCSPGRP
	writes(OpIoctl, LayoutU32, 0x8903, 0x8904, 0x8905), // FIOGETOWN, SIOCGPGRP, SIOCATMARK

	// linux/loop.h: struct loop_info64, struct loop_config
	readsBytes(OpIoctl, 232, 0x4c04),
	writesBytes(OpIoctl, 232, 0x4c05),
	readsBytes(OpIoctl, 304, 0x4c0a),

	// linux/nsfs.h, linux/pidfd.h: descriptors of namespaces
	makes(OpIoctl, 0xb701, 0xb702, 0xff01, 0xff02, 0xff03, 0xff04, 0xff05, 0xff06, 0xff07, 0xff08, 0xff09, 0xff0a),

	// linux/prctl.h
	writes(OpPrctl, LayoutU32, 2, 5, 9, 11, 19, 25, 37), // PR_GET_PDEATHSIG, …UNALIGN, …FPEMU, …FPEXC, …ENDIAN, …TSC, …CHILD_SUBREAPER
	writes(OpPrctl, LayoutU64, 40),                      // PR_GET_TID_ADDRESS
	every(OpPrctl, text(""), 15),                        // PR_SET_NAME
	writesBytes(OpPrctl, 16, 16),                        // PR_GET_NAME

	quota(writes(0, LayoutU32, 4), writesBytes(0, 24, 5), readsBytes(0, 24, 6), writesBytes(0, 72, 7), readsBytes(0, 72, 8), writesBytes(0, 80, 9), every(0, text(""), 2)),

	writes(OpArchPrctl, LayoutU64, 0x1003, 0x1004), // asm/prctl.h: ARCH_GET_FS, ARCH_GET_GS

	// linux/seccomp.h
	every(OpSeccomp, pointing(sin("", LayoutFprog), 0, Tail{Ptr: 8, Off: 0, Width: 2, Elem: 8}), 1), // SECCOMP_SET_MODE_FILTER
	reads(OpSeccomp, LayoutU32, 2), // SECCOMP_GET_ACTION_AVAIL
	// linux/ipc.h, sys/msg.h, …: IPC_STAT, MSG_STAT … write, IPC_SET reads
	writesBytes(OpShmctl, 112, 2, 13, 15), readsBytes(OpShmctl, 112, 1),
	writesBytes(OpMsgctl, 120, 2, 11, 13), readsBytes(OpMsgctl, 120, 1),
	writesBytes(OpSemctl, 104, 2, 18, 20), readsBytes(OpSemctl, 104, 1),

	// linux/mount.h: FSCONFIG_SET_STRING, …_BINARY, …_PATH, …_PATH_EMPTY
	every(OpFsconfig, text(""), 1, 3, 4),
	every(OpFsconfig, inAll("", 4), 2),

	// linux/landlock.h: path_beneath, net_port
	readsBytes(OpLandlockAddRule, 12, 1),
	readsBytes(OpLandlockAddRule, 16, 2),

	writesBytes(OpSeccomp, 6, 3), // SECCOMP_GET_NOTIF_SIZES
)
