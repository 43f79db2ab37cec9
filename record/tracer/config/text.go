// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// OutputName is where the tracer's recordings go: a tape, or what Output.To says.
func (t *TracerSpec) OutputName() string {
	switch {
	case t.Output.To != "":
		return t.Output.To
	case t.Output.Tape != "":
		return t.Output.Tape
	}
	return t.Name + ".tape"
}

// String describes the input for people.
func (in *Input) String() string {
	switch {
	case len(in.Command) > 0:
		return "command " + strings.Join(in.Command, " ")
	case len(in.PIDs) > 0:
		return "process " + strings.Trim(fmt.Sprint(in.PIDs), "[]")
	case in.Cgroup != "":
		return "control group " + in.Cgroup
	case in.Mount != nil:
		return in.Mount.Lower + " mounted at " + in.Mount.At
	}
	return "the whole machine"
}
