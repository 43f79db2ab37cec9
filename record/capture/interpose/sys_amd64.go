// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of ptrace(2), and what they take (linux/ptrace.h).
const (
	ptraceGetSigmask = 0x420a
	ptraceSetSigmask = 0x420b
)

func ptraceCall(request, tid int, addr uintptr, data unsafe.Pointer) error {
	if _, _, e := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, uintptr(data), 0, 0); e != 0 {
		return e
	}
	return nil
}

func signalMask(tid int) (mask uint64, err error) {
	err = ptraceCall(ptraceGetSigmask, tid, 8, unsafe.Pointer(&mask))
	return mask, err
}

func setSignalMask(tid int, mask uint64) error {
	return ptraceCall(ptraceSetSigmask, tid, 8, unsafe.Pointer(&mask))
}

func signalBit(sig unix.Signal) uint64 { return 1 << (sig - 1) }
