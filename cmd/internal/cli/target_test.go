// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/session"
)

// TestTargets gives the flags that say what is recorded more than once.
func TestTargets(t *testing.T) {
	own, parent := os.Getpid(), os.Getppid()
	for _, tt := range []struct {
		args []string
		pids []int
		err  string
	}{
		{args: []string{"-p", strconv.Itoa(own), "--pid", strconv.Itoa(parent)}, pids: []int{own, parent}},
		{args: []string{"-p", strconv.Itoa(own) + "," + strconv.Itoa(parent)}, pids: []int{own, parent}},
		{args: []string{"-p", strconv.Itoa(own), "-p", strconv.Itoa(own)}, pids: []int{own}},
		{args: []string{"-p", strconv.Itoa(own), "-p", "x"}, err: `pid "x" is not the number of a process`},
		{args: []string{"--cgroup", "a", "--cgroup", "b"}, err: "only once"},
		{args: []string{"--unit", "a", "--unit", "b", "--wait"}, err: "only once"},
		{args: []string{"--container", "a", "--container", "b"}, err: "only once"},
		{args: []string{"--unit", "a", "--container", "b"}, err: "only one of"},
	} {
		var target cli.TargetFlags
		cmd := new(cobra.Command)
		target.Add(cmd, "record")
		target.AddWait(cmd.Flags())
		if err := cmd.ParseFlags(tt.args); err != nil {
			t.Fatal(err)
		}
		var p session.Plan
		err := target.Plan(&p, nil)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%q: %v; want an error with %q", tt.args, err, tt.err)
		case tt.err == "" && (err != nil || !slices.Equal(p.Capture.PIDs, tt.pids)):
			t.Errorf("%q: %v, %v; want %v", tt.args, p.Capture.PIDs, err, tt.pids)
		}
		if !target.Given() {
			t.Errorf("%q: not given", tt.args)
		}
	}
}
