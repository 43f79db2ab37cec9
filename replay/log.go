package replay

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/iotape/iotape/event"
)

// LogLevel is how much a replay writes into its log.
type LogLevel string

// The levels: each has what the one before has.
const (
	LogDifferences LogLevel = "differences" // results that are not as recorded
	LogSkipped     LogLevel = "skipped"     // calls that are not made, with the reason
	LogCalls       LogLevel = "calls"       // every call, with its result
)

// ParseLogLevel returns the level with a name.
func ParseLogLevel(s string) (LogLevel, error) {
	switch l := LogLevel(s); l {
	case LogDifferences, LogSkipped, LogCalls:
		return l, nil
	}
	return "", fmt.Errorf("log level %q is neither differences, skipped nor calls", s)
}

// logger writes a line for each thing that it is told of. A nil one writes nothing.
type logger struct {
	mu    sync.Mutex
	w     *bufio.Writer
	file  *os.File
	level LogLevel
}

func newLogger(f *os.File, level LogLevel) *logger {
	if f == nil {
		return nil
	}
	return &logger{w: bufio.NewWriterSize(f, 1<<16), file: f, level: level}
}

func (l *logger) line(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}

func (l *logger) mismatch(m *Mismatch) {
	if l == nil {
		return
	}
	because := ""
	if m.Because != nil {
		because = " because of " + strconv.FormatUint(*m.Because-1, 10)
	}
	l.line("%d %d differs %s %q %s: expected %s, got %s%s", m.Seq, m.TID, m.Op, m.Path, m.Field, m.Expected, m.Got, because)
}

// skipped notes a call that is not made.
func (l *logger) skipped(t *task) {
	if l != nil && l.level != LogDifferences && t.ev.Kind == event.Call {
		l.line("%d %d skipped %s %q: %s", t.ev.Seq, t.TID, t.op, t.ev.Name(), t.why)
	}
}

// call notes a call that was made.
func (l *logger) call(seq uint64, tid uint32, op event.Op, name string, ret int64, errno syscall.Errno) {
	if errno != 0 {
		l.line("%d %d %s %q = -1 %s", seq, tid, op, name, errName(errno))
	} else {
		l.line("%d %d %s %q = %d", seq, tid, op, name, ret)
	}
}

func (l *logger) calls() bool { return l != nil && l.level == LogCalls }

// close writes what is left.
func (l *logger) close() error {
	if l == nil {
		return nil
	}
	if err := l.w.Flush(); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return l.file.Close()
}
