// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/iotape/iotape/internal/early"
)

// watchdog is the recorder's end of a watchdog (early.Watchdog), which continues a recorder that was stopped
// while programs wait for it, after Plan.HoldMax.
type watchdog struct {
	cmd  *exec.Cmd
	to   *os.File // what the recorder says
	from *os.File // a line for each time that the recorder was continued
	told sync.WaitGroup
}

// startWatchdog starts a watchdog over this process. note is told of each time that it continued it.
func startWatchdog(holdMax time.Duration, note func(format string, args ...any)) (*watchdog, error) {
	fail := func(err error) (*watchdog, error) { return nil, fmt.Errorf("start a watchdog: %w", err) }
	r, w, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer r.Close()
	said, say, err := os.Pipe()
	if err != nil {
		w.Close()
		return fail(err)
	}
	defer say.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{early.Watchdog, strconv.Itoa(os.Getpid()), holdMax.String()}
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{r, say}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		said.Close()
		return fail(err)
	}
	d := &watchdog{cmd: cmd, to: w, from: said}
	d.told.Go(func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			note("the recorder was stopped for %s and programs waited for it: it was continued (--hold-max)",
				lines.Text())
		}
	})
	return d, nil
}

// watchOver starts a watchdog, if the plan is for one. The caller calls the function at the end of the recording.
func (p *Plan) watchOver() (stop func()) {
	o := &p.Capture
	if p.holdMax() == 0 || len(o.Command) == 0 && !o.Running() { // a mount traces nobody
		return func() {}
	}
	d, err := startWatchdog(p.holdMax(), p.note)
	if err != nil {
		p.note("if the recorder is stopped, its programs wait for it: %v", err)
		return func() {}
	}
	o.Suspend = d.suspend
	return d.stop
}

// suspend stops this process, which the watchdog leaves so.
func (d *watchdog) suspend() {
	_, _ = d.to.Write([]byte{early.DogSuspends})        // EPIPE: it was killed
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // it may come after the return
}

// stop dismisses the watchdog.
func (d *watchdog) stop() {
	_, _ = d.to.Write([]byte{early.DogEnds})
	d.to.Close()
	d.told.Wait()
	d.from.Close()
	_ = d.cmd.Wait() // ECHILD: the tracer has seen its end already
}
