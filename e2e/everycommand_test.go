// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/safetext"
	"github.com/iotape/iotape/internal/testenv"
)

// hostileName has characters that change what a terminal shows, of each kind.
const hostileName = "a\x1b[31mb\u0085c\u202ed\u2066e\u200bf\x9bg\nh\ti,\"j"

// hostileScript makes, moves and removes files with $1 in their names, and runs a program with such a name.
const hostileScript = `n=$1
if [ -n "$IOTAPE_NOTES" ]; then printf 'note %s' "$n" | tr '\n' ' ' >"$IOTAPE_NOTES"; fi
cp /bin/cat "./c$n"
mkdir "d$n"
echo hello >"d$n/f$n"
"./c$n" "d$n/f$n" "=no$n" >"=1+1$n" 2>/dev/null
mv "d$n/f$n" "d$n/g$n"
ln -s "g$n" "d$n/l$n"
rm "=1+1$n"
(kill -TERM $(exec sh -c 'echo $PPID')) 2>/dev/null
rm -r "c$n" "d$n"
`

// everyCommand are command lines over what newHostile makes. NEW is a name that does not exist, DIR the
// directory, HOSTILE is hostileName.
var everyCommand = []string{
	"print a.tape",
	"print a.tape --utc -v --max-bytes -1",
	"print a.tape --csv",
	"print a.tape --json",
	"print missingHOSTILE.tape",
	"stat a.tape",
	"stat a.tape --json",
	"stat a.tape --by-note",
	"stat a.tape --by-note --json",
	"ps a.tape",
	"ps a.tape --json",
	"report a.tape",
	"report a.tape --json",
	"report a.tape a.tape --json",
	"tstat a.tape", "tstat a.tape --json",
	"users a.tape", "users a.tape --json",
	"patterns a.tape", "patterns a.tape --json",
	"sessions a.tape", "sessions a.tape --json",
	"index a.tape",
	"query a.tape SELECT~*~FROM~events",
	"query a.tape SELECT~*~FROM~files --csv",
	"query a.tape SELECT~*~FROM~files --json",
	"query a.tape SELECT~'HOSTILE'",
	"query a.tape SELECT~HOSTILE",
	"catalogue add --catalogue cat a.tape b.tape",
	"catalogue list --catalogue cat",
	"catalogue list --catalogue cat --epoch",
	"catalogue list --catalogue cat --json",
	"catalogue list --catalogue cat --csv",
	"catalogue find --catalogue cat calls~>~0",
	"catalogue find --catalogue cat calls~>~0 --json",
	"catalogue check --catalogue cat",
	"catalogue compact --catalogue cat",
	"catalogue rm --catalogue cat b.tape",
	"lake add --lake lake a.tape b.tape",
	"lake list --lake lake",
	"lake list --lake lake --json",
	"lake compact --lake lake",
	"lake expire --lake lake --keep 10000d",
	"explain-filter comm~=~'HOSTILE'",
	"explain-filter comm~=~'HOSTILE' --json",
	"explain-filter path~=~HOSTILE",
	"explain-filter --fields",
	"skeleton a.tape NEW",
	"replay a.tape --into NEW --verify",
	"replay a.tape --into NEW --verify --json",
	"replay a.tape --dry-run",
	"replay a.tape --dry-run --json",
	"replay a.tape --into NEW --copies 2 --verify --json",
	"compare a.tape --on x=NEW --on y=NEW",
	"compare a.tape --on x=NEW --on y=NEW --json",
	"script a.tape -o NEW",
	"script a.tape -o NEW --json",
	"diff a.tape b.tape",
	"diff a.tape b.tape --json",
	"slice a.tape NEW.tape --class namespace",
	"merge -o NEW.tape a.tape b.tape",
	"anonymise a.tape anon.tape --keys keys",
	"anonymise a.tape NEW.tape --keys keys --json",
	"reveal anon.tape NEW.tape --keys keys",
	"convert a.tape NEW.json --json",
	"convert a.tape NEW.json",
	"check a.tape",
	"check a.tape --json",
	"annotate a.tape",
	"annotate a.tape --json",
	"annotate a.tape --text",
	"order a.tape b.tape",
	"order a.tape b.tape --json",
	"order a.tape --events",
	"order a.tape --events --json",
	"order a.tape --before 5,9 --json",
	"flow a.tape",
	"flow a.tape --json",
	"flow a.tape --from DIR/script --json",
	"flow a.tape --numbers",
	"seal a.stream -o NEW.tape",
	"repair broken.stream -o NEW.tape",
	"raw a.stream",
	"tail --no-wait a.stream",
	"tail --no-wait --epoch a.stream",
	"tail --no-wait --json a.stream",
	"pipe p.stream",
	"pipe --check p.stream",
	"pipe --check p.stream --json",
	"top --tape a.tape --by file",
	"top --tape a.tape --by process,op",
	"top --tape a.tape --by process,op,file,dir,extension --json",
	"trace --backend ptrace -- sh script HOSTILE",
	"trace --backend ptrace --json -- sh script HOSTILE",
	"trace --backend ptrace -c -- sh script HOSTILE",
	"record --backend ptrace --print -o NEW.tape -- sh script HOSTILE",
	"record --backend ptrace -o NEW.tape -- HOSTILE",
	"run --example",
	"run --check HOSTILE",
	"tracers list",
	"tracers list --json",
	"tracers show HOSTILE",
	"tracers start HOSTILE",
	"tracers stop HOSTILE",
	"tracers add HOSTILE",
	"tracers remove HOSTILE",
	"tracers set HOSTILE",
	"dump --list",
	"dump HOSTILE",
	"note --recording HOSTILE x",
	"archive list store",
	"archive list store --json",
	"archive get store HOSTILE -o NEW",
	"collector enrol HOSTILE --data fleet",
	"collector enrol db7 --data fleet -o db7.key",
	"collector keys --data fleet",
	"collector keys --data fleet --json",
	"collector revoke HOSTILE --data fleet",
	"receive --dir NEW --listen tcp://HOSTILE",
	"ops",
	"ops --json",
	"version",
	"version --json",
	"keygen -o NEW",
	"completion HOSTILE",
	"man NEW",
	"help HOSTILE",
	"mount HOSTILE NEW",
	"discover -o HOSTILE",
	"HOSTILE",
}

// notTried are commands that everyCommand does not have.
var notTried = map[string]string{
	"agent": "it runs iotape-agent, which prints no names",
	"fleet": "it needs a collector: names are in the test of fleet/service",
	"serve": "it prints one line, and serves until it is ended",
}

// hostileTapes are what everyCommand reads.
type hostileTapes struct {
	*env
	news int
}

// newHostile records the script.
func newHostile(t *testing.T) *hostileTapes {
	t.Helper()
	h := &hostileTapes{env: runEnv(t)}
	h.write(t, "script", hostileScript)
	for _, args := range [][]string{
		{"record", "--backend", "ptrace", "--keep-stream", "-o", "a.tape"},
		{"record", "--backend", "ptrace", "-o", "b.tape"},
		{"record", "--backend", "ptrace", "--pipe", "zstd,checksum", "--to", "p.stream"},
	} {
		cmd := h.command(t, append(args, "--", "sh", "script", hostileName))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	whole, err := os.ReadFile(filepath.Join(h.dir, "a.stream"))
	if err != nil {
		t.Fatal(err)
	}
	stored := filepath.Join(h.dir, "store", "day=2026-01-02", "host=db7", "20260102T030405Z-1.tape")
	if err := os.CopyFS(stored, os.DirFS(filepath.Join(h.dir, "b.tape"))); err != nil {
		t.Fatal(err)
	}
	h.write(t, "broken.stream", string(whole[:len(whole)*2/3]))
	return h
}

func (h *hostileTapes) command(t *testing.T, args []string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, h.iotape, args...)
	cmd.Dir, cmd.Env = h.dir, append(os.Environ(), h.vars...)
	return cmd
}

// line returns the command of a command line.
func (h *hostileTapes) line(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "~", " ")
		args[i] = strings.ReplaceAll(args[i], "HOSTILE", hostileName)
		args[i] = strings.ReplaceAll(args[i], "DIR", h.dir)
		if strings.Contains(args[i], "NEW") {
			h.news++
			args[i] = strings.ReplaceAll(args[i], "NEW", "new"+string(rune('a'+h.news/26))+string(rune('a'+h.news%26)))
		}
		if _, dir, found := strings.Cut(args[i], "="); found && args[0] == "compare" {
			if err := os.Mkdir(filepath.Join(h.dir, dir), 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h.command(t, args)
}

// TestEveryCommandTried looks for commands that are not tried.
func TestEveryCommandTried(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(testenv.Iotape(t), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^  ([a-z][a-z-]+) {2,}\S`).FindAllSubmatch(out, -1)
	if len(names) < 45 {
		t.Fatalf("%d commands in the help, want 45 or more", len(names))
	}
	for _, m := range names {
		name := string(m[1])
		tried := slices.ContainsFunc(everyCommand, func(line string) bool { return strings.Fields(line)[0] == name })
		if (notTried[name] == "") != tried {
			t.Errorf("%s: tried is %t, reason why not is %q", name, tried, notTried[name])
		}
	}
}

// helpTexts returns the help of each command that is tried, by its name.
func helpTexts(t *testing.T) map[string]string {
	t.Helper()
	iotape, texts := testenv.Iotape(t), map[string]string{}
	groups := []string{"catalogue", "lake", "tracers", "archive", "collector"}
	for _, line := range everyCommand {
		command := strings.Fields(line)
		n := 1
		if len(command) > 1 && slices.Contains(groups, command[0]) {
			n = 2
		}
		name := strings.Join(command[:n], " ")
		if texts[name] != "" || strings.Contains(name, "HOSTILE") {
			continue
		}
		cmd := exec.Command(iotape, append(slices.Clone(command[:n]), "--help")...)
		cmd.Dir = t.TempDir()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s --help: %v", name, err)
		}
		texts[name] = string(out)
	}
	if len(texts) < 45 {
		t.Fatalf("%d commands with help, want 45 or more", len(texts))
	}
	return texts
}

// TestHelpOfFlags looks in the help of each command for flags whose value has no name, and for defaults that are
// nothing.
func TestHelpOfFlags(t *testing.T) {
	t.Parallel()
	typeName := regexp.MustCompile(
		`(?m)^ +(?:-., )?--[a-z0-9-]+ (?:u?int(?:s|64)?|float64|string(?:s|Array)?|duration)(?: .*|$)`)
	noDefault := regexp.MustCompile(`(?m)^ +.*--.*\(default (?:\[\])?\)$`)
	for name, help := range helpTexts(t) {
		for _, wrong := range []*regexp.Regexp{typeName, noDefault} {
			for _, flag := range wrong.FindAllString(help, -1) {
				t.Errorf("the help of %s has the flag\n%s", name, flag)
			}
		}
	}
}

// marks are what iotape itself writes to a terminal: colours, the line of a progress, ends of lines.
var marks = regexp.MustCompile("\x1b\\[[0-9;]*m|\r\x1b\\[K|\r\n")

// TestTerminal runs every command on a terminal, over names that change what a terminal shows.
func TestTerminal(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it runs every command")
	h := newHostile(t)
	escaped := 0
	for _, line := range everyCommand {
		tty, output := terminal(t)
		cmd := h.line(t, line)
		cmd.Env = append(cmd.Env, "TERM=xterm")
		cmd.Stdout, cmd.Stderr = tty, tty
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Errorf("%s: %v", line, err)
		}
		out := output()
		if strings.Contains(line, "-- sh script") { // cp and mv write to the terminal, too: they have to be silent
			out = regexp.MustCompile(`(?m)^(cp|mv|rm|cat|sh): .*$`).ReplaceAll(out, nil)
		}
		text := string(marks.ReplaceAll(out, []byte("\n")))
		for i, r := range text {
			if safetext.Unsafe(r) && r != '\n' && r != '\t' && !strings.HasPrefix(text[i:], "\ufffd") {
				t.Errorf("%s: %U in %q", line, r, text[max(0, i-60):min(len(text), i+20)])
				break
			}
		}
		if strings.Contains(text, `\u202e`) {
			escaped++
		}
		if len(text) == 0 && !strings.HasPrefix(line, "index") {
			t.Logf("%s: no output", line)
		}
	}
	if escaped < 30 {
		t.Errorf("the names are in the output of %d command lines, want 30 or more", escaped)
	}
}
