// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// traceAll returns a filter that sends every call to the tracer.
func traceAll() []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE}}
}

// log counts what a handler is told, and checks what can be checked anywhere.
type log struct {
	t                           *testing.T
	forks, execs, exits         int
	enters, leaves, threadExecs int
	calls                       map[uint64]int
	live                        map[*Tracee]bool
	first                       uint64
}

func (l *log) handler() *Handler {
	l.calls, l.live = map[uint64]int{}, map[*Tracee]bool{}
	in := map[*Tracee]bool{}
	return &Handler{
		Fork: func(parent, child *Tracee) {
			l.forks++
			if l.live[child] {
				l.t.Errorf("thread %d is made twice", child.TID)
			}
			l.live[child] = true
		},
		Exec: func(t *Tracee, old int, replaced *Tracee) {
			l.execs++
			if replaced != nil {
				l.threadExecs++
				if old == t.TID || replaced.TID != t.TID {
					l.t.Errorf("exec by thread %d replaced %d, now %d", old, replaced.TID, t.TID)
				}
				delete(l.live, replaced)
			}
		},
		Enter: func(t *Tracee, c *Syscall) bool {
			if l.enters == 0 {
				l.first = c.NR
				l.live[t] = true
			}
			if !l.live[t] {
				l.t.Errorf("call %d by thread %d before its fork", c.NR, t.TID)
			}
			l.enters++
			l.calls[c.NR]++
			in[t] = true
			return true
		},
		Leave: func(t *Tracee, ret int64) {
			if !in[t] {
				l.t.Errorf("thread %d leaves a call that it did not enter", t.TID)
			}
			in[t] = false
			l.leaves++
		},
		Exit: func(t *Tracee, ws unix.WaitStatus) {
			l.exits++
			delete(l.live, t)
		},
	}
}

func run(t *testing.T, filter []unix.SockFilter, argv ...string) (Status, *log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	l := &log{t: t}
	gate := 0
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	st, err := New(&Command{
		Argv: argv, Filter: filter, Files: [3]*os.File{null, null, nil},
		Gate: func(pid int) error { gate = pid; return nil },
	}, l.handler()).Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !st.Ended || gate != st.PID {
		t.Errorf("status %+v, gate %d", st, gate)
	}
	if len(l.live) != 0 && filter != nil {
		t.Errorf("%d threads never ended", len(l.live))
	}
	return st, l
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name   string
		argv   []string
		exit   int
		signal syscall.Signal
	}{
		{"true", []string{"true"}, 0, 0},
		{"exit status", []string{"sh", "-c", "exit 7"}, 7, 0},
		{"terminated", []string{"sh", "-c", "kill -TERM $$"}, 0, syscall.SIGTERM},
		{"killed", []string{"sh", "-c", "kill -KILL $$; sleep 9"}, 0, syscall.SIGKILL},
		{"stopped and continued", []string{"sh", "-c", "(sleep .2; kill -CONT $$) & kill -STOP $$; exit 3"}, 3, 0},
		{"trap", []string{"sh", "-c", "trap 'exit 5' USR1; kill -USR1 $$; sleep 9"}, 5, 0},
		{"orphan", []string{"sh", "-c", "sleep .3 & exit 4"}, 4, 0},
	} {
		for _, mode := range []struct {
			name   string
			filter []unix.SockFilter
		}{{"filter", traceAll()}, {"bare", nil}} {
			t.Run(c.name+"/"+mode.name, func(t *testing.T) {
				st, l := run(t, mode.filter, c.argv...)
				if st.Exit != c.exit || st.Signal != c.signal {
					t.Errorf("exit %d, signal %v; want %d, %v", st.Exit, st.Signal, c.exit, c.signal)
				}
				if mode.filter != nil && l.first != unix.SYS_EXECVE {
					t.Errorf("the first call is %d, not execve", l.first)
				}
			})
		}
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	plain := dir + "/plain"
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		want       error
	}{
		{"not in PATH", "no-such-command-here", exec.ErrNotFound},
		{"no file", dir + "/none", fs.ErrNotExist},
		{"not executable", plain, fs.ErrPermission},
		{"directory", dir, fs.ErrPermission},
	} {
		for _, filter := range [][]unix.SockFilter{nil, traceAll()} {
			_, err := New(&Command{Argv: []string{c.path}, Filter: filter}, &Handler{}).Run(t.Context())
			if !errors.Is(err, c.want) {
				t.Errorf("%s: error %v, want %v", c.name, err, c.want)
			}
		}
	}
	refuse := errors.New("no room")
	_, err := New(&Command{Argv: []string{"true"}, Gate: func(int) error { return refuse }},
		&Handler{}).Run(t.Context())
	if !errors.Is(err, refuse) {
		t.Errorf("a refusing gate: %v", err)
	}
}
