// SPDX-License-Identifier: Apache-2.0

// Package interpose is the capture back end that needs no rights and costs little: it records
// system calls within the recorded processes. A tracer (internal/ptracer) stays attached, but
// almost no call wakes it. It keeps the contract of package capture, with the help of
// record/capture/ptrace, whose Recorder records every call that stops.
//
//	             first call at a place                       every other call
//	program ──▶ syscall                        program ──▶ short jump (was: syscall)
//	  Syscall User Dispatch: SIGSYS               ▼
//	  ▼                                         padding: jump ──▶ stub ──▶ entry.S
//	tracer: patches the place                     ▼
//	  or makes the call, with a stop            gate: the system call, with the program's own
//	  at its entry and at its end                 registers and stack
//	  ▼                                           ▼
//	ptrace.Recorder ──▶ stream ◀── drain ◀── ring ◀── inproc.c: appends a trace.Record
//
// # What it rests on
//
// Syscall User Dispatch (Linux 5.11) turns every system call
// that is not made within one small range of addresses, our gate, into a stop of the tracer:
// also those of code that is made at run time, of places that cannot be patched, and of
// places that nobody knows. So nothing is missed, and which places are patched is a matter of
// speed alone. Each thread sets it by itself, in our code, before its first call (arm_amd64.go).
//
// A place is patched without moving a neighbour (patch_amd64.go): only its own two bytes
// change, and bytes of padding that is never executed (image_amd64.go and stretches_amd64.go say how that is known).
//
// A call that the code in the process cannot record by itself (table_amd64.go: it makes a
// thread or a program, its memory has to be read before it, its content is large, …) is made
// and recorded by the tracer.
//
// # Memory
//
// Each new program maps an arena (arena_amd64.go): code, what the recorder tells it, and a slot
// and a ring for each thread. It is shared with processes that are forked from it. The thread
// finds its slot by the register GS, which programs for Linux do not use otherwise; those
// that do are recorded by stops. Nothing is ever writable and executable, no descriptor stays
// open, and the environment is as without. What a program writes into its ring is
// checked before it goes into the stream.
//
// # Signals
//
// A handler of the program never runs within our code: the tracer sees each signal first, and
// brings a thread that is there back to before its call, or behind it (signal_amd64.go).
//
// # When the recorder is killed
//
// The kernel detaches the tracer, and sends the program the SIGSYS that the tracer would have
// taken. Its handler is ours (orphaned, inproc.c): that it runs means that there is no tracer
// any more. It lets all calls through, and the one at hand is made again. So SIGSYS is never
// blocked and its action never changed in truth; the program sees what it asked for. And
// the tracer never leaves a thread, not for a moment, where only it knows how to go on: a call that
// it is to see is made by the program at its own place, or in the stub of that, and the loader takes
// back what it did until its last step.
//
// # What runs already
//
// Its processes get our code while all their threads stand still (attach_amd64.go), and lose it in the
// same way when the recording ends: each thread is first moved to where its program would be (detach_amd64.go).
// For them the tracer sets Syscall User Dispatch itself, which needs Linux 6.4.
//
// # What differs from the contract and from other back ends
//
//   - What differs for ptrace holds for the calls that stop: see record/capture/ptrace. In
//     particular, calls of ptrace.Untraced are not recorded unless all are asked for.
//   - CPU time is 0 for calls that do not stop; the size of an open file is known when it is
//     opened, and -1 afterwards; its owner, mode and links are what they were then, unless the
//     process itself changed them since.
//   - The peer of a local socket is asked for in the network namespace of the process. A process whose
//     threads share descriptors is stopped for it, and so is one that has other numbers of processes or
//     users than the recorder (inproc/ends.h).
//   - While a program can store to files through mappings, calls on these files stop (watch_amd64.go).
//   - Positions of files that nothing else can move are counted, not asked for
//     (inproc/position.h). A process that takes a descriptor out of another (pidfd_getfd) and moves
//     its file is not noticed.
//   - Programs that use the register GS or Syscall User Dispatch themselves, and 32-bit
//     programs, are recorded by stops at each call.
//   - Programs that read their own code, or /proc/self/maps, see that it was changed.
//
// It is for amd64 alone: arm64 has no Syscall User Dispatch yet.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package interpose
