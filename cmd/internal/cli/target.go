// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/iotape/iotape/record/session"
)

// TargetFlags say what to record other than a command.
type TargetFlags struct {
	pids     string
	cgroup   string
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
	f.BoolVarP(&t.all, "all", "a", false, verb+" the whole machine, except iotape itself")
	f.DurationVar(&t.duration, "duration", 0,
		verb+" for `TIME`, then stop; setting up does not count")
}

// Plan puts the flags and a command into a plan. Its errors are the user's.
func (t *TargetFlags) Plan(p *session.Plan, command []string) error {
	o := &p.Capture
	o.Command, o.Cgroup, o.All, p.Duration = command, t.cgroup, t.all, t.duration
	var err error
	if o.PIDs, err = session.ParsePIDs(t.pids); err != nil {
		return err
	}
	return p.Resolve()
}

// Flags returns the flags of iotape record for the same target, nil if that is a command.
func (t *TargetFlags) Flags() []string {
	switch {
	case t.pids != "":
		return []string{"--pid", t.pids}
	case t.cgroup != "":
		return []string{"--cgroup", t.cgroup}
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
