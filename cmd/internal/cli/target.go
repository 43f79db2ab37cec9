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
	pids     []string
	cgroup   []string // this and the next two: one of them, once
	unit     []string
	within   []string // container
	next     bool
	found    string // the control group
	all      bool
	duration time.Duration
}

// Add adds the flags; verb is what is done with the target.
func (t *TargetFlags) Add(cmd *cobra.Command, verb string) {
	f := cmd.Flags()
	f.StringArrayVarP(&t.pids, "pid", "p", nil,
		verb+" the running process `PID`, or several with commas, with all threads and children, instead of a "+
			"command; repeatable")
	f.StringArrayVar(&t.cgroup, "cgroup", nil,
		verb+" all present and future processes of a control group: its `PATH`, or a part of its name such as a "+
			"container's ID")
	f.StringArrayVar(&t.unit, "unit", nil,
		verb+" all present and future processes of the systemd unit `NAME`, such as ssh.service")
	f.StringArrayVar(&t.within, "container", nil,
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

// Given reports whether one of the flags was given.
func (t *TargetFlags) Given() bool {
	return len(t.pids)+len(t.cgroup)+len(t.unit)+len(t.within) > 0 || t.all || t.duration != 0
}

// Plan puts the flags and a command into a plan. Its errors are the user's.
func (t *TargetFlags) Plan(p *session.Plan, command []string) error {
	o := &p.Capture
	o.Command, o.Cgroup, o.All, p.Duration = command, strings.Join(t.cgroup, ""), t.all, t.duration
	var err error
	if o.PIDs, err = session.ParsePIDs(strings.Join(t.pids, ",")); err != nil {
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
	unit, within := strings.Join(t.unit, ""), strings.Join(t.within, "")
	switch {
	case len(t.cgroup)+len(t.unit)+len(t.within) > 1:
		return errors.New("only one of --cgroup, --unit and --container can be recorded, and only once")
	case t.next && unit == "":
		return errors.New("--wait needs --unit")
	case unit != "" && t.next:
		p.Await, p.Name, p.Target = unit, unitTitle(unit), "unit "+unit
	case unit != "":
		if o.Cgroup, err = session.FindUnit(unit); err == nil {
			p.Name, p.Target = unitTitle(unit), "unit "+unit
		}
	case within != "":
		var title string
		if o.Cgroup, title, err = session.FindContainer(within); err == nil {
			p.Name, p.Target = title, "container "+within
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
	case len(t.pids) > 0:
		return []string{"--pid", strings.Join(t.pids, ",")}
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
