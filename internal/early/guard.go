// SPDX-License-Identifier: Apache-2.0

package early

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// A recorder that is killed leaves the threads that are stopped for it to the kernel,
// which then delivers the signal that stopped them. Mostly it is one that does nothing
// (hold_signal in record/capture/ebpf/bpf/hold.h). For threads that block all such, it is a SIGSTOP,
// which the recorder takes away as soon as it sees it (ptracer.Hold). One that it has not seen
// stops the process, for ever. Therefore each recording has a guardian, which waits for the end of the
// thread that traces, and then continues the processes of which a listed thread is stopped. It has the
// list's descriptor and nothing else, so that the programs go with the recorder.
const (
	guardMap  = 3 // descriptors of the guardian
	guardPipe = 4

	// GuardSignal tells the guardian that its parent, the thread that traces, has
	// ended. The pipe's end comes later, when the last thread of the recorder has,
	// which may hang in a disk.
	GuardSignal = syscall.SIGUSR1

	// guardFor is how long after the recorder's end a hook that ran just then may
	// still stop a thread.
	guardFor = 2 * time.Second
)

// guard waits for the recorder's end.
func guard() int {
	setProcessName(Guardian)
	tracerEnded := make(chan os.Signal, 1)
	signal.Notify(tracerEnded, GuardSignal)
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	ended := make(chan bool)
	go func() {
		n, _ := io.ReadFull(os.NewFile(guardPipe, "recorder"), make([]byte, 1))
		ended <- n == 1
	}()
	select {
	case inOrder := <-ended:
		if inOrder {
			return 0
		}
		ended = nil
	case <-tracerEnded: // in order or not: to look is right in any case
	}
	enough := time.Now().Add(guardFor)
	for pause := time.Millisecond; ended != nil ||
		time.Now().Before(enough); pause = min(2*pause, 50*time.Millisecond) {
		letGo(guardMap)
		select {
		case inOrder := <-ended:
			if inOrder {
				return 0
			}
			ended, enough = nil, time.Now().Add(guardFor)
		case <-time.After(pause):
		}
	}
	return 0
}

// held is a thread that was told to stop (struct held in record/internal/bpf/include/record.h).
type held struct {
	pid, sig uint32
	start    uint64
}

// mapAttr is union bpf_attr of calls on elements.
type mapAttr struct {
	fd, _      uint32
	key, value unsafe.Pointer
	flags      uint64
}

const (
	lookUpElem = 1 // BPF_MAP_LOOKUP_ELEM (linux/bpf.h)
	getNextKey = 4 // BPF_MAP_GET_NEXT_KEY
	maxHeld    = 1 << 17
)

// letGo continues the processes of which a listed thread is stopped or about to be.
func letGo(list uint32) {
	bpf := func(command uintptr, key, value unsafe.Pointer) bool {
		a := mapAttr{fd: list, key: key, value: value}
		return call(sysBPF, command, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a)) == 0
	}
	var tid, next uint32
	var key unsafe.Pointer
	for range maxHeld { // one that is deleted meanwhile begins it anew
		if !bpf(getNextKey, key, unsafe.Pointer(&next)) {
			return
		}
		tid, key = next, unsafe.Pointer(&tid)
		var h held
		if bpf(lookUpElem, key, unsafe.Pointer(&h)) && h.sig == uint32(syscall.SIGSTOP) && isStopping(tid, &h) {
			_ = syscall.Kill(int(h.pid), syscall.SIGCONT) // ESRCH: it ended
		}
	}
}

// isStopping reports whether a listed thread is stopped or has a SIGSTOP pending.
func isStopping(tid uint32, h *held) bool {
	dir := "/proc/" + strconv.Itoa(int(h.pid)) + "/task/" + strconv.Itoa(int(tid)) + "/"
	stat, err := os.ReadFile(dir + "stat")
	if err != nil || startTicks(stat) != h.start/(uint64(time.Second)/userHZ) {
		return false // it ended, and another may have its number
	}
	b, err := os.ReadFile(dir + "status")
	return err == nil && (isStopped(b) || IsPending(b, syscall.SIGSTOP))
}

// IsPending reports whether a thread, whose /proc/ID/status is given, has yet to take a signal.
func IsPending(status []byte, sig syscall.Signal) bool {
	for _, name := range []string{"SigPnd:", "ShdPnd:"} {
		set, _ := strconv.ParseUint(string(field(status, name)), 16, 64)
		if set>>(sig-1)&1 != 0 {
			return true
		}
	}
	return false
}

// userHZ is the unit of times in /proc (USER_HZ, the same on amd64 and arm64).
const userHZ = 100

// startTicks returns the start time in a /proc/ID/stat, its 22nd field.
func startTicks(stat []byte) uint64 {
	i := bytes.LastIndexByte(stat, ')') // the second field ends here, which is the program's name
	if f := bytes.Fields(stat[i+1:]); len(f) > 22-3 {
		n, _ := strconv.ParseUint(string(f[22-3]), 10, 64)
		return n
	}
	return 0
}
