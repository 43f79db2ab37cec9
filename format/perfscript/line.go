// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
)

// line is the entry or the return of a call.
type line struct {
	comm     string
	pid, tid uint32
	time     uint64 // ns
	entry    bool
	name     string // of the call; "" for raw_syscalls
	nr       uint32 // of raw_syscalls
	rest     string // behind the event's name, or the call's number
}

// pattern is a line's beginning. Fields that a user can choose (-F) may be absent, but not the time.
var pattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(.{0,16}?)\s+(\d{1,10})(?:/(\d{1,10}))?\s+(?:\[\d+\]\s+)?` +
		`(?:[-.a-zA-Z0-9]{4,5}\s+)?` +
		`(\d{1,10})\.(\d{6}|\d{9}):\s+(?:\d+\s+)?(raw_syscalls|syscalls):sys_(enter|exit)` +
		`(?:_([a-z0-9_]{1,48}))?:\s?(.*)$`)
})

var rawNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*NR (\d{1,9}) ?(.*)$`)
})

// parse takes a line apart. ok is false if it is none of a system call.
func parse(s string) (l line, ok bool) {
	m := pattern().FindStringSubmatch(s)
	if m == nil || (m[6] == "syscalls") != (m[8] != "") {
		return l, false
	}
	l.comm, l.entry, l.name, l.rest = m[1], m[7] == "enter", m[8], m[9]
	pid, err := strconv.ParseUint(m[2], 10, 32)
	if err != nil {
		return l, false
	}
	tid := pid
	if m[3] != "" {
		if tid, err = strconv.ParseUint(m[3], 10, 32); err != nil {
			return l, false
		}
	}
	l.pid, l.tid = uint32(pid), uint32(tid)
	seconds, _ := strconv.ParseUint(m[4], 10, 64) // of at most ten digits
	fraction, _ := strconv.ParseUint((m[5] + "000")[:9], 10, 64)
	l.time = seconds*1e9 + fraction
	if l.name == "" {
		n := rawNumber().FindStringSubmatch(l.rest)
		if n == nil {
			return l, false
		}
		nr, _ := strconv.ParseUint(n[1], 10, 32) // of at most nine digits
		l.nr, l.rest = uint32(nr), n[2]
	}
	return l, true
}

// rawArguments reads (3, 7f.., 1000, 0, 0, 0), which is hexadecimal.
func rawArguments(s string) (args [event.MaxArgs]uint64, n int) {
	s = strings.Trim(s, "()")
	for word := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseUint(strings.TrimSpace(word), 16, 64)
		if err != nil || n == len(args) {
			break
		}
		args[n] = v
		n++
	}
	return args, n
}

// result reads what a call returned: = -2, or 0xfffffffffffffffe.
func result(s string) (ret int64, ok bool) {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "="))
	if digits, isHex := strings.CutPrefix(s, "0x"); isHex {
		v, err := strconv.ParseUint(digits, 16, 64)
		return int64(v), err == nil
	}
	ret, err := strconv.ParseInt(s, 10, 64)
	return ret, err == nil && ret > math.MinInt64
}
