// SPDX-License-Identifier: Apache-2.0

package term

import (
	"os"
	"syscall"
	"unsafe"
)

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	var t syscall.Termios
	return ioctl(f, syscall.TCGETS, unsafe.Pointer(&t)) == nil
}

// Width returns the columns of a terminal, 80 if they cannot be learnt.
func Width(f *os.File) int {
	var size struct{ rows, cols, x, y uint16 }
	if ioctl(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size)) != nil || size.cols == 0 {
		return 80
	}
	return int(size.cols)
}

// Foreground reports whether this process is in the foreground process group of
// its controlling terminal, so that the terminal's signals reach it and the
// programs that it started alike.
func Foreground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	var pgrp int32
	return ioctl(tty, syscall.TIOCGPGRP, unsafe.Pointer(&pgrp)) == nil && int(pgrp) == syscall.Getpgrp()
}

func ioctl(f *os.File, cmd uintptr, arg unsafe.Pointer) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	if err := conn.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, cmd, uintptr(arg))
	}); err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// Style colours text, or does not.
type Style struct{ on bool }

// StyleOf returns the style for a file: colours on a terminal that can show them,
// unless the environment has NO_COLOR (https://no-color.org).
func StyleOf(f *os.File) Style {
	return Style{on: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(f)}
}

// Bad marks what went wrong.
func (s Style) Bad(text string) string { return s.wrap("31", text) }

// Good marks what went well.
func (s Style) Good(text string) string { return s.wrap("32", text) }

// Dim marks what matters less.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

// Strong marks what a line is about.
func (s Style) Strong(text string) string { return s.wrap("1", text) }

// Notable marks what is no failure, and not usual.
func (s Style) Notable(text string) string { return s.wrap("33", text) }

// On reports whether the style marks anything.
func (s Style) On() bool { return s.on }

func (s Style) wrap(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
