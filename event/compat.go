// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"sync"
)

// 32-bit programs on x86-64 make i386 calls: with other numbers, with 64-bit
// arguments in two registers, and with structures that partly differ. Most of their
// calls are those of the operation table once that is undone. The others, and all 32-bit
// calls on arm64, have a name and raw arguments.

// Name32 returns the kernel's name of a 32-bit call, "" if there is none.
func Name32(a Arch, nr uint32) string {
	if a == AMD64 && nr < uint32(len(names386)) {
		return names386[nr]
	}
	return ""
}

// Spec32 returns the row of a 32-bit call: with memory only where it looks as it does
// for 64 bits. It is that of OpUnknown if the call cannot be told by a row.
func Spec32(a Arch, nr uint32) *Spec {
	if a != AMD64 || nr >= uint32(len(names386)) {
		return &table[OpUnknown]
	}
	return specs386()[nr]
}

var specs386 = sync.OnceValue(func() []*Spec {
	rows := make([]*Spec, len(names386))
	for nr, name := range names386 {
		op, time64 := op386(name)
		rows[nr] = table[op].narrow(time64)
	}
	return rows
})

// differs386 are the calls that are not those of the same name: arguments in memory,
// times or offsets of 32 bits, 32-bit structures within structures.
var differs386 = map[string]bool{
	"mmap": true, "select": true, "utime": true, "utimes": true, "futimesat": true, "utimensat": true, "getdents": true, "sendfile": true,
	"io_setup": true, "io_submit": true, "io_getevents": true, "io_cancel": true, "io_pgetevents": true, "io_destroy": true,
}

// same386 are the calls whose names differ for no other reason than their age.
var same386 = map[string]string{
	"_llseek": "lseek", "_newselect": "select", "fcntl64": "fcntl", "fstat64": "fstat", "lstat64": "lstat", "stat64": "stat",
	"fstatat64": "newfstatat", "fstatfs64": "fstatfs", "statfs64": "statfs", "ftruncate64": "ftruncate", "truncate64": "truncate",
	"mmap2": "mmap", "sendfile64": "sendfile", "fadvise64_64": "fadvise64", "ugetrlimit": "getrlimit", "umount": "umount2", "waitpid": "wait4",
}

// op386 returns the operation of an i386 call. time64 says that its times are those of
// 64 bits.
func op386(name string) (op Op, time64 bool) {
	if differs386[name] || name == "" {
		return OpUnknown, false
	}
	if s, ok := same386[name]; ok {
		return ByName(s), false
	}
	if s, ok := strings.CutSuffix(name, "_time64"); ok {
		return ByName(s), true
	}
	if op := ByName(name); op != OpUnknown {
		return op, false
	}
	if s, ok := strings.CutSuffix(name, "32"); ok {
		return ByName(s), false
	}
	s, _ := strings.CutSuffix(name, "64") // clock_gettime64 and its like
	return ByName(s), true
}

// Sizes of what a 32-bit program's vectors are made of (Arg.Const of LenVec and of
// KindStrings; 0 is the 64-bit size).
const (
	Iovec32Bytes   = 8
	Pointer32Bytes = 4
)

// narrow returns a row without the memory that has another layout for 32 bits.
func (s *Spec) narrow(time64 bool) *Spec {
	n := *s
	n.Args = append([]Arg(nil), s.Args...)
	n.ValueResultArg = 0
	for i := range n.Args {
		a := &n.Args[i]
		switch {
		case a.Kind == KindVec:
			a.Const = Iovec32Bytes
		case a.Kind == KindStrings:
			a.Const = Pointer32Bytes
		case a.Kind != KindStruct:
		case a.Len == LenCommand && s.Op == OpIoctl:
		case a.Len == LenMsg, a.Len == LenMsgs, a.Len == LenRef, a.Len == LenCommand, a.Len == LenBits,
			!alike(a.Layout, time64):
			*a = hex(a.Name)
		case s.ValueResultArg > 0 && i == int(s.ValueResultArg)-1:
			n.ValueResultArg = s.ValueResultArg
		}
	}
	return &n
}

// alike reports whether a structure is the same for 32 bits.
func alike(l Layout, time64 bool) bool {
	switch l {
	case LayoutStatx, LayoutOpenHow, LayoutCloneArgs, LayoutFDPair, LayoutOffset, LayoutPollfd, LayoutEpollEvent,
		LayoutSigset, LayoutUtsname,
		LayoutSockaddr, LayoutSockopt, LayoutUringParams, LayoutFileHandle, LayoutNames, LayoutSchedParam,
		LayoutCPUSet, LayoutCapHeader, LayoutCapData,
		LayoutIDs, LayoutU32, LayoutWaitStatus, LayoutFutexWaitv, LayoutSembuf, LayoutFileAttr, LayoutMountAttr,
		LayoutSchedAttr, LayoutDirents64:
		return true
	case LayoutTimespec, LayoutTimespec2, LayoutItimerspec:
		return time64
	}
	return false
}

// TranslateCompat makes the arguments of a 32-bit call those of its operation: what stood in two
// registers stands in one, and "unchanged" of 16-bit ids is that of 32-bit ones.
func TranslateCompat(a Arch, nr uint32, args *[MaxArgs]uint64) {
	v := *args
	long := func(low int) uint64 { return v[low]&0xffffffff | v[low+1]<<32 }
	switch Name32(a, nr) {
	case "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2":
		args[3], args[4] = long(3), 0
	case "truncate64", "ftruncate64":
		args[1], args[2] = long(1), 0
	case "truncate", "ftruncate", "lseek":
		args[1] = uint64(int64(int32(v[1])))
	case "_llseek":
		args[1], args[2], args[3], args[4] = v[1]<<32|v[2], v[4], 0, 0
	case "fallocate":
		args[2], args[3], args[4], args[5] = long(2), long(4), 0, 0
	case "fadvise64":
		args[1], args[2], args[3], args[4] = long(1), v[3], v[4], 0
	case "fadvise64_64":
		args[1], args[2], args[3], args[4], args[5] = long(1), long(3), v[5], 0, 0
	case "sync_file_range":
		args[1], args[2], args[3], args[4], args[5] = long(1), long(3), v[5], 0, 0
	case "readahead":
		args[1], args[2], args[3] = long(1), v[3], 0
	case "mmap2":
		args[5] = v[5] << 12
	case "statfs64", "fstatfs64":
		args[1], args[2] = v[2], 0
	case "waitpid":
		args[3] = 0
	case "umount":
		args[1] = 0
	case "chown", "fchown", "lchown", "setreuid", "setregid", "setresuid", "setresgid":
		for i, arg := range Spec32(a, nr).Args {
			if arg.Kind == KindID && v[i]&0xffff == 0xffff {
				args[i] = 0xffffffff
			}
		}
	}
}

// RegistersCompat is the inverse of TranslateCompat: it puts the arguments where a 32-bit call has them.
func RegistersCompat(a Arch, nr uint32, args *[MaxArgs]uint64) {
	v := *args
	low := func(i int) uint64 { return v[i] & 0xffffffff }
	high := func(i int) uint64 { return v[i] >> 32 }
	switch Name32(a, nr) {
	case "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2":
		args[3], args[4] = low(3), high(3)
	case "truncate64", "ftruncate64":
		args[1], args[2] = low(1), high(1)
	case "_llseek":
		args[1], args[2], args[3], args[4] = high(1), low(1), 0, v[2]
	case "fallocate":
		args[2], args[3], args[4], args[5] = low(2), high(2), low(3), high(3)
	case "fadvise64":
		args[1], args[2], args[3], args[4] = low(1), high(1), v[2], v[3]
	case "fadvise64_64", "sync_file_range":
		args[1], args[2], args[3], args[4], args[5] = low(1), high(1), low(2), high(2), v[3]
	case "readahead":
		args[1], args[2], args[3] = low(1), high(1), v[2]
	case "mmap2":
		args[5] = v[5] >> 12
	case "statfs64", "fstatfs64":
		args[1], args[2] = 0, v[1]
	}
}
