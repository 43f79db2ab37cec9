// SPDX-License-Identifier: Apache-2.0

package event

import "testing"

// The back ends interpret rows without checking them again.
func TestRowsAreSound(t *testing.T) {
	for i := range table {
		s := &table[i]
		if s.Op != Op(i) {
			t.Errorf("row %d is that of operation %d", i, s.Op)
		}
		if other := ByName(s.Name); i > 0 && other != s.Op {
			t.Errorf("%s is the name of %d and %d", s.Name, s.Op, other)
		}
		if n := len(s.Memory()); n > MaxCaps || len(s.Args) > MaxArgs {
			t.Errorf("%s has %d arguments, %d of them memory", s.Name, len(s.Args), n)
		}
		if (s.Replay == Native) != (s.Why == "") {
			t.Errorf("%s: replay %s, because %q", s.Name, s.Replay, s.Why)
		}
		if s.ValueResultArg > 0 && int(s.ValueResultArg) > len(s.Args) {
			t.Errorf("%s: argument %d offers", s.Name, s.ValueResultArg-1)
		}
		for k := range s.Args {
			checkArg(t, s, &s.Args[k])
		}
	}
	for _, c := range commands {
		checkArg(t, Lookup(c.Op), &c.Arg)
	}
}

func checkArg(t *testing.T, s *Spec, a *Arg) {
	t.Helper()
	if !a.Kind.IsMemory() {
		return
	}
	switch a.Len {
	case LenArg, LenVec, LenVecAll, LenArray, LenBits, LenPages, LenPtr, LenMsgs, LenCommand:
		if int(a.LenArg) >= len(s.Args) {
			t.Errorf("%s: the length of %s is argument %d", s.Name, a.Name, a.LenArg)
		}
	case LenConst, LenPositive, LenInterrupted:
		if a.Kind != KindStrings && a.Bytes(AMD64) == 0 {
			t.Errorf("%s: %s has no size", s.Name, a.Name)
		}
	case LenTail, LenRef:
		if a.Tail.Elem == 0 || a.Tail.Width == 0 {
			t.Errorf("%s: %s counts nothing", s.Name, a.Name)
		}
	}
	if a.Len == LenArray || a.Len == LenRetArray || a.Len == LenPtr {
		if a.Bytes(AMD64) == 0 {
			t.Errorf("%s: elements of %s have no size", s.Name, a.Name)
		}
	}
}

func TestCommandArg(t *testing.T) {
	for _, c := range []struct {
		op    Op
		value uint64
		kind  Kind
		dir   Dir
		bytes uint32
		made  bool
		ok    bool
	}{
		{op: OpIoctl, value: 0x5401, kind: KindStruct, dir: Out, bytes: 36, ok: true},    // TCGETS
		{op: OpIoctl, value: 0x80086601, kind: KindStruct, dir: Out, bytes: 4, ok: true}, // FS_IOC_GETFLAGS: says 8
		{op: OpIoctl, value: 0x40049409, kind: KindFD, ok: true},                         // FICLONE
		{op: OpIoctl, value: 0x80045430, kind: KindStruct, dir: Out, bytes: 4, ok: true}, // TIOCGPTN, as it says
		{op: OpIoctl, value: 0xffffffff_c0185879, kind: KindStruct, bytes: 24, ok: true}, // FITRIM, sign-extended
		{op: OpIoctl, value: 0x5441, made: true},                                         // TIOCGPTPEER
		{op: OpIoctl, value: 0x5451},                                                     // FIOCLEX
		{op: OpFcntl, value: 5, kind: KindStruct, dir: Out, bytes: 32, ok: true},         // F_GETLK
		{op: OpFcntl, value: 4}, // F_SETFL
		{op: OpQuotactl, value: 0x80000700 | 1, kind: KindStruct, dir: Out, bytes: 72, ok: true}, // Q_GETQUOTA, GRPQUOTA
	} {
		a, made, ok := CommandArg(c.op, c.value)
		if made != c.made || ok != c.ok {
			t.Errorf("%v %#x: known %v, makes a descriptor %v", c.op, c.value, ok, made)
		}
		if ok && (a.Kind != c.kind || a.Dir != c.dir || a.Kind == KindStruct && a.Bytes(AMD64) != c.bytes) {
			t.Errorf("%v %#x: kind %d, direction %d, %d bytes", c.op, c.value, a.Kind, a.Dir, a.Bytes(AMD64))
		}
	}
}

func TestCallsOf32BitPrograms(t *testing.T) {
	for _, c := range []struct {
		nr   uint32
		name string
		op   Op
		raw  [MaxArgs]uint64
		want [MaxArgs]uint64
	}{
		{3, "read", OpRead, [6]uint64{3, 0x1000, 5}, [6]uint64{3, 0x1000, 5}},
		{180, "pread64", OpPread64, [6]uint64{3, 0x1000, 5, 0xfffffff0, 1}, [6]uint64{3, 0x1000, 5, 0x1fffffff0}},
		{140, "_llseek", OpLseek, [6]uint64{3, 1, 2, 0x1000, 1}, [6]uint64{3, 0x100000002, 1}},
		{19, "lseek", OpLseek, [6]uint64{3, 0xffffffff, 1}, [6]uint64{3, 0xffffffff_ffffffff, 1}},
		{182, "chown", OpChown, [6]uint64{0x1000, 0xffff, 7}, [6]uint64{0x1000, 0xffffffff, 7}},
		{212, "chown32", OpChown, [6]uint64{0x1000, 0xffff, 7}, [6]uint64{0x1000, 0xffff, 7}},
		{268, "statfs64", OpStatfs, [6]uint64{0x1000, 84, 0x2000}, [6]uint64{0x1000, 0x2000}},
		{90, "mmap", OpUnknown, [6]uint64{0x1000}, [6]uint64{0x1000}}, // its arguments are in memory
		{102, "socketcall", OpUnknown, [6]uint64{1}, [6]uint64{1}},
		{403, "clock_gettime64", OpClockGettime, [6]uint64{1}, [6]uint64{1}},
		{99999, "", OpUnknown, [6]uint64{}, [6]uint64{}},
	} {
		if name, op := Name32(AMD64, c.nr), Spec32(AMD64, c.nr).Op; name != c.name || op != c.op {
			t.Errorf("call %d is %q, operation %v; want %q, %v", c.nr, name, op, c.name, c.op)
		}
		if TranslateCompat(AMD64, c.nr, &c.raw); c.raw != c.want {
			t.Errorf("arguments of %s are %x, want %x", c.name, c.raw, c.want)
		}
	}
	// Structures that differ are not read.
	for _, a := range Spec32(AMD64, 195).Args { // stat64
		if a.Kind == KindStruct {
			t.Error("the structure of stat64 would be read as that of stat")
		}
	}
	if Spec32(ARM64, 3).Op != OpUnknown {
		t.Error("arm64 has rows for 32-bit calls")
	}
}
