// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/iotape/iotape/internal/testenv"
)

// TestScripts runs testdata/*.txtar with the real program. Beside testscript's own
// commands there are:
//
//	status N COMMAND...    the command ends with that exit status
//	flip FILE OFFSET       inverts a byte; a negative offset counts from the end
//	shorten FILE N         cuts a file to N bytes; a negative N cuts off so many
func TestScripts(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := os.Symlink(testenv.Iotape(t), filepath.Join(bin, "iotape")); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			e.Setenv("NO_COLOR", "1")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition")
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": status, "flip": flip, "shorten": shorten,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func flip(ts *testscript.TestScript, neg bool, args []string) {
	name, at, b := fileAndNumber(ts, args)
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 0xff
	ts.Check(os.WriteFile(name, b, 0o666))
}

func shorten(ts *testscript.TestScript, neg bool, args []string) {
	name, n, b := fileAndNumber(ts, args)
	if n < 0 {
		n += len(b)
	}
	ts.Check(os.WriteFile(name, b[:n], 0o666))
}

func fileAndNumber(ts *testscript.TestScript, args []string) (name string, n int, content []byte) {
	if len(args) != 2 {
		ts.Fatalf("usage: COMMAND FILE N")
	}
	name = ts.MkAbs(args[0])
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	content, err = os.ReadFile(name)
	ts.Check(err)
	return name, n, content
}
