package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
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
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/merge"
)

// tape records the application, or opens the tape that was made when the runs began.
func (d *discovering) tape(ctx context.Context, c *console) (*trace.Tape, error) {
	if _, err := os.Stat(d.plan.out); errors.Is(err, fs.ErrNotExist) && !d.suggest {
		if err := d.record(ctx, c); err != nil {
			return nil, err
		}
	} else if d.runs == "" {
		return nil, withHint(fmt.Errorf("%s exists", d.plan.out), "choose another name with -o, or name the directory of its runs with --runs")
	}
	t, err := openTape(ctx, d.plan.out)
	if err != nil {
		return nil, err
	}
	b, err := t.Manifest().Encode()
	if err != nil {
		t.Close()
		return nil, err
	}
	sum := sha256.Sum256(b)
	d.serial = hex.EncodeToString(sum[:8])
	if err := d.fits(t.Manifest()); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// fits reports what is wrong with a tape that runs are to be compared with.
func (d *discovering) fits(m *trace.Manifest) error {
	command := d.plan.capture.Command
	names := d.team.Names
	if len(names) == 0 {
		names = []string{""}
	}
	if len(m.Hosts) != len(names) {
		return fmt.Errorf("%s is a recording of %s, not of %d", d.plan.out, report.Plural(len(m.Hosts), "host", "hosts"), len(names))
	}
	for i := range m.Hosts {
		h, argv := &m.Hosts[i], command
		if names[i] != "" {
			argv = hosts.Argv(command, names[i])
			if h.Host != names[i] {
				return fmt.Errorf("%s: its host %d is %s, not %s", d.plan.out, i+1, h.Host, names[i])
			}
		}
		if !slices.Equal(h.Command, argv) {
			return fmt.Errorf("%s is not a recording of %s", d.plan.out, strings.Join(argv, " "))
		}
	}
	if m.Signal != 0 || m.ExitStatus != 0 {
		return fmt.Errorf("%s is of a run that failed, with %s: there is nothing to compare others with", d.plan.out, ending(&throttle.Run{Exit: m.ExitStatus, Signal: m.Signal}))
	}
	return nil
}

// left is how long the next run may take.
func (d *discovering) left() time.Duration {
	return min(d.each, time.Until(d.deadline)-d.reserve)
}

// within passes on events until the time is over.
func (d *discovering) within(events iter.Seq2[*event.Event, error]) iter.Seq2[*event.Event, error] {
	const often = 1 << 12 // events between two looks at the clock
	return func(yield func(*event.Event, error) bool) {
		n := 0
		for ev, err := range events {
			if n++; n%often == 0 && time.Now().After(d.deadline) {
				yield(nil, fmt.Errorf("after %v what was found was not put together yet (--budget)", d.budget))
				return
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// record records the application, within its time.
func (d *discovering) record(ctx context.Context, c *console) error {
	if err := d.prepared(ctx); err != nil {
		return err
	}
	if d.peers != nil {
		return d.recordParts(ctx, c)
	}
	return recordBounded(ctx, c, &d.plan, d.left())
}

// recordBounded records a command, and ends it when its time is over or ctx is cancelled.
func recordBounded(ctx context.Context, c *console, plan *recordPlan, limit time.Duration) error {
	p := *plan
	p.capture.Stdout = c.err // what is found goes to the standard output
	for _, b := range p.backend {
		p.capture.Wakeups = p.capture.Wakeups || b.Name() == "ebpf" && os.Geteuid() == 0
	}
	late, done := make(chan bool, 1), make(chan struct{})
	calls := map[uint32]string{} // that threads were in when their time was over
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
	err := record(ctx, c, &p)
	close(done)
	if <-late {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return fmt.Errorf("the command was not at its end after %v, and was ended%s (--each, --budget)", limit.Round(time.Millisecond), whatThreadsWereAt(p.out, calls))
	}
	return failedRun("the command, recorded with nobody held,", err)
}

// whatThreadsWereAt says of a command that was ended in what calls its threads were, and
// since when: as its tape has it, and, for calls that are not recorded, as they were seen.
func whatThreadsWereAt(name string, calls map[uint32]string) string {
	t, err := openTape(context.Background(), name)
	if err != nil {
		return ": nothing is known of it"
	}
	defer t.Close()
	type key struct{ host, tid uint32 }
	type at struct {
		what  string
		since int64
		in    bool
	}
	last, order, end := map[key]at{}, []key(nil), int64(0)
	for ev, err := range t.Events() {
		if err != nil {
			break
		}
		k := key{ev.Host, ev.TID}
		if ev.Kind != event.Call {
			if ev.Kind == event.Exited && last[k].what != "" && !last[k].in && ev.Ret != int64(syscall.SIGKILL) {
				delete(last, k) // it ended by itself
				order = slices.DeleteFunc(order, func(o key) bool { return o == k })
			}
			continue
		}
		if _, known := last[k]; !known {
			order = append(order, k)
		}
		end = max(end, ev.Exit)
		a := at{fmt.Sprintf("thread %d (%s)", ev.TID, report.Printable(ev.Comm)), ev.Exit, ev.Flags&event.Interrupted != 0}
		switch call := calls[ev.TID]; {
		case a.in:
			a.what, a.since = a.what+" in "+ev.Op.String(), ev.Enter
		case call != "":
			a.what += " in " + call + ", after " + ev.Op.String() + ","
		default:
			a.what += " in no call, after " + ev.Op.String() + ","
		}
		last[k] = a
	}
	const most = 8
	var said []string
	for i, k := range order {
		if i == most {
			said = append(said, "…")
			break
		}
		said = append(said, fmt.Sprintf("%s for %s", last[k].what, report.Duration(end-last[k].since)))
	}
	if len(said) == 0 {
		return ": nothing is known of it"
	}
	return ": " + strings.Join(said, "; ")
}

// recordParts records the application on several hosts, and joins the tapes.
func (d *discovering) recordParts(ctx context.Context, c *console) error {
	dir := d.plan.out + ".parts"
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.say("recording it on %s", report.Plural(len(d.team.Names), "host", "hosts"))
	backend := "auto"
	if len(d.plan.backend) == 1 {
		backend = d.plan.backend[0].Name()
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, d.deadline)
	defer cancel()
	parts, err := d.peers.Record(ctx, dir, d.left(), func(host string) *hosts.Task {
		return &hosts.Task{Record: true, Argv: hosts.Argv(d.plan.capture.Command, host), Dir: wd, Backend: backend, Budget: d.left()}
	})
	if err != nil {
		return err
	}
	clock, wall := capture.Clocks()
	var tapes []*trace.Tape
	for _, p := range parts {
		t, err := openTape(ctx, p.Dir)
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
	mk, err := startTape(d.plan.out, false)
	if err != nil {
		return err
	}
	defer mk.abandon()
	if err := mk.write(func(tw *trace.TapeWriter) (*trace.Manifest, error) {
		return merge.Tapes(ctx, tw, tapes, &merge.Options{Program: program()})
	}); err != nil {
		return err
	}
	_, err = mk.finish(ctx, c)
	return err
}

// failedRun says of a run that went wrong that it did.
func failedRun(what string, err error) error {
	var s *statusError
	if errors.As(err, &s) && s.Err == nil {
		return fmt.Errorf("%s failed with status %d", what, s.Status)
	}
	return err
}

// killAll ends what a process has started.
func killAll(pid int) {
	descendants(pid, func(child int) { _ = syscall.Kill(child, syscall.SIGKILL) })
}

// descendants calls f for what a process has started, children before their parents.
func descendants(pid int, f func(pid int)) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		b, _ := os.ReadFile(name)
		for _, s := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(s); err == nil {
				descendants(child, f)
				f(child)
			}
		}
	}
}

// prepared runs what is to be run before the command.
func (d *discovering) prepared(ctx context.Context) error {
	if d.prepare == "" {
		return nil
	}
	limit := max(d.left(), 0)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", d.prepare)
	cmd.Env, cmd.WaitDelay = d.plan.capture.Env, time.Second
	if o := d.plan.capture.Credential; o != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o}
	}
	if out, err := cmd.CombinedOutput(); ctx.Err() != nil {
		return fmt.Errorf("--prepare: not at its end after %v (--each, --budget)", limit.Round(time.Millisecond))
	} else if err != nil {
		return fmt.Errorf("--prepare: %w: %s", err, oneLine(string(out)))
	}
	return nil
}

// watch runs the command with a node held, or nobody.
func (d *discovering) watch(ctx context.Context, node string) (*throttle.Run, error) {
	if err := d.prepared(ctx); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if d.left() <= 0 {
		return nil, fmt.Errorf("no time was left for another run of the command (--budget)")
	}
	o := &d.plan.capture
	opt := &throttle.Options{
		Command: ptracer.Command{Argv: o.Command, Env: o.Env, Credential: o.Credential, Files: [3]*os.File{null, null, os.Stderr}},
		Scope:   d.scope, Serial: d.serial, Hold: node, Period: d.period, Known: d.known,
		Patience: d.patience, Most: d.most, Budget: d.left(),
	}
	if d.peers != nil {
		wd, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithDeadline(ctx, d.deadline)
		defer cancel()
		return d.peers.Watch(ctx, opt, wd)
	}
	r, err := throttle.Watch(ctx, opt)
	if err != nil {
		return nil, runError(o.Command[0], err)
	}
	return r, nil
}

// quiet is the run in which nobody is held.
func (d *discovering) quiet(ctx context.Context, c *console) error {
	r, err := d.load("quiet.json")
	if r == nil && err == nil && d.suggest {
		err = fmt.Errorf("%s has no runs", d.runs)
	}
	if r == nil && err == nil {
		c.say("running it with nobody held")
		if r, err = d.watch(ctx, ""); err == nil {
			switch {
			case r.Abandoned != "":
				err = fmt.Errorf("the command was ended with nobody held: %s (--each, --budget)", r.Abandoned)
			case r.Exit != 0 || r.Signal != 0:
				err = fmt.Errorf("the command, run again with nobody held, failed with %s; is there anything that --prepare should restore?", ending(r))
			default:
				err = d.store("quiet.json", r)
			}
		}
	}
	if err != nil {
		return err
	}
	d.known = append(d.known, r)
	return nil
}

func ending(r *throttle.Run) string {
	if r.Signal != 0 {
		return fmt.Sprintf("signal %d", r.Signal)
	}
	return fmt.Sprintf("status %d", r.Exit)
}

// hold is the run in which a node is held.
func (d *discovering) hold(ctx context.Context, c *console, node, which string) error {
	name := fmt.Sprintf("node-%s-%d.json", strings.ReplaceAll(node, "/", "_"), d.period)
	if r, err := d.load(name); err != nil || r != nil {
		return err // it comes with the others
	}
	c.say("%s: node %s is held", which, node)
	r, err := d.watch(ctx, node)
	if err != nil {
		return err
	}
	if quiet := d.known[0]; r.Abandoned == "" && (r.Exit != quiet.Exit || r.Signal != quiet.Signal) {
		d.failed = append(d.failed, fmt.Sprintf("the command failed with %s when node %s was held", ending(r), node))
	}
	if d.runs == "" {
		d.known = append(d.known, r)
		return nil
	}
	return d.store(name, r)
}
