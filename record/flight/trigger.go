// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Trigger is a condition on a call; all that it says must hold. The zero value of a
// field is no condition.
type Trigger struct {
	Op    event.Op
	Errno syscall.Errno
	Slow  time.Duration // from entry to return, at least
}

// ParseTrigger reads conditions separated by commas: errno=EIO, op=fsync, slow=50ms.
func ParseTrigger(s string) (Trigger, error) {
	var t Trigger
	for item := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(item, "=")
		ok := false
		switch name {
		case "errno":
			t.Errno, ok = parseErrno(value)
		case "op":
			t.Op = event.ByName(value)
			ok = t.Op != event.OpUnknown
		case "slow":
			d, err := time.ParseDuration(value)
			t.Slow, ok = d, err == nil && d > 0
		default:
			return t, fmt.Errorf("%q is no condition such as errno=EIO, op=fsync or slow=50ms", item)
		}
		if !ok {
			hint := map[string]string{"errno": "the name of an error", "op": "an operation of iotape ops",
				"slow": "a time such as 50ms"}
			return t, fmt.Errorf("%s=%s: wants %s", name, value, hint[name])
		}
	}
	return t, nil
}

// maxErrno bounds error numbers (MAX_ERRNO, linux/err.h).
const maxErrno = 4095

func parseErrno(name string) (syscall.Errno, bool) {
	for e := syscall.Errno(1); e < maxErrno && name != ""; e++ {
		if unix.ErrnoName(e) == name {
			return e, true
		}
	}
	return 0, false
}

// occurrence is what a trigger looks at: a call or the end of a thread.
type occurrence struct {
	typ         trace.RecordType
	op          event.Op
	flags       uint32
	tid         uint32
	pid         uint32
	enter, exit uint64
	ret         int64 // of the call, or wait status
	mode        uint32
}

// readCall reads as much of a record as a trigger needs, without decoding all of it.
func readCall(body []byte) (c occurrence, ok bool) {
	le := binary.LittleEndian
	const callBytes, delayBytes, exitBytes, objectMode = 104, 8, 32, 32 // docs/format.md, 1.2
	if len(body) < exitBytes {
		return c, false
	}
	c = occurrence{
		typ: trace.RecordType(le.Uint16(body)), op: event.Op(le.Uint16(body[2:])),
		pid: le.Uint32(body[4:]), tid: le.Uint32(body[8:]), flags: le.Uint32(body[12:]),
	}
	switch c.typ {
	case trace.RecCall:
		if len(body) < callBytes {
			return c, false
		}
		c.enter, c.exit, c.ret = le.Uint64(body[16:]), le.Uint64(body[24:]), int64(le.Uint64(body[40:]))
		mode := callBytes + objectMode
		if c.flags&trace.CallDelays != 0 {
			mode += delayBytes
		}
		if body[100] > 0 && len(body) >= mode+4 {
			c.mode = le.Uint32(body[mode:])
		}
	case trace.RecExit:
		c.exit, c.ret = le.Uint64(body[16:]), int64(int32(le.Uint32(body[24:])))
	default:
		return c, false
	}
	return c, true
}

// matches reports whether a call is what one of the triggers wants, or a program
// crashed.
func (c *occurrence) matches(triggers []Trigger) bool {
	if c.typ == trace.RecExit {
		return c.pid == c.tid && Crashed(syscall.Signal(c.ret&0x7f))
	}
	for i := range triggers {
		t := &triggers[i]
		if t.Op != 0 && t.Op != c.op || t.Errno != 0 && c.ret != -int64(t.Errno) || t.Slow > 0 && !c.slow(t) {
			continue
		}
		if c.flags&trace.CallInterrupted == 0 {
			return true
		}
	}
	return false
}

// slow reports whether the call took too long. Unless a trigger names the operation,
// only calls on files count: others wait for people and for each other.
func (c *occurrence) slow(t *Trigger) bool {
	if c.exit < c.enter || c.exit-c.enter < uint64(t.Slow) {
		return false
	}
	if t.Op != 0 {
		return true
	}
	switch event.Lookup(c.op).Class {
	case event.Data, event.Sync, event.Meta, event.Namespace, event.Descriptor:
	default:
		return false
	}
	switch c.mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR:
		return false
	}
	return true
}

// Crashed reports whether a signal that ended a program means a crash: those that
// programs raise by their own fault.
func Crashed(s syscall.Signal) bool {
	switch s {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGABRT, unix.SIGTRAP, unix.SIGSYS:
		return true
	}
	return false
}

// reason says what happened.
func (c *occurrence) reason() string {
	if c.typ == trace.RecExit {
		return fmt.Sprintf("process %d was ended by %s", c.pid, unix.SignalName(syscall.Signal(c.ret&0x7f)))
	}
	s := fmt.Sprintf("%s by thread %d", event.Lookup(c.op).Name, c.tid)
	if c.ret < 0 && c.ret >= -maxErrno {
		s += " failed with " + event.ErrnoName(syscall.Errno(-c.ret))
	}
	return s + " after " + time.Duration(c.exit-c.enter).String()
}
