// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/early"
)

// guardian is the recorder's end of a guardian (early.Guardian), which continues the processes that a recorder
// leaves stopped if it is killed.
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
	cmd.Args = []string{early.Guardian}
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{list, r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: early.GuardSignal}
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
