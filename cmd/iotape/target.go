package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/record/capture"
)

// targetFlags say what to record other than a command.
type targetFlags struct {
	pids     string
	cgroup   string
	all      bool
	duration time.Duration
}

// add adds the flags; verb is what is done with the target.
func (t *targetFlags) add(cmd *cobra.Command, verb string) {
	f := cmd.Flags()
	f.StringVarP(&t.pids, "pid", "p", "", verb+" process `PID` that runs already, or several with commas, with all threads and children, instead of a command")
	f.StringVar(&t.cgroup, "cgroup", "", verb+" what runs in a control group, `PATH` or a part of its name such as a container's id, now and later")
	f.BoolVarP(&t.all, "all", "a", false, verb+" the whole machine, without iotape itself")
	f.DurationVar(&t.duration, "duration", 0, "with --pid, --cgroup and --all: "+verb+" for `TIME`, then stop")
}

// plan puts the flags, a command and what to do on overflow into a plan. Its errors
// are the user's.
func (t *targetFlags) plan(p *recordPlan, command []string, overflow capture.Overflow, overflowGiven bool) error {
	given := 0
	for _, is := range []bool{len(command) > 0, t.pids != "", t.cgroup != "", t.all} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return errors.New("say what to record: a command, --pid, --cgroup or --all")
	case given > 1:
		return errors.New("only one of a command, --pid, --cgroup and --all can be recorded")
	case len(command) > 0 && t.duration != 0:
		return errors.New("--duration is for --pid, --cgroup and --all: a command is recorded to its end")
	case t.duration < 0:
		return fmt.Errorf("duration %s is less than nothing", t.duration)
	}
	o := &p.capture
	o.Command, o.All, o.Overflow, p.duration = command, t.all, overflow, t.duration
	switch {
	case t.pids != "":
		for s := range strings.SplitSeq(t.pids, ",") {
			pid, err := strconv.Atoi(strings.TrimSpace(s))
			if err != nil || pid <= 0 {
				return fmt.Errorf("pid %q is not the number of a process", s)
			}
			o.PIDs = append(o.PIDs, pid)
		}
		p.target = "process " + strings.ReplaceAll(t.pids, ",", ", ")
		p.name = "pid-" + strconv.Itoa(o.PIDs[0])
	case t.cgroup != "":
		dir, err := findCgroup(t.cgroup)
		if err != nil {
			return err
		}
		o.Cgroup, p.target, p.name = dir, "control group "+dir, filepath.Base(dir)
	case t.all:
		p.target, p.name = "the whole machine", "all"
		if !overflowGiven {
			o.Overflow = capture.OverflowDrop // whoever is held could be who the recorder needs
		}
	default:
		p.name = strings.TrimLeft(filepath.Base(command[0]), ".")
	}
	if o.Running() && len(o.PIDs) == 0 {
		for _, b := range p.backend {
			if b.Name() == "ebpf" {
				p.backend = []backend{b}
				return nil
			}
		}
		return errors.New("--cgroup and --all need eBPF")
	}
	return nil
}

// context is the recording's: it ends with --duration.
func (p *recordPlan) context() (context.Context, context.CancelFunc) {
	ctx := p.until
	if ctx == nil {
		ctx = context.Background()
	}
	if p.duration > 0 {
		return context.WithTimeout(ctx, p.duration)
	}
	return context.WithCancel(ctx)
}
