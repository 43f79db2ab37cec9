// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// helperEnv makes the test binary a recorder: "filter" or "bare".
const helperEnv = "IOTAPE_TEST_TRACE"

func TestMain(m *testing.M) {
	mode := os.Getenv(helperEnv)
	if mode == "" {
		os.Exit(m.Run())
	}
	os.Unsetenv(helperEnv)
	c := Command{Argv: os.Args[1:]}
	if mode == "filter" {
		c.Filter = traceAll()
	}
	st, err := New(&c, &Handler{}).Run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	os.Exit(st.Exit + int(st.Signal) + 128*int(min(st.Signal, 1)))
}

// startHelper starts a recorder in a process group of its own, as a shell does.
func startHelper(t *testing.T, mode, script string, stdin *os.File) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "sh", "-c", script)
	cmd.Env = append(os.Environ(), helperEnv+"="+mode)
	cmd.Stderr = os.Stderr
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(30*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() { kill.Stop() })
	return cmd
}

// waitFor waits until a file exists.
func waitFor(t *testing.T, file string) {
	t.Helper()
	for range 1000 {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not appear", file)
}

func TestRecorderSignals(t *testing.T) {
	// Under nohup hang-ups are ignored, also by what is started from here, unless somebody
	// listens.
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangUps) })
	// Counts SIGTERM, SIGHUP and SIGINT, for a while.
	const count = `n=0; trap 'n=$((n+1))' TERM HUP INT; : > READY; i=0; while [ $i -lt 40 ]; do sleep .02; ` +
		`i=$((i+1)); done; exit $n`
	for _, c := range []struct {
		name   string
		script string
		group  bool // to the whole group, as a terminal does
		sig    syscall.Signal
		exit   int
	}{
		{"forwarded", count, false, syscall.SIGTERM, 1},
		{"hang-up forwarded", count, false, syscall.SIGHUP, 1},
		{"not doubled", count, true, syscall.SIGTERM, 1},
		{"interrupt is the program's", count, true, syscall.SIGINT, 1},
		{"interrupt is not forwarded", count, false, syscall.SIGINT, 0},
		{"ends", `: > READY; exec sleep 20`, true, syscall.SIGINT, 128 + 2},
	} {
		for _, mode := range []string{"filter", "bare"} {
			t.Run(c.name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				ready := filepath.Join(t.TempDir(), "ready")
				cmd := startHelper(t, mode, strings.Replace(c.script, "READY", ready, 1), nil)
				waitFor(t, ready)
				time.Sleep(50 * time.Millisecond)
				pid := cmd.Process.Pid
				if c.group {
					pid = -pid
				}
				if err := syscall.Kill(pid, c.sig); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				if got := cmd.ProcessState.ExitCode(); got != c.exit {
					t.Errorf("exit status %d, want %d", got, c.exit)
				}
			})
		}
	}
}

func TestJobControl(t *testing.T) {
	for _, mode := range []string{"filter", "bare"} {
		t.Run(mode, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready")
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := startHelper(t, mode, ": > "+ready+"; read x; exit 6", r)
			pid := cmd.Process.Pid
			waitFor(t, ready)
			for range 2 { // Ctrl-Z and fg, twice
				if err := syscall.Kill(-pid, syscall.SIGTSTP); err != nil {
					t.Fatal(err)
				}
				var ws syscall.WaitStatus
				if _, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
					t.Fatalf("the recorder has not stopped: %x, %v", ws, err)
				}
				time.Sleep(20 * time.Millisecond)
				if err := syscall.Kill(-pid, syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
			}
			w.Close()
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 6 {
				t.Errorf("exit status %d", got)
			}
		})
	}
}

// TestHold holds a thread on a signal and lets it go from another goroutine.
func TestHold(t *testing.T) {
	var tr *Engine
	var at time.Time
	var info Siginfo
	held := make(chan *Tracee, 1)
	tr = New(&Command{Argv: []string{"sh", "-c", "trap 'exit 1' USR2; kill -USR2 $$; exit 4"}}, &Handler{
		Signal: func(t *Tracee, sig syscall.Signal, i *Siginfo) Verdict {
			if sig != syscall.SIGUSR2 {
				return Deliver
			}
			info, at = *i, time.Now()
			held <- t
			return Hold
		},
	})
	go func() {
		th := <-held
		time.Sleep(200 * time.Millisecond)
		tr.Do(th.Resume)
	}()
	st, err := tr.Run(t.Context())
	if err != nil || st.Exit != 4 {
		t.Errorf("status %+v, %v", st, err)
	}
	if d := time.Since(at); d < 200*time.Millisecond {
		t.Errorf("held for %v", d)
	}
	if int(info.PID) != st.PID || info.Code != SIUser || info.Signo != int32(syscall.SIGUSR2) {
		t.Errorf("signal info %+v", info)
	}
}

func TestCancelDetaches(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Now()
	tr := New(&Command{
		Argv: []string{"sh", "-c",
			"kill -USR2 $$; for i in 1 2 3 4 5 6 7 8 9; do sleep .1; /bin/true; done; grep TracerPid /proc/self/status > out; mv out end"},
		Dir: dir,
	}, &Handler{Signal: func(_ *Tracee, sig syscall.Signal, _ *Siginfo) Verdict {
		if sig == syscall.SIGUSR2 {
			time.AfterFunc(300*time.Millisecond, cancel)
			return Hold // for ever: cancelling must let it go
		}
		return Deliver
	}})
	st, err := tr.Run(ctx)
	if err != nil || !st.Detached || st.Ended {
		t.Fatalf("status %+v, %v", st, err)
	}
	if d := time.Since(begin); d > time.Second {
		t.Errorf("cancelling took %v", d)
	}
	waitFor(t, dir+"/end")
	if b, _ := os.ReadFile(dir + "/end"); string(b) != "TracerPid:\t0\n" {
		t.Errorf("after detaching: %q", b)
	}
	_, _ = syscall.Wait4(st.PID, nil, 0, nil)
}

// TestDo runs functions while all programs sleep.
func TestDo(t *testing.T) {
	tr := New(&Command{Argv: []string{"sleep", ".5"}}, &Handler{})
	ran := make(chan int, 100)
	go func() {
		time.Sleep(200 * time.Millisecond)
		for range 100 {
			tr.Do(func() { tr.Threads(func(t *Tracee) { ran <- t.TID }) })
			time.Sleep(time.Millisecond)
		}
	}()
	begin := time.Now()
	st, err := tr.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(ran) < 90 || <-ran != st.PID || time.Since(begin) > 5*time.Second {
		t.Errorf("%d functions ran", len(ran))
	}
}

// TestKilledAnywhere kills process groups in the middle of forking: no thread may
// be left behind and no stop unanswered.
func TestKilledAnywhere(t *testing.T) {
	for _, filter := range [][]unix.SockFilter{nil, traceAll()} {
		st, _ := run(t, filter, "sh", "-c", `
			for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
				setsid sh -c 'echo $$; while :; do (:) & (:); done' | (read p; sleep 0.0$((i%5)); kill -KILL -$p)
			done 2>/dev/null; exit 8`)
		if st.Exit != 8 {
			t.Errorf("status %+v", st)
		}
	}
}

// TestManyThreads uses a program whose threads make threads and processes, and
// whose last one calls execve.
func TestManyThreads(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "threads")
	if out, err := exec.Command("gcc", "-w", "-pthread", "-o", bin,
		"../../record/capture/ptrace/testdata/threads.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, filter := range [][]unix.SockFilter{nil, traceAll()} {
		st, l := run(t, filter, bin, dir)
		if st.Exit != 0 || l.threadExecs != 1 || l.forks != 10 {
			t.Errorf("status %+v, %d execs by threads, %d threads", st, l.threadExecs, l.forks)
		}
	}
}
