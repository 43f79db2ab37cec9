package ebpf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"iotape/capture/running"
)

// A recorder that is killed leaves the threads that it holds to the kernel, which then
// delivers the signal that stopped them. Mostly it is one that does nothing
// (hold_signal in bpf/state.h). For threads that block all such, it is a SIGSTOP: the
// process stops, and stays so. Therefore each recording has a guardian: this program,
// started again, which waits for the recorder's end and then continues the processes
// of threads that are listed as held. It has the list's descriptor and nothing else,
// so that the programs go with the recorder.
const (
	guardName = "iotape-guard"
	guardMap  = 3 // descriptors of the guardian
	guardPipe = 4

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

// startGuardian starts a guardian over the list of held threads.
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
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
	m, err := ebpf.NewMapFromFD(guardMap)
	if err != nil {
		return 1
	}
	n, err := io.ReadFull(os.NewFile(guardPipe, "recorder"), make([]byte, 1))
	if n == 1 || !errors.Is(err, io.EOF) {
		return 0 // the recording ended as it should
	}
	end := time.Now().Add(guardFor)
	for pause := time.Millisecond; time.Now().Before(end); pause = min(2*pause, 50*time.Millisecond) {
		letGo(m)
		time.Sleep(pause)
	}
	return 0
}

// letGo continues the processes of which a listed thread is stopped or about to be.
func letGo(list *ebpf.Map) {
	var tid uint32
	var h iotapeHeld
	for entries := list.Iterate(); entries.Next(&tid, &h); {
		if h.Sig == uint32(unix.SIGSTOP) && isStopping(int(h.Pid), int(tid)) {
			_ = unix.Kill(int(h.Pid), unix.SIGCONT) // ESRCH: it ended
		}
	}
}

// isStopping reports whether a thread is stopped or has a SIGSTOP pending.
func isStopping(pid, tid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return false
	}
	pending := func(name string) bool {
		set, _ := strconv.ParseUint(string(running.Field(b, name)), 16, 64)
		return set>>(unix.SIGSTOP-1)&1 != 0
	}
	return bytes.HasPrefix(running.Field(b, "State:"), []byte("T")) || pending("SigPnd:") || pending("ShdPnd:")
}
