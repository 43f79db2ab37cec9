// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/record/capture/running"
)

// A recorder that is killed leaves the threads that are stopped for it to the kernel,
// which then delivers the signal that stopped them. Mostly it is one that does nothing
// (hold_signal in bpf/state.h). For threads that block all such, it is a SIGSTOP, which
// the recorder takes away as soon as it sees it (ptracer.Hold). One that it has not seen
// stops the process, for ever. Therefore each recording has a guardian: this program,
// started again, which waits for the end of the thread that traces, and then continues
// the processes of which a listed thread is stopped. It has the list's descriptor and
// nothing else, so that the programs go with the recorder.
const (
	guardName = "iotape-guard"
	guardMap  = 3 // descriptors of the guardian
	guardPipe = 4

	// guardSignal tells the guardian that its parent, the thread that traces, has
	// ended. The pipe's end comes later, when the last thread of the recorder has,
	// which may hang in a disk.
	guardSignal = unix.SIGUSR1

	// guardFor is how long after the recorder's end a hook that ran just then may
	// still stop a thread.
	guardFor = 2 * time.Second
)

// Stub does nothing in an ordinary process. In a guardian it does its work and does
// not return. main must call it before anything else.
func Stub() {
	if len(os.Args) != 1 || os.Args[0] != guardName {
		return
	}
	os.Exit(guard())
}

// guardian is the recorder's end of a guardian.
type guardian struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startGuardian starts a guardian over the list of held threads. It must be called on
// the thread that traces.
func startGuardian(holding *ebpf.Map) (*guardian, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a guardian: %w", err)
	}
	defer r.Close()
	fd, err := unix.FcntlInt(uintptr(holding.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("start a guardian: %w", err)
	}
	list := os.NewFile(uintptr(fd), "held threads")
	defer list.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{guardName}
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{list, r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: guardSignal}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start a guardian: %w", err)
	}
	return &guardian{cmd, w}, nil
}

// stop dismisses the guardian. No thread may be held any more.
func (g *guardian) stop() {
	_, _ = g.pipe.Write([]byte{1}) // EPIPE: it was killed
	g.pipe.Close()
	_ = g.cmd.Wait() // ECHILD: the tracer has seen its end already
}

// guard waits for the recorder's end.
func guard() int {
	_ = os.WriteFile("/proc/self/comm", []byte(guardName), 0) // for ps; without it "exe"
	tracerEnded := make(chan os.Signal, 1)
	signal.Notify(tracerEnded, guardSignal)
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	m, err := ebpf.NewMapFromFD(guardMap)
	if err != nil {
		return 1
	}
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
		letGo(m)
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

// letGo continues the processes of which a listed thread is stopped or about to be.
func letGo(list *ebpf.Map) {
	var tid uint32
	var h iotapeHeld
	for entries := list.Iterate(); entries.Next(&tid, &h); {
		if h.Sig == uint32(unix.SIGSTOP) && isStopping(int(tid), &h) {
			_ = unix.Kill(int(h.Pid), unix.SIGCONT) // ESRCH: it ended
		}
	}
}

// isStopping reports whether a listed thread is stopped or has a SIGSTOP pending.
func isStopping(tid int, h *iotapeHeld) bool {
	dir := "/proc/" + strconv.Itoa(int(h.Pid)) + "/task/" + strconv.Itoa(tid) + "/"
	stat, err := os.ReadFile(dir + "stat")
	if err != nil || startTicks(stat) != h.Start/(uint64(time.Second)/userHZ) {
		return false // it ended, and another may have its number
	}
	b, err := os.ReadFile(dir + "status")
	return err == nil && (bytes.HasPrefix(running.Field(b, "State:"), []byte("T")) || isPending(b, unix.SIGSTOP))
}

// isPending reports whether a thread, whose status is given, has yet to take a signal.
func isPending(status []byte, sig syscall.Signal) bool {
	for _, name := range []string{"SigPnd:", "ShdPnd:"} {
		set, _ := strconv.ParseUint(string(running.Field(status, name)), 16, 64)
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
