// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	dataNR   = 0
	dataArch = 4
)

// Filter returns a seccomp program that tells the calls of some numbers from all others:
// with stop it sends them to the tracer and lets all others through, those of other ABIs
// too; without, it lets them through and sends all others to the tracer. The kernel caches
// which numbers it always allows, so its length costs nothing.
func Filter(numbers []int, stop bool) ([]unix.SockFilter, error) {
	// A conditional jump reaches 255 instructions.
	if len(numbers) > 250 {
		return nil, fmt.Errorf("filter with %d calls: at most 250", len(numbers))
	}
	load := func(off uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
	}
	equal := func(k uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: k}
	}
	ret := func(k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
	}
	listed, others := uint32(unix.SECCOMP_RET_ALLOW), uint32(unix.SECCOMP_RET_TRACE)
	if stop {
		listed, others = others, listed
	}
	n := len(numbers)
	f := []unix.SockFilter{load(dataArch), equal(nativeArch(), 0, n+1), load(dataNR)}
	for i, nr := range numbers {
		f = append(f, equal(uint32(nr), n-i, 0))
	}
	return append(f, ret(others), ret(listed)), nil
}
