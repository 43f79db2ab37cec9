// SPDX-License-Identifier: Apache-2.0

package throttlerun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/causal/throttle/hosts"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/merge"
)

// tape records the application, or opens the tape that was made when the runs began.
func (e *experiment) tape(ctx context.Context) (*trace.Tape, error) {
	if _, err := os.Stat(e.Plan.Tape); errors.Is(err, fs.ErrNotExist) && !e.Suggest {
		if err := e.record(ctx); err != nil {
			return nil, err
		}
	} else if e.Runs == "" {
		return nil, hint.With(fmt.Errorf("%s exists", e.Plan.Tape),
			"choose another name with -o, or name the directory of its runs with --runs")
	}
	t, err := trace.Open(e.Plan.Tape)
	if err != nil {
		return nil, err
	}
	b, err := t.Manifest().Encode()
	if err != nil {
		t.Close()
		return nil, err
	}
	sum := sha256.Sum256(b)
	e.serial = hex.EncodeToString(sum[:8])
	if err := e.fits(t.Manifest()); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// fits reports what is wrong with a tape that runs are to be compared with.
func (e *experiment) fits(m *trace.Manifest) error {
	command := e.Plan.Capture.Command
	names := e.Team.Names
	if len(names) == 0 {
		names = []string{""}
	}
	if len(m.Hosts) != len(names) {
		return fmt.Errorf("%s is a recording of %s, not of %d", e.Plan.Tape,
			report.Plural(len(m.Hosts), "host", "hosts"), len(names))
	}
	for i := range m.Hosts {
		h, argv := &m.Hosts[i], command
		if names[i] != "" {
			argv = hosts.Argv(command, names[i])
			if h.Host != names[i] {
				return fmt.Errorf("%s: its host %d is %s, not %s", e.Plan.Tape, i+1, h.Host, names[i])
			}
		}
		if !slices.Equal(h.Command, argv) {
			return fmt.Errorf("%s is not a recording of %s", e.Plan.Tape, strings.Join(argv, " "))
		}
	}
	if m.Signal != 0 || m.ExitStatus != 0 {
		return fmt.Errorf("%s is of a run that failed, with %s: there is nothing to compare others with", e.Plan.Tape,
			ending(&throttle.Run{Exit: m.ExitStatus, Signal: m.Signal}))
	}
	return nil
}

// record records the application, within its time.
func (e *experiment) record(ctx context.Context) error {
	if err := e.prepared(ctx); err != nil {
		return err
	}
	if e.peers != nil {
		return e.recordParts(ctx)
	}
	return recordBounded(ctx, &e.Plan, e.left())
}

// recordBounded records a command, and ends it when its time is over or ctx is cancelled.
func recordBounded(ctx context.Context, plan *session.Plan, limit time.Duration) error {
	p := *plan
	p.Capture.Stdout = os.Stderr // what is found goes to the standard output
	for _, b := range p.Backends {
		p.Capture.Wakeups = p.Capture.Wakeups || b.Name() == "ebpf" && os.Geteuid() == 0
	}
	late, done := make(chan bool, 1), make(chan struct{})
	calls, over := map[uint32]string{}, int64(0) // what threads were in when their time was over, and that time
	go func() {
		select {
		case <-done:
			late <- false
			return
		case <-ctx.Done():
		case <-time.After(limit):
		}
		descendants(os.Getpid(), func(pid int) {
			tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
			for _, task := range tasks {
				if tid, err := strconv.Atoi(filepath.Base(task)); err == nil {
					calls[uint32(tid)] = throttle.CallOf(tid)
				}
			}
		})
		over, _ = capture.Clocks()
		late <- true
		for { // for what is made meanwhile
			killAll(os.Getpid())
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	res, err := session.Record(ctx, &p)
	close(done)
	if <-late {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return fmt.Errorf("the command was not at its end after %v, and was ended%s (--each, --budget)",
			limit.Round(time.Millisecond), whatThreadsWereAt(p.Tape, over, calls))
	}
	if err != nil {
		return err
	}
	const what = "the command, recorded with nobody held, failed with"
	switch c := res.Capture; {
	case c.Signal != 0:
		return fmt.Errorf("%s status %d", what, 128+c.Signal)
	case c.ExitStatus != 0:
		return fmt.Errorf("%s status %d", what, c.ExitStatus)
	}
	return nil
}

// recordParts records the application on several hosts, and joins the tapes.
func (e *experiment) recordParts(ctx context.Context) error {
	dir := e.Plan.Tape + ".parts"
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e.note("recording it on %s", report.Plural(len(e.Team.Names), "host", "hosts"))
	backend := "auto"
	if len(e.Plan.Backends) == 1 {
		backend = e.Plan.Backends[0].Name()
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, e.deadline)
	defer cancel()
	parts, err := e.peers.Record(ctx, dir, e.left(), func(host string) *hosts.Task {
		return &hosts.Task{Record: true, Argv: hosts.Argv(e.Plan.Capture.Command, host), Dir: wd,
			Backend: backend, Budget: e.left()}
	})
	if err != nil {
		return err
	}
	clock, wall := capture.Clocks()
	var tapes []*trace.Tape
	for _, p := range parts {
		t, err := trace.Open(p.Dir)
		if err != nil {
			return fmt.Errorf("host %s: its tape: %w", p.Host, err)
		}
		defer t.Close()
		// All are on this host's clock.
		for i := range t.Manifest().Hosts {
			h := &t.Manifest().Hosts[i]
			h.Host, h.WallNS = p.Host, h.ClockNS+p.Ahead.Nanoseconds()+int64(wall)-int64(clock)
		}
		tapes = append(tapes, t)
	}
	staged, err := sealing.Stage(e.Plan.Tape)
	if err != nil {
		return err
	}
	defer staged.Abandon()
	if err := staged.Write(func(tw *trace.TapeWriter) (*trace.Manifest, error) {
		return merge.Tapes(ctx, tw, tapes, &merge.Options{Program: e.Plan.Program})
	}); err != nil {
		return err
	}
	_, err = staged.Publish(ctx)
	return err
}

// prepared runs what is to be run before the command.
func (e *experiment) prepared(ctx context.Context) error {
	if e.Prepare == "" {
		return nil
	}
	limit := max(e.left(), 0)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", e.Prepare)
	cmd.Env, cmd.WaitDelay = e.Plan.Capture.Env, time.Second
	if o := e.Plan.Capture.Credential; o != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o}
	}
	if out, err := cmd.CombinedOutput(); ctx.Err() != nil {
		return fmt.Errorf("--prepare: not at its end after %v (--each, --budget)", limit.Round(time.Millisecond))
	} else if err != nil {
		return fmt.Errorf("--prepare: %w: %s", err, strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; "))
	}
	return nil
}
