// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// colour is a mark of colour.
var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// coloured are commands of everyCommand whose results have colours on a terminal.
var coloured = []string{
	"print a.tape",
	"tail --no-wait a.stream",
	"replay a.tape --into NEW --verify",
	"trace --backend ptrace -- sh script HOSTILE",
	"record --backend ptrace --print -o NEW.tape -- sh script HOSTILE",
}

// TestColours looks for colours where they are wanted, and where they are not.
func TestColours(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for _, line := range coloured {
		for _, c := range []struct {
			env  string
			want bool
		}{{"TERM=xterm", true}, {"TERM=dumb", false}, {"NO_COLOR=1", false}} {
			tty, output := terminal(t)
			cmd := h.line(t, line)
			cmd.Env = append(cmd.Env, "NO_COLOR=", "TERM=xterm", c.env)
			cmd.Stdout, cmd.Stderr = tty, tty
			h.runs(t, cmd)
			if out := output(); colour.Match(out) != c.want || len(out) == 0 {
				t.Errorf("%s with %s: colours are %t, want %t:\n%q", line, c.env, !c.want, c.want, out)
			}
		}
	}
	for _, line := range []string{"trace --backend ptrace --print-to lines -- sh script HOSTILE",
		"print a.tape --json", "print a.tape --csv"} {
		tty, output := terminal(t)
		cmd := h.line(t, line)
		cmd.Env = append(cmd.Env, "NO_COLOR=", "TERM=xterm")
		cmd.Stdout, cmd.Stderr = tty, tty
		h.runs(t, cmd)
		lines, err := os.ReadFile(filepath.Join(h.dir, "lines"))
		if err != nil || len(lines) == 0 || colour.Match(lines) {
			t.Errorf("%s: the file has colours, or nothing, %v:\n%q", line, err, lines)
		}
		if out := output(); colour.Match(out) {
			t.Errorf("%s: colours:\n%q", line, out)
		}
	}
}

// TestColoursInFiles runs every command with its results in a file, and its messages on a terminal.
func TestColoursInFiles(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it runs every command")
	h := newHostile(t)
	for _, line := range everyCommand {
		tty, output := terminal(t)
		out, err := os.Create(filepath.Join(h.dir, "out"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := h.line(t, line)
		cmd.Env = append(cmd.Env, "NO_COLOR=", "TERM=xterm")
		cmd.Stdout, cmd.Stderr = out, tty
		h.runs(t, cmd)
		output()
		out.Close()
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		// Names with such marks pass where the output is no terminal: they begin with the name's first letter.
		if text := strings.ReplaceAll(string(text), hostileName[:5], ""); colour.MatchString(text) {
			t.Errorf("%s: colours in a file:\n%q", line, text)
		}
	}
}

// runs runs a command, whatever its exit status is.
func (h *hostileTapes) runs(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Errorf("%q: %v", cmd.Args, err)
	}
}
