// SPDX-License-Identifier: Apache-2.0

// Package ebpf is the capture back end that records every system call of a command
// and all that comes of it, with full content, from inside the kernel.
//
//	thread ──sys_enter, sys_exit──▶ programs (bpf/) ──records──▶ rings ──▶ drain ──▶ stream
//	   ▲                                │ ring half full, or memory not resident
//	   └── resumed by internal/ptracer ◀┴ SIGSTOP, seen by the recorder alone
//
// The programs are interpreters of the operation table: record/internal/bpf fills theirs.
// A record is composed once, in the ring, in the stream's own format; the drain
// hands ring memory to the stream's writer as it is (ring.go, drain.go).
//
// Nothing is lost under capture.OverflowBlock: a thread that finds its ring half
// full is held at the end of its call until the recorder has drained it. What did
// not fit, was not resident, or moved inside the kernel (sendfile) is read by the
// recorder while the thread is held (held.go).
//
// It needs root (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE), BTF and some helper functions
// (bpf.CheckRecording, Linux 5.19). Run returns a capture.UnsupportedError elsewhere.
// What newer kernels do better is probed (bpf.Features), and told to the programs by
// constants, so that the verifier sees only the ways that this kernel can go. Process ids
// are those of the initial pid namespace, in which the recorder must run.
//
// The package decides nothing about streams' heads, tapes or what calls mean.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package ebpf
