// SPDX-License-Identifier: Apache-2.0

// Package sysmon makes the monitor thread of the Go runtime look less often at what the
// other threads do.
//
// While any of them does something the monitor wakes up after 20 µs, again and again, and
// takes the place (P) of each thread that has been in a system call since it looked last.
// Programs whose threads wait in the kernel all the time keep it so: it was on one of two
// processors every 100 µs while recorded calls were replayed, and 10,000 times a second a
// timer's interrupt took that processor from whoever used it. Who measures or imitates
// others on the same machine must not do that.
//
// A thread in a system call keeps its place for longer then. So there have to be places
// (runtime.GOMAXPROCS) for all that wait in the kernel, or goroutines wait for up to 5 ms.
//
// It knows nothing of what its callers do.
package sysmon
