// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sys/unix"
)

// A thread that is made with CLONE_UNTRACED would not be followed, but inherit the filter, by which
// its calls would fail without a tracer. So the kernel is not told of the flag, and the
// program finds its argument as it was.

const clone32 = 120 // of 32-bit programs on amd64 (asm/unistd_32.h)

// hiddenFlags are flags that a program gave and the kernel did not get.
type hiddenFlags struct {
	at     uint64 // in memory; 0: the first argument
	flags  uint64
	compat bool
}

// makesUntraced reports whether a call makes a thread with CLONE_UNTRACED, and whether the flags are in memory.
func (c *Syscall) makesUntraced(t *Tracee) (inMemory, untraced bool) {
	switch {
	case c.NR == unix.SYS_CLONE3: // the same number everywhere
		flags, ok := peekFlags(t, c.Args[0])
		return true, ok && flags&unix.CLONE_UNTRACED != 0
	case c.Compat && runtime.GOARCH == "amd64" && c.NR == clone32, !c.Compat && c.NR == unix.SYS_CLONE:
		return false, c.Args[0]&unix.CLONE_UNTRACED != 0
	}
	return false, false
}

// follow takes CLONE_UNTRACED out of a call that is about to begin.
func (t *Tracee) follow(c *Syscall) {
	inMemory, untraced := c.makesUntraced(t)
	if !untraced {
		return
	}
	flags := c.Args[0]
	if inMemory {
		flags, _ = peekFlags(t, c.Args[0])
		t.hidden = hiddenFlags{at: c.Args[0], flags: flags}
		pokeFlags(t, c.Args[0], flags&^unix.CLONE_UNTRACED)
		return
	}
	t.hidden = hiddenFlags{flags: flags, compat: c.Compat}
	setFirstArgument(t, flags&^unix.CLONE_UNTRACED, c.Compat)
}

// followed gives the program back what follow changed, when the call has returned.
func (t *Tracee) followed() {
	h := t.hidden
	if h.flags == 0 {
		return
	}
	t.hidden = hiddenFlags{}
	if h.at != 0 {
		pokeFlags(t, h.at, h.flags)
		return
	}
	restoreFirstArgument(t, h.flags, h.compat)
}

func peekFlags(t *Tracee, at uint64) (flags uint64, ok bool) {
	var b [8]byte
	n, err := unix.PtracePeekData(t.TID, uintptr(at), b[:])
	return binary.LittleEndian.Uint64(b[:]), err == nil && n == len(b)
}

func pokeFlags(t *Tracee, at, flags uint64) {
	_, _ = unix.PtracePokeData(t.TID, uintptr(at), binary.LittleEndian.AppendUint64(nil, flags))
}
