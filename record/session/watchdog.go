// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/record/capture/running"
)

// A recorder that is stopped (SIGSTOP) holds its programs: a thread that stops for its tracer, for a signal, a new
// process, or a full ring, waits until the tracer goes on. No other process can let it go. Therefore each recording
// has a watchdog: this program, started again, which looks whether the recorder is stopped, and continues it
// (SIGCONT) when programs have waited for it for Plan.HoldMax. Nothing is lost then.
//
// A recorder that is stopped together with its command, by Ctrl-Z, is left so: it tells the watchdog before.
const (
	watchdogName = "iotape-watchdog"

	// What the recorder writes to the watchdog.
	dogSuspends = 's' // it is about to stop, with its command
	dogEnds     = 'e'
)

// watchdog is the recorder's end of a watchdog.
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
	cmd.Args = []string{watchdogName, strconv.Itoa(os.Getpid()), holdMax.String()}
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
	_, _ = d.to.Write([]byte{dogSuspends})              // EPIPE: it was killed
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // it may come after the return
}

// stop dismisses the watchdog.
func (d *watchdog) stop() {
	_, _ = d.to.Write([]byte{dogEnds})
	d.to.Close()
	d.told.Wait()
	d.from.Close()
	_ = d.cmd.Wait() // ECHILD: the tracer has seen its end already
}

// watchdogStub does nothing in an ordinary process. In a watchdog it does its work and does not return.
func watchdogStub() {
	if len(os.Args) != 3 || os.Args[0] != watchdogName {
		return
	}
	pid, err := strconv.Atoi(os.Args[1])
	most, err2 := time.ParseDuration(os.Args[2])
	if err != nil || err2 != nil {
		os.Exit(1)
	}
	_ = os.WriteFile("/proc/self/comm", []byte(watchdogName), 0) // for ps; without it "exe"
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE)
	watchRecorder(pid, most, os.NewFile(3, "recorder"), os.NewFile(4, "recorder"))
	os.Exit(0)
}

// watchRecorder continues a recorder that is stopped while programs wait for it, until from ends.
func watchRecorder(pid int, most time.Duration, from, to *os.File) {
	said := make(chan byte)
	go func() {
		defer close(said)
		for b := make([]byte, 1); ; {
			if n, _ := from.Read(b); n == 0 {
				return
			}
			said <- b[0]
		}
	}()
	each := min(max(most/10, 10*time.Millisecond), time.Second)
	tick := time.NewTicker(each)
	defer tick.Stop()
	stopped := time.Duration(0)    // looks are counted: the machine may have slept between two
	together, seen := false, false // it stops with its command, and has done so
	for {
		select {
		case b, ok := <-said:
			if !ok || b == dogEnds {
				return
			}
			together, seen, stopped = b == dogSuspends, false, 0
		case <-tick.C:
			is := isStopped(pid)
			if together && is {
				seen = true
				continue
			}
			together = together && !seen // it goes on
			if !is {
				stopped = 0
				continue
			}
			if stopped += each; stopped >= most && holdsThreads(pid) {
				if unix.Kill(pid, unix.SIGCONT) == nil {
					fmt.Fprintln(to, stopped.Round(time.Second/10))
				}
				stopped = 0
			}
		}
	}
}

// isStopped reports whether a process is stopped by a signal.
func isStopped(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && bytes.HasPrefix(running.Field(b, "State:"), []byte("T"))
}

// holdsThreads reports whether a thread that a process traces waits for it.
func holdsThreads(pid int) bool {
	tracers := map[string]bool{}
	for _, tid := range running.Threads(pid) {
		tracers[strconv.Itoa(tid)] = true
	}
	list, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/status")
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err == nil && bytes.HasPrefix(running.Field(b, "State:"), []byte("t")) &&
			tracers[string(running.Field(b, "TracerPid:"))] {
			return true
		}
	}
	return false
}
