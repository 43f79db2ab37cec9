// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
)

// half makes numbers of 4 bytes.
func half(v ...uint32) string {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return string(b)
}

// withPart adds memory that belongs to an argument.
func withPart(e event.Event, part event.Part, arg int, data string, lens ...int64) event.Event {
	e.Bufs = append(e.Bufs, event.Buf{Arg: int8(part.Of(arg)), Kind: event.KindVec, Len: int64(len(data)),
		Inline: []byte(data), Parts: lens})
	return e
}

// msghdr is a struct msghdr whose pointers are not null.
func msghdr(name, iovs, control uint64, flags uint32) string {
	return words(0x10, name, 0x20, iovs, 0x30, control) + half(flags, 0)
}

func cmsg(level, kind uint32, data string) string {
	return words(uint64(16+len(data))) + half(level, kind) + data + strings.Repeat("\x00", -len(data)&7)
}

// TestStructures prints memory of calls as the back ends record it.
func TestStructures(t *testing.T) {
	const inet = "\x02\x00\x00\x50\x7f\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"
	passed := withPart(withBuf(call(event.OpRecvmsg, 1, 5, 0x1000, 0), 1, msghdr(0, 1, 24, 0)), event.PartData, 1, "x",
		10)
	passed = withPart(passed, event.PartControl, 1, cmsg(1, 1, half(6, 7)))
	for _, fd := range []int32{6, 7} {
		passed.Files = append(passed.Files, event.File{Arg: event.MemoryArg, FD: fd, Path: "/f" + string(rune('0'+fd))})
	}
	both := withPart(withBuf(call(event.OpSelect, 1, 5, 0x10, 0, 0, 0x30), 1, words(1<<3)), event.PartBefore, 1,
		words(1<<3|1<<4))
	both = withPart(withBuf(both, 4, words(8, 999)), event.PartBefore, 4, words(9, 0))

	for _, tt := range []struct {
		arch  string
		event event.Event
		want  string // part of the line
		json  string // of the arguments
	}{
		{"amd64", withPart(withPart(withBuf(call(event.OpSendmsg, 7, 4, 0x1000, 0x4000), 1, msghdr(16, 2, 0, 0)), event.PartName, 1, inet), event.PartData, 1, "one two", 4, 9),
			`sendmsg(4, {msg_name={sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, msg_namelen=16, msg_iov=[{iov_base="one ", iov_len=4}, {iov_base="two", iov_len=9}], msg_iovlen=2, msg_controllen=0, msg_flags=0}, MSG_NOSIGNAL) = 7`,
			`{"fd":4,"msg":{"msg_name":{"sa_family":"AF_INET","sin_port":80,"sin_addr":"127.0.0.1"},"msg_namelen":16,"msg_iov":[{"iov_base":"one ","iov_len":4},{"iov_base":"two","iov_len":9}],"msg_iovlen":2,"msg_controllen":0,"msg_flags":"0"},"flags":"MSG_NOSIGNAL"}`},
		{"amd64", passed,
			`msg_iov=[{iov_base="x", iov_len=10}], msg_iovlen=1, msg_control=[{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[6</f6>, 7</f7>]}], msg_controllen=24`,
			`"msg_control":[{"cmsg_len":24,"cmsg_level":"SOL_SOCKET","cmsg_type":"SCM_RIGHTS","cmsg_data":[6,7]}]`},
		{"amd64", withPart(withBuf(call(event.OpRecvmsg, 0, 5, 0x1000, 0), 1, msghdr(16, 0, 28, 0x20)), event.PartControl, 1, cmsg(1, 2, half(10, 1000, 1001))[:28]),
			`cmsg_data={pid=10, uid=1000, gid=1001}}], msg_controllen=28, msg_flags=MSG_TRUNC}, 0) = 0`, `"cmsg_data":{"pid":10,"uid":1000,"gid":1001}`},
		{"amd64", failed(withPart(withBuf(call(event.OpSendmsg, 0, 4, 0x1000, 0), 1, msghdr(0, 1, 0, 0)), event.PartData, 1, "", 3), syscall.EPIPE),
			`msg_iov=[{iov_base=""..., iov_len=3}]`, `{"iov_base":"","iov_base_bytes":3,"iov_len":3}`},
		{"amd64", withPart(withBuf(call(event.OpSendmmsg, 2, 4, 0x1000, 2, 0), 1, msghdr(0, 1, 0, 0)+words(1)+msghdr(0, 2, 0, 0)+words(4)), event.PartData, 1, "abcde", 1, 1, 9),
			`[{msg_hdr={msg_name=0x10, msg_namelen=0, msg_iov=[{iov_base="a", iov_len=1}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=1}, {msg_hdr={msg_name=0x10, msg_namelen=0, msg_iov=[{iov_base="b", iov_len=1}, {iov_base="cde", iov_len=9}], msg_iovlen=2, msg_controllen=0, msg_flags=0}, msg_len=4}], 2, 0) = 2`, `"msg_len":4`},
		{"amd64", withPart(withBuf(withBuf(call(event.OpAccept, 6, 4, 0x10, 0x20), 1, "\x01\x00"), 2, half(2)), event.PartBefore, 2, half(110)),
			`accept(4, {sa_family=AF_UNIX}, [110 => 2]) = 6`, `"addrlen":[2],"addrlen_before":110`},
		{"amd64", withBuf(call(event.OpConnect, 0, 4, 0x10, 12), 1, "\x10\x00\x00\x00"+half(7, 0x11)), `{sa_family=AF_NETLINK, nl_pid=7, nl_groups=0x11}`, `"nl_pid":7`},
		{"amd64", withBuf(call(event.OpConnect, 0, 4, 0x10, 16), 1, "\x28\x00\x00\x00"+half(1024, 2, 0)), `{sa_family=AF_VSOCK, svm_port=1024, svm_cid=VMADDR_CID_HOST}`, `"svm_cid":2`},
		{"amd64", withBuf(call(event.OpBind, 0, 4, 0x10, 20), 1, "\x11\x00\x08\x00"+half(2)+"\x01\x00\x04\x06\x01\x02\x03\x04\x05\x06\x00\x00"),
			`{sa_family=AF_PACKET, sll_protocol=ETH_P_IP, sll_ifindex=2, sll_hatype=ARPHRD_ETHER, sll_pkttype=PACKET_OUTGOING, sll_halen=6, sll_addr="\1\2\3\4\5\6"}`, `"sll_protocol":"ETH_P_IP"`},
		{"amd64", withBuf(call(event.OpPoll, 1, 0x10, 2, 5), 0, half(3, 1|1<<16, 4, 4)), `poll([{fd=3, events=POLLIN}, {fd=4, events=POLLOUT}], 2, 5) = 1 ([{fd=3, revents=POLLIN}])`, `{"fd":3,"events":"POLLIN","revents":"POLLIN"}`},
		{"amd64", withBuf(call(event.OpPoll, 0, 0x10, 1, 5), 0, half(3, 1)), `poll([{fd=3, events=POLLIN}], 1, 5) = 0 (Timeout)`, `"timeout":5`},
		{"amd64", both, `select(5, [3 4], NULL, NULL, {tv_sec=9, tv_usec=0}) = 1 (in [3], left {tv_sec=8, tv_usec=999})`, `"readfds":[3],"readfds_before":[3,4]`},
		{"amd64", withBuf(call(event.OpEpollWait, 2, 3, 0x10, 8, 0), 1, half(1, 7, 0, 0x80000004, 8, 1)),
			`epoll_wait(3, [{events=EPOLLIN, data={u32=7, u64=7}}, {events=EPOLLOUT|EPOLLET, data={u32=8, u64=4294967304}}], 8, 0) = 2`, `"data":{"u32":8,"u64":4294967304}`},
		{"arm64", withBuf(call(event.OpEpollPwait, 1, 3, 0x10, 8, 0), 1, half(1, 0, 7, 0)), `[{events=EPOLLIN, data={u32=7, u64=7}}]`, `"u64":7`},
		{"amd64", call(event.OpEpollWait, 0, 3, 0x10, 8, 0), `epoll_wait(3, [], 8, 0) = 0`, ``},
		{"amd64", withBuf(call(event.OpWait4, 9, ^uint64(0), 0x10, 0, 0), 1, half(3<<8)), `wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 9`, `"wstatus":[{"exited":3}]`},
		{"amd64", withBuf(call(event.OpWait4, 9, 9, 0x10, 3, 0), 1, half(11|0x80)), `[{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}], WNOHANG|WSTOPPED`, `{"signaled":"SIGSEGV","core":true}`},
		{"amd64", withBuf(call(event.OpWait4, 9, 9, 0x10, 0, 0), 1, half(19<<8|0x7f)), `[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}]`, `{"stopped":"SIGSTOP"}`},
		{"amd64", withBuf(call(event.OpWait4, 9, 9, 0x10, 0, 0), 1, half(0xffff)), `[{WIFCONTINUED(s)}]`, `{"continued":true}`},
		{"amd64", withBuf(call(event.OpRtSigprocmask, 0, 0, 0x10, 0, 8), 1, words(1<<1|1<<31|1<<33)), `rt_sigprocmask(SIG_BLOCK, [INT RTMIN RT_2], NULL, 8)`, `"set":["SIGINT","SIGRTMIN","SIGRT_2"]`},
		{"amd64", withBuf(call(event.OpRtSigprocmask, 0, 2, 0x10, 0, 8), 1, words(^uint64(1<<8))), `rt_sigprocmask(SIG_SETMASK, ~[KILL], NULL, 8)`, `"how":"SIG_SETMASK"`},
		{"amd64", withBuf(call(event.OpSetsockopt, 0, 4, 1, 13, 0x10, 8), 3, half(1, 10)), `setsockopt(4, SOL_SOCKET, SO_LINGER, {l_onoff=1, l_linger=10}, 8)`, `"optval":{"l_onoff":1,"l_linger":10}`},
		{"amd64", withBuf(call(event.OpSetsockopt, 0, 4, 6, 13, 0x10, 5), 3, "cubic"), `setsockopt(4, SOL_TCP, TCP_CONGESTION, "cubic", 5)`, `"optval":"cubic"`},
		{"amd64", withBuf(call(event.OpIoctl, 0, 1, 0x5413, 0x10), 2, "\x18\x00\x50\x00\x00\x00\x00\x00"), `ioctl(1, TIOCGWINSZ, {ws_row=24, ws_col=80, ws_xpixel=0, ws_ypixel=0})`, `"ws_col":80`},
		{"amd64", withBuf(call(event.OpIoctl, 0, 3, 0xc020660b, 0x10), 2, words(0, 100)+half(1, 1, 8, 0)+words(0, 4096, 100, 0, 0)+half(1, 0, 0, 0)),
			`{fm_start=0, fm_length=100, fm_flags=FIEMAP_FLAG_SYNC, fm_mapped_extents=1, fm_extent_count=8, fm_extents=[{fe_logical=0, fe_physical=4096, fe_length=100, fe_flags=FIEMAP_EXTENT_LAST}]}`, `"fe_physical":4096`},
		{"amd64", withBuf(call(event.OpPrlimit64, 0, 0, 7, 0, 0x10), 3, words(1024, ^uint64(0))), `prlimit64(0, RLIMIT_NOFILE, NULL, {rlim_cur=1024, rlim_max=RLIM64_INFINITY})`, `"rlim_max":18446744073709551615`},
		{"amd64", withBuf(call(event.OpSchedGetaffinity, 8, 0, 128, 0x10), 2, words(0x8001)), `sched_getaffinity(0, 128, [0 15]) = 8`, `"mask":[0,15]`},
		{"amd64", withBuf(call(event.OpGetgroups, 2, 10, 0x10), 1, half(0, 1000)), `getgroups(10, [0, 1000]) = 2`, `"list":[0,1000]`},
		{"amd64", withBuf(call(event.OpCapget, 0, 0x10, 0x20), 1, half(1, 1, 0, 1<<7, 0, 0)), `{effective=1<<CAP_CHOWN|1<<CAP_BPF, permitted=1<<CAP_CHOWN, inheritable=0}`, `"inheritable":"0"`},
		{"amd64", withBuf(call(event.OpMsgsnd, 0, 1, 0x10, 3, 0), 1, words(5)+"abc"), `msgsnd(1, {mtype=5, mtext="abc"}, 3, 0)`, `"msgp":{"mtype":5,"mtext":"abc"}`},
		{"amd64", withBuf(withFile(withFile(call(event.OpSendfile, 10, 5, 3, 0x10, 10), 0, 5, "/o"), 1, 3, "/a"), 2, words(30)), `sendfile(5</o>, 3</a>, [20 => 30], 10) = 10`, `"offset":[30],"offset_before":20`},
		{"amd64", call(event.OpClone, 7, 0x1200011, 0, 0, 0x99, 0x55), `clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x99) = 7`, ``},
		{"arm64", call(event.OpClone, 7, 0x1200011, 0, 0, 0x55, 0x99), `child_tidptr=0x99) = 7`, `"tls":"0x55","child_tid":"0x99"`},
		{"amd64", call(event.OpFcntl, 0xf, 3, 1034), `fcntl(3, F_GET_SEALS) = 0xf (seals F_SEAL_SEAL|F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_WRITE)`, ``},
		{"amd64", call(event.OpPersonality, 0x40000, 0xffffffff), `= 0x40000 (PER_LINUX|ADDR_NO_RANDOMIZE)`, ``},
		{"amd64", call(event.OpGetdents64, 0, 3, 0x10, 32768), `getdents64(3, [], 32768) = 0`, ``},
		{"amd64", call(event.OpRead, 0, 3, 0x10, 10), `read(3, "", 10) = 0`, ``},
	} {
		p := testPrinter(Options{Hosts: host(tt.arch), Verbose: true, Clock: NoClock})
		if got := string(p.Append(nil, &tt.event)); !strings.Contains(got, tt.want) {
			t.Errorf("no  %s\nin  %s", tt.want, got)
		}
		got := p.AppendJSON(nil, &tt.event)
		if !json.Valid(got) || !strings.Contains(string(got), tt.json) {
			t.Errorf("no  %s\nin  %s", tt.json, got)
		}
	}
}
