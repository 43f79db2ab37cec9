// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/iotape/iotape/record/session"
)

// TargetFlags say what to record other than a command.
type TargetFlags struct {
	pids     string
	cgroup   string
	unit     string
	next     bool
	within   string // container
	found    string // the control group
	all      bool
	duration time.Duration
}

// Add adds the flags; verb is what is done with the target.
func (t *TargetFlags) Add(cmd *cobra.Command, verb string) {
	f := cmd.Flags()
	f.StringVarP(&t.pids, "pid", "p", "",
		verb+" the running process `PID`, or several with commas, with all threads and children, instead of a command")
	f.StringVar(&t.cgroup, "cgroup", "",
		verb+" all present and future processes of a control group: its `PATH`, or a part of its name such as a "+
			"container's ID")
	f.StringVar(&t.unit, "unit", "",
		verb+" all present and future processes of the systemd unit `NAME`, such as ssh.service")
	f.StringVar(&t.within, "container", "",
		verb+" all present and future processes of the container `NAME`, by its ID, the first digits of that, or its "+
			"name with Docker, Podman, LXC or systemd-nspawn")
	f.BoolVarP(&t.all, "all", "a", false, verb+" the whole machine, except iotape itself")
	f.DurationVar(&t.duration, "duration", 0,
		verb+" for `TIME`, then stop; setting up does not count")
}

// AddMaxTime adds another name of --duration, for commands that also have --max-size and --max-events.
func (t *TargetFlags) AddMaxTime(f *pflag.FlagSet) {
	f.DurationVar(&t.duration, "max-time", 0, "stop after `TIME`; the same as --duration")
}

// AddWait adds the flag that lets a recording begin before its unit.
func (t *TargetFlags) AddWait(f *pflag.FlagSet) {
	f.BoolVar(&t.next, "wait", false,
		"with --unit: if the unit does not run, wait for its next start, and record that from its first program on")
}

// Plan puts the flags and a command into a plan. Its errors are the user's.
func (t *TargetFlags) Plan(p *session.Plan, command []string) error {
	o := &p.Capture
	o.Command, o.Cgroup, o.All, p.Duration = command, t.cgroup, t.all, t.duration
	var err error
	if o.PIDs, err = session.ParsePIDs(t.pids); err != nil {
		return err
	}
	if err := t.findCgroup(p); err != nil {
		return err
	}
	return p.Resolve()
}

// findCgroup puts the control group of a unit or container into a plan.
func (t *TargetFlags) findCgroup(p *session.Plan) (err error) {
	o := &p.Capture
	given := 0
	for _, s := range []string{t.cgroup, t.unit, t.within} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("only one of --cgroup, --unit and --container can be recorded")
	case t.next && t.unit == "":
		return errors.New("--wait needs --unit")
	case t.unit != "" && t.next:
		p.Await, p.Name, p.Target = t.unit, unitTitle(t.unit), "unit "+t.unit
	case t.unit != "":
		if o.Cgroup, err = session.FindUnit(t.unit); err == nil {
			p.Name, p.Target = unitTitle(t.unit), "unit "+t.unit
		}
	case t.within != "":
		var title string
		if o.Cgroup, title, err = session.FindContainer(t.within); err == nil {
			p.Name, p.Target = title, "container "+t.within
		}
	}
	t.found = o.Cgroup
	return err
}

// unitTitle is what the tape of a unit is called after.
func unitTitle(name string) string { return strings.TrimSuffix(name, ".service") }

// Flags returns the flags of iotape record for the same target, nil if that is a command.
func (t *TargetFlags) Flags() []string {
	switch {
	case t.pids != "":
		return []string{"--pid", t.pids}
	case t.found != "":
		return []string{"--cgroup", t.found}
	case t.all:
		return []string{"--all"}
	}
	return nil
}

// AddUser adds the flag that says who runs a recorded command.
func AddUser(f *pflag.FlagSet, user *string) {
	f.StringVarP(user, "user", "u", "",
		"as root: run the command as `USER` (default under sudo: the user who called sudo)")
}
