// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// TestCookbook runs the commands of docs/cookbook.md, each block in a directory of its own, and looks for the
// lines of their excerpts in what they print.
func TestCookbook(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it runs every recipe")
	text, err := os.ReadFile("../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := strings.Split(string(text), "\n## ")[1:]
	if len(recipes) < 15 {
		t.Errorf("%d recipes, want 15 or more", len(recipes))
	}
	for _, recipe := range recipes {
		title, rest, _ := strings.Cut(recipe, "\n")
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			blocks := strings.Split(rest, "```console\n")[1:]
			if len(blocks) == 0 {
				t.Error("no commands")
			}
			for _, block := range blocks {
				block, _, _ = strings.Cut(block, "```")
				cook(t, block)
			}
		})
	}
}

// cook runs the commands of a block.
func cook(t *testing.T, block string) {
	t.Helper()
	e := runEnv(t)
	bin := t.TempDir()
	if err := os.Symlink(e.iotape, filepath.Join(bin, "iotape")); err != nil { // the test's own may have another name
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
		command, excerpt, _ := strings.Cut(part, "\n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", command)
		cmd.Dir = e.dir
		cmd.Env = append(os.Environ(), e.vars...)
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		left := strings.Split(string(out), "\n")
		for _, line := range strings.Split(strings.TrimSpace(excerpt), "\n") {
			words := strings.Split(line, "…")
			for i := range words {
				words[i] = regexp.QuoteMeta(words[i])
			}
			want := regexp.MustCompile("^" + strings.Join(words, ".*") + "$")
			for len(left) > 0 && !want.MatchString(left[0]) {
				left = left[1:]
			}
			if len(left) == 0 {
				t.Fatalf("%s\nwant a line %q behind those before it, got\n%s", command, line, out)
			}
			left = left[1:]
		}
	}
}
