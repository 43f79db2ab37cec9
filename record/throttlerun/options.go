// SPDX-License-Identifier: Apache-2.0

package throttlerun

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/session"
)

// Complete checks the options and makes them definite, for a command whose calls count on
// files below the directories under; all but those of the system if there are none. Errors
// name the flags of iotape discover.
func (d *Options) Complete(args, under []string) error {
	switch {
	case len(args) == 0:
		return errors.New("say what to run: a command")
	case d.Plan.Tape == "":
		return errors.New(`required flag(s) "output" not set`)
	case d.Period < 1:
		return fmt.Errorf("--period %d: it is to be 1, for each call, or more", d.Period)
	case d.Budget <= 0 || d.Each <= 0 || d.Hold <= 0 || d.Patience <= 0:
		return errors.New("--budget, --each, --hold and --patience are to be more than 0")
	case len(d.Team.Names) == 0 && d.Team.Launch+d.Team.Listen+d.Team.Secret != "":
		return errors.New("--launch, --listen and --secret are for --hosts")
	case len(d.Team.Names) > 0 && d.Plan.Owner != nil:
		return errors.New("--hosts: the command runs as who the launcher makes it, there is no --user")
	case d.Suggest && d.Runs == "":
		return errors.New("--suggest looks at the runs that --runs keeps")
	}
	if n, err := strconv.Atoi(d.Nodes); err == nil && n < 1 {
		return fmt.Errorf("--nodes %d: it is to be 1 or more", n)
	}
	for _, dir := range under {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		d.Scope.Under = append(d.Scope.Under, abs)
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			d.Scope.Under = append(d.Scope.Under, real)
		}
	}
	p := &d.Plan
	p.Capture = capture.Options{Command: args, Overflow: capture.OverflowBlock, Mmap: capture.MmapData}
	p.Capture.Content, _ = capture.ParseContent("full")
	p.Seal, p.Name = session.SealAfter, filepath.Base(args[0])
	p.Owner.Apply(&p.Capture)
	return nil
}
