// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/iotape/iotape/internal/testenv"
)

// TestCommands runs the scripts in testdata: $LISTEN and $PAGE are free addresses,
// $CGROUP is the control group of all.
func TestCommands(t *testing.T) {
	testenv.NeedBPF(t)
	iotape, agent := testenv.Iotape(t), testenv.Agent(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			bin := filepath.Join(e.WorkDir, "bin")
			e.Setenv("PATH", bin+":"+e.Getenv("PATH"))
			e.Setenv("LISTEN", free(t))
			e.Setenv("PAGE", free(t))
			e.Setenv("CGROUP", cgroups(t))
			return errors.Join(os.Mkdir(bin, 0o755), os.Symlink(iotape, filepath.Join(bin, "iotape")),
				os.Symlink(agent, filepath.Join(bin, "iotape-agent")))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// status N COMMAND...: it ends with N.
			"status": func(ts *testscript.TestScript, _ bool, args []string) {
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				err = ts.Exec(args[1], args[2:]...)
				got := 0
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					got = exit.ExitCode()
				}
				if got != want {
					ts.Fatalf("status %d, want %d", got, want)
				}
			},
			// listening ADDRESS: somebody does.
			"listening": func(ts *testscript.TestScript, _ bool, args []string) {
				for range 600 {
					if conn, err := net.Dial("tcp", args[0]); err == nil {
						conn.Close()
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
				ts.Fatalf("nobody listens at %s", args[0])
			},
			// subst FILE...: $NAME in the files are the variables.
			"subst": func(ts *testscript.TestScript, _ bool, args []string) {
				for _, name := range args {
					text := os.Expand(ts.ReadFile(name), ts.Getenv)
					ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
				}
			},
		},
	})
}

// cgroups returns where control groups of version 2 are mounted: the group of all.
func cgroups(t *testing.T) string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1]
		}
	}
	return "/none"
}

func free(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
