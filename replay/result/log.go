// SPDX-License-Identifier: Apache-2.0

package result

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/options"
)

// Log writes a line for each difference, skipped call or call, as its level says. A nil one
// writes nothing.
type Log struct {
	mu    sync.Mutex
	w     *bufio.Writer
	file  *os.File
	level options.LogLevel
}

// NewLog returns a log that writes into a file, nil if there is none.
func NewLog(f *os.File, level options.LogLevel) *Log {
	if f == nil {
		return nil
	}
	return &Log{w: bufio.NewWriterSize(f, 1<<16), file: f, level: level}
}

func (l *Log) line(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}

// Mismatch notes a difference.
func (l *Log) Mismatch(m *Mismatch) {
	if l == nil {
		return
	}
	because := ""
	if m.Because != nil {
		because = " because of " + strconv.FormatUint(*m.Because-1, 10)
	}
	l.line("%d %d differs %s %q %s: expected %s, got %s%s", m.Seq, m.TID, m.Op, m.Path, m.Field, m.Expected, m.Got,
		because)
}

// Skips reports whether the log wants calls that are not made.
func (l *Log) Skips() bool { return l != nil && l.level != options.LogDifferences }

// Skipped notes a call that is not made, with the reason.
func (l *Log) Skipped(seq uint64, tid uint32, op event.Op, name, why string) {
	if l.Skips() {
		l.line("%d %d skipped %s %q: %s", seq, tid, op, name, why)
	}
}

// Call notes a call that was made.
func (l *Log) Call(seq uint64, tid uint32, op event.Op, name string, ret int64, errno syscall.Errno) {
	if errno != 0 {
		l.line("%d %d %s %q = -1 %s", seq, tid, op, name, ErrorName(errno))
	} else {
		l.line("%d %d %s %q = %d", seq, tid, op, name, ret)
	}
}

// Calls reports whether the log wants all calls.
func (l *Log) Calls() bool { return l != nil && l.level == options.LogCalls }

// Close writes what is buffered, and closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	if err := l.w.Flush(); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return l.file.Close()
}

// ErrorName is an error's symbolic name, "0" for none.
func ErrorName(err error) string {
	e, ok := err.(syscall.Errno)
	switch {
	case err == nil || ok && e == 0:
		return "0"
	case !ok:
		return err.Error()
	}
	if s := unix.ErrnoName(e); s != "" {
		return s
	}
	return fmt.Sprintf("errno %d", int(e))
}
