// SPDX-License-Identifier: Apache-2.0

// Package ptracer runs a command under PTRACE_SEIZE and follows every process and
// thread that comes of it, until the last one has ended. It says what happens
// (Handler) and decides nothing about recording: record/capture/ptrace asks for
// system-call stops by a seccomp filter, record/capture/ebpf asks for none and only
// holds threads.
//
//	recorder ──fork──▶ stub (the recorder's own binary) ──execve──▶ command
//	   └ Engine.Run: seize the stub, step it to its execve, Gate, then follow
//
// The stub is the recorder's own program, started again: its main must call Stub
// first of all (a test binary's TestMain too). It inherits descriptors, process
// group and terminal, waits to be seized, installs the filter and calls execve.
// Nothing that it does before execve is shown to the Handler.
//
// # Rules
//
//   - Every callback runs on the one thread that does all ptrace calls, with the
//     thread it is about stopped. A callback that waits holds that thread, and
//     all others as soon as they stop. Work from other goroutines goes through
//     Engine.Do.
//   - Run waits with wait4(-1, __WALL): meanwhile the recorder must have no other
//     children, and there is one Run per process at a time.
//   - Any thread may be killed at any moment. A callback must take every failed
//     read of it as "it is gone"; its Exit callback follows.
//   - With a filter, the calls that it sends to the tracer fail with ENOSYS in
//     programs without one. A cancelled Run therefore goes on passing calls
//     through, without callbacks, until the last program has ended, and programs
//     are killed if the recorder dies. Without a filter a cancelled Run detaches
//     and returns, and programs survive the recorder. Detaching interrupts no call.
//     The signal of a thread that is stopped for one is then delivered.
//   - A traced program cannot trace (gdb, strace): a thread has one tracer.
//
// # Signals and terminal
//
// Signals reach the program unchanged, stops and continues included. The recorder
// shares the terminal: it ignores SIGINT and SIGQUIT, which the program gets
// itself, forwards SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 to the command unless the command
// got the same signal directly, and on SIGTSTP, SIGTTIN and SIGTTOU stops when the command
// has stopped, so that a shell's job control works. When the command has ended
// and others still run, any of these signals but SIGUSR1 and SIGUSR2 cancels the Run. A Go program resets
// most signals that it inherits ignored (not SIGHUP, SIGINT, SIGTSTP, SIGTTIN,
// SIGTTOU); so does the stub.
package ptracer
