// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/iotape/iotape/bench/workload"
)

//go:embed src/timer.c
var sources embed.FS

// tools are the programs that a measurement uses, besides those on the PATH.
type tools struct {
	iotape string
	bin    string // directory of db_bench and lua.tar.gz, made by scripts/setup.sh --bench
	dir    string // of what was compiled here: timer, writeloop, pwriteloop
}

func (t *tools) timer() string { return filepath.Join(t.dir, "timer") }

// makeTools compiles the programs into dir.
func makeTools(ctx context.Context, dir string, o *Options) (*tools, error) {
	if err := workload.Install(dir); err != nil {
		return nil, err
	}
	b, err := sources.ReadFile("src/timer.c")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(workload.Source(dir, "timer"), b, 0o644); err != nil {
		return nil, err
	}
	for _, name := range []string{"timer", "writeloop", "pwriteloop"} {
		if err := run(ctx, dir, "gcc", "-O2", "-o", name, workload.Source(dir, name)); err != nil {
			return nil, err
		}
	}
	t := &tools{dir: dir}
	if t.iotape, err = filepath.Abs(o.Iotape); err == nil {
		t.bin, err = filepath.Abs(o.Bin)
	}
	return t, err
}

// run runs a command that belongs to the set-up, quietly.
func run(ctx context.Context, dir, name string, args ...string) error {
	return feed(ctx, dir, "", name, args...)
}

// feed is run with something on standard input.
func feed(ctx context.Context, dir, input, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, environment(dir, nil)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, lastLine(out))
	}
	return nil
}

// environment is what every program sees: nothing of the user's own settings.
func environment(home string, more []string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LC_ALL=C", "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1",
	}, more...)
}

// lastLine returns the last line with something in it: what a program said when it
// gave up.
func lastLine(b []byte) string {
	lines := strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(lines[i]); s != "" {
			return s
		}
	}
	return "it said nothing"
}

// missing says which program is not there; "" if all are.
func missing(programs ...string) string {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil && !errors.Is(err, exec.ErrDot) {
			return filepath.Base(p) + " is missing (scripts/setup.sh --bench)"
		}
	}
	return ""
}
