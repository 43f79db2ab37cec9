package ptrace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	dataNR   = 0
	dataArch = 4
)

// letThrough makes the recorder do what the filter would.
func (r *recorder) letThrough(exempt []Exempt) {
	for _, e := range exempt {
		if e.NR < len(r.through) {
			r.through[e.NR] = true
		}
	}
}

// filter returns the seccomp program that lets the exempt calls through and
// sends all others, and those of other ABIs, to the tracer. The kernel caches
// which numbers it always allows, so its length costs nothing.
func filter(exempt []Exempt) ([]unix.SockFilter, error) {
	// A conditional jump reaches 255 instructions.
	if len(exempt) > 250 {
		return nil, fmt.Errorf("filter with %d exempt calls: at most 250", len(exempt))
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
	n := len(exempt)
	f := []unix.SockFilter{load(dataArch), equal(auditArch, 0, n+1), load(dataNR)}
	for i, e := range exempt {
		f = append(f, equal(uint32(e.NR), n-i, 0))
	}
	return append(f, ret(unix.SECCOMP_RET_TRACE), ret(unix.SECCOMP_RET_ALLOW)), nil
}
