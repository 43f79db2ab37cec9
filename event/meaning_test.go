// SPDX-License-Identifier: Apache-2.0

package event

import (
	mathbits "math/bits"
	"testing"
)

// everySet calls f with each set that an argument or a result can have.
func everySet(f func(where string, a *Arg)) {
	for i := range table {
		s := &table[i]
		for j := range s.Args {
			f(s.Name+" "+s.Args[j].Name, &s.Args[j])
		}
		for j := range meanings[s.Op] {
			f(s.Name+" by value", &meanings[s.Op][j].as)
		}
	}
	for i := range commands {
		f(commands[i].Op.String()+" by command", &commands[i].Arg)
	}
}

// TestSets holds sets to their order: bits are taken from the first item that fits,
// so one of several bits has to come before those that are a part of it.
func TestSets(t *testing.T) {
	seen := map[*Set]bool{}
	everySet(func(where string, a *Arg) {
		if (a.Kind == KindFlags || a.Kind == KindEnum) && a.Set == nil {
			t.Errorf("%s has no names", where)
		}
		if a.Set == nil || seen[a.Set] {
			return
		}
		seen[a.Set] = true
		for i, it := range a.Set.Items {
			for _, later := range a.Set.Items[i+1:] {
				switch {
				case it.Name == later.Name:
					t.Errorf("%s: %s twice", where, it.Name)
				case a.Kind == KindEnum && it.Value == later.Value:
					t.Errorf("%s: %s and %s are the same", where, it.Name, later.Name)
				case a.Kind == KindFlags && it.Mask == 0 && later.Mask == 0 && it.Value&later.Value == it.Value &&
					it.Value != later.Value:
					t.Errorf("%s: %s stands before %s, which has its bits", where, it.Name, later.Name)
				}
			}
			if a.Kind == KindFlags && it.Value&^it.mask() != 0 {
				t.Errorf("%s: the mask of %s does not cover it", where, it.Name)
			}
		}
	})
	if len(seen) < 100 {
		t.Errorf("only %d sets", len(seen))
	}
}

// TestMeanings checks that arguments that decide and those that are decided are
// there, and that no two meanings say something different of the same value.
func TestMeanings(t *testing.T) {
	for op, list := range meanings {
		s := Lookup(Op(op))
		for i, m := range list {
			if m.of != ResultArg && (m.of < 0 || m.of >= len(s.Args)) || m.by < 0 ||
				m.mask != 0 && m.by >= len(s.Args) {
				t.Errorf("%s: meaning %d is of argument %d by %d, of %d", s.Name, i, m.of, m.by, len(s.Args))
				continue
			}
			if m.as.Kind.IsMemory() {
				t.Errorf("%s: meaning %d points to memory, which capture does not know", s.Name, i)
			}
			if m.mask == 0 || mathbits.OnesCount64(m.mask) < 7 {
				continue
			}
			for _, v := range m.values {
				var args [MaxArgs]uint64
				args[m.by] = v
				if got := s.meaning(m.of, &args); got != &list[i] {
					t.Errorf("%s: value %d of argument %d is said twice of %d", s.Name, v, m.by, m.of)
				}
			}
		}
	}
}

func TestFormat(t *testing.T) {
	arg := func(op Op, i int, args ...uint64) string {
		var a [MaxArgs]uint64
		copy(a[:], args)
		m := Lookup(op).Argument(i, &a)
		switch m.Kind {
		case KindFlags:
			return m.Set.FormatFlags(a[i])
		case KindEnum:
			return m.Set.FormatEnum(a[i])
		case KindSignal:
			return SignalName(int(a[i]))
		case KindNone:
			return "-"
		}
		return "other"
	}
	for _, tt := range []struct{ got, want string }{
		{arg(OpOpenat, 2, 0, 0, 0o4010002), "O_RDWR|O_SYNC"},
		{arg(OpOpenat, 2, 0, 0, 0o20200000), "O_RDONLY|O_TMPFILE"},
		{arg(OpOpenat, 3, 0, 0, 0), "-"},
		{arg(OpMmap, 3, 0, 0, 0, 0x22), "MAP_PRIVATE|MAP_ANONYMOUS"},
		{arg(OpMmap, 3, 0, 0, 0, 3), "MAP_SHARED_VALIDATE"},
		{arg(OpClone, 0, 0x4111), "CLONE_VM|CLONE_VFORK|SIGCHLD"},
		{arg(OpClone, 0, 17), "SIGCHLD"},
		{arg(OpFutex, 1, 0, 0x189), "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME"},
		{arg(OpFutex, 1, 0, 0), "FUTEX_WAIT"},
		{arg(OpFutex, 5, 0, 0x89, 0, 0, 0, 0xffffffff), "FUTEX_BITSET_MATCH_ANY"},
		{arg(OpFutex, 3, 0, 1), "-"},
		{arg(OpSocket, 1, 2, 0o2004001), "SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC"},
		{arg(OpSocket, 2, 2, 0, 6), "IPPROTO_TCP"},
		{arg(OpSocket, 2, 16, 0, 0), "NETLINK_ROUTE"},
		{arg(OpSocket, 2, 1, 0, 0), "other"},
		{arg(OpSetsockopt, 2, 0, 1, 2), "SO_REUSEADDR"},
		{arg(OpSetsockopt, 2, 0, 6, 2), "TCP_MAXSEG"},
		{arg(OpFcntl, 2, 0, 4, 0o4000), "O_RDONLY|O_NONBLOCK"},
		{arg(OpFcntl, 2, 0, 1033, 3), "F_SEAL_SEAL|F_SEAL_SHRINK"},
		{arg(OpFcntl, 2, 0, 10, 29), "SIGIO"},
		{arg(OpFcntl, 2, 0, 3), "-"},
		{arg(OpIoctl, 1, 0, 0x5401), "TCGETS"},
		{arg(OpIoctl, 1, 0, 0x40049409), "FICLONE"},
		{arg(OpIoctl, 1, 0, 0x80086bff), "_IOC(_IOC_READ, 0x6b, 0xff, 0x8)"},
		{arg(OpIoctl, 1, 0, 0x0000ff00), "_IOC(_IOC_NONE, 0xff, 0, 0)"},
		{arg(OpClockGettime, 0, 0xffffffffffffff86), "MAKE_THREAD_CPUTIME(15, CPUCLOCK_SCHED)"},
		{arg(OpQuotactl, 0, 0x80000701), "QCMD(Q_GETQUOTA, GRPQUOTA)"},
		{arg(OpIoprioSet, 2, 1, 0, 2<<13|4), "IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 4)"},
		{arg(OpShmget, 2, 0, 0, 0o1600), "IPC_CREAT|0600"},
		{arg(OpPersonality, 0, 0x40000), "PER_LINUX|ADDR_NO_RANDOMIZE"},
		{arg(OpPrctl, 1, 1, 9), "SIGKILL"},
		{arg(OpPrctl, 1, 24, 21), "CAP_SYS_ADMIN"},
		{arg(OpStatx, 2, 0, 0, 0x100), "AT_STATX_SYNC_AS_STAT|AT_SYMLINK_NOFOLLOW"},
		{SignalName(32), "SIGRTMIN"},
		{SignalName(34), "SIGRT_2"},
		{SignalName(65), "65"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}
