// SPDX-License-Identifier: Apache-2.0

package layout

import "github.com/iotape/iotape/event"

// Structures that have no layout of their own: what they are depends on the call, and
// on a command or a request among its arguments.

type callKey struct {
	op  event.Op
	arg int
}

// callForms are structures of one argument of one call.
var callForms = map[callKey]form{
	{event.OpCachestat, 1}:      {size: 16, record: all(u64("off", 0), u64("len", 8))},
	{event.OpCachestat, 2}:      {size: 40, record: all(u64("nr_cache", 0), u64("nr_dirty", 8), u64("nr_writeback", 16), u64("nr_evicted", 24), u64("nr_recently_evicted", 32))},
	{event.OpUstat, 1}:          {size: 32, record: all(i32("f_tfree", 0), u64("f_tinode", 8), text("f_fname", 16, 6), text("f_fpack", 22, 6))},
	{event.OpMincore, 2}:        {size: 1, field: one(u8("", 0)), array: true},
	{event.OpMbind, 3}:          {size: 8, field: one(x64("", 0)), array: true},
	{event.OpSetMempolicy, 1}:   {size: 8, field: one(x64("", 0)), array: true},
	{event.OpGetMempolicy, 0}:   {size: 4, field: one(array("", 0, 1, flags("", 0, 4, event.MempolicyNames)))},
	{event.OpGetMempolicy, 1}:   {size: 8, field: one(x64("", 0)), array: true},
	{event.OpMigratePages, 2}:   {size: 8, field: one(x64("", 0)), array: true},
	{event.OpMigratePages, 3}:   {size: 8, field: one(x64("", 0)), array: true},
	{event.OpMovePages, 2}:      {size: 8, field: one(ptr("", 0)), array: true},
	{event.OpMovePages, 3}:      {size: 4, field: one(i32("", 0)), array: true},
	{event.OpMovePages, 4}:      {size: 4, field: one(i32("", 0)), array: true},
	{event.OpListmount, 1}:      {size: 8, field: one(x64("", 0)), array: true},
	{event.OpListns, 1}:         {size: 8, field: one(x64("", 0)), array: true},
	{event.OpLsmListModules, 0}: {size: 8, field: one(u64("", 0)), array: true},
	{event.OpFutexRequeue, 0}:   {size: 24, record: futexWaitv, array: true},
	{event.OpStatmount, 0}:      {size: 24, record: mountRequest},
	{event.OpListmount, 0}:      {size: 24, record: mountRequest},
	{event.OpLandlockCreateRuleset, 0}: {size: 24, short: true, record: all(
		flags("handled_access_fs", 0, 8, event.LandlockNames), x64("handled_access_net", 8), x64("scoped", 16))},
	{event.OpGetThreadArea, 0}: {size: 16, record: userDesc},
	{event.OpSetThreadArea, 0}: {size: 16, record: userDesc},
	{event.OpKexecLoad, 2}:     {size: 32, record: all(ptr("buf", 0), u64("bufsz", 8), ptr("mem", 16), u64("memsz", 24)), array: true},
}

var (
	mountRequest = all(u32("size", 0), x64("mnt_id", 8), x64("param", 16))
	userDesc     = all(u32("entry_number", 0), x32("base_addr", 4), x32("limit", 8), bit("seg_32bit", 12, 4, 0, 1), bit("contents", 12, 4, 1, 2), bit("read_exec_only", 12, 4, 3, 1),
		bit("limit_in_pages", 12, 4, 4, 1), bit("seg_not_present", 12, 4, 5, 1), bit("useable", 12, 4, 6, 1), bit("lm", 12, 4, 7, 1))
)

type commandKey struct {
	op      event.Op
	command uint32
}

// commandForms are structures of a command or request.
var commandForms = func() map[commandKey]form {
	m := map[commandKey]form{
		{event.OpFcntl, 17}: {size: 8, field: one(array("", 0, 2, id("", 0)))}, // F_GETOWNER_UIDS

		{event.OpLandlockAddRule, 1}: {size: 12, record: all(flags("allowed_access", 0, 8, event.LandlockNames), fd("parent_fd", 8))},
		{event.OpLandlockAddRule, 2}: {size: 16, record: all(x64("allowed_access", 0), u64("port", 8))},

		{event.OpPrctl, 16}:  {size: 16, field: one(text("", 0, 16))}, // PR_GET_NAME
		{event.OpSeccomp, 2}: {size: 4, field: one(array("", 0, 1, enum("", 0, 4, filterActions)))},
		{event.OpSeccomp, 3}: {size: 6, record: all(u16("seccomp_notif", 0), u16("seccomp_notif_resp", 2), u16("seccomp_data", 4))},

		// linux/loop.h
		{event.OpIoctl, 0x4c04}: {size: 232, record: loopInfo},
		{event.OpIoctl, 0x4c05}: {size: 232, record: loopInfo},
		{event.OpIoctl, 0x4c0a}: {size: 304, record: all(fd("fd", 0), u32("block_size", 4), nested("info", 8, 232, loopInfo))},
	}
	// FS_IOC_GETFLAGS, FS_IOC_SETFLAGS
	attributes := form{size: 4, field: one(array("", 0, 1, flags("", 0, 4, inodeFlags)))}
	m[commandKey{event.OpIoctl, 0x80086601}], m[commandKey{event.OpIoctl, 0x40086602}] = attributes, attributes
	modem := form{size: 4, field: one(array("", 0, 1, flags("", 0, 4, modemLines)))}
	for _, request := range []uint32{0x5415, 0x5416, 0x5417, 0x5418} { // TIOCMGET, TIOCMBIS, TIOCMBIC, TIOCMSET
		m[commandKey{event.OpIoctl, request}] = modem
	}
	pair := form{size: 16, field: one(array("", 0, 2, u64("", 0)))}
	for _, request := range []uint32{0x1277, 0x127d, 0x127f} { // BLKDISCARD, BLKSECDISCARD, BLKZEROOUT
		m[commandKey{event.OpIoctl, request}] = pair
	}
	for request, f := range interfaceFields {
		m[commandKey{event.OpIoctl, request}] = form{size: 40, record: all(text("ifr_name", 0, 16), f)}
	}
	for command, f := range map[uint32]form{
		5: {size: 24, record: quotaInfo}, 6: {size: 24, record: quotaInfo},
		7: {size: 72, record: quota}, 8: {size: 72, record: quota}, 9: {size: 80, record: nextQuota},
	} {
		for kind := range uint32(3) {
			for _, op := range []event.Op{event.OpQuotactl, event.OpQuotactlFd} {
				m[commandKey{op, (0x800000|command)<<8 | kind}] = f
			}
		}
	}
	for _, command := range []uint32{1, 2, 13, 15} {
		m[commandKey{event.OpShmctl, command}] = form{size: 112, record: shmidDS}
	}
	for _, command := range []uint32{1, 2, 11, 13} {
		m[commandKey{event.OpMsgctl, command}] = form{size: 120, record: msqidDS}
	}
	for _, command := range []uint32{1, 2, 18, 20} {
		m[commandKey{event.OpSemctl, command}] = form{size: 104, record: semidDS}
	}
	return m
}()

var (
	loopInfo = all(
		u64("lo_device", 0), u64("lo_inode", 8), u64("lo_rdevice", 16), u64("lo_offset", 24), u64("lo_sizelimit", 32), u32("lo_number", 40), u32("lo_encrypt_type", 44),
		u32("lo_encrypt_key_size", 48), flags("lo_flags", 52, 4, loopFlags), text("lo_file_name", 56, 64), text("lo_crypt_name", 120, 64), raw("lo_encrypt_key", 184, 32),
		array("lo_init", 216, 2, x64("", 0)))

	// linux/quota.h
	quotaFields = []field{u64("dqb_bhardlimit", 0), u64("dqb_bsoftlimit", 8), u64("dqb_curspace", 16), u64("dqb_ihardlimit", 24), u64("dqb_isoftlimit", 32),
		u64("dqb_curinodes", 40), u64("dqb_btime", 48), u64("dqb_itime", 56), flags("dqb_valid", 64, 4, quotaValid)}
	quota     = all(quotaFields...)
	nextQuota = all(append(append([]field{}, quotaFields...), u32("dqb_id", 68))...)
	quotaInfo = all(u64("dqi_bgrace", 0), u64("dqi_igrace", 8), x32("dqi_flags", 16), flags("dqi_valid", 20, 4, quotaInfoValid))

	// linux/ipc.h, asm-generic/shmbuf.h, msgbuf.h, sembuf.h
	ipcPerm = of(x32("key", 0), id("uid", 4), id("gid", 8), id("cuid", 12), id("cgid", 16), num(Octal, 4, "mode", 20), u16("seq", 24))
	shmidDS = of(nested("shm_perm", 0, 48, ipcPerm), u64("shm_segsz", 48), i64("shm_atime", 56), i64("shm_dtime", 64), i64("shm_ctime", 72), i32("shm_cpid", 80), i32("shm_lpid", 84), u64("shm_nattch", 88))
	msqidDS = of(nested("msg_perm", 0, 48, ipcPerm), i64("msg_stime", 48), i64("msg_rtime", 56), i64("msg_ctime", 64), u64("msg_cbytes", 72), u64("msg_qnum", 80), u64("msg_qbytes", 88), i32("msg_lspid", 96), i32("msg_lrpid", 100))
	semidDS = of(nested("sem_perm", 0, 48, ipcPerm), i64("sem_otime", 48), i64("sem_ctime", 64), u64("sem_nsems", 80))

	termios = all(
		flags("c_iflag", 0, 4, inputModes), flags("c_oflag", 4, 4, outputModes), flags("c_cflag", 8, 4, controlModes), flags("c_lflag", 12, 4, localModes),
		enum("c_line", 16, 1, disciplines), raw("c_cc", 17, 19))
	winsize = all(u16("ws_row", 0), u16("ws_col", 2), u16("ws_xpixel", 4), u16("ws_ypixel", 6))
)

// interfaceFields are what struct ifreq has for a request (netdevice(7)).
var interfaceFields = map[uint32]field{
	0x8910: i32("ifr_ifindex", 16), 0x8933: i32("ifr_ifindex", 16), // SIOCGIFNAME, SIOCGIFINDEX
	0x8913: flags("ifr_flags", 16, 2, interfaceFlags), 0x8914: flags("ifr_flags", 16, 2, interfaceFlags),
	0x8915: address("ifr_addr"), 0x8916: address("ifr_addr"), 0x8917: address("ifr_dstaddr"), 0x8918: address("ifr_dstaddr"),
	0x8919: address("ifr_broadaddr"), 0x891a: address("ifr_broadaddr"), 0x891b: address("ifr_netmask"), 0x891c: address("ifr_netmask"),
	0x891d: i32("ifr_metric", 16), 0x891e: i32("ifr_metric", 16), 0x8921: i32("ifr_mtu", 16), 0x8922: i32("ifr_mtu", 16),
	0x8924: hardware, 0x8927: hardware, 0x8942: i32("ifr_qlen", 16), 0x8943: i32("ifr_qlen", 16),
}

// address is a struct sockaddr_in within a struct ifreq.
func address(name string) field {
	return nested(name, 16, 16, all(enum("sa_family", 0, 2, event.FamilyNames), port("sin_port", 2),
		num(IP, 4, "sin_addr", 4)))
}

var hardware = nested("ifr_hwaddr", 16, 16, all(enum("sa_family", 0, 2, hardwareTypes), raw("sa_data", 2, 14)))

// msgbuf decodes a System V message of n bytes, of which the first are there.
func msgbuf(b []byte, n int64) (Value, bool) {
	if len(b) < 8 {
		return Value{}, false
	}
	return Value{Kind: Struct, values: []Value{
		{Name: "mtype", Kind: Int, Num: number(b[:8]), Brief: true},
		{Name: "mtext", Kind: Bytes, Data: b[8:], Num: max(uint64(n), 8) - 8, Brief: true},
	}}, true
}

// byCall decodes what has no layout.
func (m *Memory) byCall() (Value, bool) {
	if f, ok := callForms[callKey{m.Op, m.Arg}]; ok {
		return f.decode(m.Bytes, m.Arch, nil)
	}
	if m.Op == event.OpPerfEventOpen && m.Arg == 0 {
		return perfAttr(m.Bytes, m.Arch)
	}
	f, ok := m.commandForm()
	if !ok {
		return Value{}, false
	}
	return f.decode(m.Bytes, m.Arch, nil)
}

// commandForm returns what a command or request makes of the argument.
func (m *Memory) commandForm() (form, bool) {
	if m.Args == nil || !m.Op.Known() {
		return form{}, false
	}
	spec := event.Lookup(m.Op)
	if m.Arg >= len(spec.Args) || spec.Args[m.Arg].Len != event.LenCommand {
		return form{}, false
	}
	f, ok := commandForms[commandKey{m.Op, uint32(m.Args[spec.Args[m.Arg].LenArg])}]
	return f, ok
}

// pointer decodes a structure that points to something.
func (m *Memory) pointer() (Value, bool) {
	if len(m.Bytes) < 16 {
		return Value{}, false
	}
	first, second := number(m.Bytes[:8]), number(m.Bytes[8:16])
	target := Value{Kind: Address, Num: first}
	var v Value
	switch m.Layout {
	case event.LayoutSigsetRef:
		if len(m.Target) == 8 {
			target = Value{Kind: Signals, Num: number(m.Target)}
		}
		target.Name = "sigmask"
		v = Value{Kind: Struct, values: []Value{target, {Name: "sigsetsize", Kind: Uint, Num: second}}}
	case event.LayoutXattrArgs:
		if m.Target != nil {
			target = Value{Kind: Bytes, Data: m.Target, Num: max(uint64(m.Moved), uint64(len(m.Target)))}
		}
		target.Name = "value"
		v = Value{Kind: Struct, values: []Value{target, {Name: "size", Kind: Uint, Num: second & 0xffffffff},
			{Name: "flags", Kind: Flags, Num: second >> 32, Set: event.XattrNames}}}
	default: // LayoutFprog
		n := first & 0xffff
		target = Value{Kind: Address, Num: second}
		if len(m.Target) > 0 && len(m.Target)%8 == 0 {
			target = Value{Kind: List, Data: m.Target, record: filter, stride: 8}
		}
		target.Name = "filter"
		v = Value{Kind: Struct, values: []Value{{Name: "len", Kind: Uint, Num: n}, target}}
	}
	for i := range v.values {
		v.values[i].Brief = true
	}
	return v, true
}

// filter is struct sock_filter (linux/filter.h).
var filter = all(x16("code", 0), u8("jt", 2), u8("jf", 3), x32("k", 4))
