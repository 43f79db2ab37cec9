// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// declared are the records and the declarations that they are of. Fields that the
// declaration names otherwise, or that this machine's headers do not have yet, are in
// other: "" is left out.
var declared = []struct {
	c       string
	headers []string
	record  *record
	other   map[string]string
}{
	{"struct stat", []string{"asm/stat.h"}, nil, nil}, // of this architecture
	{"struct statx", []string{"linux/stat.h"}, statx, map[string]string{
		"stx_dio_mem_align": "", "stx_dio_offset_align": "", "stx_subvol": "", "stx_atomic_write_unit_min": "", "stx_atomic_write_unit_max": "",
		"stx_atomic_write_segments_max": "", "stx_dio_read_offset_align": "", "stx_atomic_write_unit_max_opt": ""}},
	{"struct statfs", []string{"asm/statfs.h"}, statfs, nil},
	{"struct utimbuf", []string{"linux/utime.h"}, utimbuf, nil},
	{"struct flock", []string{"asm/fcntl.h"}, flock, nil},
	{"struct f_owner_ex", []string{"asm/fcntl.h"}, owner, nil},
	{"struct open_how", []string{"linux/openat2.h"}, openHow, nil},
	{"struct iovec", []string{"linux/uio.h"}, iovec, nil},
	{"struct mount_attr", []string{"linux/mount.h"}, mountAttr, nil},
	{"struct fsxattr", []string{"linux/fs.h"}, fsxattr, nil},
	{"struct fstrim_range", []string{"linux/fs.h"}, fstrim, nil},
	{"struct file_clone_range", []string{"linux/fs.h"}, cloneRange, nil},
	{"struct file_dedupe_range", []string{"linux/fs.h"}, dedupeHead, nil},
	{"struct file_dedupe_range_info", []string{"linux/fs.h"}, dedupeInfo, nil},
	{"struct fiemap", []string{"linux/fiemap.h"}, fiemapHead, nil},
	{"struct fiemap_extent", []string{"linux/fiemap.h"}, fiemapEntry, nil},
	{"struct linux_dirent64 { __u64 d_ino; __s64 d_off; unsigned short d_reclen; unsigned char d_type; char d_name[]; }", []string{"linux/types.h"}, dirent64, nil},
	{"struct rlimit64", []string{"linux/resource.h"}, rlimit, nil},
	{"struct itimerspec", []string{"linux/time.h"}, itimerspec, nil},
	{"struct itimerval", []string{"linux/time.h"}, itimerval, nil},
	{"struct timezone", []string{"linux/time.h"}, timezone, nil},
	{"struct rusage", []string{"linux/resource.h"}, rusage, nil},
	{"struct tms", []string{"linux/times.h"}, tms, nil},
	{"struct new_utsname", []string{"linux/utsname.h"}, utsname, nil},
	{"struct sysinfo", []string{"linux/sysinfo.h"}, sysinfo, nil},
	{"stack_t", []string{"asm/signal.h"}, stack, nil},
	{"struct sigevent", []string{"asm/signal.h", "asm/siginfo.h"}, sigevent, map[string]string{"sigev_notify_thread_id": "_sigev_un._tid"}},
	{"struct clone_args", []string{"linux/sched.h"}, cloneArgs, nil},
	{"struct sched_attr", []string{"linux/sched/types.h"}, schedAttr, nil},
	{"struct timex", []string{"sys/timex.h"}, timex, nil},
	{"struct mq_attr", []string{"linux/mqueue.h"}, mqAttr, nil},
	{"struct sembuf", []string{"linux/sem.h"}, sembuf, nil},
	{"struct pollfd", []string{"asm/poll.h"}, pollfd, nil},
	{"struct futex_waitv", []string{"linux/futex.h"}, futexWaitv, nil},
	{"struct iocb", []string{"linux/aio_abi.h"}, iocb, nil},
	{"struct io_event", []string{"linux/aio_abi.h"}, ioEvent, nil},
	{"struct io_uring_params", []string{"linux/io_uring.h"}, uringParams, nil},
	{"struct epoll_event", []string{"sys/epoll.h"}, epollEvent(4), nil},
	{"struct sockaddr_in", []string{"netinet/in.h"}, families[afInet], nil},
	{"struct sockaddr_in6", []string{"netinet/in.h"}, families[afInet6], nil},
	{"struct sockaddr_nl", []string{"linux/netlink.h"}, families[afNetlink], nil},
	{"struct sockaddr_ll", []string{"linux/if_packet.h"}, families[afPacket], nil},
	{"struct sockaddr_alg", []string{"linux/if_alg.h"}, families[afAlg], nil},
	{"struct sockaddr_vm", []string{"sys/socket.h", "linux/vm_sockets.h"}, families[afVsock], nil},
	{"struct ucred", []string{"sys/socket.h"}, ucred, nil},
	{"struct in_pktinfo", []string{"netinet/in.h"}, pktinfo, nil},
	{"struct linger", []string{"sys/socket.h"}, linger, nil},
	{"struct ip_mreq", []string{"netinet/in.h"}, mreq, nil},
	{"struct ip_mreqn", []string{"netinet/in.h"}, mreqn, nil},
	{"struct ipv6_mreq", []string{"netinet/in.h"}, mreq6, nil},
	{"struct packet_mreq", []string{"linux/if_packet.h"}, packetMembership, nil},
	{"struct loop_info64", []string{"linux/loop.h"}, loopInfo, nil},
	{"struct if_dqblk", []string{"linux/quota.h"}, quota, nil},
	{"struct if_nextdqblk", []string{"linux/quota.h"}, nextQuota, nil},
	{"struct if_dqinfo", []string{"linux/quota.h"}, quotaInfo, nil},
	{"struct shmid64_ds", []string{"linux/shm.h"}, shmidDS, nil},
	{"struct msqid64_ds", []string{"linux/msg.h"}, msqidDS, nil},
	{"struct semid64_ds", []string{"linux/sem.h"}, semidDS, nil},
	{"struct termios", []string{"asm/termbits.h"}, termios, nil},
	{"struct winsize", []string{"asm/termios.h"}, winsize, nil},
	{"struct sock_filter", []string{"linux/filter.h"}, filter, nil},
	{"struct sock_fprog", []string{"linux/filter.h"}, fprog, nil},
	{"struct seccomp_notif_sizes", []string{"linux/seccomp.h"}, commandForms[commandKey{event.OpSeccomp, 3}].record, nil},
	{"struct landlock_path_beneath_attr", []string{"linux/landlock.h"}, commandForms[commandKey{event.OpLandlockAddRule, 1}].record, nil},
	{"struct perf_event_attr", []string{"linux/perf_event.h"}, &record{fields: perfFields}, nil},
}

// TestDeclarations compares the tables with what the C compiler says of the kernel's
// headers: offset and size of each field.
func TestDeclarations(t *testing.T) {
	testenv.Short(t, "it compiles against the kernel's headers")
	testenv.NeedProgram(t, "cc")
	for _, d := range declared {
		name, _, _ := strings.Cut(strings.TrimPrefix(d.c, "struct "), " ")
		t.Run(name, func(t *testing.T) {
			r := d.record
			switch name {
			case "stat":
				a, _ := event.ParseArch(runtime.GOARCH)
				r = stat(a)
			case "epoll_event":
				if runtime.GOARCH == "arm64" {
					r = epollEvent(8)
				}
			}
			var fields []field
			var inC []string
			for _, f := range r.fields {
				c, ok := d.other[f.name]
				if !ok {
					c = f.name
				}
				if c != "" && f.width == 0 {
					fields, inC = append(fields, f), append(inC, c)
				}
			}
			places := placesInC(t, d.c, d.headers, inC)
			for i, f := range fields {
				off, size := places[i][0], places[i][1]
				switch {
				case f.kind == Time && size == 8: // struct stat has the nanoseconds in a field of its own
					size = 16
				case f.kind == Time && f.size == 12:
					size = 12 // struct statx_timestamp ends with what is not used
				case size == 0:
					size = int(f.size) // a flexible array
				}
				if int(f.off) != off || int(f.size) != size {
					t.Errorf("%s is at %d with %d bytes, declared at %d with %d", f.name, f.off, f.size, off, size)
				}
			}
		})
	}
}

// placesInC asks the compiler for the offsets and sizes of fields.
func placesInC(t *testing.T, c string, headers, fields []string) [][2]int {
	t.Helper()
	var src strings.Builder
	src.WriteString("#define _GNU_SOURCE\n#include <stddef.h>\nint printf(const char *, ...);\n")
	for _, h := range headers {
		fmt.Fprintf(&src, "#include <%s>\n", h)
	}
	kind := c
	if decl, _, ok := strings.Cut(c, " {"); ok {
		kind = decl
		src.WriteString(c + ";\n")
	}
	fmt.Fprintf(&src, "#define SAY(f) printf(\"%%d %%d\\n\", (int)offsetof(%s, f), (int)sizeof(((%s "+
		"*)0)->f))\nint main(void)\n{\n", kind, kind)
	for _, f := range fields {
		if f == "d_name" {
			fmt.Fprintf(&src, "printf(\"%%d 0\\n\", (int)offsetof(%s, %s));\n", kind, f)
			continue
		}
		fmt.Fprintf(&src, "SAY(%s);\n", f)
	}
	src.WriteString("}\n")
	file := filepath.Join(t.TempDir(), "x.c")
	if err := os.WriteFile(file, []byte(src.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	prog := strings.TrimSuffix(file, ".c")
	if out, err := exec.CommandContext(t.Context(), "cc", "-o", prog, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, src.String(), out)
	}
	out, err := exec.CommandContext(t.Context(), prog).Output()
	if err != nil {
		t.Fatal(err)
	}
	var places [][2]int
	for line := range strings.Lines(string(out)) {
		var p [2]int
		if _, err := fmt.Sscan(line, &p[0], &p[1]); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		places = append(places, p)
	}
	if len(places) != len(fields) {
		t.Fatalf("%d places of %d fields", len(places), len(fields))
	}
	return places
}

// TestForms checks that the tables fit the operation table's sizes, and that every layout is
// known.
func TestForms(t *testing.T) {
	args := [event.MaxArgs]uint64{}
	for l := event.LayoutStat; l <= event.LayoutMountAttr; l++ {
		for _, a := range []event.Arch{event.AMD64, event.ARM64} {
			m := Memory{Layout: l, Arch: a, Bytes: make([]byte, 512), Args: &args}
			if n := l.Bytes(a); n > 0 && (forms[l][a] == nil || !forms[l][a].array) {
				m.Bytes = m.Bytes[:n]
			}
			if l == event.LayoutSigset {
				m.Bytes = m.Bytes[:8]
			}
			if _, ok := m.Decode(); !ok && l != event.LayoutSockopt && l != event.LayoutIoctl {
				t.Errorf("layout %d on %v is not decoded", l, a)
			}
			f := forms[l][a]
			if f == nil || f.record == nil {
				continue
			}
			for _, field := range f.record.fields {
				if int(field.off+field.size) > f.size {
					t.Errorf("layout %d on %v: %s ends at %d of %d", l, a, field.name, field.off+field.size, f.size)
				}
			}
		}
	}
}

// FuzzDecode decodes hostile bytes as everything: no panic, and no more Values than
// there are bytes for.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(event.LayoutMsghdr), uint16(event.OpRecvmsg), uint8(1), make([]byte, 56),
		[]byte("\x02\x00\x00\x50\x7f\x00\x00\x01"), uint64(1))
	f.Add(uint8(event.LayoutCmsgs), uint16(0), uint8(0), binary.LittleEndian.AppendUint64(nil, 1<<63), []byte{},
		uint64(0))
	f.Add(uint8(event.LayoutSockaddr), uint16(event.OpBind), uint8(1),
		[]byte("\x11\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\xff\x01"), []byte{}, uint64(0))
	f.Add(uint8(event.LayoutDirents64), uint16(event.OpGetdents64), uint8(1), bytes.Repeat([]byte{19, 0}, 40), []byte{},
		uint64(0))
	f.Add(uint8(event.LayoutFiemap), uint16(event.OpIoctl), uint8(2), make([]byte, 100), []byte{}, uint64(0xc020660b))
	f.Add(uint8(event.LayoutNone), uint16(event.OpPerfEventOpen), uint8(0), make([]byte, 64), []byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, l uint8, op uint16, arg uint8, b, part []byte, key uint64) {
		args := [event.MaxArgs]uint64{key, key >> 8, key >> 16, key, key, key}
		for _, a := range []event.Arch{event.AMD64, event.ARM64, 2} {
			m := Memory{
				Layout: event.Layout(l), Op: event.Op(op), Arg: int(arg % event.MaxArgs), Args: &args, Arch: a,
				Bytes:  b,
				Before: part, Names: part, Data: part, Control: part, Target: part, Lens: []int64{int64(key), -1,
					3}, Moved: int64(key), Failed: key&1 != 0,
			}
			if v, ok := m.Decode(); ok {
				limit := 4096 + 16*(len(b)+len(part))
				walk(t, &v, &limit, 0)
			}
		}
	})
}

func walk(t *testing.T, v *Value, left *int, depth int) {
	*left--
	if *left < 0 || depth > 8 {
		t.Fatal("more Values than bytes")
	}
	for i := range v.Len() {
		f := v.At(i)
		walk(t, &f, left, depth+1)
	}
}
