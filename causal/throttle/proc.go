// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

func procFile(tid int, name string) []byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/" + name)
	if err != nil {
		return nil
	}
	return b
}

// usage returns how long a thread has run, and how long it waited for a processor, in ns:
// exactly when it is stopped, and else up to a tick ago. (sched-stats.rst of the kernel)
func usage(tid int) (cpu, delay int64) {
	f := bytes.Fields(procFile(tid, "schedstat"))
	if len(f) >= 2 {
		cpu, _ = strconv.ParseInt(string(f[0]), 10, 64)
		delay, _ = strconv.ParseInt(string(f[1]), 10, 64)
	}
	return cpu, delay
}

func comm(tid int) string { return string(bytes.TrimSpace(procFile(tid, "comm"))) }

// file returns what a descriptor of a thread leads to.
func file(tid int, fd int32) (path string, mode uint32, ok bool) {
	name := "/proc/" + strconv.Itoa(tid) + "/fd/" + strconv.Itoa(int(fd))
	var st unix.Stat_t
	if unix.Stat(name, &st) != nil {
		return "", 0, false
	}
	path, err := os.Readlink(name)
	return strings.TrimSuffix(path, " (deleted)"), st.Mode, err == nil
}

// stopped reports whether a thread is in a ptrace stop: it waits for its tracer, which is
// this program, and not for another node.
func stopped(tid int) bool {
	b := procFile(tid, "stat")
	i := bytes.LastIndexByte(b, ')') // ends the name; the state is next
	return i >= 0 && i+2 < len(b) && b[i+2] == 't'
}

// doing says what a thread is at, as /proc/TID/syscall tells it.
type doing uint8

const (
	running doing = iota
	waiting       // asleep: for a time, for a device, or it is not known for what
	endless       // asleep until somebody else does something
)

// look returns what a thread is doing.
func look(tid int) doing {
	d, _ := lookAt(tid)
	return d
}

// CallOf returns the name of the call that a thread sleeps in; "" if it runs or has ended.
func CallOf(tid int) string {
	if d, op := lookAt(tid); d != running {
		return op.String()
	}
	return ""
}

// lookAt returns what a thread is doing, and in which call if it is not running.
func lookAt(tid int) (doing, event.Op) {
	f := strings.Fields(string(procFile(tid, "syscall")))
	if len(f) == 0 || f[0] == "running" {
		return running, event.OpUnknown
	}
	nr, err := strconv.Atoi(f[0])
	arch, known := event.ParseArch(runtime.GOARCH)
	if err != nil || nr < 0 || len(f) < 7 || !known {
		return waiting, event.OpUnknown
	}
	var args [event.MaxArgs]uint64
	for i := range args {
		args[i], _ = strconv.ParseUint(strings.TrimPrefix(f[1+i], "0x"), 16, 64)
	}
	op := event.ByNumber(arch, nr)
	if hasNoEnd(op, &args) {
		return endless, op
	}
	return waiting, op
}

// hasNoEnd reports whether a call that sleeps is let go on only by what others do.
func hasNoEnd(op event.Op, args *[event.MaxArgs]uint64) bool {
	switch op {
	case event.OpWait4, event.OpWaitid, event.OpFlock, event.OpFcntl, event.OpPause, event.OpRtSigsuspend,
		event.OpSemop, event.OpMsgrcv, event.OpMsgsnd,
		event.OpRead, event.OpReadv, event.OpWrite, event.OpWritev, event.OpRecvfrom, event.OpRecvmsg,
		event.OpSendto, event.OpSendmsg, event.OpAccept, event.OpAccept4:
		return true
	case event.OpFutex, event.OpSemtimedop:
		return args[3] == 0
	case event.OpPoll:
		return int32(args[2]) < 0
	case event.OpPpoll, event.OpRtSigtimedwait:
		return args[2] == 0
	case event.OpSelect, event.OpPselect6:
		return args[4] == 0
	case event.OpEpollWait, event.OpEpollPwait:
		return int32(args[3]) < 0
	case event.OpEpollPwait2:
		return args[3] == 0
	}
	return false
}
