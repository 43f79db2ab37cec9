// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/iotape/iotape/internal/early"
)

// TestHelpersAreEarly: a process that a recording starts from this executable has done its work before
// large packages are initialised.
func TestHelpersAreEarly(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	initialised := func(args ...string) (list [][]byte) {
		cmd := exec.Command(exe)
		cmd.Args, cmd.Env = args, append(os.Environ(), "GODEBUG=inittrace=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run() // it ends with an error: nothing is there to do
		for line := range bytes.Lines(stderr.Bytes()) {
			if bytes.HasPrefix(line, []byte("init ")) {
				list = append(list, line)
			}
		}
		return list
	}
	all := len(initialised(exe, "-test.run", "^$"))
	for _, args := range [][]string{
		{early.Exec, "no number"}, {early.Guardian}, {early.Watchdog, "no number", "1s"},
	} {
		got := initialised(args...)
		if len(got) == 0 || len(got) > all/2 {
			t.Errorf("%s initialises %d packages of %d, want less than half", args[0], len(got), all)
		}
		for _, line := range got {
			if bytes.Contains(line, []byte("cilium")) || bytes.Contains(line, []byte("iotape/iotape/event")) {
				t.Errorf("%s initialises a large package: %s", args[0], line)
			}
		}
	}
}
